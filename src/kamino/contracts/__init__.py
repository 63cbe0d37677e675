"""What others declare of a table, read into one `Contract`: rules, references, types, and what is not carried over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports

if TYPE_CHECKING:
    from kamino.contracts.contract import Contract, ContractTable, ImportedRule, LeftOut, Reference
    from kamino.contracts.contract_readers import read_contract

__all__ = ["Contract", "ContractTable", "ImportedRule", "LeftOut", "Reference", "read_contract"]

_HOMES = {
    "Contract": "contract",
    "ContractTable": "contract",
    "ImportedRule": "contract",
    "LeftOut": "contract",
    "Reference": "contract",
    "read_contract": "contract_readers",
}

__getattr__ = late_imports(__name__, _HOMES)

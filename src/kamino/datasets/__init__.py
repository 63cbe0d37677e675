"""Built-in tables, made by a generator from a seed: nobody's data, of any size."""

from __future__ import annotations

from kamino.datasets.tax import TAX_CONSTRAINTS, tax, tax_blocks
from kamino.datasets.visits import VISITS_CONSTRAINTS, VISITS_SCHEMA, visits

__all__ = ["TAX_CONSTRAINTS", "VISITS_CONSTRAINTS", "VISITS_SCHEMA", "tax", "tax_blocks", "visits"]

"""Kamino: differentially private synthetic tables that keep your constraints.

>>> import kamino
>>> from kamino.datasets import tax
>>> private = tax(300)
>>> synthetic = kamino.Synthesizer(epsilon=1.0, delta=1e-6, trust_domain=True).fit(private).sample(50)
>>> synthetic.num_rows
50
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports

if TYPE_CHECKING:
    from kamino.constraints import Constraints
    from kamino.databases.synthesizer_of_databases import DatabaseSynthesizer
    from kamino.errors import (
        BudgetError,
        CancelledError,
        ConstraintError,
        ConstraintErrors,
        InputError,
        KaminoError,
        KaminoWarning,
        KeywordError,
        LedgerError,
        ModelError,
        PrivacyError,
        SamplingError,
        SchemaError,
        UnknownAttributeError,
    )
    from kamino.io import Reading
    from kamino.pipeline import (
        Backend,
        Engine,
        Job,
        Preset,
        SequenceMode,
        Settings,
        Stage,
        Synthesizer,
        Training,
        WeightMode,
        WrittenTable,
        verify,
    )
    from kamino.pipeline.for_owners import check, draft_schema, report, score
    from kamino.privacy import Neighbours
    from kamino.sampling import Sampling
    from kamino.schema import Schema

__version__ = "0.2.0"
__all__ = [
    "Backend",
    "BudgetError",
    "CancelledError",
    "ConstraintError",
    "ConstraintErrors",
    "Constraints",
    "DatabaseSynthesizer",
    "Engine",
    "InputError",
    "Job",
    "KaminoError",
    "KaminoWarning",
    "KeywordError",
    "LedgerError",
    "ModelError",
    "Neighbours",
    "Preset",
    "PrivacyError",
    "Reading",
    "Sampling",
    "SamplingError",
    "Schema",
    "SchemaError",
    "SequenceMode",
    "Settings",
    "Stage",
    "Synthesizer",
    "Training",
    "UnknownAttributeError",
    "WeightMode",
    "WrittenTable",
    "__version__",
    "check",
    "draft_schema",
    "report",
    "score",
    "verify",
]

_PIPELINE = (
    "Backend",
    "Engine",
    "Job",
    "Preset",
    "SequenceMode",
    "Settings",
    "Stage",
    "Synthesizer",
    "Training",
    "WeightMode",
    "WrittenTable",
)
_HOMES = {
    **{name: "errors" for name in __all__ if name.endswith(("Error", "Errors", "Warning"))},
    **dict.fromkeys(_PIPELINE, "pipeline"),
    "verify": "pipeline",
    **dict.fromkeys(("check", "draft_schema", "report", "score"), "pipeline.for_owners"),
    "Constraints": "constraints",
    "DatabaseSynthesizer": "databases.synthesizer_of_databases",
    "Neighbours": "privacy",
    "Reading": "io",
    "Sampling": "sampling",
    "Schema": "schema",
}

__getattr__ = late_imports(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)

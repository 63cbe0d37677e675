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
    from kamino.pipeline import Synthesizer, verify
    from kamino.schema import Schema

__version__ = "0.1.0"
__all__ = ["Constraints", "Schema", "Synthesizer", "__version__", "verify"]

_HOMES = {"Constraints": "constraints", "Schema": "schema", "Synthesizer": "pipeline", "verify": "pipeline"}

__getattr__ = late_imports(__name__, _HOMES)

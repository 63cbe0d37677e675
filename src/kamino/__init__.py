"""Kamino: differentially private synthetic tables that keep your constraints.

>>> import kamino
>>> from kamino.datasets import tax
>>> private = tax(300)
>>> synthetic = kamino.Synthesizer(epsilon=1.0, delta=1e-6, trust_domain=True).fit(private).sample(50)
>>> synthetic.num_rows
50
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kamino.constraints import Constraints
    from kamino.pipeline import Synthesizer
    from kamino.schema import Schema

__version__ = "0.1.0"
__all__ = ["Constraints", "Schema", "Synthesizer", "__version__"]

_HOMES = {"Constraints": "kamino.constraints", "Schema": "kamino.schema", "Synthesizer": "kamino.pipeline"}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import kamino` stays light."""
    if name not in _HOMES:
        raise AttributeError(f"module 'kamino' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)

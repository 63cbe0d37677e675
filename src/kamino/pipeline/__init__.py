"""Where the stages meet: from a private table to a synthetic one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kamino.pipeline.settings import Backend, Preset, SequenceMode, Settings, WeightMode
    from kamino.pipeline.stages import Stage
    from kamino.pipeline.synthesizer import Synthesizer
    from kamino.pipeline.writing import WrittenTable

__all__ = [
    "Backend",
    "Preset",
    "SequenceMode",
    "Settings",
    "Stage",
    "Synthesizer",
    "WeightMode",
    "WrittenTable",
]

_HOMES = {
    "Backend": "settings",
    "Preset": "settings",
    "SequenceMode": "settings",
    "Settings": "settings",
    "Stage": "stages",
    "Synthesizer": "synthesizer",
    "WeightMode": "settings",
    "WrittenTable": "writing",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: all of them together are slow to import."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

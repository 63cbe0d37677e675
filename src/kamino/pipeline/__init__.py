"""Where the stages meet: from a private table to a synthetic one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports

if TYPE_CHECKING:
    from kamino.pipeline.output.writing import WrittenTable
    from kamino.pipeline.settings import Backend, Preset, SequenceMode, Settings, WeightMode
    from kamino.pipeline.stages import Stage
    from kamino.pipeline.synthesizer import Synthesizer

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
    "WrittenTable": "output.writing",
}

__getattr__ = late_imports(__name__, _HOMES)

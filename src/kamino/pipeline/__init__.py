"""Where the stages meet: from a private table to a synthetic one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports

if TYPE_CHECKING:
    from kamino.pipeline.job import Job
    from kamino.pipeline.output.writing import WrittenTable
    from kamino.pipeline.settings import Backend, Engine, Preset, SequenceMode, Settings, Training, WeightMode
    from kamino.pipeline.stages import Stage
    from kamino.pipeline.synthesizer import Synthesizer
    from kamino.pipeline.verifying.checks import Finding
    from kamino.pipeline.verifying.verification import Verification, verify

__all__ = [
    "Backend",
    "Engine",
    "Finding",
    "Job",
    "Preset",
    "SequenceMode",
    "Settings",
    "Stage",
    "Synthesizer",
    "Training",
    "Verification",
    "WeightMode",
    "WrittenTable",
    "verify",
]

_HOMES = {
    "Backend": "settings",
    "Engine": "settings",
    "Finding": "verifying.checks",
    "Job": "job",
    "Preset": "settings",
    "SequenceMode": "settings",
    "Settings": "settings",
    "Stage": "stages",
    "Synthesizer": "synthesizer",
    "Verification": "verifying.verification",
    "Training": "settings",
    "WeightMode": "settings",
    "WrittenTable": "output.writing",
    "verify": "verifying.verification",
}

__getattr__ = late_imports(__name__, _HOMES)

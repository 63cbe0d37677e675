"""Where the stages meet: from a private table to a synthetic one."""

from kamino.pipeline.settings import Backend, Preset, SequenceMode, Settings, WeightMode
from kamino.pipeline.stages import Stage
from kamino.pipeline.synthesizer import Synthesizer
from kamino.pipeline.writing import WrittenTable

__all__ = ["Backend", "Preset", "SequenceMode", "Settings", "Stage", "Synthesizer", "WeightMode", "WrittenTable"]

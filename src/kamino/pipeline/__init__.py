"""Where the stages meet: from a private table to a synthetic one."""

from kamino.pipeline.settings import SequenceMode, Settings
from kamino.pipeline.stages import Stage
from kamino.pipeline.synthesizer import Synthesizer

__all__ = ["SequenceMode", "Settings", "Stage", "Synthesizer"]

"""Stages of a run, told to whoever wants to show them."""

from __future__ import annotations

import enum
from collections.abc import Callable


class Stage(enum.Enum):
    """What the run is doing, in words fit for a progress bar."""

    READ = "reading the table"
    DOMAINS = "finding domains"
    FIT = "measuring and fitting"
    SAMPLE = "drawing rows"
    CHECK = "checking constraints"
    WRITE = "writing"


Progress = Callable[[Stage], None]


def silent(stage: Stage) -> None:
    """Show nothing."""
    del stage

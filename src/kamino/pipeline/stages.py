"""Stages of a run, told to whoever wants to show them."""

from __future__ import annotations

import enum
from typing import Protocol


class Stage(enum.Enum):
    """What the run is doing, in words fit for a progress bar."""

    READ = "reading the table"
    DOMAINS = "finding domains"
    FIT = "measuring and fitting"
    WEIGHTS = "weighing soft constraints"
    SAMPLE = "drawing rows"
    CHECK = "checking constraints"
    WRITE = "writing"


class Progress(Protocol):
    """Told when a stage begins, and within a stage how many of its parts are done."""

    def __call__(self, stage: Stage, done: int = 0, total: int = 1) -> None:
        """Take note."""
        ...


def silent(stage: Stage, done: int = 0, total: int = 1) -> None:
    """Show nothing."""
    del stage, done, total

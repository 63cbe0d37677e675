"""A stage of a run: it says what it will release, and then releases exactly that.

Planning is a fold of `plan` until a stage waits for what is not known yet; running is a fold of `run`. Both go by the
same objects, so that nothing is told twice: see `kamino.pipeline.program.programs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from kamino.arrays import IntArray
from kamino.engine.discovery import FoundDomains
from kamino.engine.lost_cells import NoisyLost
from kamino.model import SavedModel
from kamino.pipeline.plan.run_plan import RunPlan
from kamino.pipeline.stages import Progress, silent
from kamino.privacy import Gate
from kamino.privacy.private import PrivateCodes, PrivateTable
from kamino.privacy.schedule import Schedule
from kamino.sampling import SamplingPlan
from kamino.sampling.drawn_groups import GroupSizes
from kamino.sampling.soft.weights import FoundWeights


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What a stage will release, and the plan with what follows from that. `waits`: nothing more can be planned now.

    `releases` may be a forecast for the number of rows that was asked for; `allowed` are then those of any number.
    """

    plan: RunPlan
    releases: Schedule = field(default_factory=Schedule)
    allowed: Schedule | None = None
    waits: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class PrivateRows:
    """The rows of a run as far as they were made ready: the table, then its codes. Private."""

    table: PrivateTable
    codes: PrivateCodes | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Learned:
    """What a run knows after some of its stages. Every field may be published: it follows from releases."""

    plan: RunPlan
    found: FoundDomains | None = None
    noisy_sizes: Mapping[str, IntArray] = field(default_factory=dict)
    lost: NoisyLost | None = None
    model: SavedModel | None = None
    sampling: SamplingPlan | None = None
    groups: Mapping[str, GroupSizes] = field(default_factory=dict)
    soft: FoundWeights = field(default_factory=FoundWeights)


@dataclass(frozen=True, kw_only=True)
class Means:
    """What a stage works with: the gate, which lets through what it planned, and who is told how far it is."""

    gate: Gate
    progress: Progress = silent


class ReleaseStage(Protocol):
    """One stage of a run.

    Guarantees:
        It releases what it planned, and is refused anything else.  [test_what_a_stage_did_not_plan_is_refused]
        Its plan reads no private table.  [test_plan_command_reads_no_data]
    """

    name: ClassVar[str]
    """What it does, in a few words."""

    def plan(self, plan: RunPlan) -> Planned:
        """Say what it will release, from what is known; a stage may have nothing to do."""
        ...

    def run(self, rows: PrivateRows, known: Learned, means: Means) -> tuple[PrivateRows, Learned]:
        """Release it, and return what is known then; rows may come out as another, just as private, table."""
        ...

"""The program of a run: its stages in order, planned until one waits, and run one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kamino.errors import PrivacyError
from kamino.pipeline.output.notes import distance_notes, promise_notes, trusted_notes
from kamino.pipeline.plan.run_plan import CHOSEN_BY_CHANCE, PlannedStage, RunPlan
from kamino.pipeline.program.finding_stages import CountRows, FindDomains, FindTypes, KeepRows, ReadRules
from kamino.pipeline.program.measuring_stages import ChooseOffsets, GroupSizes, LostCells
from kamino.pipeline.program.model_stages import FitModel, FitWeights
from kamino.pipeline.program.release_stage import Learned, Means, PrivateRows, ReleaseStage
from kamino.pipeline.settings import SequenceMode
from kamino.privacy import Gate
from kamino.privacy.plan_guard import PlanGuard
from kamino.privacy.private import PrivateTable
from kamino.sampling import Sampling
from kamino.sampling.soft.soft_notes import soft_notes

#: The stages of a run. Each is planned from what is known before it, and runs on what those before it learned.
PROGRAM: tuple[ReleaseStage, ...] = (
    KeepRows(),
    ReadRules(),
    CountRows(),
    FindTypes(),
    FindDomains(),
    GroupSizes(),
    LostCells(),
    ChooseOffsets(),
    FitModel(),
    FitWeights(),
)


def plan_program(plan: RunPlan, *, done: Sequence[PlannedStage] = ()) -> RunPlan:
    """Plan stage after stage, until one waits for what is not known yet; stages that are `done` keep their releases."""
    gate = Gate(plan.settings.budget, unit=plan.settings.privacy_unit)
    made = {stage.name: stage.releases for stage in done}
    for stage in PROGRAM:
        planned = stage.plan(plan)
        releases = made.get(stage.name, planned.releases).with_sigmas(gate)
        plan = planned.plan
        own = PlannedStage(name=stage.name, releases=releases, allowed=planned.allowed)
        plan = replace(plan, program=(*plan.program, own))
        if planned.waits:
            return plan
    _refuse_samples_of_units(plan)
    return replace(plan, notes=_notes(plan))


def run_program(private: PrivateTable, plan: RunPlan, means: Means) -> Learned:
    """Run stage after stage, each behind a guard that refuses what it did not plan.

    Guarantees:
        An extra release, one of another size, with other noise or in another order is refused before it is charged.
        [test_what_a_stage_did_not_plan_is_refused]
    """
    rows, known = PrivateRows(table=private), Learned(plan=plan)
    with PlanGuard(means.gate.ledger).held() as guard:
        for stage in PROGRAM:
            with guard.stage(stage.name, known.plan.allowed_of(stage.name)):
                rows, known = stage.run(rows, known, means)
    return known


def _refuse_samples_of_units(plan: RunPlan) -> None:
    """Refuse what the gate would refuse after other releases: a sample of rows where a unit has several."""
    unit = plan.settings.privacy_unit
    sampled = [each for each in plan.schedule if each.kind in ("gradients", "sample")]
    if sampled and unit.max_rows > 1:
        raise PrivacyError(
            f"the privacy unit is {unit.describe()}, but {sampled[0].what!r} samples single rows; use the marginal "
            "backend and weights by matching, or set max_rows=1."
        )


def _notes(plan: RunPlan) -> tuple[str, ...]:
    """What may surprise in the table, as far as it is known before the run."""
    settings, num_rows, codec = plan.settings, plan.num_rows, plan.known_layout.codec
    trusted = () if num_rows is None else trusted_notes(codec.schema, num_rows)
    promised = promise_notes(codec, plan.constraints, num_rows) if settings.sampling.keeps_hard_constraints else ()
    weighed = settings.sampling is Sampling.CONSTRAINT_AWARE and plan.sampling is not None
    soft = soft_notes(plan.sampling, codec) if weighed and plan.sampling is not None else ()
    by_chance = settings.sequence is SequenceMode.RANDOM and settings.seed is None
    return (*distance_notes(codec), *trusted, *promised, *soft, *((CHOSEN_BY_CHANCE,) if by_chance else ()))

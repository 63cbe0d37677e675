"""From a private table to a fitted model, through the gate, as a plan says."""

from __future__ import annotations

from dataclasses import replace

from kamino.engine.discovery import FoundDomains
from kamino.engine.lost_cells import NoisyLost
from kamino.errors import PrivacyError
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.plan.run_plan import RunPlan
from kamino.pipeline.program.programs import run_program
from kamino.pipeline.program.release_stage import Means
from kamino.pipeline.settings import Settings
from kamino.pipeline.stages import Progress, silent
from kamino.privacy import Gate, SeededNoise
from kamino.privacy.private import PrivateTable
from kamino.schema import Schema


def open_gate(settings: Settings) -> Gate:
    """The gate of a run: noise from the operating system, unless a seed was given."""
    noise = SeededNoise(settings.seed) if settings.seed is not None else None
    return Gate(settings.budget, unit=settings.privacy_unit, noise=noise)


def fit(private: PrivateTable, plan: RunPlan, gate: Gate, *, progress: Progress = silent) -> Fitted:
    """Fit a model of a private table as planned, spending the gate's budget.

    Linear algebra has one thread meanwhile: its matrices are small, and threads would wait for each other.

    Raises:
        SamplingError: no table satisfies the constraints with the domains that were found.

    Guarantees:
        What is returned depends on the table through the gate only.  [test_replay_passes_for_synth]
        The ledger's total is within 0.1% below the budget, but for the neural backend, whose search may stop lower, and
        never above.  [test_budget_is_spent_and_not_overspent]
        Every release is one of the plan's.  [test_the_ledger_is_what_was_planned]
        Threads are as they were afterwards.  [test_a_fit_has_one_thread_for_linear_algebra]
    """
    from threadpoolctl import threadpool_limits  # only when a model is fitted

    with threadpool_limits(limits=1, user_api="blas"):
        return _fit(private, plan, gate, progress)


def _fit(private: PrivateTable, plan: RunPlan, gate: Gate, progress: Progress) -> Fitted:
    if gate.budget != plan.settings.budget or gate.unit != plan.settings.privacy_unit:
        raise PrivacyError("the gate has another budget or unit than the plan; open it with the plan's settings.")
    known = run_program(private, plan, Means(gate=gate, progress=progress))
    plan = known.plan
    assert known.model is not None, "a program ends with a model"
    return Fitted(
        constraints=plan.constraints,
        model=known.model,
        ledger=gate.ledger.to_dict(),
        references=plan.references,
        soft=known.soft,
        settings=plan.settings,
        held=plan.held,
        layout=plan.known_layout,
        sampling=known.sampling,
        found=_with_unreadable(known.found, known.lost, plan.known, known.model.num_rows),
        groups=known.groups,
    )


def _with_unreadable(
    found: FoundDomains | None, lost: NoisyLost | None, schema: Schema, num_rows: float
) -> FoundDomains | None:
    """What is known of the domains, with the shares of declared dates that cannot be read."""
    if lost is None:
        return found
    known = found if found is not None else FoundDomains(schema=schema)
    return replace(known, lost={**known.lost, **lost.shares(num_rows)})

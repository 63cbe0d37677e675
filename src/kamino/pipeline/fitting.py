"""From a private table to a fitted model, through the gate, as a plan says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kamino.arrays import IntArray
from kamino.engine import (
    discover_domains,
    discover_types,
    encode,
    keep_rows,
    release_about_rows,
    set_delta_aside,
    share_close,
)
from kamino.engine.discovery import FoundDomains
from kamino.engine.group_sizes import release_group_sizes, size_cells
from kamino.engine.lost_cells import UNREADABLE, NoisyLost, release_lost
from kamino.engine.recoded import recode
from kamino.errors import PrivacyError
from kamino.layout.table_layout import Layout
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.modelling import fit_model
from kamino.pipeline.output.taken import refuse_too_few_rows, refuse_useless
from kamino.pipeline.plan.close_dates import DIFFERENCES, choose_bases
from kamino.pipeline.plan.group_ids import GROUPS
from kamino.pipeline.plan.mostly_noise import refuse_noise
from kamino.pipeline.plan.planned_discovery import rows_share
from kamino.pipeline.plan.run_plan import RunPlan
from kamino.pipeline.plan.unreadable_dates import DATES
from kamino.pipeline.settings import Settings
from kamino.pipeline.stages import Progress, Stage, silent
from kamino.pipeline.weighing import has_soft, weigh
from kamino.privacy import Gate, SeededNoise
from kamino.privacy.private import PrivateTable
from kamino.sampling.drawn_groups import GroupDrawer, GroupSizes, estimate_sizes
from kamino.schema import Schema, check_columns


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
    private = recode(keep_rows(private, gate), plan.outer)
    plan, found = _find_domains(private, plan, gate, progress)
    check_columns(plan.known, private.without_rows())
    progress(Stage.FIT)
    noisy_sizes = _release_groups(private, plan, gate)
    unreadable = _release_unreadable(private, plan, gate)
    layout = _with_distances(private, plan, gate)
    codec = layout.codec
    codes = encode(private, codec)
    model = fit_model(codes, codec, plan, gate, progress=progress)
    sampling = plan.sampling_along(model.sequence)
    groups = _sizes_of_groups(noisy_sizes, plan, model.num_rows)
    if has_soft(plan.constraints):
        progress(Stage.WEIGHTS)
    soft = weigh(
        codes,
        codec,
        sampling,
        plan.constraints,
        model,
        gate,
        plan.settings,
        noise_multiplier=plan.weights_noise,
        draw_ids=GroupDrawer.of(groups, codec, (*plan.constraints, *plan.held)),
    )
    return Fitted(
        constraints=plan.constraints,
        model=model,
        ledger=gate.ledger.to_dict(),
        references=plan.references,
        soft=soft,
        settings=plan.settings,
        held=plan.held,
        layout=layout,
        sampling=sampling,
        found=_with_unreadable(found, unreadable, plan.known, model.num_rows),
        groups=groups,
    )


def _release_groups(private: PrivateTable, plan: RunPlan, gate: Gate) -> dict[str, IntArray]:
    """The noisy numbers of groups of each size, for each id of groups."""
    found = {}
    for planned in plan.schedule.part(GROUPS):
        (name,), noise = planned.attributes, planned.noise_multiplier or 0.0
        found[name] = release_group_sizes(private, name, gate, noise_multiplier=noise)
    return found


def _release_unreadable(private: PrivateTable, plan: RunPlan, gate: Gate) -> NoisyLost | None:
    """The noisy numbers of cells of declared dates that cannot be read; None where no format is declared."""
    (planned,) = plan.schedule.part(DATES) or (None,)
    if planned is None or planned.noise_multiplier is None:
        return None
    noise = planned.noise_multiplier
    return release_lost(private, plan.known, planned.attributes, gate, noise_multiplier=noise, what=UNREADABLE)


def _with_unreadable(
    found: FoundDomains | None, lost: NoisyLost | None, schema: Schema, num_rows: float
) -> FoundDomains | None:
    """What is known of the domains, with the shares of declared dates that cannot be read."""
    if lost is None:
        return found
    known = found if found is not None else FoundDomains(schema=schema)
    return replace(known, lost={**known.lost, **lost.shares(num_rows)})


def _sizes_of_groups(noisy: Mapping[str, IntArray], plan: RunPlan, num_rows: float) -> dict[str, GroupSizes]:
    """How many rows groups have: from releases only."""
    unit = plan.settings.privacy_unit
    sigmas = {planned.attributes[0]: planned.sigma or 0.0 for planned in plan.schedule.part(GROUPS)}
    return {
        name: estimate_sizes(counts, size_cells(name, unit), sigma=sigmas[name], num_rows=num_rows)
        for name, counts in noisy.items()
    }


def _with_distances(private: PrivateTable, plan: RunPlan, gate: Gate) -> Layout:
    """The layout of the run: dates that lie close to others are told by their distance from them."""
    layout = plan.known_layout
    (planned,) = plan.schedule.part(DIFFERENCES) or (None,)
    if planned is None or planned.noise_multiplier is None:
        return layout
    noise, plain = planned.noise_multiplier, layout.with_differences({}).codec
    near = share_close(encode(private, plain), plain, plan.close, gate, noise_multiplier=noise)
    named = frozenset(name for constraint in plan.constraints for name in constraint.attributes)
    return layout.with_differences({**layout.differences, **choose_bases(near, named | set(layout.differences))})


def _find_domains(
    private: PrivateTable, plan: RunPlan, gate: Gate, progress: Progress
) -> tuple[RunPlan, FoundDomains | None]:
    """Find types and domains within the budget where they are missing, and plan what follows.

    Guarantees:
        Where most columns turn out useless, nothing more is spent.  [test_a_useless_table_is_refused_early]
        Where there are too few rows for that, next to nothing is.  [test_too_few_rows_are_refused_at_once]
        The same holds for a table that would be noise.  [test_a_table_of_noise_is_refused]
    """
    if plan.discovery is None:
        return plan, None
    progress(Stage.DOMAINS)
    settings = plan.settings
    if plan.discovery.untyped:
        set_delta_aside(gate, plan.discovery.domains(settings))
    plan = plan.with_rows(release_about_rows(private, gate, mu_squared=rows_share(settings)))
    discovery = plan.discovery
    assert discovery is not None, "a plan keeps what there is to find"
    if discovery.is_hopeless(settings):
        columns = plan.columns if plan.schema is None else plan.schema.data_names
        refuse_too_few_rows(
            discovery.about_rows or 0, num_missing=len(plan.missing), num_columns=len(columns), settings=settings
        )
    if plan.schema is not None:
        refuse_noise(plan, discovery.about_rows or 0)
    if plan.schema is None:
        plan = plan.with_schema(discover_types(private, gate, mu_squared=discovery.types(settings)))
    found = FoundDomains(schema=plan.known, types_found=discovery.untyped)
    if plan.known.missing_domains:
        found = discover_domains(private, plan.known, gate, discovery.domains(settings))
        refuse_useless(found, settings)
        plan = plan.with_schema(found.schema)
    refuse_noise(plan, discovery.about_rows or 0)
    return plan, found

"""Stages that fit the model, and weigh soft constraints by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np

from kamino.arrays import IntArray
from kamino.constraints import Constraints
from kamino.engine.group_sizes import size_cells
from kamino.model import order_attributes, plan_marginal
from kamino.model.parts import KnownMap
from kamino.pipeline.modelling import fit_model, left_over, neural_settings
from kamino.pipeline.plan.hints import hints_of, model_attributes
from kamino.pipeline.plan.planned_discovery import charge
from kamino.pipeline.plan.run_plan import ModelPlan, OrderPlan, RunPlan
from kamino.pipeline.program.measuring_stages import GroupSizes as GroupSizesStage
from kamino.pipeline.program.release_stage import Learned, Means, Planned, PrivateRows
from kamino.pipeline.settings import Backend, SequenceMode, Settings
from kamino.pipeline.stages import Stage
from kamino.pipeline.weighing import has_soft, model_noise, planned_weights, weigh, weights_noise
from kamino.privacy import Gate, Neighbours
from kamino.privacy.sensitivity import Sensitivity
from kamino.sampling import Requirements, SamplingPlan, paper_sequence, random_order, require
from kamino.sampling.drawn_groups import GroupDrawer, GroupSizes, estimate_sizes
from kamino.sampling.plan.reference_maps import known_of
from kamino.schema import Codec


class FitModel:
    """Fit the distribution of one row."""

    name: ClassVar[str] = "fit model"

    def plan(self, plan: RunPlan) -> Planned:
        """Order, steps, and the releases of the model: what stages before it leave of the budget."""
        settings, rules, codec = plan.settings, plan.constraints, plan.known_layout.codec
        requirements = require(codec, rules, num_rows=plan.num_rows, references=plan.references)
        sampling = _sampling(codec, requirements, rules, settings)
        gate = Gate(settings.budget, unit=settings.privacy_unit)
        charge(gate, plan.schedule)
        noise = weights_noise(rules, settings, gate)
        chains = () if sampling is not None else requirements.chains
        plan = replace(
            plan,
            order_plan=OrderPlan(requirements=requirements, sampling=sampling, chains=chains),
            model_plan=ModelPlan(weights_noise=noise, left_over=left_over(rules, settings, rates_noise=noise)),
        )
        return _marginal(plan, codec, gate) if settings.backend is Backend.MARGINAL else _neural(plan, codec, gate)

    def run(self, rows: PrivateRows, known: Learned, means: Means) -> tuple[PrivateRows, Learned]:
        """Fit it."""
        assert rows.codes is not None, "a model is fitted to codes"
        plan = known.plan
        model = fit_model(rows.codes, plan.known_layout.codec, plan, means.gate, progress=means.progress)
        groups = _sizes_of_groups(known.noisy_sizes, plan, model.num_rows)
        return rows, replace(known, model=model, sampling=plan.sampling_along(model.sequence), groups=groups)


class FitWeights:
    """Find the weights of soft constraints."""

    name: ClassVar[str] = "fit weights"

    def plan(self, plan: RunPlan) -> Planned:
        """The rates at which they are violated."""
        parameters = plan.neural.parameters if plan.neural is not None else None
        noise = plan.model_plan.weights_noise
        releases, allowed = (
            planned_weights(plan.constraints, plan.settings, noise, parameters=each) for each in (parameters, None)
        )
        return Planned(plan=plan, releases=releases, allowed=allowed)

    def run(self, rows: PrivateRows, known: Learned, means: Means) -> tuple[PrivateRows, Learned]:
        """Release them, and find weights that make the output do the same."""
        assert rows.codes is not None, "violations are counted in codes"
        assert known.model is not None, "weights belong to a model"
        assert known.sampling is not None, "weights belong to steps"
        plan = known.plan
        codec = plan.known_layout.codec
        if has_soft(plan.constraints):
            means.progress(Stage.WEIGHTS)
        soft = weigh(
            rows.codes,
            codec,
            known.sampling,
            plan.constraints,
            known.model,
            means.gate,
            plan.settings,
            noise_multiplier=plan.model_plan.weights_noise,
            draw_ids=GroupDrawer.of(known.groups, codec, (*plan.constraints, *plan.held)),
        )
        return rows, replace(known, soft=soft)


def _sizes_of_groups(noisy: Mapping[str, IntArray], plan: RunPlan, num_rows: float) -> dict[str, GroupSizes]:
    """How many rows groups have: from releases only."""
    unit = plan.settings.privacy_unit
    sigmas = {planned.attributes[0]: planned.sigma or 0.0 for planned in plan.of_stage(GroupSizesStage.name)}
    return {
        name: estimate_sizes(counts, size_cells(name, unit), sigma=sigmas[name], num_rows=num_rows)
        for name, counts in noisy.items()
    }


def _marginal(plan: RunPlan, codec: Codec, gate: Gate) -> Planned:
    marginal = plan_marginal(
        model_attributes(codec),
        noise_multiplier=model_noise(plan.constraints, gate),
        sequence=plan.sequence,
        chains=plan.chains,
        hints=replace(hints_of(plan.constraints, codec), known=_public_maps(plan, codec)),
        distance=gate.sensitivity(Sensitivity.of_histogram()).under(gate.budget.neighbours),
        replaced=gate.budget.neighbours is Neighbours.REPLACE,
    )
    return Planned(
        plan=replace(plan, model_plan=replace(plan.model_plan, marginal=marginal)), releases=marginal.schedule
    )


def _public_maps(plan: RunPlan, codec: Codec) -> tuple[KnownMap, ...]:
    """The maps of reference tables, as the model reads them."""
    assert plan.requirements is not None, "a model is planned after what it must keep"
    found = (known_of(each, codec) for each in plan.requirements.references.values())
    return tuple(each for each in found if each is not None)


def _neural(plan: RunPlan, codec: Codec, gate: Gate) -> Planned:
    """Plan a neural fit; its noise is searched from the number of rows, by the same code as in the fit."""
    from kamino.model.neural.neural_schedule import charge_rows, in_sequence, plan_fit, plan_steps, planned_releases

    settings, attributes = neural_settings(plan.settings), model_attributes(codec)
    assert plan.sequence is not None, "a neural model does not choose its order"
    neural = None
    if plan.num_rows is not None:
        charge_rows(gate.ledger, settings)
        neural = plan_fit(
            attributes,
            gate.ledger,
            num_rows=max(1, plan.num_rows),
            sequence=plan.sequence,
            settings=settings,
            reserved=plan.model_plan.left_over.reserved,
            learn=plan.model_plan.left_over.learn_weights,
        )
    steps = plan_steps(in_sequence(attributes, plan.sequence), settings.limits)
    parameters = neural.parameters if neural else None
    releases, allowed = (
        planned_releases(steps, each, settings, private=plan.settings.budget.is_private) for each in (parameters, None)
    )
    plan = replace(plan, model_plan=replace(plan.model_plan, neural=neural))
    return Planned(plan=plan, releases=releases, allowed=allowed)


def _sampling(codec: Codec, requirements: Requirements, rules: Constraints, settings: Settings) -> SamplingPlan | None:
    """Order and steps; None where the model chooses the order."""
    if settings.sequence is SequenceMode.PAPER:
        return requirements.arrange(paper_sequence(codec, rules))
    if settings.sequence is SequenceMode.RANDOM:
        return requirements.arrange(random_order(tuple(codec.attributes), np.random.default_rng(settings.chance)))
    if settings.backend is Backend.NEURAL and not requirements.asks_for_an_order:
        return requirements.arrange(order_attributes(model_attributes(codec)))
    if requirements.depend_on_groups:
        # What a group has in common is drawn before what its rows differ in.
        return requirements.arrange()
    chained = requirements.chains
    open_ = settings.backend is Backend.MARGINAL and (len(chained) != 1 or set(chained[0]) != set(codec.attributes))
    if open_ and (chained or not requirements.asks_for_an_order):
        return None
    return requirements.arrange()

"""What a run will do, told before it does it: reads no table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kamino.constraints import Constraints
from kamino.model.marginal.budget import BudgetShares, weigh
from kamino.pipeline.binding import bind_constraints
from kamino.pipeline.hints import model_attributes
from kamino.pipeline.modelling import left_over
from kamino.pipeline.notes import promise_notes, trusted_notes
from kamino.pipeline.settings import Backend, SequenceMode, Settings
from kamino.pipeline.weighing import rates_noise
from kamino.privacy import gaussian_mu
from kamino.sampling import Sampling, SamplingPlan, build_plan, paper_sequence
from kamino.sampling.soft.soft_notes import soft_notes
from kamino.schema import Codec, Schema

if TYPE_CHECKING:
    from kamino.model.neural import NeuralPlan


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The first measurement of one attribute: its cells, its noise, and the distance that the noise may cost."""

    attribute: str
    cells: int
    sigma: float
    distance: float | None


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """The steps of a run, its budget and its noise. Every field may be published.

    `missing` are the attributes whose domains will be found within the budget: until then no order can be planned.
    `expected` are the first measurements of the marginal backend; `neural` are the parameters of the neural one, which
    depend on the number of rows. `notes` say what a reader of the table may not expect.
    """

    settings: Settings
    missing: tuple[str, ...]
    sampling: SamplingPlan | None
    shares: BudgetShares
    expected: tuple[Expected, ...]
    num_rows: int | None
    neural: NeuralPlan | None = None
    notes: tuple[str, ...] = ()

    @property
    def noise_multiplier(self) -> float:
        """The noise of one Gaussian release that would cost the whole budget; 0 where there is no privacy."""
        return 1 / gaussian_mu(self.settings.budget) if self.settings.budget.is_private else 0.0

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data."""
        budget = self.settings.budget
        return {
            "epsilon": budget.epsilon if budget.is_private else None,
            "delta": budget.delta,
            "neighbours": budget.neighbours.value,
            "noise_multiplier": self.noise_multiplier,
            "domains_to_find": list(self.missing),
            "sampling": self.sampling.to_json() if self.sampling else None,
            "backend": self.settings.backend.value,
            "measurements": [vars(each) for each in self.expected],
            "notes": list(self.notes),
            "neural": self.neural.to_json() if self.neural else None,
            "rows": self.num_rows,
        }


def plan_run(schema: Schema, constraints: Constraints, settings: Settings, *, num_rows: int | None = None) -> RunPlan:
    """Plan a run from public facts. `num_rows` is what you think or ask: for expected errors and for keys.

    Raises:
        SamplingError: the constraints clash, and no table can satisfy them.

    Guarantees:
        No table is an argument, so none is read.  [test_plan_command_reads_no_data]
    """
    rules = bind_constraints(constraints, schema)
    shares = BudgetShares()
    if schema.missing_domains:
        return RunPlan(
            settings=settings,
            missing=schema.missing_domains,
            sampling=None,
            shares=shares,
            expected=(),
            num_rows=num_rows,
        )
    codec = Codec(schema)
    plan = build_plan(codec, rules, num_rows=num_rows, sequence=_sequence(codec, rules, settings))
    by_marginals = settings.backend is Backend.MARGINAL
    return RunPlan(
        settings=settings,
        missing=(),
        sampling=plan,
        shares=shares,
        expected=_expected(codec, settings, shares, num_rows) if by_marginals else (),
        num_rows=num_rows,
        notes=_notes(codec, rules, plan, settings, num_rows),
        neural=None if by_marginals or num_rows is None else _neural(codec, rules, plan, settings, num_rows),
    )


def _notes(
    codec: Codec, rules: Constraints, plan: SamplingPlan, settings: Settings, num_rows: int | None
) -> tuple[str, ...]:
    """What may surprise in the table, as far as it is known before the run."""
    trusted = () if num_rows is None else trusted_notes(codec.schema, num_rows)
    promised = promise_notes(codec, rules, num_rows) if settings.sampling.keeps_hard_constraints else ()
    soft = soft_notes(plan, codec) if settings.sampling is Sampling.CONSTRAINT_AWARE else ()
    return (*trusted, *promised, *soft)


def _sequence(codec: Codec, rules: Constraints, settings: Settings) -> tuple[str, ...] | None:
    """The order of attributes where it is not the planner's; one by chance is not known yet."""
    return paper_sequence(codec, rules) if settings.sequence is SequenceMode.PAPER else None


def _neural(codec: Codec, rules: Constraints, plan: SamplingPlan, settings: Settings, num_rows: int) -> NeuralPlan:
    from kamino.model.neural import describe_plan

    noise = rates_noise(rules, gaussian_mu(settings.budget) ** 2)
    later = left_over(rules, settings, rates_noise=noise)
    return describe_plan(
        model_attributes(codec),
        settings.budget,
        sequence=plan.sequence,
        num_rows=num_rows,
        learn_weights=later.learn_weights,
        reserved=later.reserved,
    )


def _expected(codec: Codec, settings: Settings, shares: BudgetShares, num_rows: int | None) -> tuple[Expected, ...]:
    """The 1-way histograms: noise of a cell, and the total variation that this noise makes on average if left as it is.

    Distances of ordered attributes are in 16 bins, as `kamino.evaluate.metrics` measures them.
    """
    names = list(codec.attributes)
    cells = [min(codec[name].size, _MOST_CELLS) for name in names]
    parts = weigh([min(count, _WIDE) for count in cells])
    total = gaussian_mu(settings.budget) ** 2 if settings.budget.is_private else math.inf
    found = []
    for name, count, part in zip(names, cells, parts, strict=True):
        sigma = 1 / math.sqrt(total * shares.histograms * float(part)) if math.isfinite(total) else 0.0
        bins = 16 if count > 16 and codec.schema[name].type in ORDERED else count
        noise = bins * sigma * math.sqrt(count / bins) * math.sqrt(2 / math.pi) / 2
        distance = min(1.0, noise / num_rows) if num_rows else None
        found.append(Expected(attribute=name, cells=count, sigma=sigma, distance=distance))
    return tuple(found)


ORDERED = ("integer", "real", "date", "datetime")
_MOST_CELLS = 4096
_WIDE = 64

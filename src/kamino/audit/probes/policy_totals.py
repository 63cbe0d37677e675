"""Whether a durable ledger admits the runs that its policy allows, and no others, by sums of our own.

Made-up runs are entered in a ledger, charged and ended in every way there is, until several in a row are refused. For
each, what all earlier ones cost is added up anew from what was asked for and charged, without the code of the filter.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist

import numpy as np

from kamino.audit.loss_distribution import gaussian_epsilon
from kamino.audit.probes.probe import Probe
from kamino.errors import BudgetError
from kamino.privacy.accounting.budget import Budget
from kamino.privacy.accounting.events import DeltaEvent, Events, GaussianEvent, PoissonGaussianEvent
from kamino.privacy.durable.ledger_lines import Composition, PlannedRun, Policy
from kamino.privacy.durable.store import DONE, GIVEN_UP, DurableLedger
from kamino.privacy.ledger import Entry

_BUDGET = Budget(epsilon=2.0, delta=1e-6)
_FINDING = 2e-7
_DATASET = "people"
# Sums that are so near a bound may fall on either side of it.
_NEAR = 1e-6
_MOST_RUNS = 40
_MOST_REFUSED = 6
_ENDS = (DONE, GIVEN_UP, None)


@dataclass(frozen=True, kw_only=True)
class _Cost:
    """What runs cost: mu² and delta of their releases, and epsilon and delta of their budgets."""

    squares: float = 0.0
    finding: float = 0.0
    epsilon: float = 0.0
    delta: float = 0.0

    def plus(self, other: _Cost) -> _Cost:
        pairs = {name: value + getattr(other, name) for name, value in vars(self).items()}
        return replace(self, **pairs)


def policy_problems() -> Iterator[str]:
    """Tell which runs were admitted or refused wrongly, and what a ledger that is read again does not know."""
    for composition in Composition:
        for seed in range(3):
            with tempfile.TemporaryDirectory() as folder:
                yield from _of_a_ledger(Path(folder) / "made-up.ledger", composition, np.random.default_rng(seed))


def _of_a_ledger(path: Path, composition: Composition, rng: np.random.Generator) -> Iterator[str]:
    policy = Policy(dataset=_DATASET, budget=_BUDGET, composition=composition, finding_delta=_FINDING)
    total, refused, admitted = _Cost(), 0, []
    with DurableLedger.open(path) as ledger:
        ledger.set_policy(policy)
        for number in range(_MOST_RUNS):
            run = _planned(f"r{number}", number, rng)
            part = _of_the_policy(total.plus(_asked(run)), composition)
            try:
                ledger.reserve(run)
            except BudgetError:
                refused += 1
                if part < 1 - _NEAR:
                    yield f"a run was refused that the policy has room for ({composition.value} composition)"
                if refused == _MOST_REFUSED:
                    break
                continue
            if part > 1 + _NEAR:
                yield f"a run was admitted that goes over the policy ({composition.value} composition)"
            cost, kept = _spend(ledger, run, rng)
            total = total.plus(cost)
            if not kept:
                yield "a run was charged for more than was set aside for it"
            admitted.append(run.run)
    with DurableLedger.read(path) as again:
        if list(again.runs) != admitted or again.policies != {_DATASET: policy}:
            yield "a ledger that was read again holds other runs"


def _of_the_policy(cost: _Cost, composition: Composition) -> float:
    """The larger of the parts of both bounds that runs would take."""
    if composition is Composition.BASIC:
        return max(cost.epsilon / _BUDGET.epsilon, cost.delta / _BUDGET.delta)
    amount = gaussian_epsilon(math.sqrt(cost.squares), _BUDGET.delta - _FINDING) / _BUDGET.epsilon
    return max(amount, cost.finding / _FINDING)


def _planned(name: str, number: int, rng: np.random.Generator) -> PlannedRun:
    """A run that asks for some of the policy, in one of three ways; of the sampled ones there are few, for their price.

    Every third takes hardly any mu², so that parts of delta come to their bound as well.
    """
    budget = Budget(epsilon=float(rng.uniform(0.02, 0.5)), delta=float(rng.uniform(0.01, 0.3)) * _BUDGET.delta)
    sampled = number % 7 == 3
    finding = float(rng.uniform(0.1, 0.7)) * _FINDING if number % 2 else 0.0
    return PlannedRun(
        run=name,
        dataset=_DATASET,
        command="audit",
        plan="made up",
        started="2026-01-01T00:00:00+00:00",
        version="0",
        budget=budget,
        unit=None,
        max_rows=1,
        gaussian=float(rng.uniform(0.001, 0.03)) / (1 if number % 3 else 50),
        finding_delta=0.0 if sampled else min(finding, budget.delta / 2),
        sampled=sampled,
        mark="",
    )


def _asked(run: PlannedRun) -> _Cost:
    """What a run may cost at most."""
    squares, finding = run.gaussian, run.finding_delta
    if run.sampled:
        # As telling as the Gaussian mechanism that guesses right as often as randomised response of epsilon.
        squares = (2 * NormalDist().inv_cdf(1 / (1 + math.exp(-run.budget.epsilon)))) ** 2
        finding = run.budget.delta
    return _Cost(squares=squares, finding=finding, epsilon=run.budget.epsilon, delta=run.budget.delta)


def _spend(ledger: DurableLedger, run: PlannedRun, rng: np.random.Generator) -> tuple[_Cost, bool]:
    """Charge a part of what was asked for, or all, and end the run in some way.

    Return what it costs from then on, and whether a charge for more than was set aside was refused.
    """
    asked, part = _asked(run), float(rng.choice([0.0, 0.4, 1.0]))
    charged: list[Events] = []
    if part and run.sampled:
        charged.append(((PoissonGaussianEvent(noise_multiplier=40.0, sampling_rate=0.01), 10),))
    elif part:
        noise = 1 / math.sqrt(part * run.gaussian * (1 - 1e-9))
        charged.append(((GaussianEvent(noise_multiplier=noise), 1),))
        charged += [((DeltaEvent(delta=part * run.finding_delta), 1),)] if run.finding_delta else []
    for number, events in enumerate(charged):
        ledger.charge(run.run, Entry(kind="counts", what=f"release {number}", attributes=(), events=events))
    kept = run.sampled or _refuses(ledger, run)
    end = _ENDS[rng.integers(3)]
    if end is None:
        return asked, kept
    ledger.close_run(run.run, end)
    if not charged:
        return _Cost(), kept
    cost = asked if run.sampled else replace(asked, squares=part * asked.squares, finding=part * asked.finding)
    return cost, kept


def _refuses(ledger: DurableLedger, run: PlannedRun) -> bool:
    """Whether a run is refused charges that are more than all it set aside: of mu², and of delta."""
    more: list[Events] = [
        ((GaussianEvent(noise_multiplier=1 / math.sqrt(1.01 * run.gaussian)), 1),),
        ((DeltaEvent(delta=1.01 * run.finding_delta + 1e-12), 1),),
    ]
    for events in more:
        try:
            ledger.charge(run.run, Entry(kind="counts", what="more", attributes=(), events=events))
        except BudgetError:
            continue
        return False
    return True


POLICY = Probe(
    name="policies",
    does="Made-up runs are entered in ledgers under policies, charged and ended, until they are refused.",
    cannot="Processes that ask at the same time, and files that were changed; tests of ledgers have these.",
    search=policy_problems,
)

"""Whether one more run keeps a dataset's policy: the filters, and why they are valid.

Which run comes next, and with which budget, may follow from everything released before: composition is fully adaptive.
A sum of prices that are fixed beforehand would not bound that; a filter does, a rule that admits the next mechanism
only while totals stay below bounds that never move. Which of two filters is used is part of the policy, for their
"either or" is none.

*Gaussian.* The totals are mu² of all Gaussian releases and delta of all delta events, over all runs. Releases chosen
one by the other whose mu² never add up to more than B² are B-Gaussian private (Smith, Thakurta 2022, "Fully adaptive
composition for Gaussian differential privacy"; Koskela, Tobaben, Honkela 2022). A delta event fails with probability at
most its delta given all before it, so with totals below D one fails with probability at most D. Together they are
(epsilon, delta)-private where the Gaussian mechanism of mu = B is (epsilon, delta - D)-private; `dp_accounting` says
which B. D must not move: releases that decide whether to spend on mu² or on delta could cost up to twice delta. It is
given with the policy, or decided before the first release about the dataset: a tenth of delta, which is what a run
takes that finds domains; none, if the first run fits so only.

A run with sampled releases (the neural backend, the paper's weights) has no mu. The whole of it is (epsilon,
delta)-private by its own ledger. Such a mechanism is no more telling than one that fails with probability delta and is
randomised response of epsilon otherwise (Kairouz, Oh, Viswanath 2015), also if it is interactive and runs beside others
(Lyu 2022; Vadhan, Zhang 2023), and randomised response is no more telling than the Gaussian mechanism of
mu = 2 * Phi^-1(e^epsilon / (1 + e^epsilon)): both trade-off functions are convex, symmetric, and meet at the diagonal,
and the first is made of chords of the second. That is dear: epsilon 1 has mu 1.23, as a Gaussian run of epsilon 6 has.

*Basic.* The totals are the epsilon and the delta of all runs, whatever they release. They are a filter (Rogers, Roth,
Ullman, Vadhan 2016), also for runs side by side (Haney et al. 2023). What a run did not spend stays spent.

Runs that work at the same time are, release by release, one sequence: the ledger's lock puts them in an order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import NormalDist

from kamino.errors import BudgetError
from kamino.privacy.accounting.accountant import Tally
from kamino.privacy.accounting.budget import Budget, Neighbours
from kamino.privacy.accounting.calibration import max_mu, most_under_replace
from kamino.privacy.accounting.gaussian_delta import epsilon_at
from kamino.privacy.durable.ledger_lines import Composition, PlannedRun, Policy, StoredRelease

# Of delta, for finding categories, unless the policy says: what runs take by default.
FINDING_PART = 0.1
# Shares of delta are divided and added in floating point. A bound on mu² is below the exact one by more than this part
# of delta matters: `max_mu` leaves 1e-10 of mu, which is worth 1e-9 of delta and more.
ROUNDING = 1e-9
# The two multipliers of an event are rounded apart from each other, and mu² has twice the error.
_ROUNDING_OF_SQUARES = 1e-8


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a filter adds up: mu² and delta of delta events, or epsilon and delta."""

    amount: float
    delta: float


@dataclass(kw_only=True)
class RunState:
    """A run, and what it was charged for so far."""

    planned: PlannedRun
    tallies: dict[Neighbours, Tally]
    charged: list[str]
    """The hash of each release that was charged, in order."""
    is_bound: bool = False
    """Whether the ledger vouches for its stored releases; not in runs of format 1."""
    stored: list[StoredRelease] = field(default_factory=list)
    """The releases that were drawn and stored, in order; only of a bound run."""
    outcome: str | None = None
    """None while the run may go on; "done" or "given up"."""

    @property
    def is_open(self) -> bool:
        """Whether it may be charged for more."""
        return self.outcome is None


def reserved_gaussian(planned: PlannedRun, relation: Neighbours) -> float:
    """The most mu² that a run without sampled releases has under a relation: to replace is to remove and to add."""
    if relation is planned.budget.neighbours:
        return planned.gaussian
    return planned.gaussian * (4 if relation is Neighbours.REPLACE else 1) * (1 + _ROUNDING_OF_SQUARES)


def cost_of_run(run: RunState, policy: Policy) -> Cost:
    """What a run counts under a policy: while it is open, all that it may still spend."""
    relation, planned = policy.budget.neighbours, run.planned
    spent = run.tallies[relation]
    if policy.composition is Composition.BASIC:
        if not run.is_open and not run.charged:
            return Cost(amount=0.0, delta=0.0)
        return Cost(amount=_epsilon_under(planned.budget, relation), delta=planned.budget.delta)
    if spent.sampled or (run.is_open and planned.sampled):
        return Cost(amount=_mu_of_pure(_epsilon_under(planned.budget, relation)) ** 2, delta=planned.budget.delta)
    if not run.is_open:
        return Cost(amount=spent.gaussian, delta=spent.delta)
    return Cost(
        amount=max(spent.gaussian, reserved_gaussian(planned, relation)),
        delta=max(spent.delta, planned.finding_delta),
    )


def bound_of(policy: Policy) -> Cost:
    """What the totals may come to."""
    if policy.composition is Composition.BASIC:
        return Cost(amount=policy.budget.epsilon, delta=policy.budget.delta)
    finding = policy.finding_delta or 0.0
    return Cost(amount=max_mu(policy.budget, reserved_delta=finding) ** 2, delta=finding)


def keeps(total: Cost, bound: Cost) -> bool:
    """Whether totals are within their bounds."""
    return total.amount <= bound.amount and total.delta <= bound.delta * (1 + ROUNDING)


def total_cost(runs: Iterable[RunState], policy: Policy) -> Cost:
    """The totals of all runs of the policy's dataset."""
    costs = [cost_of_run(run, policy) for run in runs if run.planned.dataset == policy.dataset]
    return Cost(amount=math.fsum(each.amount for each in costs), delta=math.fsum(each.delta for each in costs))


def decide(policy: Policy, runs: Iterable[RunState], planned: PlannedRun) -> Policy:
    """Return the policy with what was left open in it decided, if the run may begin.

    Raises:
        BudgetError: the run is about another unit, or the totals would go over their bounds.

    Guarantees:
        Totals never go over, whichever processes ask at a time.  [test_eight_processes_keep_the_policy_exactly]
        A single run with the budget of the policy is admitted.  [test_a_policy_admits_a_run_of_its_own_budget]
    """
    if planned.unit != policy.unit:
        raise BudgetError(
            f"the policy of {policy.dataset!r} protects {_unit(policy.unit)}, the run {_unit(planned.unit)}: their "
            "costs do not add up. Run with the unit of the policy. Nothing was read or released"
        )
    asked = RunState(planned=planned, tallies={relation: Tally() for relation in Neighbours}, charged=[])
    earlier = [run for run in runs if run.planned.dataset == policy.dataset]
    for candidate in _candidates(policy, is_first=not earlier):
        total, bound = total_cost([*earlier, asked], candidate), bound_of(candidate)
        if keeps(total, bound):
            return candidate
    raise BudgetError(_refusal(_candidates(policy, is_first=not earlier)[0], earlier, asked))


def _candidates(policy: Policy, *, is_first: bool) -> tuple[Policy, ...]:
    """The policy with each part of delta that may be kept for finding categories, the preferred one first.

    After a release the part must not be chosen by what fits: that may follow from releases.
    """
    if policy.finding_delta is not None or policy.composition is Composition.BASIC:
        return (policy,)
    usual = replace(policy, finding_delta=FINDING_PART * policy.budget.delta)
    return (usual, replace(policy, finding_delta=0.0)) if is_first else (usual,)


def _refusal(policy: Policy, earlier: list[RunState], asked: RunState) -> str:
    """Why a run may not begin, and what to do."""
    total, bound = total_cost([*earlier, asked], policy), bound_of(policy)
    budget = policy.budget
    promise = f"the policy of {policy.dataset!r} allows epsilon={budget.epsilon:g} at delta={budget.delta:g}"
    if not keeps(replace(total, amount=0.0), bound) and total.amount <= bound.amount:
        kept = "" if policy.composition is Composition.BASIC else " for finding categories"
        reason = (
            f"this run would bring delta{kept} to {total.delta:g}, of which {bound.delta:g} may be spent; "
            "declare domains in a schema, or ask for a smaller delta"
        )
    else:
        reason = f"with this run all runs would come to {_shown(total, policy)}; ask for a smaller epsilon"
    if asked.planned.sampled and policy.composition is Composition.GAUSSIAN:
        reason += ", or for a run without sampled releases, or set a policy with basic composition"
    held = [run.planned.run for run in earlier if run.is_open]
    waiting = f". Unfinished runs hold a part ({', '.join(held[:5])}): finish or close them" if held else ""
    return f"{promise}, and {reason}{waiting}. Nothing was read or released"


def _shown(total: Cost, policy: Policy) -> str:
    return f"epsilon {epsilon_of_total(total, policy):.4g}"


def epsilon_of_total(total: Cost, policy: Policy) -> float:
    """The epsilon that totals stand for, at the policy's delta."""
    if policy.composition is Composition.BASIC:
        return total.amount
    if total.amount == 0:
        return 0.0
    left = policy.budget.delta - max(total.delta, policy.finding_delta or 0.0)
    if left <= 0 or not math.isfinite(total.amount):
        return math.inf
    return epsilon_at(math.sqrt(total.amount), left)


def _epsilon_under(budget: Budget, relation: Neighbours) -> float:
    """The most that a run costs under a relation, whichever it is planned for (see `Ledger.promised`)."""
    if relation is Neighbours.REPLACE and budget.neighbours is not relation:
        return most_under_replace(budget)
    return budget.epsilon


def _mu_of_pure(epsilon: float) -> float:
    """The mu of the Gaussian mechanism that is at least as telling as any epsilon-private one."""
    return -2 * NormalDist().inv_cdf(1 / (1 + math.exp(epsilon))) * (1 + 1e-9) if epsilon < 30 else math.inf


def _unit(column: str | None) -> str:
    return "single rows" if column is None else f"all rows with one value of {column!r}"


def tallies_after(tallies: Mapping[Neighbours, Tally], events: Iterable[tuple[object, int]]) -> dict[Neighbours, Tally]:
    """The sums under both relations, after more events."""
    found = dict(tallies)
    for relation in found:
        for event, count in events:
            found[relation] = found[relation].plus(event, count, relation)  # type: ignore[arg-type]
    return found

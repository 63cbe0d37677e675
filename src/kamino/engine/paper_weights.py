"""The private part of the paper's Algorithm 5: how often the rows of a small sample violate soft constraints.

A sample of at most L rows is taken, and V has a line for each with the number of violations of each constraint that the
row takes part in within the sample. One row that comes, goes or gives way to another moves V, constraint by
constraint, as follows. On single rows: its own entry by at most 1. On pairs: its own entry by at most L - 1, for it has
as many partners, and those of the L - 1 others by at most 1 each: (L - 1)² + (L - 1) = L² - L in squares. So V moves by
at most the root of k_1 + k_2 (L² - L) with k_1 constraints on single rows and k_2 on pairs. The paper's Lemma 1 adds
k_1 + k_2 sqrt(L² - L) instead; squares of different columns add up, so its bound holds but is larger. Its proof is for
one row replaced; a row that comes finds an entry of 0 in its place, within the same bound. That V has as many lines as
the sample has rows, that lines move up where a row is missing, and that more than L rows are cut to L, the lemma does
not treat: `kamino.privacy.mechanisms.samples` does, with L lines always, random places, and a proof for the cut.

The sample is drawn inside the gate, so it is charged as a Poisson sampled Gaussian event. Where a run has no such event
planned before its model is fitted, the sampling rate is a public constant: a rate that followed from the noisy number
of rows would be chosen by an earlier release, and prices of sampled events add up only if they are planned before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kamino.constraints import DenialConstraint, violations_per_row
from kamino.constraints.tree import Kind
from kamino.engine.rates import model_share
from kamino.privacy import Gate, GaussianEvent, PoissonGaussianEvent, epsilon, multiplier_for
from kamino.privacy.mechanisms.samples import SamplePlan
from kamino.privacy.private import PrivateCodes, open_codes
from kamino.schema import Codec
from kamino.schema.coding.decoding import decode_columns

# One row in so many is sampled where the rate must be public: of 40,000 rows 100, as the paper has it.
SAMPLING_RATE = 1 / 400
# The search for the noise begins with the first, and stops where the price is within this part of the budget, or where
# the multiplier is known within as much.
_MUCH_NOISE, _LITTLE_NOISE, _MOST_NOISE = 2.0, 0.5, 1e6
_PRECISION = 0.0005


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyMatrix:
    """The noisy violation matrix: a line for each place of the sample, a column for each constraint. Public."""

    constraints: tuple[DenialConstraint, ...]
    values: NDArray[np.int64]


def paper_noise(rules: Iterable[DenialConstraint], gate: Gate) -> float:
    """Return the noise multiplier at which a matrix sampled at `SAMPLING_RATE` costs what the model leaves over.

    To be called before the model is fitted, which may then spend the part `model_share` of what is left. 0 if no
    constraint is soft, or no privacy is asked for.

    Guarantees:
        Model and matrix together cost the budget, within 0.1% below.  [test_noise_of_the_paper_fits_the_budget]
    """
    rules = tuple(rules)
    if not _soft(rules) or not gate.budget.is_private:
        return 0.0
    multiplier = multiplier_for(gate.gaussian_left() * model_share(rules))
    # Under the run's own relation the model costs this multiplier; no other is asked for here.
    planned = (GaussianEvent(noise_multiplier=multiplier, replace_multiplier=multiplier), 1)
    spent = [*(pair for entry in gate.ledger.entries for pair in entry.events), planned]

    def price(noise: float) -> float:
        event = PoissonGaussianEvent(noise_multiplier=noise, sampling_rate=SAMPLING_RATE)
        return epsilon([*spent, (event, 1)], delta=gate.budget.delta, neighbours=gate.budget.neighbours)

    return _least(price, gate.budget.epsilon)


def _least(price: Callable[[float], float], most: float) -> float:
    """Return about the least noise whose price is at most `most`, from much noise on: little is slow to price."""
    high = _MUCH_NOISE
    paid = price(high)
    while paid > most and high < _MOST_NOISE:
        high *= 2
        paid = price(high)
    while high > _LITTLE_NOISE and (less := price(high / 2)) <= most:
        high, paid = high / 2, less
    low = high / 2
    while paid < most * (1 - _PRECISION) and high / low > 1 + _PRECISION:
        middle = math.sqrt(low * high)
        between = price(middle)
        low, high, paid = (low, middle, between) if between <= most else (middle, high, paid)
    return high


def matrix_sensitivity(constraints: Iterable[DenialConstraint], sample_rows: int) -> float:
    """Return how far one row moves the violation matrix of at most `sample_rows` rows, in L2.

    Guarantees:
        No row moves it further, and some move it as far.  [test_the_matrix_moves_within_its_sensitivity]
    """
    return math.sqrt(sum(1 if c.is_unary else sample_rows**2 - sample_rows for c in constraints))


def release_violation_matrix(
    private: PrivateCodes,
    codec: Codec,
    rules: Iterable[DenialConstraint],
    gate: Gate,
    *,
    sample_rows: int,
    noise_multiplier: float,
    num_rows: float,
    sampling_rate: float | None = None,
) -> NoisyMatrix:
    """Release the violation matrix of a sample for the soft constraints among `rules`.

    `num_rows` is public or noisy. The rate is `sample_rows / num_rows` unless `sampling_rate` is given.

    Guarantees:
        The result depends on the table through the gate only.  [test_replay_passes_for_the_violation_matrix]
    """
    soft = _soft(rules)
    if not soft:
        return NoisyMatrix(constraints=(), values=np.zeros((0, 0), dtype=np.int64))
    coded = open_codes(private)
    names = tuple(dict.fromkeys(name for c in soft for name in c.attributes))
    rows = np.column_stack([coded[name] for name in names]).astype(np.int64)
    most = max(2, sample_rows)
    plan = SamplePlan(
        what=f"violations of {len(soft)} soft constraints in a sample",
        attributes=names,
        sample_rows=most,
        sampling_rate=_rate(sample_rows, num_rows, sampling_rate),
        noise_multiplier=noise_multiplier,
        num_columns=len(soft),
        sensitivity=matrix_sensitivity(soft, most),
    )

    def measure(places: NDArray[np.int64]) -> NDArray[np.int64]:
        return violation_matrix(codec, {name: coded[name][places] for name in names}, soft)

    return NoisyMatrix(constraints=soft, values=gate.release_sample(rows, measure, plan))


def violation_matrix(
    codec: Codec, columns: dict[str, NDArray[np.int64]], constraints: Iterable[DenialConstraint]
) -> NDArray[np.int64]:
    """Return, for each row and constraint, how many violations among these rows the row takes part in."""
    table = decode_columns(codec, columns, columns)
    return np.column_stack([violations_per_row(table, c).astype(np.int64) for c in constraints])


def _soft(rules: Iterable[DenialConstraint]) -> tuple[DenialConstraint, ...]:
    return tuple(dict.fromkeys(c for c in rules if c.strength.kind is Kind.SOFT))


def _rate(sample_rows: int, num_rows: float, given: float | None) -> float:
    return given if given is not None else min(1.0, sample_rows / max(num_rows, 1.0))

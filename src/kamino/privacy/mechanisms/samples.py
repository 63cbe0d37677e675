"""A table made from a small random sample of the rows, released with Gaussian noise.

Every row is in the sample with probability `sampling_rate`, independently of the others. Of a sample larger than L,
L rows are kept at random. `measure` makes a line of whole numbers for each row that is kept, and the lines go to
distinct places, chosen at random, of a matrix with L lines; other lines are 0. The matrix is released with noise.

Let `sensitivity` bound how far, in L2, the lines of at most L rows move if one row comes, goes, or gives way to another
and its line stays in place. Then this is a Poisson sampled Gaussian mechanism of that sensitivity. Proof. Fix a table
without row x, the sample S of it, and what is kept of S and where. If x is not in the sample, the matrix is that of S.
If x is in it and S has m < L rows, put x into one of the L - m free places at random: the places of S and x are a
random choice of m + 1 different ones, as they should be, and a line has come. If m >= L, leave all as it is with
probability 1 - L / (m + 1), and otherwise put x in the place of one of the L kept rows, at random: what is kept is a
random choice of L of the m + 1 rows, in random places, as it should be, and one row gave way to another. So, given all
other coins, the output is N(v, s²) without x, and N(v + a, s²) with x in the sample, with |a| <= sensitivity; with y in
the place of x it is N(v + b, s²), |b| <= sensitivity. That is a sum over a Poisson sample, clipped to `sensitivity`,
which the accountant prices under both relations; and averages over the other coins cost no more, since the hockey-stick
divergence is jointly convex. The number of sampled rows does not show: there are always L lines.

A row's coins are a keyed hash of its values and of how many equal rows come before it: on a neighbouring table all
other rows keep theirs. The matrix is whole, so noise rounded to whole numbers is noise and free post-processing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kamino.errors import PrivacyError
from kamino.privacy.ledger import Entry
from kamino.privacy.mechanisms.opening import draw_coins, sampled_event
from kamino.privacy.mechanisms.poisson import Draws
from kamino.privacy.sensitivity import Sensitivity

if TYPE_CHECKING:
    from kamino.privacy.gate import Gate

Codes: TypeAlias = NDArray[np.int64]
Measure: TypeAlias = Callable[[Codes], Codes]


@dataclass(frozen=True, kw_only=True)
class SamplePlan:
    """The public facts of one release; `sample_rows` is L, and `num_columns` the length of a line."""

    what: str
    attributes: tuple[str, ...]
    sample_rows: int
    sampling_rate: float
    noise_multiplier: float
    num_columns: int
    sensitivity: float

    def __post_init__(self) -> None:
        if self.sample_rows < 1 or self.num_columns < 1:
            raise PrivacyError(
                f"a sample has {self.sample_rows} rows and {self.num_columns} columns; expected one or more of both."
            )
        if not 0 < self.sensitivity < math.inf:
            raise PrivacyError(f"a sample has sensitivity {self.sensitivity}; expected a positive finite number.")


def release_sample(gate: Gate, rows: Codes, measure: Measure, plan: SamplePlan) -> Codes:
    """Sample, measure, and add noise; see `Gate.release_sample`."""
    event = sampled_event(
        gate,
        "a sample",
        instead="find weights by matching",
        noise_multiplier=plan.noise_multiplier,
        sampling_rate=plan.sampling_rate,
    )
    entry = Entry(
        kind="sample",
        what=plan.what,
        attributes=plan.attributes,
        events=((event, 1),),
        sigma=event.noise_multiplier * plan.sensitivity,
        sensitivity=Sensitivity(add_remove=plan.sensitivity).under(gate.budget.neighbours),
        shape=(plan.sample_rows, plan.num_columns),
        parameters=(("sampling_rate", plan.sampling_rate),),
    )
    gate.charge(entry)
    coins = draw_coins(gate, plan.what, plan.attributes)
    return gate.play(
        entry,
        truth=lambda: _lines(rows, measure, plan, coins),
        answer=lambda lines: _placed(lines, plan, coins) + _noise(entry, coins),
    )


def sample_by_value(rows: Codes, coins: bytes, *, rate: float, most: int) -> tuple[Codes, list[str]]:
    """Return the places of at most `most` sampled rows, in random order, and a name of each that follows its values.

    Guarantees:
        Every row is sampled at its rate, independently. [test_values_are_sampled_at_the_rate]
        A row more, less or another changes no other row's coins. [test_other_rows_keep_their_coins]
    """
    found: list[tuple[bytes, int, str]] = []
    limit = min(math.floor(rate * 2.0**64), 2**64 - 1) if rate < 1 else 2**64
    labels = np.ascontiguousarray(np.column_stack([rows, _occurrences(rows)]), dtype="<i8")
    text, size = labels.tobytes(), 8 * labels.shape[1]
    for place in range(len(labels)):
        digest = hashlib.blake2b(text[place * size : (place + 1) * size], key=coins, digest_size=32).digest()
        if int.from_bytes(digest[:8], "little") < limit:
            found.append((digest[8:16], place, digest[16:].hex()))
    kept = sorted(found)[:most]
    return np.array([place for _, place, _ in kept], dtype=np.int64), [name for *_, name in kept]


def _occurrences(rows: Codes) -> Codes:
    """For each row, how many equal rows come before it."""
    if rows.shape[1] == 0 or len(rows) == 0:
        return np.arange(len(rows), dtype=np.int64)
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    starts = np.flatnonzero(np.append(True, np.any(ordered[1:] != ordered[:-1], axis=1)))
    sizes = np.diff(np.append(starts, len(rows)))
    numbers = np.empty(len(rows), dtype=np.int64)
    numbers[order] = np.arange(len(rows)) - np.repeat(starts, sizes)
    return numbers


def _lines(rows: Codes, measure: Measure, plan: SamplePlan, coins: bytes) -> dict[str | int, int]:
    """The matrix as counts by row and column; rows of one neighbour that the other has not are 0 there."""
    places, names = sample_by_value(rows, coins, rate=plan.sampling_rate, most=plan.sample_rows)
    lines = measure(places)
    return {
        f"{name}:{column}": int(line[column])
        for name, line in zip(names, lines, strict=True)
        for column in np.flatnonzero(line).tolist()
    }


def _placed(lines: dict[str | int, int], plan: SamplePlan, coins: bytes) -> Codes:
    """Put lines in random places; those that are all 0 look like free places, and need none."""
    matrix = np.zeros((plan.sample_rows, plan.num_columns), dtype=np.int64)
    order = np.argsort(Draws(coins).uniform("places", 0, plan.sample_rows))
    numbers: dict[str, int] = {}
    for key, value in lines.items():
        name, column = str(key).split(":")
        matrix[order[numbers.setdefault(name, len(numbers))], int(column)] = value
    return matrix


def _noise(entry: Entry, coins: bytes) -> Codes:
    if not entry.sigma:
        return np.zeros(entry.shape, dtype=np.int64)
    normal = Draws(coins).normal(0, math.prod(entry.shape))
    return np.rint(normal * entry.sigma).astype(np.int64).reshape(entry.shape)

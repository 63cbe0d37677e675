"""Constraints that a table seems to keep, found within a budget.

What is released moves by at most 1 with each row, and by at most 1 if a row is replaced:
- the strays of X -> b: rows whose b is not the most frequent one among rows with their X. A new row adds one row, and
  one or none to the most frequent; a removed one likewise, so a replaced one moves it by -1, 0 or 1;
- the repeats of X: rows but for the first of each value. A new row adds one or none;
- the number of rows; and m/2 times the rate of an order, for a public m (see `kamino.engine.rates`).
So k of them in one vector have sensitivity sqrt(k). Rows with a null in a named column break nothing and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.constraints import Constraints, count_violations
from kamino.constraints.language.printer import print_name
from kamino.privacy import Gate, multiplier_for
from kamino.privacy.sensitivity import Sensitivity

Codes = NDArray[np.int64]

# A constraint is suggested if at most this part of the rows that could break it does, errors allowed for.
_MOST_BROKEN = 0.05
# And if it says much more than the most frequent value of the right side, or chance for an order.
_MOST_OF_CHANCE = 0.25
# Fewer repeats than this part of the rows tell nothing of a dependency.
_LEAST_REPEATS = 0.1
_ERRORS = 2.0


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A constraint line, the part of rows (of pairs, for an order) that break it, and the error of that part."""

    line: str
    rate: float
    error: float

    def __str__(self) -> str:
        soft = "soft: " if self.rate > _ERRORS * self.error else ""
        return f"{soft}{self.line}  # {max(self.rate, 0.0):.2%} ± {self.error:.2%}"


def suggest_constraints(table: pa.Table, gate: Gate, *, ordered: Sequence[str] = ()) -> tuple[Suggestion, ...]:
    """Return dependencies, keys and orders that the table seems to keep; spends what is left of the budget.

    `ordered` are the columns whose order means something. Half of the budget measures dependencies with one column on
    the left, and keys; the rest measures two on the left, where one did not do, and orders.

    Guarantees:
        The result depends on the table through the gate only.  [test_replay_passes_for_suggestions]
        Planted dependencies are found, and chance is not.  [test_planted_constraints_are_suggested]
    """
    names = tuple(table.column_names)
    codes = {name: _codes(table.column(name)) for name in names}
    half = multiplier_for(gate.gaussian_left() / 2)
    singles = [((left,), right) for left in names for right in names if left != right]
    ones = [((), name) for name in names]
    first = _release(gate, [_strays(codes, *each) for each in (*ones, *singles)], codes, names, half)
    num_rows, repeats, strays = (
        max(2.0, first.values[0]),
        first.values[1 : 1 + len(names)],
        first.values[1 + len(names) :],
    )
    chance = dict(zip(names, strays[: len(names)] / num_rows, strict=True))
    repeated: dict[tuple[str, ...], float] = {(name,): float(count) for name, count in zip(names, repeats, strict=True)}
    known = _Known(num_rows=num_rows, sigma=first.sigma, repeats=repeated, chance=chance)
    keys = [known.key(name) for name in names]
    found = [known.dependency(each, count) for each, count in zip(singles, strays[len(names) :], strict=True)]
    done = {right for (_, right), made in zip(singles, found, strict=True) if made is not None}
    return _unique([*keys, *found, *_second(table, codes, gate, known, done, ordered)])


@dataclass(frozen=True, kw_only=True)
class _Release:
    values: NDArray[np.float64]
    sigma: float


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What the first release told, and how to judge by it. Public."""

    num_rows: float
    sigma: float
    repeats: dict[tuple[str, ...], float]
    chance: dict[str, float]

    def key(self, name: str) -> Suggestion | None:
        rate, error = self.repeats[(name,)] / self.num_rows, self.sigma / self.num_rows
        if rate + _ERRORS * error > _MOST_BROKEN:
            return None
        return Suggestion(line=f"key ({print_name(name)})", rate=rate, error=error)

    def dependency(self, which: tuple[tuple[str, ...], str], strays: float) -> Suggestion | None:
        left, right = which
        repeats = self.repeats[left]
        if repeats < _LEAST_REPEATS * self.num_rows + _ERRORS * self.sigma:
            return None
        broken = (strays + _ERRORS * self.sigma) / repeats
        if broken > _MOST_BROKEN or broken > _MOST_OF_CHANCE * self.chance[right]:
            return None
        line = f"{', '.join(map(print_name, left))} -> {print_name(right)}"
        return Suggestion(line=line, rate=float(strays) / self.num_rows, error=self.sigma / self.num_rows)


def _second(
    table: pa.Table, codes: dict[str, Codes], gate: Gate, known: _Known, done: set[str], ordered: Sequence[str]
) -> list[Suggestion | None]:
    """Two columns on the left for what one did not determine, and orders."""
    enough = _LEAST_REPEATS * known.num_rows + _ERRORS * known.sigma
    lefts = [name for name in codes if known.repeats[(name,)] >= enough]
    rights = [name for name in codes if name not in done and known.chance[name] * known.num_rows > enough]
    pairs = list(combinations(lefts, 2)) if rights else []
    doubles = [(left, right) for left in pairs for right in rights if right not in left]
    orders = [
        f"not (t1.{print_name(a)} < t2.{print_name(a)} and t1.{print_name(b)} {op} t2.{print_name(b)})"
        for a, b in combinations(ordered, 2)
        for op in "<>"
    ]
    if not doubles and not orders:
        return []
    rows = max(2, round(known.num_rows))
    truth = [_repeats(*(codes[name] for name in pair)) for pair in pairs]
    truth += [_strays(codes, *each) for each in doubles] + [_order(table, line, rows) for line in orders]
    made = _release(gate, truth, {}, tuple(codes), multiplier_for(gate.gaussian_left()))
    start, cut = len(pairs), len(pairs) + len(doubles)
    both_repeat: dict[tuple[str, ...], float] = {p: float(v) for p, v in zip(pairs, made.values[:start], strict=True)}
    judge = replace(known, repeats=both_repeat, sigma=made.sigma)
    found = [judge.dependency(each, count) for each, count in zip(doubles, made.values[start:cut], strict=True)]
    error = made.sigma * 2 / rows
    rates = [float(value) * 2 / rows for value in made.values[cut:]]
    both = [rates[i ^ 1] for i in range(len(rates))]
    return found + [
        Suggestion(line=line, rate=rate, error=error)
        if rate + _ERRORS * error < min(_MOST_BROKEN, _MOST_OF_CHANCE * (rate + other))
        else None
        for line, rate, other in zip(orders, rates, both, strict=True)
    ]


def _release(
    gate: Gate, statistics: Sequence[float], codes: dict[str, Codes], names: tuple[str, ...], multiplier: float
) -> _Release:
    """Release statistics that move by at most 1; before them, if `codes` are given, the number of rows and repeats."""
    first = [float(len(next(iter(codes.values())))), *(_repeats(each) for each in codes.values())] if codes else []
    values = np.array([*first, *statistics], dtype=np.float64)
    root = math.sqrt(len(values))
    sensitivity = Sensitivity(add_remove=root, replace=root)
    released = gate.release_vector(
        values,
        what=f"how often {len(values)} candidate constraints are broken",
        attributes=names,
        noise_multiplier=multiplier,
        sensitivity=sensitivity,
    )
    return _Release(values=released, sigma=gate.deviation(multiplier, gate.sensitivity(sensitivity)))


def _codes(column: pa.ChunkedArray) -> Codes:
    """Number the values of a column, -1 for null. Only which rows are alike is used."""
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    indices = plain.combine_chunks().dictionary_encode().indices
    return np.asarray(indices.fill_null(-1), dtype=np.int64)


def _repeats(*columns: Codes) -> float:
    there = np.logical_and.reduce([codes >= 0 for codes in columns])
    joined = np.zeros(int(there.sum()), dtype=np.int64)
    for codes in columns:
        joined = joined * (int(codes.max(initial=0)) + 1) + codes[there]
    return float(len(joined) - len(np.unique(joined)))


def _strays(codes: dict[str, Codes], left: tuple[str, ...], right: str) -> float:
    there = np.logical_and.reduce([codes[name] >= 0 for name in (*left, right)])
    target = codes[right][there]
    if len(target) == 0:
        return 0.0
    group = np.zeros(len(target), dtype=np.int64)
    for name in left:
        group = group * (int(codes[name].max()) + 1) + codes[name][there]
    width = int(target.max()) + 1
    values, counts = np.unique(group * width + target, return_counts=True)
    begins = np.flatnonzero(np.diff(values // width, prepend=-1))
    return float(len(target) - np.maximum.reduceat(counts, begins).sum())


def _order(table: pa.Table, line: str, rows: int) -> float:
    """Return m/2 times the rate of an order."""
    (constraint,) = Constraints.parse(line)
    return rows / 2 * count_violations(table, constraint) / math.comb(max(rows, table.num_rows, 2), 2)


def _unique(found: Sequence[Suggestion | None]) -> tuple[Suggestion, ...]:
    """The suggestions there are, the best kept first."""
    return tuple(sorted((each for each in found if each is not None), key=lambda each: each.rate))

"""Constraints that a table seems to keep, found within a budget.

Two vectors are released, each of statistics that one row moves by at most 1, or by at most 2 if it is replaced (see
`kamino.engine.broken_rows`), so that k of them have sensitivity sqrt(k), or that with 4 for each that moves by 2. The
more candidates there are, the more noise each gets, and the more of them chance lets through: the second vector has the
most plausible ones by the first only, and the bar rises with their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.constraints.language.printer import print_name
from kamino.engine.broken_rows import Codes, codes_of, count_repeats, count_strays, order_statistic
from kamino.privacy import Gate, multiplier_for
from kamino.privacy.private import PrivateTable, open_table
from kamino.privacy.sensitivity import Sensitivity

# A constraint is suggested if at most this part of the rows that could break it does, errors allowed for.
_MOST_BROKEN = 0.05
# And if it says much more than the most frequent value of the right side, or chance for an order.
_MOST_OF_CHANCE = 0.25
# Fewer repeats than this part of the rows tell nothing of a dependency.
_LEAST_REPEATS = 0.1
_ERRORS = 2.0
# So many dependencies on two columns, and so many orders, are tried at most.
_MOST_DOUBLES = 200
_MOST_ORDERS = 120
# An order is tried within groups of up to this part of the rows.
_LARGEST_GROUP = 0.5
# A group may be larger than the noisy count says.
_MARGIN = 1.1


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """A constraint line, the part of rows (of pairs, for an order) that break it, and the error of that part."""

    line: str
    rate: float
    error: float

    def __str__(self) -> str:
        soft = "soft: " if self.rate > _ERRORS * self.error else ""
        return f"{soft}{self.line}  # {max(self.rate, 0.0):.2%} ± {self.error:.2%}"


def suggest_constraints(private: PrivateTable, gate: Gate, *, ordered: Sequence[str] = ()) -> tuple[Suggestion, ...]:
    """Return dependencies, keys and orders that the table seems to keep; spends what is left of the budget.

    `ordered` are the columns whose order means something. Half of the budget measures dependencies with one column on
    the left, and keys; the rest measures two on the left, where one did not do, and orders, also within equal values of
    a column.

    Guarantees:
        The result depends on the table through the gate only.  [test_replay_passes_for_suggestions]
        Planted constraints are found, and chance is not.  [test_planted_constraints_are_suggested]
    """
    table, names = open_table(private), private.names
    codes = {name: codes_of(table.column(name)) for name in names}
    singles = [((left,), right) for left in names for right in names if left != right]
    truth = [float(table.num_rows), *(count_repeats(codes[name]) for name in names)]
    truth += [count_strays(codes, (), name) for name in names] + [count_strays(codes, *each) for each in singles]
    made = _release(gate, truth, names, multiplier_for(gate.gaussian_left() / 2))
    num_rows, (repeats, alone, strays) = (
        max(2.0, made.values[0]),
        np.split(made.values[1:], [len(names), 2 * len(names)]),
    )
    known = _Known(
        num_rows=float(num_rows),
        sigma=made.sigma,
        bar=made.bar,
        repeats={(name,): float(count) for name, count in zip(names, repeats, strict=True)},
        chance=dict(zip(names, (alone / num_rows).tolist(), strict=True)),
        strays={each: float(count) for each, count in zip(singles, strays, strict=True)},
    )
    found = {each: known.dependency(each, known.strays[each]) for each in singles}
    done = {right for (_, right), suggestion in found.items() if suggestion is not None}
    second = _second(table, codes, gate, known, done, ordered)
    every = [*(known.key(name) for name in names), *found.values(), *second]
    return tuple(sorted((each for each in every if each is not None), key=lambda each: each.rate))


@dataclass(frozen=True, kw_only=True)
class _Release:
    values: NDArray[np.float64]
    sigma: float

    @property
    def bar(self) -> float:
        """How many deviations noise may be trusted to stay below in all of the values: about the largest of so many."""
        return max(_ERRORS, math.sqrt(2 * math.log(len(self.values))))


@dataclass(frozen=True, kw_only=True)
class _Known:
    """What the first release told, and how to judge by it. Public."""

    num_rows: float
    sigma: float
    bar: float
    repeats: dict[tuple[str, ...], float]
    chance: dict[str, float]
    strays: dict[tuple[tuple[str, ...], str], float]

    @property
    def enough(self) -> float:
        """So many repeats tell something."""
        return _LEAST_REPEATS * self.num_rows + self.bar * self.sigma

    def key(self, name: str) -> Suggestion | None:
        rate, error = self.repeats[(name,)] / self.num_rows, self.sigma / self.num_rows
        if rate + self.bar * error > _MOST_BROKEN:
            return None
        return Suggestion(line=f"key ({print_name(name)})", rate=rate, error=error)

    def dependency(self, which: tuple[tuple[str, ...], str], strays: float) -> Suggestion | None:
        left, right = which
        repeats = self.repeats[left]
        if repeats < self.enough:
            return None
        broken = (strays + self.bar * self.sigma) / repeats
        if broken > _MOST_BROKEN or broken > _MOST_OF_CHANCE * self.chance[right]:
            return None
        line = f"{', '.join(map(print_name, left))} -> {print_name(right)}"
        return Suggestion(line=line, rate=float(strays) / self.num_rows, error=self.sigma / self.num_rows)

    def doubles(self, names: Sequence[str], done: set[str]) -> list[tuple[tuple[str, str], str]]:
        """Dependencies on two columns, for what one does not determine; the nearest to one on one column first."""
        lefts = [name for name in names if self.repeats[(name,)] >= self.enough]
        rights = [name for name in names if name not in done and self.chance[name] * self.num_rows > self.enough]
        pairs = combinations(lefts, 2)
        every = [(pair, right) for pair in pairs for right in rights if right not in pair]
        return sorted(every, key=self._nearness)[:_MOST_DOUBLES]

    def _nearness(self, which: tuple[tuple[str, str], str]) -> float:
        (one, other), right = which
        least = min(self.strays[((one,), right)], self.strays[((other,), right)])
        return least / max(self.chance[right] * self.num_rows, 1.0)

    def largest_group(self, name: str) -> float:
        """About how many rows have the most frequent value, null aside."""
        return _MARGIN * (1 - self.chance[name]) * self.num_rows + self.bar * self.sigma


@dataclass(frozen=True, kw_only=True)
class _Order:
    """Candidate: `higher` must not go with `lower` the way `op` says, within equal `group` if there is one."""

    line: str
    group: str | None
    top: int


def _orders(names: Sequence[str], ordered: Sequence[str], known: _Known) -> list[_Order]:
    """Orders of all pairs, in both directions one after the other; then within groups, smallest groups last."""
    whole = max(2, round(known.num_rows))
    small = [name for name in names if known.repeats[(name,)] >= (1 - _LEAST_REPEATS) * known.num_rows]
    small = [name for name in small if known.largest_group(name) <= _LARGEST_GROUP * known.num_rows]
    found = []
    for group in (None, *sorted(small, key=known.largest_group, reverse=True)):
        same = "" if group is None else f"t1.{print_name(group)} = t2.{print_name(group)} and "
        top = whole if group is None else max(2, math.ceil(known.largest_group(group)))
        for a, b in combinations([name for name in ordered if name != group], 2):
            for op in "<>":
                one, other = print_name(a), print_name(b)
                line = f"not ({same}t1.{one} < t2.{one} and t1.{other} {op} t2.{other})"
                found.append(_Order(line=line, group=group, top=top))
    return found[:_MOST_ORDERS]


def _second(
    table: pa.Table, codes: dict[str, Codes], gate: Gate, known: _Known, done: set[str], ordered: Sequence[str]
) -> list[Suggestion | None]:
    """Two columns on the left for what one did not determine, and orders."""
    doubles, orders = known.doubles(tuple(codes), done), _orders(tuple(codes), ordered, known)
    if not doubles and not orders:
        return []
    pairs = list(dict.fromkeys(pair for pair, _ in doubles))
    nobody = np.zeros(table.num_rows, dtype=np.int64)
    truth = [count_repeats(*(codes[name] for name in pair)) for pair in pairs]
    truth += [count_strays(codes, *each) for each in doubles]
    truth += [order_statistic(table, o.line, codes[o.group] if o.group else nobody, o.top) for o in orders]
    grouped = sum(order.group is not None for order in orders)
    made = _release(gate, truth, tuple(codes), multiplier_for(gate.gaussian_left()), doubled=grouped)
    repeats, strays, rates = np.split(made.values, [len(pairs), len(pairs) + len(doubles)])
    both_repeat: dict[tuple[str, ...], float] = {pair: float(v) for pair, v in zip(pairs, repeats, strict=True)}
    judge = replace(known, repeats=both_repeat, sigma=made.sigma, bar=made.bar)
    found = [judge.dependency(each, count) for each, count in zip(doubles, strays, strict=True)]
    return found + _judge_orders(orders, rates, made, max(2, round(known.num_rows)))


def _judge_orders(
    orders: Sequence[_Order], values: NDArray[np.float64], made: _Release, num_rows: int
) -> list[Suggestion | None]:
    """Orders that are broken by few of the pairs that they or their opposites are about."""
    scales = [(order.top - 1) / math.comb(num_rows, 2) for order in orders]
    rates = [float(value) * scale for value, scale in zip(values, scales, strict=True)]
    found: list[Suggestion | None] = []
    plain: set[str] = set()
    for place, order in enumerate(orders):
        rate, other, error = rates[place], rates[place ^ 1], made.sigma * scales[place]
        kept = rate + made.bar * error < min(_MOST_BROKEN, _MOST_OF_CHANCE * (rate + other - made.bar * error))
        ungrouped = order.line if order.group is None else f"not ({order.line.partition(' and ')[2]}"
        # What holds among all rows holds within groups: once is enough.
        found.append(Suggestion(line=order.line, rate=rate, error=error) if kept and ungrouped not in plain else None)
        if kept and order.group is None:
            plain.add(order.line)
    return found


def _release(
    gate: Gate, statistics: Sequence[float], names: tuple[str, ...], multiplier: float, *, doubled: int = 0
) -> _Release:
    """Release statistics that a row moves by at most 1; a row in its place moves `doubled` of them by at most 2."""
    sensitivity = Sensitivity(add_remove=math.sqrt(len(statistics)), replace=math.sqrt(len(statistics) + 3 * doubled))
    released = gate.release_vector(
        np.array(statistics, dtype=np.float64),
        what=f"how often {len(statistics)} candidate constraints are broken",
        attributes=names,
        noise_multiplier=multiplier,
        sensitivity=sensitivity,
    )
    return _Release(values=released, sigma=gate.deviation(multiplier, gate.sensitivity(sensitivity)))

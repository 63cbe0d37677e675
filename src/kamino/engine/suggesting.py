"""Constraints that a table seems to keep, found within a budget.

Vectors are released of statistics that one row moves by at most 1, or by at most 2 if it is replaced (see
`kamino.engine.broken_rows`), so that k of them have sensitivity sqrt(k), or that with 4 for each that moves by 2. The
more candidates there are, the more noise each gets, and the more of them chance lets through. So they are narrowed:

1. How many values each column has, and how often the most frequent one occurs, tells which dependencies could say
   anything: a left side that is almost unique tells nothing, and a right side that is almost constant is told nothing.
2. For each left side, and each right side, how near its best dependency comes to holding: the least of statistics that
   a row moves by at most 1 is one itself. Tens of numbers stand for hundreds of candidates.
3. The dependencies that are left, by themselves.
4. Two columns on the left, orders, and comparisons of two columns of a row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.constraints.language.printer import print_name
from kamino.engine.broken_rows import (
    Codes,
    chance_of_greater,
    codes_of,
    count_greater,
    count_repeats,
    count_strays,
    order_statistic,
)
from kamino.privacy import Gate, multiplier_for
from kamino.privacy.private import PrivateTable, open_table
from kamino.privacy.sensitivity import Sensitivity
from kamino.schema.dtypes import is_text

# A constraint is suggested if about this part of the rows that could break it does at most.
_MOST_BROKEN = 0.05
# And if it says much more than the most frequent value of the right side, or chance for an order; and more than that
# with errors allowed for.
_MOST_OF_CHANCE = 0.25
_MOST_WITH_ERRORS = 0.5
# Fewer repeats than this part of the rows tell nothing of a dependency on one column, or on two.
_LEAST_REPEATS = 0.3
_LEAST_REPEATS_OF_TWO = 0.5
_ERRORS = 2.0
# So many dependencies on two columns, and so many orders, are tried at most.
_MOST_DOUBLES = 200
_MOST_ORDERS = 120
_MOST_CHECKS = 60
# An order is tried within groups of up to this part of the rows.
_LARGEST_GROUP = 0.5
# A group may be larger than the noisy count says.
_MARGIN = 1.1
# The parts of the budget for columns, for the best of each side, and for dependencies; the rest is for all else.
_FOR_COLUMNS = 0.12
_FOR_SIDES = 0.18
_FOR_SINGLES = 0.3
_OF_THE_REST = 0.8


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

    `ordered` are the columns whose order means something, among which orders, also within equal values of a column, and
    comparisons within a row are looked for.

    Guarantees:
        The result depends on the table through the gate only.  [test_replay_passes_for_suggestions]
        Planted constraints are found, and chance is not.  [test_planted_constraints_are_suggested]
        Exact dependencies are found in a small table.  [test_exact_dependencies_are_found_in_a_small_table]
        What is almost unique determines nothing.  [test_an_almost_unique_left_side_tells_nothing]
        Amounts and times are no keys.  [test_amounts_and_times_are_no_keys]
    """
    table, names = open_table(private), private.names
    codes = {name: codes_of(table.column(name)) for name in names}
    whole = gate.gaussian_left()
    known = _columns(codes, table.num_rows, gate, multiplier_for(whole * _FOR_COLUMNS))
    singles = _plausible(codes, known, gate, multiplier_for(whole * _FOR_SIDES))
    found: dict[_Dependency, Suggestion | None] = {}
    if singles:
        rest = gate.gaussian_left()
        share = whole * _FOR_SINGLES
        if not known.has_room(gate, rest / 2):
            # Two columns on the left are hopeless then, and what they would take goes to one.
            share = rest * _OF_THE_REST if ordered else rest
        truth = [count_strays(codes, *each) for each in singles]
        made = _release(gate, truth, names, multiplier_for(share))
        strays = {each: float(count) for each, count in zip(singles, made.values, strict=True)}
        known = replace(known, strays=strays, sigma_of_strays=made.sigma, bar_of_strays=made.bar)
        found = {each: known.dependency(each, count) for each, count in strays.items()}
    done = {right for (_, right), suggestion in found.items() if suggestion is not None}
    second = _second(table, codes, gate, known, done, ordered)
    identities = [name for name in names if _may_be_an_identity(table.schema.field(name).type)]
    every = [*(known.key(name) for name in identities), *found.values(), *second]
    return tuple(sorted((each for each in every if each is not None), key=lambda each: each.rate))


def _may_be_an_identity(kind: pa.DataType) -> bool:
    """Whether a column that hardly repeats may be a key: amounts and times that nobody shares are so by chance."""
    return pa.types.is_integer(kind) or is_text(kind) or pa.types.is_dictionary(kind)


def _columns(codes: Mapping[str, Codes], num_rows: int, gate: Gate, multiplier: float) -> _Known:
    """The number of rows and, of each column, how many rows repeat a value and how many differ from the usual one."""
    names = tuple(codes)
    truth = [float(num_rows), *(count_repeats(codes[name]) for name in names)]
    truth += [count_strays(codes, (), name) for name in names]
    made = _release(gate, truth, names, multiplier)
    rows = max(2.0, float(made.values[0]))
    repeats, alone = np.split(made.values[1:], 2)
    return _Known(
        num_rows=rows,
        sigma=made.sigma,
        bar=made.bar,
        repeats={(name,): float(count) for name, count in zip(names, repeats, strict=True)},
        chance=dict(zip(names, np.clip(alone / rows, 0, 1).tolist(), strict=True)),
    )


def _plausible(codes: Mapping[str, Codes], known: _Known, gate: Gate, multiplier: float) -> list[_Dependency]:
    """The dependencies on one column whose left side determines something, and whose right side is determined.

    The least of several statistics moves by at most as much as each does: by 1, less a public number or not.
    """
    names = tuple(codes)
    pairs: list[_Dependency] = [((a,), b) for a in names for b in names if a != b and known.could_tell((a,), b)]
    lefts, rights = list(dict.fromkeys(left for left, _ in pairs)), list(dict.fromkeys(right for _, right in pairs))
    if len(pairs) <= 2 * (len(lefts) + len(rights)):
        return pairs
    slack = {each: count_strays(codes, *each) - known.most_strays(each) for each in pairs}
    truth = [min(slack[each] for each in pairs if each[0] == left) for left in lefts]
    truth += [min(slack[each] for each in pairs if each[1] == right) for right in rights]
    made = _release(gate, truth, names, multiplier)
    kept = made.values < made.sigma
    determines = dict(zip(lefts, kept[: len(lefts)].tolist(), strict=True))
    determined = dict(zip(rights, kept[len(lefts) :].tolist(), strict=True))
    return [each for each in pairs if determines[each[0]] and determined[each[1]]]


_Dependency: TypeAlias = tuple[tuple[str, ...], str]


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
    repeats: Mapping[tuple[str, ...], float]
    chance: Mapping[str, float]
    strays: Mapping[_Dependency, float] = field(default_factory=dict)
    sigma_of_strays: float = 0.0
    bar_of_strays: float = _ERRORS

    @property
    def enough(self) -> float:
        """So many repeats tell something."""
        return _LEAST_REPEATS * self.num_rows

    def has_room(self, gate: Gate, squared: float) -> bool:
        """Whether dependencies on two columns could be told from chance, with so much of the budget."""
        most = _MOST_DOUBLES if len(self.chance) > 8 else len(self.chance) ** 2
        both = Sensitivity(add_remove=math.sqrt(most), replace=math.sqrt(most))
        sigma = gate.deviation(multiplier_for(squared), gate.sensitivity(both))
        bar = math.sqrt(2 * math.log(max(most, 2)))
        return bar * sigma < _MOST_BROKEN * self.num_rows

    def key(self, name: str) -> Suggestion | None:
        rate, error = self.repeats[(name,)] / self.num_rows, self.sigma / self.num_rows
        if rate > _MOST_BROKEN or rate + self.bar * error > _MOST_WITH_ERRORS:
            return None
        return Suggestion(line=f"key ({print_name(name)})", rate=rate, error=error)

    def could_tell(self, left: tuple[str, ...], right: str) -> bool:
        """Whether a dependency could hold, and say something if it did."""
        errors = self.bar * self.sigma
        # What determines a column has at least as many values; both are known with errors.
        fewer = self.repeats[left] - 2 * errors <= self.repeats[(right,)]
        told = _MOST_OF_CHANCE * self.chance[right] * self.num_rows + errors > 0.01 * self.num_rows
        return fewer and told and self.repeats[left] + errors >= self.enough

    def most_strays(self, which: _Dependency) -> float:
        """So many rows may break a dependency that is to be suggested."""
        left, right = which
        repeats = min(self.repeats[left], self.num_rows)
        return max(0.0, min(_MOST_BROKEN, _MOST_OF_CHANCE * self.chance[right]) * repeats)

    def dependency(self, which: _Dependency, strays: float, *, least: float = _LEAST_REPEATS) -> Suggestion | None:
        left, right = which
        repeats, sigma = self.repeats[left], self.sigma_of_strays
        if repeats < max(least * self.num_rows, self.bar * self.sigma) or strays > self.most_strays(which):
            return None
        if strays + self.bar_of_strays * sigma > _MOST_WITH_ERRORS * self.chance[right] * repeats:
            return None
        if repeats < _LEAST_REPEATS_OF_TWO * self.num_rows and strays > _ERRORS * sigma:
            # Of a left side that most rows have alone, only what seems to hold exactly is worth a word.
            return None
        line = f"{', '.join(map(print_name, left))} -> {print_name(right)}"
        return Suggestion(line=line, rate=float(strays) / self.num_rows, error=sigma / self.num_rows)

    def doubles(self, names: Sequence[str], done: set[str]) -> list[tuple[tuple[str, str], str]]:
        """Dependencies on two columns, for what one does not determine; the nearest to one on one column first."""
        lefts = [name for name in names if self.repeats[(name,)] >= self.enough]
        rights = [name for name in names if name not in done and self.chance[name] * self.num_rows > self.enough]
        pairs = combinations(lefts, 2)
        every = [(pair, right) for pair in pairs for right in rights if right not in pair]
        return sorted(every, key=self._nearness)[:_MOST_DOUBLES]

    def _nearness(self, which: tuple[tuple[str, str], str]) -> float:
        (one, other), right = which
        most = self.chance[right] * self.num_rows
        least = min(self.strays.get(((one,), right), most), self.strays.get(((other,), right), most))
        return least / max(most, 1.0)

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
    """Two columns on the left for what one did not determine, comparisons within a row, and orders."""
    checks = [(a, b) for a in ordered for b in ordered if a != b and _alike(table, a, b)][:_MOST_CHECKS]
    whole = max(2, round(known.num_rows))
    left = gate.gaussian_left()
    has_room = left > 0 and known.has_room(gate, left)
    doubles, orders = known.doubles(tuple(codes), done) if has_room else [], _orders(tuple(codes), ordered, known)
    if not doubles and not orders and not checks:
        return []
    pairs = list(dict.fromkeys(pair for pair, _ in doubles))
    nobody = np.zeros(table.num_rows, dtype=np.int64)
    truth = [count_repeats(*(codes[name] for name in pair)) for pair in pairs]
    truth += [count_strays(codes, *each) for each in doubles]
    truth += [order_statistic(table, o.line, codes[o.group] if o.group else nobody, o.top) for o in orders]
    truth += [count_greater(table, a, b) for a, b in checks]
    truth += [chance_of_greater(table, a, b, whole) for a, b in checks]
    grouped = sum(order.group is not None for order in orders)
    made = _release(gate, truth, tuple(codes), multiplier_for(gate.gaussian_left()), doubled=grouped)
    places = np.cumsum([len(pairs), len(doubles), len(orders), len(checks)])
    repeats, strays, rates, broken, expected = np.split(made.values, places)
    both_repeat: dict[tuple[str, ...], float] = {pair: float(v) for pair, v in zip(pairs, repeats, strict=True)}
    judge = replace(known, repeats=both_repeat, sigma_of_strays=made.sigma, bar_of_strays=made.bar)
    found = [
        judge.dependency(each, count, least=_LEAST_REPEATS_OF_TWO) for each, count in zip(doubles, strays, strict=True)
    ]
    found += [_check(each, b, e, made, whole) for each, b, e in zip(checks, broken, expected, strict=True)]
    return found + _judge_orders(orders, rates, made, whole)


def _alike(table: pa.Table, one: str, other: str) -> bool:
    """Whether two columns can be compared: both are numbers, or both are times of one type."""
    kinds = [table.schema.field(name).type for name in (one, other)]
    times = [bool(pa.types.is_temporal(kind)) for kind in kinds]
    return kinds[0] == kinds[1] if any(times) else True


def _check(which: tuple[str, str], broken: float, expected: float, made: _Release, num_rows: int) -> Suggestion | None:
    """A comparison that few rows break, where many would if the columns had nothing to do with each other."""
    rate, error = float(broken) / num_rows, made.sigma / num_rows
    chance = 2 * float(expected) / num_rows
    if rate > _MOST_BROKEN or rate + made.bar * error > _MOST_OF_CHANCE * (chance - 2 * made.bar * error):
        return None
    line = f"check ({print_name(which[0])} <= {print_name(which[1])})"
    return Suggestion(line=line, rate=rate, error=error)


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
        both = rate + other
        kept = rate < min(_MOST_BROKEN, _MOST_OF_CHANCE * both)
        kept = kept and rate + made.bar * error < _MOST_WITH_ERRORS * (both - made.bar * error)
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

"""Candidates that compare: orders between two columns, also within equal values of a third, and columns of one row."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, compress
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.constraints.language.printer import print_name
from kamino.engine.broken_rows import Codes, Ranks, chance_of_greater, count_greater, count_out_of_order
from kamino.engine.implied_rules import Dependency, determined_by
from kamino.engine.judging import ERRORS, MOST_OF_CHANCE, Columns, Release, Suggestion

_Asked = TypeVar("_Asked")

# Orders within groups are tried as long as there are fewer than so many orders, and so many comparisons at most.
_MOST_ORDERS = 120
_MOST_CHECKS = 200
# An order is tried within groups of up to this part of the rows, where most rows share the value.
_LARGEST_GROUP = 0.5
_MOSTLY_SHARED = 0.7
# What is to be exact is surely broken in less than this part of what chance would break: noise as large as that tells
# nothing.
_SURELY_EXACT = 0.125


@dataclass(frozen=True, kw_only=True)
class Order:
    """Candidate: of two rows, within equal `group` if there is one, `other` does not fall (rise) as `one` rises."""

    one: str
    other: str
    falls: bool
    group: str | None = None

    @property
    def line(self) -> str:
        """As it is written."""
        a, b, group = print_name(self.one), print_name(self.other), print_name(self.group or "")
        within = f"t1.{group} = t2.{group} and " if self.group else ""
        return f"not ({within}t1.{a} < t2.{a} and t1.{b} {'<' if self.falls else '>'} t2.{b})"

    @property
    def tail(self) -> tuple[str, str, bool]:
        """What it says, of whichever rows."""
        return self.one, self.other, self.falls


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Orders, in both directions one after the other, and comparisons, with the private rows that they are about."""

    table: pa.Table
    codes: Mapping[str, Codes]
    known: Columns
    orders: Sequence[Order]
    checks: Sequence[tuple[str, str]]
    # What was released of them before, if anything.
    rough: Release | None = None
    # What was counted and ranked so far; private, as the table is.
    counted: dict[Any, float] = field(default_factory=dict, repr=False)
    ranks: dict[str, Ranks] = field(default_factory=dict, repr=False)

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return len(self.orders) + len(self.checks)

    @property
    def num_rows(self) -> int:
        """About how many rows there are; public."""
        return max(2, round(self.known.num_rows))

    def statistics(self) -> list[float]:
        """Of orders, of comparisons, of what these would be by chance. Computed from private rows: for the gate."""
        found = [self._kept(order, self._strays) for order in self.orders]
        found += [self._kept(check, lambda pair: count_greater(self.table, *pair)) for check in self.checks]
        chance = [(check, self.num_rows) for check in self.checks]
        return found + [self._kept(each, lambda of: chance_of_greater(self.table, *of[0], of[1])) for each in chance]

    def _kept(self, which: _Asked, count: Callable[[_Asked], float]) -> float:
        """Count what was not counted before: the same is asked roughly first, and then again."""
        if which not in self.counted:
            self.counted[which] = count(which)
        return self.counted[which]

    def _strays(self, order: Order) -> float:
        for name in (order.one, order.other):
            if name not in self.ranks:
                self.ranks[name] = Ranks.of(self.table.column(name))
        groups = self.codes[order.group] if order.group else None
        return count_out_of_order(self.ranks[order.one], self.ranks[order.other], falls=order.falls, groups=groups)

    def judge(self, made: Release) -> list[Suggestion | None]:
        """One suggestion or none of each order and each comparison, from the released statistics."""
        if self.rough is not None:
            made = made.joined(self.rough)
        strays, broken, expected = self._parts(made)
        checked = [self._check(*each, made) for each in zip(self.checks, broken, expected, strict=True)]
        return self._judge_orders(strays.tolist(), made) + checked

    def plausible(self, made: Release) -> Compared:
        """What may still hold, from released statistics: those that hold are lost in few runs of a hundred.

        Of an order, its opposite stays too, and both among all rows, which it is judged by.
        """
        strays, broken, expected = self._parts(made)
        error = ERRORS * made.sigma
        may = [
            count - error <= MOST_OF_CHANCE * self.known.by_chance_out_of_order(order.one, order.other)
            for order, count in zip(self.orders, strays.tolist(), strict=True)
        ]
        tails = {(order.one, order.other) for order, kept in zip(self.orders, may, strict=True) if kept}
        orders = [
            may[place] or may[place ^ 1] or (order.group is None and (order.one, order.other) in tails)
            for place, order in enumerate(self.orders)
        ]
        # Chance is twice a released number.
        checks = [
            count - error <= MOST_OF_CHANCE * 2 * (half + error)
            for count, half in zip(broken.tolist(), expected.tolist(), strict=True)
        ]
        return replace(
            self,
            orders=list(compress(self.orders, orders)),
            checks=list(compress(self.checks, checks)),
            rough=replace(made, values=made.values[[*orders, *checks, *checks]]),
        )

    def _parts(self, made: Release) -> list[NDArray[np.float64]]:
        """Of orders, of comparisons, of what these would be by chance."""
        return np.split(made.values, np.cumsum([len(self.orders), len(self.checks)]))

    def _check(self, which: tuple[str, str], broken: float, expected: float, made: Release) -> Suggestion | None:
        """A comparison that few rows break, where many would if the columns had nothing to do with each other."""
        if not made.stands(float(broken), 2 * float(expected), sigma_of_chance=2 * made.sigma):
            return None
        error = ERRORS * made.sigma
        seems_exact = broken <= error and broken + error <= _SURELY_EXACT * 2 * expected
        if any(map(self.known.has_usual_value, which)) and not seems_exact:
            return None
        line = f"check ({print_name(which[0])} <= {print_name(which[1])})"
        return Suggestion(line=line, rate=float(broken) / self.num_rows, error=made.sigma / self.num_rows)

    def _judge_orders(self, values: list[float], made: Release) -> list[Suggestion | None]:
        """Orders that few rows break, far fewer than by chance; within groups, also far fewer than among all rows.

        In groups of a few rows, less is out of order by chance: at least half of what their opposites break, which
        break the most where the order holds.
        """
        found: list[Suggestion | None] = []
        among_all: dict[tuple[str, str, bool], float] = {}
        for place, (order, strays) in enumerate(zip(self.orders, values, strict=True)):
            chance = self.known.by_chance_out_of_order(order.one, order.other)
            chance = min(chance, values[place ^ 1] / 2, among_all.get(order.tail, chance))
            # Chance is the sum of two released numbers.
            sigma = max(made.sigma, math.sqrt(2) * self.known.release.sigma)
            kept = made.stands(strays, chance, sigma_of_chance=sigma)
            rate, error = strays / self.num_rows, made.sigma / self.num_rows
            found.append(Suggestion(line=order.line, rate=rate, error=error) if kept else None)
            if order.group is None:
                # What holds among all rows holds within groups: nothing is left for these to explain.
                among_all[order.tail] = 0.0 if kept else strays
        return found

    def without_implied(self, found: Sequence[Suggestion | None], exact: Sequence[Dependency]) -> list[Suggestion]:
        """Leave out orders within equal values of what determines another column within which they hold, too."""
        there = {(o.tail, o.group) for o, each in zip(self.orders, found, strict=False) if each and each.may_be_exact}
        kept = []
        for place, each in enumerate(found):
            order = self.orders[place] if place < len(self.orders) else None
            coarser = determined_by([order.group], exact) - {order.group} if order and order.group else frozenset()
            # Of two columns that determine each other, the first stays.
            implied = order is not None and any(
                (order.tail, name) in there
                and (order.group not in determined_by([name], exact) or self._is_before(name, order.group))
                for name in coarser
            )
            if each is not None and not implied:
                kept.append(each)
        return kept

    def _is_before(self, name: str, other: str | None) -> bool:
        names = self.table.column_names
        return other is not None and names.index(name) < names.index(other)


def compare_columns(table: pa.Table, codes: Mapping[str, Codes], known: Columns, ordered: Sequence[str]) -> Compared:
    """Return what is to be tried: it depends on names, types and what was released only."""
    pairs = [(a, b) for a in ordered for b in ordered if a != b and _alike(table, a, b)]
    # Times of one kind are few and mean the same; numbers may be anything.
    pairs.sort(key=lambda pair: not pa.types.is_temporal(table.schema.field(pair[0]).type))
    orders = _orders(tuple(codes), ordered, known)
    return Compared(table=table, codes=codes, known=known, orders=orders, checks=pairs[:_MOST_CHECKS])


def _alike(table: pa.Table, one: str, other: str) -> bool:
    """Whether two columns can be compared: both are numbers, or both are times of one type."""
    kinds = [table.schema.field(name).type for name in (one, other)]
    times = [bool(pa.types.is_temporal(kind)) for kind in kinds]
    return kinds[0] == kinds[1] if any(times) else True


def _orders(names: Sequence[str], ordered: Sequence[str], known: Columns) -> list[Order]:
    """Orders of pairs that could tell, in both directions one after the other; then within groups, smallest last."""
    small = [name for name in names if known.repeats[name] >= _MOSTLY_SHARED * known.num_rows]
    small = [name for name in small if known.largest_group(name) <= _LARGEST_GROUP * known.num_rows]
    pairs = [pair for pair in combinations(ordered, 2) if known.could_be_out_of_order(*pair)]
    found = _within(None, pairs)
    for group in sorted(small, key=known.largest_group, reverse=True):
        found += _within(group, pairs)[: max(0, _MOST_ORDERS - len(found))]
    return found


def _within(group: str | None, pairs: Sequence[tuple[str, str]]) -> list[Order]:
    inside = [(a, b) for a, b in pairs if group not in (a, b)]
    return [Order(one=a, other=b, falls=falls, group=group) for a, b in inside for falls in (True, False)]

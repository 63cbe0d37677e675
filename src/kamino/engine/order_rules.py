"""Candidates that compare: orders between two columns, also within equal values of a third, and columns of one row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa

from kamino.constraints.language.printer import print_name
from kamino.engine.broken_rows import Codes, chance_of_greater, count_greater, order_statistic
from kamino.engine.implied_rules import Dependency, determined_by
from kamino.engine.judging import Columns, Release, Suggestion

# Orders within groups are tried as long as there are fewer than so many orders, and so many comparisons at most.
_MOST_ORDERS = 120
_MOST_CHECKS = 200
# An order is tried within groups of up to this part of the rows, where most rows share the value.
_LARGEST_GROUP = 0.5
_MOSTLY_SHARED = 0.7


@dataclass(frozen=True, kw_only=True)
class Order:
    """Candidate: `tail` must be true of no two rows, within equal `group` if there is one, of about `top` rows."""

    tail: str
    group: str | None
    top: int

    @property
    def line(self) -> str:
        """As it is written."""
        if self.group is None:
            return f"not ({self.tail})"
        group = print_name(self.group)
        return f"not (t1.{group} = t2.{group} and {self.tail})"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Orders, in both directions one after the other, and comparisons, with the private rows that they are about."""

    table: pa.Table
    codes: Mapping[str, Codes]
    num_rows: int
    orders: Sequence[Order]
    checks: Sequence[tuple[str, str]]

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return len(self.orders) + len(self.checks)

    @property
    def doubled(self) -> int:
        """How many statistics a row in the place of another moves by 2."""
        return sum(order.group is not None for order in self.orders)

    def statistics(self) -> list[float]:
        """Of orders, of comparisons, of what these would be by chance. Computed from private rows: for the gate."""
        nobody = np.zeros(self.table.num_rows, dtype=np.int64)
        found = [
            order_statistic(self.table, order.line, self.codes[order.group] if order.group else nobody, order.top)
            for order in self.orders
        ]
        found += [count_greater(self.table, a, b) for a, b in self.checks]
        return found + [chance_of_greater(self.table, a, b, self.num_rows) for a, b in self.checks]

    def judge(self, made: Release) -> list[Suggestion | None]:
        """One suggestion or none of each order and each comparison, from the released statistics."""
        rates, broken, expected = np.split(made.values, np.cumsum([len(self.orders), len(self.checks)]))
        checked = [self._check(*each, made) for each in zip(self.checks, broken, expected, strict=True)]
        return self._judge_orders(rates.tolist(), made) + checked

    def _check(self, which: tuple[str, str], broken: float, expected: float, made: Release) -> Suggestion | None:
        """A comparison that few rows break, where many would if the columns had nothing to do with each other."""
        if not made.stands(float(broken), 2 * float(expected), sigma_of_chance=2 * made.sigma):
            return None
        line = f"check ({print_name(which[0])} <= {print_name(which[1])})"
        return Suggestion(line=line, rate=float(broken) / self.num_rows, error=made.sigma / self.num_rows)

    def _judge_orders(self, values: list[float], made: Release) -> list[Suggestion | None]:
        """Orders that are broken by few of the pairs that could: half of those that they or their opposites are about.

        Within groups, by few of those that would break them if the groups had nothing to do with it.
        """
        scales = [(order.top - 1) / math.comb(self.num_rows, 2) for order in self.orders]
        rates = [value * scale for value, scale in zip(values, scales, strict=True)]
        found: list[Suggestion | None] = []
        among_all: dict[str, float] = {}
        for place, order in enumerate(self.orders):
            rate, both = rates[place], rates[place] + rates[place ^ 1]
            part = min(0.5, among_all.get(order.tail, 0.5))
            scaled = replace(made, sigma=made.sigma * scales[place])
            kept = scaled.stands(rate, part * both, sigma_of_chance=part * math.sqrt(2) * scaled.sigma)
            found.append(Suggestion(line=order.line, rate=rate, error=scaled.sigma) if kept else None)
            if order.group is None:
                # What holds among all rows holds within groups: no part is left for these to explain.
                among_all[order.tail] = 0.0 if kept else max(0.0, rate / both) if both > 0 else 0.0
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
    num_rows = max(2, round(known.num_rows))
    orders = _orders(tuple(codes), ordered, known)
    return Compared(table=table, codes=codes, num_rows=num_rows, orders=orders, checks=pairs[:_MOST_CHECKS])


def _alike(table: pa.Table, one: str, other: str) -> bool:
    """Whether two columns can be compared: both are numbers, or both are times of one type."""
    kinds = [table.schema.field(name).type for name in (one, other)]
    times = [bool(pa.types.is_temporal(kind)) for kind in kinds]
    return kinds[0] == kinds[1] if any(times) else True


def _orders(names: Sequence[str], ordered: Sequence[str], known: Columns) -> list[Order]:
    """Orders of all pairs, in both directions one after the other; then within groups, smallest groups last."""
    small = [name for name in names if known.repeats[name] >= _MOSTLY_SHARED * known.num_rows]
    small = [name for name in small if known.largest_group(name) <= _LARGEST_GROUP * known.num_rows]
    found = _within(None, ordered, max(2, round(known.num_rows)))
    for group in sorted(small, key=known.largest_group, reverse=True):
        more = _within(group, ordered, max(2, math.ceil(known.largest_group(group))))
        found += more[: max(0, _MOST_ORDERS - len(found))]
    return found


def _within(group: str | None, ordered: Sequence[str], top: int) -> list[Order]:
    pairs = combinations([print_name(name) for name in ordered if name != group], 2)
    return [
        Order(tail=f"t1.{a} < t2.{a} and t1.{b} {op} t2.{b}", group=group, top=top) for a, b in pairs for op in "<>"
    ]

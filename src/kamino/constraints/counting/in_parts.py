"""Violations in a table that is read part by part: counted exactly, in memory that does not grow with its rows.

All constraints share the first pass. Checks on single rows add up. Of a dependency X -> y, the numbers of rows by X and
y are kept: n rows of one X, of which n_y have y, have (n² - sum of n_y²) / 2 violating pairs. Of an order, the least
and the largest y by group and x are kept: if they rise with x, there is no violation. What that does not settle (orders
that are broken, keys, dependencies of too many different values, other constraints) is counted in further passes, each
over so many groups of rows as fit: rows that violate together have equal values where the constraint asks for equal
ones. A constraint that asks for none needs the columns that it names as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.constraints.analysis.classify import ConstraintClass, classify, dependency_of
from kamino.constraints.counting.conjunction import conjunction_of, equal_attributes
from kamino.constraints.counting.count import count_violations
from kamino.constraints.tree import DenialConstraint, Operator
from kamino.schema.coding.joint_codes import number_combinations, number_values
from kamino.schema.coding.value_hashes import deal_out
from kamino.schema.table_parts import Parts

#: Rows that are counted at a time in further passes.
ROWS_AT_ONCE = 1 << 23
#: Different combinations of values that are kept of one constraint, at most.
MOST_KEPT = 1 << 23


def count_in_parts(table: Parts, constraints: Iterable[DenialConstraint]) -> tuple[dict[DenialConstraint, int], int]:
    """Count the violations of each constraint, as `count_violations` does; and the rows.

    Guarantees:
        Equal to counting the table in memory.  [test_counts_in_parts_are_those_of_the_table]
    """
    wanted = tuple(dict.fromkeys(constraints))
    tallies = {constraint: tally_of(constraint) for constraint in wanted}
    names = tuple(dict.fromkeys(name for each in wanted for name in each.attributes)) or tuple(table.schema.names[:1])
    num_rows = 0
    for part in table.parts(names):
        num_rows += part.num_rows
        for tally in tallies.values():
            tally.add(part)
    settled = {constraint: tally.result() for constraint, tally in tallies.items()}
    return {c: count_by_turns(table, c, num_rows) if n is None else n for c, n in settled.items()}, num_rows


class Tally(Protocol):
    """What is kept of a table to count one constraint."""

    def add(self, part: pa.Table) -> None:
        """Take in one more part."""
        ...

    def result(self) -> int | None:
        """Return the number of violations; None if it takes another look at the table."""
        ...


def tally_of(constraint: DenialConstraint) -> Tally:
    """What is kept for a constraint of its class."""
    if constraint.is_unary:
        return _Rows(constraint)
    dependency = None if constraint.has_terms else dependency_of(constraint)
    if dependency is not None:
        return _Pairs(tuple(sorted(dependency.left)), dependency.right)
    if classify(constraint) is ConstraintClass.ORDER:
        return _order(constraint)
    return _Nothing()


class _Nothing:
    """Of a constraint that the first pass does not settle."""

    def add(self, part: pa.Table) -> None:
        """Keep nothing."""

    def result(self) -> int | None:
        """Another look is needed."""
        return None


@dataclass
class _Rows:
    """Of a constraint on single rows: how many violate it."""

    constraint: DenialConstraint
    found: int = 0

    def add(self, part: pa.Table) -> None:
        """Count the rows of a part."""
        self.found += count_violations(part, self.constraint)

    def result(self) -> int | None:
        """Return the number of rows."""
        return self.found


@dataclass
class _Kept:
    """Groups of equal values with what is known of each, merged as parts come in; given up where there are too many."""

    keys: list[str]
    merge: list[tuple[str, str]]
    table: pa.Table | None = None
    waiting: list[pa.Table] = field(default_factory=list)
    given_up: bool = False

    def add(self, groups: pa.Table) -> None:
        self.waiting.append(groups)
        held = 0 if self.table is None else self.table.num_rows
        if sum(each.num_rows for each in self.waiting) > max(held, 1 << 20):
            self.settle()

    def settle(self) -> pa.Table | None:
        """Merge what is waiting; return all groups, or None if they are too many."""
        if self.given_up:
            return None
        both = pa.concat_tables([*([] if self.table is None else [self.table]), *self.waiting])
        found = both.group_by(self.keys, use_threads=False).aggregate(self.merge)
        names = [*self.keys, *(name for name, _ in self.merge)]
        found = found.select([*self.keys, *(f"{name}_{what}" for name, what in self.merge)]).rename_columns(names)
        self.table, self.waiting, self.given_up = found, [], found.num_rows > MOST_KEPT
        if self.given_up:
            self.table = None
        return self.table


class _Pairs:
    """Of a dependency: how many rows there are of each left and right side."""

    def __init__(self, left: tuple[str, ...], right: str) -> None:
        self._names = (*left, right)
        self._keys = [f"key{place}" for place in range(len(self._names))]
        self._kept = _Kept(keys=self._keys, merge=[("num_rows", "sum")])

    def add(self, part: pa.Table) -> None:
        """Count the rows of a part by both sides."""
        if self._kept.given_up:
            return
        known = _plain(part, self._names, self._keys)
        groups = known.group_by(self._keys, use_threads=False).aggregate([([], "count_all")])
        self._kept.add(groups.select([*self._keys, "count_all"]).rename_columns([*self._keys, "num_rows"]))

    def result(self) -> int | None:
        """Return the pairs of rows with equal left and different right sides."""
        groups = self._kept.settle()
        if groups is None:
            return None
        rows = np.asarray(groups.column("num_rows"), dtype=np.int64)
        by_left, _ = _numbered(groups, self._keys[:-1])
        total = np.zeros(int(by_left.max(initial=-1)) + 1, dtype=np.int64)
        np.add.at(total, by_left, rows)
        ordered: int = sum(n * n for n in total.tolist()) - sum(n * n for n in rows.tolist())
        return ordered // 2


class _Bounds:
    """Of an order: the least and the largest y for each x of each group."""

    def __init__(self, groups: tuple[str, ...], x: str, y: str, *, falling: bool, ties_equal: bool) -> None:
        self._names = (*groups, x, y)
        self._keys = [f"key{place}" for place in range(len(groups) + 1)]
        self._falling, self._ties_equal = falling, ties_equal
        self._kept = _Kept(keys=self._keys, merge=[("low", "min"), ("high", "max")])
        self._impossible = False

    def add(self, part: pa.Table) -> None:
        """Find the least and the largest y of a part."""
        y = part.schema.field(self._names[-1]).type
        numeric = pa.types.is_integer(y) or pa.types.is_floating(y) or pa.types.is_temporal(y)
        self._impossible |= not numeric or pa.types.is_uint64(y)
        if self._impossible or self._kept.given_up:
            return
        known = _plain(part, self._names, [*self._keys, "y"])
        found = known.group_by(self._keys, use_threads=False).aggregate([("y", "min"), ("y", "max")])
        self._kept.add(found.select([*self._keys, "y_min", "y_max"]).rename_columns([*self._keys, "low", "high"]))

    def result(self) -> int | None:
        """Return 0 if y follows x in every group; otherwise pairs have to be counted."""
        bounds = None if self._impossible else self._kept.settle()
        if bounds is None:
            return None
        if bounds.num_rows == 0:
            return 0
        bounds = bounds.take(pc.sort_indices(bounds, [(name, "ascending") for name in self._keys]))
        low, high = (_ranks(bounds, end) for end in ("low", "high"))
        if self._falling:
            low, high = -high, -low
        groups = self._keys[:-1]
        group = _numbered(bounds, groups)[0] if groups else np.zeros(len(low), dtype=np.int64)
        same = group[1:] == group[:-1]
        rises = bool(np.all(~same | (high[:-1] <= low[1:])))
        return 0 if rises and not (self._ties_equal and np.any(low != high)) else None


def _order(constraint: DenialConstraint) -> Tally:
    """What is kept of an order of two attributes; nothing where y may not even be equal."""
    operators = {cross.left: cross.op for cross in conjunction_of(constraint).cross}
    (x, first), (y, second) = ((name, op) for name, op in operators.items() if op is not None and op.is_order)
    assert first is not None, "orders have operators"
    assert second is not None, "orders have operators"
    if second in (Operator.LE, Operator.GE):
        (x, first), (y, second) = (y, second), (x, first)
    if second in (Operator.LE, Operator.GE):
        return _Nothing()
    if first in (Operator.LT, Operator.LE):
        first, second = first.mirrored, second.mirrored
    groups = tuple(sorted(set(operators) - {x, y}))
    return _Bounds(groups, x, y, falling=second is Operator.GT, ties_equal=first is Operator.GE)


def count_by_turns(table: Parts, constraint: DenialConstraint, num_rows: int) -> int:
    """Count the violations of one constraint on pairs in passes over some of its groups each."""
    names, keys = constraint.attributes, sorted(equal_attributes(constraint))
    turns = (-(-num_rows // ROWS_AT_ONCE) or 1) if keys else 1
    found = 0
    for turn in range(turns):
        own = [_of_turn(part, keys, turn, turns) for part in table.parts(names)]
        found += count_violations(pa.concat_tables(own), constraint)
    return found


def _of_turn(part: pa.Table, keys: list[str], turn: int, turns: int) -> pa.Table:
    """The rows whose groups have their turn."""
    return part if turns == 1 else part.filter(pa.array(deal_out(part.select(keys), turns) == turn))


def _plain(part: pa.Table, names: Sequence[str], new_names: list[str]) -> pa.Table:
    """The rows that have values in all columns, as equality sees them: zeros of both signs are one, NaN is no value."""
    columns = []
    for name in names:
        column = part.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_floating(column.type):
            zero, null = pa.scalar(0.0, column.type), pa.scalar(None, column.type)
            column = pc.if_else(pc.is_nan(column), null, pc.if_else(pc.equal(column, zero), zero, column))
        columns.append(column)
    return pa.table(columns, names=new_names).drop_null()


def _numbered(table: pa.Table, names: list[str]) -> tuple[np.ndarray, int]:
    codes = [np.asarray(table.column(n).combine_chunks().dictionary_encode().indices, dtype=np.int64) for n in names]
    return number_values(number_combinations(codes)[0])


def _ranks(table: pa.Table, name: str) -> np.ndarray:
    """The ends of bounds as numbers that compare as they do: times as whole numbers."""
    column = table.column(name)
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    numbers: np.ndarray = np.asarray(column)
    return numbers.astype(np.int64) if numbers.dtype.kind in "iu" else numbers

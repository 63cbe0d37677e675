"""Groups of rows that break a rule: counted exactly, in memory and in parts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kamino.constraints.counting.in_parts import ROWS_AT_ONCE
from kamino.constraints.counting.ranks import NULL, RankedTable
from kamino.constraints.counting.rows_together import count_sets, shared_attributes
from kamino.constraints.group_rules import GroupRule, Measure, RowsRule
from kamino.constraints.terms.evaluation import values_of
from kamino.constraints.terms.exact import Numbers
from kamino.constraints.terms.term import Term
from kamino.schema.coding.joint_codes import number_combinations, number_values
from kamino.schema.coding.value_hashes import deal_out
from kamino.schema.table_parts import Parts

Groups = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class GroupCount:
    """How many groups there are, how many break the rule, and one row of each that does."""

    groups: int
    broken: int
    rows: tuple[int, ...] = ()


def count_groups(table: pa.Table | RankedTable, rule: GroupRule) -> GroupCount:
    """Count the groups that break a rule.

    Guarantees:
        Equal to looking at each group by itself.  [test_group_rules_are_those_of_brute_force]
    """
    ranked = table if isinstance(table, RankedTable) else RankedTable(table)
    group, size, belongs = _groups(ranked, rule.per)
    taken = belongs & _true(ranked, rule.where)
    if rule.term is None:
        found = np.bincount(group[taken], minlength=size)
        broken = ~_between(found, rule)
    else:
        broken = _broken_by_term(ranked, rule, rule.term, group, size, taken)
    first = np.full(size, -1, dtype=np.int64)
    first[group[belongs][::-1]] = np.flatnonzero(belongs)[::-1]
    return GroupCount(groups=size, broken=int(broken.sum()), rows=tuple(first[broken].tolist()))


def _groups(ranked: RankedTable, per: tuple[str, ...]) -> tuple[Groups, int, npt.NDArray[np.bool_]]:
    """The number of each row's group, how many there are, and which rows belong to one."""
    if not per:
        return np.zeros(ranked.num_rows, np.int64), int(ranked.num_rows > 0), np.ones(ranked.num_rows, np.bool_)
    ranks = [ranked.ranks(name)[0] for name in per]
    belongs = np.logical_and.reduce([each != NULL for each in ranks])
    together, _ = number_combinations([each[belongs] for each in ranks])
    numbers, size = number_values(together)
    group = np.zeros(ranked.num_rows, dtype=np.int64)
    group[belongs] = numbers
    return group, size, belongs


def _true(ranked: RankedTable, where: Term | None) -> npt.NDArray[np.bool_]:
    if where is None:
        return np.ones(ranked.num_rows, np.bool_)
    found = values_of(where, ranked.columns({column.name for column in where.columns}))
    assert not isinstance(found, Numbers), "a condition is true or false"
    return np.asarray(found.fill_null(False).cast(pa.uint8())).astype(np.bool_)


def _between(found: npt.NDArray[Any], rule: GroupRule) -> npt.NDArray[np.bool_]:
    """Which whole numbers lie within the bounds, compared exactly."""
    ok = np.ones(len(found), dtype=np.bool_)
    values, place = np.unique(found, return_inverse=True)
    for low, value in ((True, rule.low), (False, rule.high)):
        if value is not None:
            fits = [Fraction(int(each)) >= value if low else Fraction(int(each)) <= value for each in values]
            ok &= np.array([*fits, True], dtype=np.bool_)[place]
    return ok


def _broken_by_term(
    ranked: RankedTable, rule: GroupRule, term: Term, group: Groups, size: int, taken: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    values = values_of(term, ranked.columns({column.name for column in term.columns}))
    valid = values.valid if isinstance(values, Numbers) else np.asarray(values.is_valid().cast(pa.uint8())).astype(bool)
    rows = np.flatnonzero(taken & valid)
    rows = rows[np.argsort(group[rows], kind="stable")]
    if rule.measure is Measure.DISTINCT:
        return ~_between(_distinct(values, rows, group, size), rule)
    broken = np.zeros(size, dtype=np.bool_)
    for number, mine in _runs(group, rows):
        assert isinstance(values, Numbers), "binding sees to numbers"
        broken[number] = not _keeps([values.fraction(row) or Fraction(0) for row in mine.tolist()], rule)
    return broken


def _distinct(values: Any, rows: Groups, group: Groups, size: int) -> npt.NDArray[np.int64]:
    if isinstance(values, Numbers):
        codes = np.unique(np.array([values.fraction(row) for row in rows.tolist()], dtype=object), return_inverse=True)[
            1
        ]
    else:
        codes = np.asarray(values.take(pa.array(rows)).dictionary_encode().indices, dtype=np.int64)
    pairs = np.unique(np.stack([group[rows], codes]), axis=1) if len(rows) else np.zeros((2, 0), dtype=np.int64)
    return np.bincount(pairs[0].astype(np.int64), minlength=size)


def _runs(group: Groups, rows: Groups) -> Iterator[tuple[int, Groups]]:
    """Each group that has rows, with these."""
    if not len(rows):
        return
    cuts = np.flatnonzero(np.diff(group[rows])) + 1
    for mine in np.split(rows, cuts):
        yield int(group[mine[0]]), mine


def _keeps(values: list[Fraction], rule: GroupRule) -> bool:
    """Whether the values of one group keep the rule; groups without values are not asked."""
    match rule.measure:
        case Measure.GAPLESS:
            start = min(values) if rule.low is None else Fraction(rule.low)
            return sorted(values) == [start + step for step in range(len(values))]
        case Measure.SUM:
            found = sum(values, Fraction(0))
        case Measure.LEAST:
            found = min(values)
        case Measure.MOST:
            found = max(values)
        case _:
            found = sum(values, Fraction(0)) / len(values)
    return (rule.low is None or found >= rule.low) and (rule.high is None or found <= rule.high)


def count_rows_rule(table: pa.Table | RankedTable, rule: RowsRule) -> int:
    """Count the sets of different rows that break a rule on three and more rows, in some order of its variables.

    Guarantees:
        Equal to trying all of them.  [test_rules_on_three_rows_are_those_of_brute_force]

    Raises:
        ConstraintError: so many rows share the values that it asks to be equal that counting them would take days.
    """
    ranked = table if isinstance(table, RankedTable) else RankedTable(table)
    return count_sets(ranked, rule)


def count_groups_in_parts(table: Parts, rule: GroupRule | RowsRule, num_rows: int) -> tuple[int, int]:
    """Count what breaks a rule in a table that is read part by part: broken, and of how many.

    Guarantees:
        Equal to counting the table in memory.  [test_group_rules_in_parts_are_those_of_the_table]
    """
    keys = list(rule.per) if isinstance(rule, GroupRule) else shared_attributes(rule)
    names = list(rule.attributes) or table.schema.names[:1]
    turns = (-(-num_rows // ROWS_AT_ONCE) or 1) if keys else 1
    broken = groups = 0
    for turn in range(turns):
        parts = [
            part if turns == 1 else part.filter(pa.array(deal_out(part.select(keys), turns) == turn))
            for part in table.parts(names)
        ]
        whole = pa.concat_tables(parts)
        if isinstance(rule, RowsRule):
            broken += count_rows_rule(whole, rule)
            continue
        found = count_groups(whole, rule)
        broken, groups = broken + found.broken, groups + found.groups
    return broken, groups

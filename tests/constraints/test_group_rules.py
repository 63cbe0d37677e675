from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import permutations
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.constraints.brute_terms import exact, value_of
from tests.trying import examples

from kamino.constraints import Constraints, value_types
from kamino.constraints.counting import groups as groups_module
from kamino.constraints.counting.derived import count_underived
from kamino.constraints.counting.groups import count_groups, count_groups_in_parts, count_rows_rule
from kamino.constraints.group_rules import GroupRule, Measure
from kamino.constraints.terms.evaluation import evaluate

RULES = (
    "count per (g) = 2",
    "count per (g) where h = 'a' = 1",
    "count per (g, h) <= 1",
    "count(n) per (g) between 1 and 2",
    "sum(n) per (g) = 3",
    "sum(n / 3) per (g) between 0 and 1",
    "avg(n) per (g) <= 1.5",
    "min(n) per (g) >= 0",
    "max(n + 1) per () <= 3",
    "gapless (n) per (g)",
    "gapless (n) per (g) from any",
    "gapless (n) per (g) where (h = 'a') from 0",
    "each g has 1..2 rows",
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 7))
    cells = {
        "g": st.none() | st.integers(0, 2),
        "h": st.none() | st.sampled_from("ab"),
        "n": st.none() | st.integers(-1, 3),
    }
    kinds = {"g": pa.int64(), "h": pa.string(), "n": pa.int64()}
    return pa.table(
        {
            name: pa.array(draw(st.lists(cell, min_size=rows, max_size=rows)), kinds[name])
            for name, cell in cells.items()
        }
    )


def brute(rule: GroupRule, rows: list[dict[str, Any]]) -> tuple[int, int]:
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        key = tuple(row[name] for name in rule.per)
        if None not in key:
            found[key].append(row)
    return sum(not keeps(rule, members) for members in found.values()), len(found)


def keeps(rule: GroupRule, members: list[dict[str, Any]]) -> bool:
    taken = [row for row in members if rule.where is None or value_of(rule.where, row) is True]
    if rule.measure is Measure.ROWS:
        return inside(rule, Fraction(len(taken)))
    values = [v for row in taken if (v := value_of(rule.term, row)) is not None]  # type: ignore[arg-type]
    if rule.measure is Measure.DISTINCT:
        return inside(rule, Fraction(len(set(values))))
    if not values:
        return True
    match rule.measure:
        case Measure.GAPLESS:
            start = min(values) if rule.low is None else rule.low
            return sorted(values) == [start + step for step in range(len(values))]
        case Measure.SUM:
            return inside(rule, sum(values))
        case Measure.LEAST:
            return inside(rule, min(values))
        case Measure.MOST:
            return inside(rule, max(values))
    return inside(rule, sum(values) / len(values))


def inside(rule: GroupRule, found: Any) -> bool:
    return (rule.low is None or found >= rule.low) and (rule.high is None or found <= rule.high)


TYPES = value_types(pa.table({"g": [1], "h": ["a"], "n": [1]}))


@examples(150)
@given(tables(), st.sampled_from(RULES))
def test_group_rules_are_those_of_brute_force(table: pa.Table, text: str) -> None:
    (rule,) = Constraints.parse(text, types=TYPES).group_rules
    assert isinstance(rule, GroupRule)
    found = count_groups(table, rule)
    assert (found.broken, found.groups) == brute(rule, table.to_pylist())
    assert len(found.rows) == found.broken


class _Parts:
    def __init__(self, table: pa.Table) -> None:
        self.table, self.schema = table, table.schema

    def parts(self, names: Any = None) -> Any:
        whole = self.table if names is None else self.table.select(names)
        yield whole.slice(0, 3)
        yield whole.slice(3)


@examples(60)
@given(tables(), st.sampled_from(RULES))
def test_group_rules_in_parts_are_those_of_the_table(table: pa.Table, text: str) -> None:
    (rule,) = Constraints.parse(text, types=TYPES).group_rules
    assert isinstance(rule, GroupRule)
    before = groups_module.ROWS_AT_ONCE
    groups_module.ROWS_AT_ONCE = 2  # so that there are several turns
    try:
        found = count_groups_in_parts(_Parts(table), rule, table.num_rows)
    finally:
        groups_module.ROWS_AT_ONCE = before
    whole = count_groups(table, rule)
    assert found == (whole.broken, whole.groups)


THREE = (
    "not (t1.g = t2.g and t2.g = t3.g and t1.n < t2.n and t2.n < t3.n)",
    "not (t1.g = t2.g and t1.h != t3.h and t2.n <= t3.n and t1.n is not null)",
    "not (t1.g = t2.g and t2.g = t3.g and t3.g = t4.g)",
    "not (t1.n + 1 = t2.n and t2.n + 1 = t3.n and t3.h = 'a')",
)


@examples(80)
@given(tables(), st.sampled_from(THREE))
def test_rules_on_three_rows_are_those_of_brute_force(table: pa.Table, text: str) -> None:
    (rule,) = Constraints.parse(text, types=TYPES).group_rules
    assert not isinstance(rule, GroupRule)
    rows = table.to_pylist()
    broken = set()
    for chosen in permutations(range(len(rows)), rule.tuples):
        if all(_true(predicate, [rows[i] for i in chosen]) for predicate in rule.predicates):
            broken.add(frozenset(chosen))
    assert count_rows_rule(table, rule) == len(broken)
    assert str(Constraints.parse(str(Constraints.parse(text)))) == text


def _true(predicate: Any, rows: list[dict[str, Any]]) -> bool:
    from tests.constraints.brute_terms import compare

    from kamino.constraints.tree import NullTest

    if isinstance(predicate, NullTest):
        return (rows[predicate.column.tuple - 1][predicate.column.name] is None) != predicate.negated
    sides = []
    for side in (predicate.left, predicate.right):
        row = rows[side.columns[0].tuple - 1] if side.columns else {}
        sides.append(value_of(side, row))
    return compare(sides[0], predicate.op, sides[1]) is True


@examples(50)
@given(tables())
def test_derived_columns_are_what_they_are_computed_as(table: pa.Table) -> None:
    (derivation,) = Constraints.parse("m := n * 2 + g", types={**TYPES}).derivations
    columns = {name: table.column(name) for name in table.column_names}
    made = table.append_column("m", evaluate(derivation.term, columns))
    assert count_underived(made, derivation) == 0
    wrong = [None if v is None else v + (i == 0) for i, v in enumerate(made["m"].to_pylist())]
    other = made.set_column(3, "m", pa.array(wrong, pa.int64()))
    assert count_underived(other, derivation) == (bool(wrong) and wrong[0] is not None)
    assert exact(1) == 1

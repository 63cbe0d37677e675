from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.constraints.brute_terms import compare, exact, value_of
from tests.trying import examples

from kamino.constraints import Constraints, ValueType, count_violations, value_types, violations_per_row
from kamino.constraints.language.term_text import print_term
from kamino.constraints.terms.canonical_terms import applied, compared, is_true
from kamino.constraints.terms.evaluation import evaluate, values_of
from kamino.constraints.terms.exact import Numbers
from kamino.constraints.terms.term import Apply, Term, renamed_predicate, walk
from kamino.constraints.terms.term_types import bound_term, type_of
from kamino.constraints.tree import (
    NOWHERE,
    Column,
    Comparison,
    Constant,
    DenialConstraint,
    NullTest,
    Operator,
    TermTest,
)
from kamino.errors import ConstraintErrors

TYPES = {
    "i": ValueType.NUMBER,
    "j": ValueType.NUMBER,
    "m": ValueType.NUMBER,
    "f": ValueType.NUMBER,
    "d": ValueType.DATE,
    "e": ValueType.DATE,
    "s": ValueType.TEXT,
    "u": ValueType.TEXT,
    "b": ValueType.BOOLEAN,
}
ARROW = {
    "i": pa.int64(),
    "j": pa.int64(),
    "m": pa.decimal128(20, 2),
    "f": pa.float64(),
    "d": pa.date32(),
    "e": pa.date32(),
    "s": pa.string(),
    "u": pa.string(),
    "b": pa.bool_(),
}
texts = st.text(st.sampled_from("aB z;5é"), max_size=6)
dates = st.dates(date(1890, 1, 1), date(2110, 1, 1))
cells = {
    "i": st.integers(-20, 20) | st.integers(-(2**62), 2**62),
    "j": st.integers(-5, 5),
    "m": st.decimals(-1000, 1000, places=2),
    "f": st.sampled_from([0.1, 0.2, 0.3, -2.5, 1e15, 1e-7, 123456.789]),
    "d": dates,
    "e": dates,
    "s": texts,
    "u": texts,
    "b": st.booleans(),
}


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 6))
    made = {name: pa.array([draw(st.none() | cell) for _ in range(rows)], ARROW[name]) for name, cell in cells.items()}
    return pa.table(made)


def numbers(depth: int) -> st.SearchStrategy[Term]:
    leaf: st.SearchStrategy[Term] = st.sampled_from([Column(n) for n in "ijmf"]) | st.builds(
        Constant, st.integers(-9, 9) | st.decimals(-9, 9, places=2)
    )
    if depth == 0:
        return leaf
    inner = numbers(depth - 1)
    days, text, truth = moments(depth - 1), strings(depth - 1), booleans(depth - 1)
    return st.one_of(
        leaf,
        *(
            st.builds(lambda a, b, n=n: applied(n, a, b), inner, inner)
            for n in ("add", "subtract", "multiply", "divide")
        ),
        *(st.builds(lambda a, b, n=n: applied(n, a, b), inner, inner) for n in ("mod", "min", "max", "nullif")),
        *(st.builds(lambda a, n=n: applied(n, a), inner) for n in ("negate", "abs", "sign", "floor", "ceil")),
        st.builds(lambda a, n: applied("round", a, Constant(n)), inner, st.integers(-2, 3)),
        st.builds(lambda a, n: applied("power", a, Constant(n)), inner, st.integers(0, 2)),
        *(
            st.builds(lambda a, n=n: applied(n, a), days)
            for n in ("year", "quarter", "month", "week", "day", "weekday", "yearday")
        ),
        *(st.builds(lambda a, b, n=n: applied(n, a, b), days, days) for n in ("subtract", "days", "months", "years")),
        *(st.builds(lambda a, n=n: applied(n, a), text) for n in ("length", "bytes")),
        st.builds(lambda a: applied("items", a, Constant(";")), text),
        st.builds(lambda c, a, b: applied("choose", c, a, b), truth, inner, inner),
        st.builds(lambda a, b: applied("coalesce", a, b), inner, inner),
    )


def moments(depth: int) -> st.SearchStrategy[Term]:
    leaf: st.SearchStrategy[Term] = st.sampled_from([Column("d"), Column("e")]) | st.builds(Constant, dates)
    if depth == 0:
        return leaf
    inner = moments(depth - 1)
    units = st.sampled_from(["year", "quarter", "month", "week", "day"])
    return st.one_of(
        leaf,
        st.builds(lambda a, n: applied("add", a, Constant(n)), inner, st.integers(-400, 400)),
        st.builds(lambda a, n: applied("subtract", a, Constant(n)), inner, st.integers(-400, 400)),
        st.builds(lambda u, a: applied("start_of", Constant(u), a), units, inner),
        st.builds(lambda a, b: applied("coalesce", a, b), inner, inner),
    )


def strings(depth: int) -> st.SearchStrategy[Term]:
    leaf: st.SearchStrategy[Term] = st.sampled_from([Column("s"), Column("u")]) | st.builds(Constant, texts)
    if depth == 0:
        return leaf
    inner = strings(depth - 1)
    size = st.integers(0, 4).map(Constant)
    return st.one_of(
        leaf,
        *(st.builds(lambda a, n=n: applied(n, a), inner) for n in ("lower", "upper", "trim", "ltrim", "rtrim")),
        *(st.builds(lambda a, k, n=n: applied(n, a, k), inner, size) for n in ("left", "right")),
        st.builds(lambda a, k, n: applied("substr", a, Constant(k), n), inner, st.integers(1, 4), size),
        st.builds(lambda a: applied("replace", a, Constant("a"), Constant("zz")), inner),
        st.builds(lambda a, b: applied("concat", a, b), inner, inner),
    )


def booleans(depth: int) -> st.SearchStrategy[Term]:
    number, text, moment = numbers(depth), strings(depth), moments(depth)
    names = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])
    leaf = st.one_of(
        st.just(Column("b")),
        st.builds(lambda n, a, b: Apply(n, (a, b)), names, number, number),
        st.builds(lambda n, a, b: Apply(n, (a, b)), names, moment, moment),
        st.builds(lambda a: Apply("is_null", (a,)), number),
        st.builds(lambda a, p: Apply("like", (a, Constant(p))), text, st.sampled_from(["a%", "%B_", "_", "%z%"])),
        st.builds(
            lambda a, p: Apply("matches", (a, Constant(p))), text, st.sampled_from(["^a", "B+$", "[0-9]", "z|;"])
        ),
        st.builds(lambda a, v: Apply("in", (a, *map(Constant, v))), text, st.lists(texts, min_size=1, max_size=3)),
        st.builds(lambda a: Apply("items_differ", (a, Constant(";"))), text),
        st.builds(lambda a: Apply("each_in", (a, Constant(";"), Constant("a"), Constant("B"))), text),
    )
    if depth == 0:
        return leaf
    inner = booleans(depth - 1)
    return st.one_of(
        leaf,
        st.builds(lambda a: Apply("not", (a,)), inner),
        st.builds(lambda n, a, b: Apply(n, (a, b)), st.sampled_from(["and", "or"]), inner, inner),
    )


def terms(depth: int = 3) -> st.SearchStrategy[Term]:
    return st.one_of(numbers(depth), moments(depth), strings(depth), booleans(depth))


def _list(values: Any, like: Any) -> list[Any]:
    if isinstance(values, Numbers):
        found = [values.fraction(row) for row in range(len(values))]
        if like is ValueType.DATE:
            return [None if each is None else date.fromordinal(int(each) + 719163) for each in found]
        return found
    return [exact(each) for each in values.to_pylist()]


@examples(300)
@given(tables(), terms())
def test_terms_are_those_of_exact_arithmetic(table: pa.Table, term: Term) -> None:
    term = bound_term(term, TYPES, NOWHERE)
    try:
        wanted = [value_of(term, row) for row in table.to_pylist()]
    except OverflowError:  # a date beyond those of Python's calendar
        return
    found = _list(values_of(term, {name: table.column(name) for name in table.column_names}), type_of(term, TYPES))
    assert found == wanted, print_term(term)


@examples(200)
@given(tables(), numbers(3), st.sampled_from(list(Operator)), numbers(3))
def test_terms_are_counted_exactly(table: pa.Table, left: Term, op: Operator, right: Term) -> None:
    if not left.columns and not right.columns:
        return
    constraint = DenialConstraint(predicates=(compared(left, op, right),))
    bound = Constraints((constraint,)).bind(TYPES).items[0]
    rows = [compare(value_of(left, row), op, value_of(right, row)) is True for row in table.to_pylist()]
    if isinstance(bound.predicates[0], TermTest):
        assert violations_per_row(table, bound).astype(bool).tolist() == rows


@examples(100)
@given(tables(), numbers(2), st.sampled_from(list(Operator)), numbers(2))
def test_terms_across_rows_are_counted_exactly(table: pa.Table, left: Term, op: Operator, right: Term) -> None:
    if not left.columns or not right.columns:
        return
    from kamino.constraints.terms.term import with_tuple

    test = TermTest(with_tuple(left, 1), op, with_tuple(right, 2))
    (bound,) = Constraints((DenialConstraint(predicates=(test,)),)).bind(TYPES)
    rows = table.to_pylist()
    one, two = [value_of(left, row) for row in rows], [value_of(right, row) for row in rows]
    pairs = {
        frozenset((a, b))
        for a in range(len(rows))
        for b in range(len(rows))
        if a != b and compare(one[a], op, two[b]) is True
    }
    assert count_violations(table, bound) == len(pairs)


@examples(300)
@given(terms(4))
def test_terms_are_printed_and_read_back(term: Term) -> None:
    tests = [each for each in walk(term) if type_of(each, TYPES) is ValueType.BOOLEAN]
    if not term.columns or not all(each.columns for each in tests):
        return  # tests of constants are refused
    predicate = is_true(term) if type_of(term, TYPES) is ValueType.BOOLEAN else None
    if predicate is None:
        read = Constraints.parse(f"made := {print_term(term)}").derivations[0]
        assert read.term == term
        return
    if isinstance(predicate, Comparison | NullTest):
        return
    text = str(Constraints((DenialConstraint(predicates=(predicate,)),)))
    assert str(Constraints.parse(text)) == str(Constraints.parse(str(Constraints.parse(text))))


CASES = {
    "check (a + b = c)": "check (a + b = c)",
    "a + b <= c": "check (a + b <= c)",
    "abs(total - (a + b)) <= 1": "check (abs(total - (a + b)) <= 1)",
    "if status = 'dead' then died is not null": "not (status = 'dead' and died is null)",
    "x is null iff y is null": "not (x is null and y is not null)\nnot (x is not null and y is null)",
    "check (a > 0) where b = 1": "not (b = 1 and a <= 0)",
    "check (a is distinct from 5)": "not (a is not null and a = 5)",
    "2 * 3 < a": "check (a > 6)",
    "not (t1.a - t2.b > 5 and t1.g = t2.g)": "not (t1.a > t2.b + 5 and t1.g = t2.g)",
    "key (lower(email)) where deleted is null": "not (lower(t1.email) = lower(t2.email) and t1.deleted is null and "
    "t2.deleted is null)",
    "key (a) nulls equal": "key (a)\nnot (t1.a is null and t2.a is null)",
    "zip -> city where country = 'NL'": "not (t1.zip = t2.zip and t1.city != t2.city and t1.country = 'NL' and "
    "t2.country = 'NL')",
    "code ~ '^A\\d+$'": "check (code ~ '^A\\d+$')",
    "code not like 'A%'": "check (code not like 'A%')",
    "upper(x) in ('W', 'M')": "check (upper(x) in ('W', 'M'))",
    "case when a = 1 then 5 else 10 end >= b": "check (case when a = 1 then 5 else 10 end >= b)",
    "total := price * quantity": "total := price * quantity",
    "no overlap (s, e) per (room)": "not (t1.room = t2.room and t1.s < t2.e and t2.s < t1.e)",
    "increasing (total) by (day) per (id)": "not (t1.id = t2.id and t1.day < t2.day and t1.total > t2.total)",
    "count per (h) where head = 'yes' = 1": "count per (h) where (head = 'yes') = 1",
    "sum(share) per (fund) = 100": "sum(share) per (fund) = 100",
    "each order has 1..7 rows": "count per (order) between 1 and 7",
    "gapless (line) per (order)": "gapless (line) per (order)",
    "count(city) per (zip) <= 1": "count(city) per (zip) <= 1",
    "avg(x) per () between 0.5 and 2": "avg(x) per () between 0.5 and 2",
}


@pytest.mark.parametrize("text", CASES)
def test_rules_as_people_say_them(text: str) -> None:
    found = Constraints.parse(text)
    assert str(found) == CASES[text]
    assert Constraints.parse(str(found)) == found


FAULTS = {
    "check (s + 1 > 2)": "1:10: found text as argument 1 of '+', expected a date or a number or a timestamp or a "
    "timestamp with time zone; number(x) reads a text as a number, a || b joins texts",
    "check (lenght(s) > 2)": "1:8: found the function 'lenght', did you mean 'length'?",
    "check (s ~ '(?=a)b')": "1:12: found a pattern that cannot be read",
    "check (round(i, 99) > 1)": "1:17: found 99, expected a whole number of digits, at most 30",
    "check (d - e > s)": "found a number compared with text, expected one type; number(x), date(x) and text(x)",
    "check (d + 1 > '2024-13-01')": "1:16: found '2024-13-01', expected a date such as '2024-02-29'",
    "check (t1.i * t2.j > 3)": "found tuples mixed in one side of a comparison",
    "i := i + 1": "found 'i' on both sides of ':='",
    "sum(s) per (b) = 3": "found text in 'sum', expected a number",
    "i := j\nj := i": "found derivations in a circle",
    "each (i) has 3..1 rows": "found bounds from 3 to 1, which no group can keep",
    "check (year(s) = 3)": "date(x) reads a text as a date",
}


@pytest.mark.parametrize("text", FAULTS)
def test_terms_that_do_not_fit_say_what_would(text: str) -> None:
    with pytest.raises(ConstraintErrors, match=re.escape(FAULTS[text])):
        Constraints.parse(text, source="rules.dc", types=TYPES)


def test_conditional_rules_cost_their_length() -> None:
    import time

    left = ", ".join(f"'a{n}'" for n in range(300))
    right = ", ".join(f"'b{n}'" for n in range(300))
    begin = time.process_time()
    rules = Constraints.parse(f"if s in ({left}) then u in ({right})", types=TYPES)
    assert len(rules) == 1
    table = pa.table({"s": ["a7", "a7", "c", None], "u": ["b9", "c", "c", "c"]})
    assert count_violations(table, rules.items[0]) == 1
    assert Constraints.parse(str(rules), types=TYPES) == rules
    assert time.process_time() - begin < 2


def test_doubles_are_the_decimals_they_are_written_as() -> None:
    table = pa.table({"a": [0.1, 1e300], "b": [0.2, float("inf")], "c": [0.3, float("inf")]})
    rules = Constraints.parse("a + b = c\nb >= a * 2", types=value_types(table))
    assert [count_violations(table, each) for each in rules] == [1, 0]
    made = Apply("add", (Column("a"), Column("b")))
    assert evaluate(made, {"a": table["a"].slice(0, 1), "b": table["b"].slice(0, 1)}).to_pylist() == [Decimal("0.3")]


def test_sums_agree_with_duckdb() -> None:
    cells = pa.table(
        {"x": pa.array([1, -7, None, 2**40], pa.int64()), "d": [date(2024, 2, 29), date(1999, 12, 31)] * 2}
    )
    mine = Constraints.parse("r := x % 3 + floor(x / 4) * 2 - abs(x)\nw := weekday(d) * 100 + week(d)").derivations
    got = duckdb.sql("select x % 3 + floor(x / 4) * 2 - abs(x), isodow(d) * 100 + week(d) from cells").fetchall()
    columns = {name: cells.column(name) for name in cells.column_names}
    assert [tuple(row) for row in zip(*(evaluate(each.term, columns).to_pylist() for each in mine), strict=True)] == got


@pytest.mark.parametrize("text", [text for text in CASES if Constraints.parse(text).items])
def test_renaming_there_and_back_is_nothing(text: str) -> None:
    for constraint in Constraints.parse(text):
        for predicate in constraint.predicates:
            away = renamed_predicate(predicate, lambda column: Column(f"t.{column.name}", column.tuple))
            assert all(column.name.startswith("t.") for column in away.columns)
            back = renamed_predicate(away, lambda column: Column(column.name.removeprefix("t."), column.tuple))
            assert back == predicate

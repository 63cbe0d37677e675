"""Text to constraints and back."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from tests.constraints.brute_force import missing
from tests.constraints.strategies import predicates
from tests.trying import examples

from kamino.constraints import Constraints, DenialConstraint, ValueType, print_constraint
from kamino.constraints.language.expressions import And, Expression, Not, Or, alternatives
from kamino.constraints.language.parser import speak_of_t1
from kamino.constraints.tree import (
    HARD,
    SOFT,
    Column,
    Comparison,
    Constant,
    Kind,
    NullTest,
    Operator,
    Strength,
)
from kamino.errors import ConstraintError, ConstraintErrors, UnknownAttributeError

names = st.text(st.characters(exclude_characters="\n\r", exclude_categories=("Cs",)), min_size=1) | st.sampled_from(
    ["key", "date", "t1", "not", "a-b", "a->b", "education-num", 'say "hi"', "a.b", " x ", "é", "weight", "1st"]
)
values: st.SearchStrategy[Any] = st.one_of(
    st.booleans(),
    st.integers(),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_characters="\n\r", exclude_categories=("Cs",))),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
)
strengths = st.sampled_from([HARD, SOFT]) | st.floats(0, allow_nan=False, allow_infinity=False).map(
    lambda weight: Strength(kind=Kind.WEIGHTED, weight=weight)
)
columns = st.builds(Column, names, st.sampled_from([1, 2]))
any_predicate = st.one_of(
    st.builds(Comparison, columns, st.sampled_from(Operator), columns | st.builds(Constant, values)),
    st.builds(NullTest, columns, st.booleans()),
)


@examples(400)
@given(st.lists(any_predicate, min_size=1, max_size=4), strengths)
def test_print_then_parse_is_identity(found: list[Any], strength: Strength) -> None:
    constraint = DenialConstraint(predicates=speak_of_t1(tuple(found)), strength=strength)
    assert Constraints.parse(print_constraint(constraint)).items == (constraint,)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("zip, state->city , county", "zip, state -> city\nzip, state -> county"),
        ("KEY(a,b)", "key (a, b)"),
        ("check (age >= 17)", "check (age >= 17)"),
        ("check (17 <= age)", "check (age >= 17)"),
        ("check (t1.age >= 17)", "check (age >= 17)"),
        ("not (t2.age < 17)", "check (age >= 17)"),
        ("check (a > 1 and b > 2)", "check (a > 1)\ncheck (b > 2)"),
        ("check (a > 1 or b > 2)", "not (a <= 1 and b <= 2)"),
        ("check (sex in ('M', 'F'))", "not (sex != 'M' and sex != 'F')"),
        ("check (a between 1 and 2.50)", "check (a >= 1)\ncheck (a <= 2.50)"),
        ("check (a not between 1 and 2)", "not (a >= 1 and a <= 2)"),
        ("check (a is not null)", "check (a is not null)"),
        ("not (a is null and b is not null)", "not (a is null and b is not null)"),
        ("soft: a -> b # trailing", "soft: a -> b"),
        ("weight 2.5: a -> b", "weight 2.5: a -> b"),
        ("not (t1.a <> t2.a and t1.b == 'it''s')", "not (t1.a != t2.a and t1.b = 'it''s')"),
        ("date -> key", '"date" -> "key"'),
        ("check (date >= date '2020-02-29')", "check (\"date\" >= date '2020-02-29')"),
        ("t1&t2&EQ(t1.a-b,t2.a-b)&IQ(t1.c,t2.c)", "a-b -> c"),
        ("soft: t1&t2&LTE(t1.a,t2.b)", "soft: not (t1.a <= t2.b)"),
        ('weight 3: t1&EQ(t1.a,"x y")&GT(t1.b,-2.5)', "weight 3.0: not (a = 'x y' and b > -2.5)"),
        ('t1&t2&EQ(t1."a,b",t2."a,b")', 'key ("a,b")'),
        ("zip -> city using zips.csv  # public", "zip -> city using 'zips.csv'"),
        (
            "soft: zip -> city, state using 'a b/it''s.csv'",
            "\n".join(f"soft: zip -> {name} using 'a b/it''s.csv'" for name in ("city", "state")),
        ),
        ("using -> b", '"using" -> b'),
        ("", ""),
        ("  # nothing", ""),
        ("\ufeffa -> b\r\nkey (a)\r", "a -> b\nkey (a)"),
    ],
)
def test_texts_and_their_canonical_form(text: str, printed: str) -> None:
    assert str(Constraints.parse(text)) == printed


def test_predicates_read_as_written() -> None:
    (constraint,) = Constraints.parse("not (t1.a = t2.b and t2.c >= timestamp '2024-02-29 12:30:00')")
    assert constraint.predicates == (
        Comparison(Column("a", 1), Operator.EQ, Column("b", 2)),
        Comparison(Column("c", 2), Operator.GE, Constant(datetime(2024, 2, 29, 12, 30))),
    )


BAD = {
    "zip - > city": "rules.dc:1:5: found '-', expected a name",
    "not (t1.a = t7.b)": "rules.dc:1:13: found tuple variable 't7', expected t1 or t2",
    "not (t1.a = t3.b)": "rules.dc:1:1: found tuple variables with a gap, expected t1, t2, t3",
    "key (a": "rules.dc:1:7: found the end of the line, expected ')' to close the key",
    "key ()": "rules.dc:1:6: found ')', expected an attribute name",
    "check (a > )": "rules.dc:1:12: found ')', expected an attribute or a constant",
    "check (a 5)": "rules.dc:1:10: found '5', expected one of = != < <= > >=",
    "check (a = null)": "rules.dc:1:12: found a comparison with null, which is never true; use 'is null'",
    "check (1 = 2)": "rules.dc:1:10: found a comparison of two constants",
    "check (1 is null)": "rules.dc:1:10: found a null test of a constant",
    "check (a = date '2023-02-29')": "rules.dc:1:17: found '2023-02-29', expected a date such as",
    "key (a) using x.csv": "rules.dc:1:9: found 'using', which belongs to a dependency",
    "a -> b using": "rules.dc:1:13: found the end of the line, expected the path of a table",
    "foo": "rules.dc:1:4: found the end of the line, expected '->'",
    "-> b": "rules.dc:1:1: found '->', expected 'a -> b'",
    "a -> b c": "rules.dc:1:8: found 'c', expected the end of the line",
    "not (t1.a = b and t2.c = 3)": "rules.dc:1:13: found 'b' without a tuple variable",
    'check ("a > 3)': 'rules.dc:1:8: found an opening " that is never closed',
    "weight -1: a -> b": "rules.dc:1:8: found weight -1.0; a weight is a finite number",
    "t1&t2&EX(t1.a,t2.a)": "rules.dc:1:7: found operator 'EX', expected one of EQ, IQ",
    "t1&t2&t3&EQ(t1.a,t3.a)": "rules.dc:1:7: found tuple variable t3, expected t1 or t2",
    "t1&t2": "found the end of the line, expected a predicate such as EQ(t1.A,t2.A)",
    "t1&t2&EQ(t1.a,t2.a": "expected an operand such as",
    "t1&t2&EQ(t1.a,b)": "rules.dc:1:15: found 'b', expected t1.b, t2.b, a number, or a text in quotes",
    "weight x: t1&EQ(t1.a,1)": "rules.dc:1:8: found weight 'x'",
}


@pytest.mark.parametrize("text", BAD)
def test_bad_text_says_where_what_and_what_would_be_right(text: str) -> None:
    with pytest.raises(ConstraintErrors) as caught:
        Constraints.parse(text, source="rules.dc")
    assert BAD[text] in str(caught.value)


def test_all_errors_at_once() -> None:
    types = {"zip": ValueType.TEXT, "age": ValueType.NUMBER}
    text = "zpi -> age\nkey (\ncheck (age > 'x')\nnot (t1.zip = t2.age)\nage, zpi -> cty\nzip -> age"
    with pytest.raises(ConstraintErrors) as caught:
        Constraints.parse(text, source="rules.dc", types=types)
    assert str(caught.value).splitlines() == [
        "rules.dc:1:1: attribute 'zpi' is not in the schema. Did you mean 'zip'? Attributes: zip, age.",
        "rules.dc:2:6: found the end of the line, expected an attribute name; "
        "names that are not plain words stand in double quotes",
        "rules.dc:3:14: found 'x', but 'age' is a number; expected a number without quotes, such as 17 or 2.5",
        "rules.dc:4:18: 'zip' is text and 'age' is a number, which cannot be compared; "
        "compare attributes of one type, or change the type of a column",
        "rules.dc:5:6: attribute 'zpi' is not in the schema. Did you mean 'zip'? Attributes: zip, age.",
        "rules.dc:5:13: attribute 'cty' is not in the schema. Attributes: zip, age.",
    ]
    assert isinstance(caught.value.errors[0], UnknownAttributeError)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ValueType.DATE, "'2024-02-29'", date(2024, 2, 29)),
        (ValueType.DATE, "'2024-02-29 10:00'", datetime(2024, 2, 29, 10)),
        (ValueType.TIMESTAMP, "'2024-02-29'", datetime(2024, 2, 29)),
        (ValueType.ZONED, "'2024-02-29T00:00:00+00:00'", datetime(2024, 2, 29, tzinfo=UTC)),
        (ValueType.ZONED, "'2024-02-29'", None),
        (ValueType.DATE, "'soon'", None),
        (ValueType.DATE, "5", None),
        (ValueType.NUMBER, "2.5", Decimal("2.5")),
        (ValueType.NUMBER, "true", None),
        (ValueType.TEXT, "5", None),
        (ValueType.BOOLEAN, "true", True),
        (ValueType.UNKNOWN, "5", 5),
    ],
)
def test_constants_take_the_type_of_their_attribute(kind: ValueType, text: str, value: Any) -> None:
    rules = Constraints.parse(f"not (a = {text})")
    if value is None:
        with pytest.raises(ConstraintErrors, match="but 'a' is"):
            rules.bind({"a": kind})
        return
    (bound,) = rules.bind({"a": kind})
    assert bound.predicates == (Comparison(Column("a"), Operator.EQ, Constant(value)),)


def test_ddl_lists_what_is_not_taken_over() -> None:
    found, left_out = Constraints.split_ddl(
        "create table t (id int primary key, a int null check (a > 0) default 3, b int references u (c), "
        "e text check (e like '%@%'), foreign key (a) references z (q), check (soundex(e) > 'A'), "
        "constraint both unique (a, b))"
    )
    assert str(found).splitlines() == [
        "check (id is not null)", "key (id)", "check (a > 0)", "check (e like '%@%')", "key (a, b)",
    ]  # fmt: skip
    assert left_out == (
        "a: DEFAULT 3", "b: REFERENCES u (c)", "FOREIGN KEY (a) REFERENCES z (q)", "CHECK (SOUNDEX(e) > 'A')",
    )  # fmt: skip


@pytest.mark.parametrize("dialect", [None, "postgres", "duckdb", "mysql", "sqlite", "tsql", "snowflake", "bigquery"])
def test_negations_of_sql_are_read_in_every_dialect(dialect: str | None) -> None:
    """Versions of sqlglot differ in how they tell `is not null`, and so do the dialects of one version."""
    from kamino.constraints.language.ddl import parse_check

    for text in ("a is not null", "not a is null", "not (a is null)"):
        assert print_constraint(*parse_check(text, dialect=dialect)) == "check (a is not null)"
    assert [print_constraint(c) for c in parse_check("a not in (1, 2)", dialect=dialect)] == [
        "check (a != 1)", "check (a != 2)",
    ]  # fmt: skip
    (between,) = parse_check("a not between 1 and 2", dialect=dialect)
    assert print_constraint(between) == "not (a >= 1 and a <= 2)"
    assert print_constraint(*parse_check("a not like 'x%'", dialect=dialect)) == "check (a not like 'x%')"


def test_from_ddl_reads_keys_nulls_and_checks() -> None:
    sql = """
    CREATE TABLE people (
        id BIGINT PRIMARY KEY,
        name VARCHAR(20) NOT NULL UNIQUE,
        born DATE CHECK (born > '1900-01-01' AND NOT born IS NULL),
        sex CHAR(1) CHECK (sex IN ('M', 'F')),
        salary NUMERIC(9, 2) CHECK (salary BETWEEN -1 AND 1e6), "odd name" INT,
        CONSTRAINT pair UNIQUE (name, "odd name"),
        CHECK (salary <> 0 OR sex IS NULL)
    )"""
    assert str(Constraints.from_ddl(sql)).splitlines() == [
        "check (id is not null)",
        "key (id)",
        "check (name is not null)",
        "key (name)",
        "check (born > '1900-01-01')",
        "check (born is not null)",
        "not (sex != 'M' and sex != 'F')",
        "check (salary >= -1)",
        "check (salary <= 1E+6)",
        'key (name, "odd name")',
        "not (salary = 0 and sex is not null)",
    ]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("select 1", "found 0 CREATE TABLE statements with columns, expected one"),
        ("create table a (x int); create table b (x int)", "found 2 CREATE TABLE statements"),
        ("create table a (x int", "found SQL that cannot be read"),
        ("create table a (x int check (x & 2 = 0))", "in a CHECK: found 'x & 2', expected comparisons of columns"),
    ],
)
def test_bad_ddl_is_an_error(sql: str, message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        Constraints.from_ddl(sql)


def test_what_is_no_constraint_of_a_column_is_passed_over() -> None:
    """A slip that newer versions of sqlglot read as an expression, and older ones refuse: an error of ours then."""
    slip = "create table t (id int primary key, age in t not null)"
    try:
        sqlglot.parse(slip)
    except sqlglot.errors.ParseError:
        with pytest.raises(ConstraintError, match="found SQL that cannot be read"):
            Constraints.from_ddl(slip)
    else:
        assert str(Constraints.from_ddl(slip)).splitlines()[:2] == ["check (id is not null)", "key (id)"]


def test_tree_invariants() -> None:
    here = Column("a")
    with pytest.raises(ConstraintError, match="without predicates"):
        DenialConstraint(predicates=())
    twice = DenialConstraint(predicates=(NullTest(here), NullTest(here)))
    assert twice.predicates == (NullTest(here),)
    with pytest.raises(ConstraintError, match="only t2"):
        DenialConstraint(predicates=(NullTest(Column("a", 2)),))
    with pytest.raises(ConstraintError, match="t7"):
        Column("a", 7)
    with pytest.raises(ConstraintError, match="t3"):
        DenialConstraint(predicates=(NullTest(here), NullTest(Column("a", 3))))
    with pytest.raises(ConstraintError, match="empty"):
        Column("")
    with pytest.raises(ConstraintError, match="line break"):
        Comparison(here, Operator.EQ, Constant("a\nb"))
    with pytest.raises(ConstraintError, match="finite"):
        Constant(Decimal("NaN"))
    with pytest.raises(ConstraintError, match="weight"):
        Strength(kind=Kind.SOFT, weight=1.0)
    with pytest.raises(ConstraintError, match="weight"):
        Strength(kind=Kind.WEIGHTED, weight=float("inf"))


def test_too_many_alternatives_are_refused() -> None:
    body = " and ".join(f"(t1.a{i} = 1 or t2.b{i} = 1)" for i in range(9))
    with pytest.raises(ConstraintErrors, match="more than 256 alternatives"):
        Constraints.parse(f"not ({body})")


expressions: st.SearchStrategy[Expression] = st.recursive(
    predicates(),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: And(tuple(parts)))
        | st.lists(inner, min_size=1, max_size=3).map(lambda parts: Or(tuple(parts)))
        | inner.map(Not)
    ),
    max_leaves=5,
)


def truth(expression: Expression, row: dict[str, Any]) -> bool | None:
    """Three-valued logic as SQL has it."""
    match expression:
        case Not(part=part):
            inner = truth(part, row)
            return None if inner is None else not inner
        case And(parts=parts):
            found = [truth(part, row) for part in parts]
            return False if False in found else None if None in found else True
        case Or(parts=parts):
            found = [truth(part, row) for part in parts]
            return True if True in found else None if None in found else False
        case NullTest(column=column, negated=negated):
            return missing(row[column.name]) != negated
        case Comparison(left=left, op=op, right=right):
            import operator

            a, b = row[left.name], right.value if isinstance(right, Constant) else row[right.name]
            if missing(a) or missing(b):
                return None
            compare = {"=": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}[op.value]
            return bool(getattr(operator, compare)(a, b))


@examples(300)
@given(expressions, st.data())
def test_alternatives_keep_truth(expression: Expression, data: st.DataObject) -> None:
    numbers = st.none() | st.integers(-1, 1)
    row: dict[str, Any] = {name: data.draw(numbers, label=name) for name in ("i", "j", "f", "d")}
    row |= {name: data.draw(st.none() | st.sampled_from(["a", "b"]), label=name) for name in ("s", "u")}
    row["b"] = data.draw(st.none() | st.booleans(), label="b")
    found = any(all(truth(p, row) is True for p in alternative) for alternative in alternatives(expression))
    assert found == (truth(expression, row) is True)

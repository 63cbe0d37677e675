from __future__ import annotations

from decimal import Decimal
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trying import examples

from kamino import Synthesizer
from kamino.constraints import Constraints, DenialConstraint, count_violations, value_types, violations_per_row
from kamino.errors import SamplingError
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.codes.terms_on_codes import decoded
from kamino.sampling.intervals.code_ranges import ranges_of, solvable
from kamino.sampling.intervals.linear_forms import constraint_of, forms_of
from kamino.sampling.intervals.systems import refuse_impossible_sums, system_of
from kamino.schema import Codec, Schema

SCHEMA = Schema.from_yaml(
    """
attributes:
  a: {type: integer, min: -3, max: 4}
  b: {type: integer, min: 0, max: 5, nullable: true}
  c: {type: real, min: -1, max: 2, decimals: 1}
  d: {type: date, min: 2024-01-01, max: 2024-01-12}
  e: {type: date, min: 2024-01-03, max: 2024-01-20, nullable: true}
  g: {type: categorical, values: [x, yy]}
""",
    source="s.yaml",
)
CODEC = Codec(SCHEMA)
JUDGE = Judge(CODEC)


def decode(columns: dict[str, np.ndarray]) -> pa.Table:
    return pa.table({name: decoded(CODEC[name], codes) for name, codes in columns.items()})


TYPES = value_types(decode({name: np.zeros(1, np.int64) for name in CODEC.attributes}))
RULES = (
    "a + b <= 3",
    "2 * a - b / 3 > c",
    "abs(a - 2 * c) <= 1.5",
    "a = b - 1",
    "a + b != 2",
    "a * b <= 4",
    "c * (b - 2) >= a",
    "round(c, 0) = a",
    "days(d, e) >= 3",
    "e - d <= b",
    "e > d + 2",
    "if g = 'x' then a + b <= 1",
    "if length(g) = 2 then e - d >= 4",
    "if a > 0 then c <= a / 4",
    "year(d) = 2024",
    "weekday(d) <= 5",
    "length(g) + a <= 3",
    "a % 2 = 0",
)


def parsed(*texts: str) -> tuple[DenialConstraint, ...]:
    return Constraints.parse("\n".join(texts), types=TYPES).items


@st.composite
def codes(draw: st.DrawFn) -> dict[str, np.ndarray]:
    rows = draw(st.integers(1, 8))
    sizes = {name: CODEC[name].size for name in CODEC.attributes}
    return {
        name: np.array(draw(st.lists(st.integers(0, size - 1), min_size=rows, max_size=rows)), dtype=np.int64)
        for name, size in sizes.items()
    }


def broken(columns: dict[str, np.ndarray], constraint: DenialConstraint) -> np.ndarray:
    return violations_per_row(decode(columns), constraint).astype(bool)


@examples(150)
@given(codes(), st.sampled_from(RULES))
def test_judge_knows_terms(columns: dict[str, np.ndarray], text: str) -> None:
    for constraint in parsed(text):
        assert JUDGE.violates(constraint, columns, columns).tolist() == broken(columns, constraint).tolist()


@examples(150)
@given(codes(), st.sampled_from(RULES), st.sampled_from("abcde"))
def test_ranges_are_those_of_the_rules(columns: dict[str, np.ndarray], text: str, name: str) -> None:
    for constraint in parsed(text):
        if name not in constraint.attributes or not solvable(JUDGE, name, constraint):
            continue
        rows = np.arange(len(columns["a"]))
        found = ranges_of(JUDGE, name, [constraint], columns, rows)
        keeps = np.array(
            [~broken({**columns, name: np.full(len(rows), code)}, constraint) for code in range(CODEC[name].num_values)]
        )
        inside = [(found.first <= code) & (code <= found.last) for code in range(CODEC[name].num_values)]
        if "round" in text:  # halves are left out, whichever side they belong to
            assert not np.any(np.array(inside) & ~keeps)
        else:
            assert np.array_equal(np.array(inside), keeps)


def test_most_rules_on_numbers_are_solved_for_each_attribute() -> None:
    solved = [text for text in RULES for c in parsed(text) if any(solvable(JUDGE, n, c) for n in c.attributes)]
    assert set(RULES) - set(solved) == {"a + b != 2", "year(d) = 2024", "weekday(d) <= 5", "a % 2 = 0"}


LINEAR = (
    "a + b <= 3",
    "2 * a - b / 4 > c",
    "abs(a - 2 * c) <= 1.5",
    "a = b - 1",
    "a <= b",
    "c > 0.5",
    "3 >= a * 2 + c",
)


@examples(60)
@given(codes(), st.sampled_from(LINEAR))
def test_forms_are_the_rules(columns: dict[str, np.ndarray], text: str) -> None:
    columns["b"] = np.minimum(columns["b"], CODEC["b"].num_values - 1)  # rows without nulls
    for constraint in parsed(text):
        made = [constraint_of(each) for each in forms_of(constraint) or ()]
        assert made
        keeps = [~broken(columns, each) for each in made if each is not None]
        assert np.logical_and.reduce(keeps).tolist() == (~broken(columns, constraint)).tolist()


SMALL = Schema.from_yaml(
    """
attributes:
  x: {type: integer, min: 0, max: 3}
  y: {type: integer, min: 0, max: 3}
  z: {type: integer, min: 0, max: 3}
""",
    source="s.yaml",
)
terms = st.tuples(st.integers(-2, 2), st.integers(-2, 2), st.integers(-2, 2), st.integers(-6, 6))


def rule(weights: tuple[int, int, int, int]) -> str:
    a, b, c, bound = weights
    return f"{a} * x + {b} * y + {c} * z <= {bound}"


def small(weights: list[tuple[int, int, int, int]]) -> list[DenialConstraint]:
    kinds = value_types(pa.table({"x": [1], "y": [1], "z": [1]}))
    return [c for w in weights if any(w[:3]) for c in Constraints.parse(rule(w), types=kinds)]


@examples(120)
@given(st.lists(terms, min_size=1, max_size=3), st.permutations("xyz"))
def test_guards_forbid_no_row(weights: list[tuple[int, int, int, int]], order: list[str]) -> None:
    checks = small(weights)
    system = system_of(Codec(SMALL), checks)
    grid = np.array(list(product(range(4), repeat=3)))
    table = pa.table({name: grid[:, place] for place, name in enumerate("xyz")})
    good = np.ones(len(grid), dtype=bool)
    for check in checks:
        good &= violations_per_row(table, check) == 0
    for guard in system.guards(order):
        assert not np.any(good & (violations_per_row(table, guard) > 0))


@examples(80)
@given(st.lists(st.tuples(*[st.sampled_from([-1, 1])] * 3, st.integers(-6, 6)), min_size=1, max_size=2))
def test_guards_leave_a_value(weights: list[tuple[int, int, int, int]]) -> None:
    """With weights of one, the ends of ranges are whole, so what real numbers can complete whole ones can."""
    checks = small(weights)
    guards = system_of(Codec(SMALL), checks).guards("xyz")
    pairs = [c for c in (*checks, *guards) if set(c.attributes) <= {"x", "y"}]
    for x, y in product(range(4), repeat=2):
        table = pa.table({"x": [x] * 4, "y": [y] * 4, "z": range(4)})
        if all(count_violations(table, c) == 0 for c in pairs):
            assert any(all(count_violations(table.slice(z, 1), c) == 0 for c in checks) for z in range(4)), (
                x,
                y,
                [str(c) for c in checks],
            )


@examples(100)
@given(st.lists(terms, min_size=1, max_size=4))
def test_impossible_sums_are_refused_with_the_smallest_clash(weights: list[tuple[int, int, int, int]]) -> None:
    checks = small(weights)
    grid = np.array(list(product(range(4), repeat=3)))
    table = pa.table({name: grid[:, place] for place, name in enumerate("xyz")})
    try:
        refuse_impossible_sums(Codec(SMALL), checks)
    except SamplingError:
        good = np.ones(len(grid), dtype=bool)
        for check in checks:
            good &= violations_per_row(table, check) == 0
        assert not good.any()


def test_a_clash_is_named_without_what_does_not_clash() -> None:
    kinds = value_types(pa.table({"x": [1], "y": [1], "z": [1]}))
    rules = Constraints.parse("x + y >= 5\nz <= 2 + y\nx + y + z <= 4", types=kinds)
    with pytest.raises(SamplingError, match=r"together: check \(x \+ y >= 5\); check \(x \+ y \+ z <= 4\)\. Widen"):
        refuse_impossible_sums(Codec(SMALL), rules.items)


def invoices(rows: int) -> pa.Table:
    rng = np.random.default_rng(5)
    net = rng.integers(100, 9000, rows)
    tax = np.round(net * rng.choice([0.07, 0.19], rows)).astype(int)
    paid = (rng.random(rows) * (net + tax)).astype(int)
    cents = {"net": net, "tax": tax, "gross": net + tax, "paid": paid, "due": net + tax - paid}
    made = {k: pa.array([Decimal(int(v)).scaleb(-2) for v in column]) for k, column in cents.items()}
    return pa.table({**made, "kind": pa.array(rng.choice(["a", "b"], rows))})


INVOICE_SCHEMA = "attributes:\n" + "".join(
    f"  {name}: {{type: real, min: 0, max: 120, decimals: 2}}\n" for name in ("net", "tax", "gross", "paid", "due")
)


def test_rows_in_ranges_break_nothing(tmp_path: Path) -> None:
    path = tmp_path / "invoices.csv"
    pacsv.write_csv(invoices(600), path)
    schema = INVOICE_SCHEMA + "  kind: {type: categorical, values: [a, b]}\n"
    rules = (
        "net + tax = gross\nabs(gross - paid - due) <= 0.01\ntax <= 0.2 * net\nif kind = 'a' then paid <= 2 * net\n"
        "paid <= gross\n"
    )
    made = Synthesizer(epsilon=3, delta=1e-6, seed=3, schema=schema, constraints=rules).fit(path).sample(700, seed=1)
    table = made.table if hasattr(made, "table") else made
    assert table.num_rows == 700
    bound = Constraints.parse(rules, types=value_types(table))
    assert [count_violations(table, each) for each in bound] == [0] * len(bound)


@pytest.mark.parametrize(
    "rules",
    ["count per (net) = 1", "sum(net) per (kind) = 100", "soft: net + tax <= paid * 2", "key (lower(kind))",
     "not (t1.net = t2.net and t2.net = t3.net)"],
)  # fmt: skip
def test_what_is_not_drawn_is_refused_before_spending(rules: str, tmp_path: Path) -> None:
    path = tmp_path / "invoices.csv"
    pacsv.write_csv(invoices(20), path)
    schema = INVOICE_SCHEMA + "  kind: {type: categorical, values: [a, b]}\n"
    with pytest.raises(SamplingError, match="counted, and not drawn yet"):
        Synthesizer(epsilon=1, delta=1e-6, schema=schema, constraints=rules).fit(path)

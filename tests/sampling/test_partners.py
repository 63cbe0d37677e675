"""Counts of clashing partners against trying every pair."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sampling.fakes import integers
from tests.sampling.strategies import OPERATORS, codecs, general, lines

from kamino.constraints import Constraints, DenialConstraint, count_violations
from kamino.sampling.comparing import Judge
from kamino.sampling.partners import _Kernel, _Tabled, count_all, make_partners
from kamino.sampling.violations import decoded
from kamino.schema import Boolean, Codec


@st.composite
def soft_problems(draw: st.DrawFn) -> tuple[Codec, DenialConstraint, int, int]:
    codec = draw(codecs())
    numbers = [name for name in codec.attributes if not isinstance(codec.schema[name], Boolean)]
    any_line = st.one_of(lines(codec), general(numbers)) if len(numbers) > 1 else lines(codec)
    (constraint, *_) = Constraints.parse(draw(any_line))
    return codec, constraint, draw(st.integers(2, 12)), draw(st.integers(0, 10**6))


def slow_count(
    judge: Judge, constraint: DenialConstraint, table: dict[str, np.ndarray], name: str, row: int, code: int
) -> int:
    """Partners of one row with one code, pair by pair; rows that are not settled do not count."""
    mine = {n: np.array([code if n == name else table[n][row]]) for n in table}
    if constraint.is_unary:
        return int(judge.violates(constraint, mine, mine)[0])
    found = 0
    for other in range(len(table[name])):
        if other == row or table[name][other] < 0:
            continue
        theirs = {n: codes[other : other + 1] for n, codes in table.items()}
        found += bool(judge.clashes(constraint, mine, theirs)[0])
    return found


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(soft_problems(), st.booleans())
def test_partners_agree_with_brute_force(problem: tuple[Codec, DenialConstraint, int, int], tabled: bool) -> None:
    codec, constraint, num_rows, seed = problem
    judge, rng = Judge(codec), np.random.default_rng(seed)
    name = constraint.attributes[-1]
    table = {n: rng.integers(0, codec[n].size, num_rows) for n in codec.attributes}
    listed = np.arange(codec[name].size)
    others = {n: codes for n, codes in table.items() if n != name}
    partners = make_partners(constraint, judge, name, others, listed if tabled else None)
    for _ in range(4):
        # Cells change, and some are not settled: the counts must follow.
        changed = rng.integers(0, num_rows, 3)
        table[name][changed] = rng.integers(-1, codec[name].size, 3)
        rows = rng.permutation(num_rows)[: max(1, num_rows // 2)]
        candidates = np.broadcast_to(listed, (len(rows), len(listed)))
        found = partners.count(rows, candidates, table[name])
        expected = [[slow_count(judge, constraint, table, name, row, code) for code in listed] for row in rows]
        assert found.tolist() == expected
        if table[name].min() >= 0:
            every = num_rows if constraint.is_unary else num_rows * (num_rows - 1) / 2
            recounted = count_violations(decoded(codec, table, [constraint]), constraint)
            assert count_all({constraint: partners}, table[name])[constraint] * every == pytest.approx(recounted)


@pytest.mark.parametrize(("listed", "kind"), [(True, _Tabled), (False, _Kernel)])
def test_both_ways_to_count_are_used(listed: bool, kind: type) -> None:
    codec = integers(a=9, b=7)
    (constraint,) = Constraints.parse("a -> b")
    columns = {"a": np.arange(9)}
    assert isinstance(make_partners(constraint, Judge(codec), "b", columns, np.arange(7) if listed else None), kind)


@pytest.mark.parametrize("text", ["a -> b", "key (b)", "check (b < 3)", "not (t1.a < t2.a and t1.b >= t2.b)"])
def test_rates_are_those_of_counting(text: str) -> None:
    codec, rng = integers(a=9, b=-7), np.random.default_rng(5)
    (constraint,) = Constraints.parse(text)
    table = {"a": rng.integers(0, 9, 200), "b": rng.integers(0, 8, 200)}
    partners = make_partners(constraint, Judge(codec), "b", {"a": table["a"]}, np.arange(8))
    violations = count_violations(decoded(codec, table, [constraint]), constraint)
    every = 200 if constraint.is_unary else 200 * 199 / 2
    assert count_all({constraint: partners}, table["b"])[constraint] == pytest.approx(violations / every)


ONE_SIDED = ("t1.c = 1", "t2.c != 1", "t1.c is null", "t2.b < 2", "t1.a <= t1.b", "t1.a > t2.b")


@pytest.mark.parametrize("tabled", [True, False])
@pytest.mark.parametrize(("first", "second"), list(product(OPERATORS, repeat=2)))
def test_counts_follow_every_change(first: str, second: str, tabled: bool) -> None:
    """All operators in pairs, with a third predicate on constants, nulls or other columns; nulls among the values.

    After every change of a cell, counts by row equal those of trying all pairs, and rates those of recounting.
    """
    codec, rng = integers(a=-4, c=-3, b=-4), np.random.default_rng([OPERATORS.index(first), OPERATORS.index(second)])
    judge, listed = Judge(codec), np.arange(codec["b"].size)
    for third in (*ONE_SIDED, None):
        predicates = [f"t1.a {first} t2.a", f"t1.b {second} t2.b", *([third] if third else [])]
        (constraint,) = Constraints.parse(f"not ({' and '.join(predicates)})")
        table = {name: rng.integers(0, codec[name].size, 9) for name in codec.attributes}
        others = {name: codes for name, codes in table.items() if name in constraint.attributes and name != "b"}
        partners = make_partners(constraint, judge, "b", others, listed if tabled else None)
        for _ in range(3):
            table["b"][rng.integers(9)] = rng.integers(codec["b"].size)
            rows = np.arange(9)
            found = partners.count(rows, table["b"][:, None], table["b"])[:, 0]
            expected = [slow_count(judge, constraint, table, "b", row, int(table["b"][row])) for row in rows]
            assert found.tolist() == expected, predicates
            recounted = count_violations(decoded(codec, table, [constraint]), constraint)
            assert count_all({constraint: partners}, table["b"])[constraint] * 36 == pytest.approx(recounted)

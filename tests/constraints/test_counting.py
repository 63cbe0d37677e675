"""Every fast count against the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.constraints.brute_force import missing, violations
from tests.constraints.strategies import NUMERIC, TEXT, constraints, tables
from tests.trying import examples

from kamino.constraints.collection import Constraints
from kamino.constraints.counting.brute import count_pairs
from kamino.constraints.counting.count import (
    count_violations,
    explain_count,
    find_violations,
    violations_per_row,
)
from kamino.constraints.counting.dense import count_dense
from kamino.constraints.counting.dominance import count_orders
from kamino.constraints.counting.extremes import greatest_matches, has_matches
from kamino.constraints.counting.method import Method, choose_method, count
from kamino.constraints.counting.problem import Axis, Problem, combine_keys, strict_order
from kamino.constraints.counting.ranks import RankedTable
from kamino.constraints.tree import DenialConstraint


@examples(500)
@given(tables(), constraints())
def test_counts_match_brute_force(table: pa.Table, constraint: DenialConstraint) -> None:
    assert count_violations(table, constraint) == len(violations(constraint, table.to_pylist()))


@examples(300)
@given(tables(), constraints())
def test_counts_per_row_match_brute_force(table: pa.Table, constraint: DenialConstraint) -> None:
    expected = np.zeros(table.num_rows, dtype=int)
    for violation in violations(constraint, table.to_pylist()):
        expected[list(violation)] += 1
    assert violations_per_row(table, constraint).tolist() == expected.tolist()


@examples(200)
@given(tables(), constraints(), st.integers(0, 6))
def test_found_violations_are_violations(table: pa.Table, constraint: DenialConstraint, limit: int) -> None:
    truth = {frozenset(pair) for pair in violations(constraint, table.to_pylist())}
    found = [frozenset(pair) for pair in find_violations(table, constraint, limit=limit)]
    assert set(found) <= truth
    assert len(set(found)) == len(found) == min(limit, len(truth))


@examples(100)
@given(tables(), constraints(), st.randoms(use_true_random=False))
def test_counts_ignore_row_order(table: pa.Table, constraint: DenialConstraint, random: Any) -> None:
    order = list(range(table.num_rows))
    random.shuffle(order)
    shuffled = table.take(pa.array(order, pa.int64()))
    assert count_violations(shuffled, constraint) == count_violations(table, constraint)


@examples(100)
@given(
    tables(),
    st.sampled_from([*((a, b) for a in NUMERIC for b in NUMERIC), *((a, b) for a in TEXT for b in TEXT)]),
)
def test_ranks_compare_as_values(table: pa.Table, names: tuple[str, str]) -> None:
    a, b, _ = RankedTable(table).ranks(*names)
    left, right = table.column(names[0]).to_pylist(), table.column(names[1]).to_pylist()
    for x, rank_x in zip(left, a, strict=True):
        assert (rank_x == -1) == missing(x)
        for y, rank_y in zip(right, b, strict=True):
            if not missing(x) and not missing(y):
                assert (x < y, x == y) == (rank_x < rank_y, rank_x == rank_y)


SECONDS = [-62_135_596_800, -1, 0, 86_399, 86_400, 253_402_300_799, None]
FINE = [-(2**63) + 1, -1, 0, 86_399_999_999_999, 86_400 * 10**9, 2**63 - 1, None]


def test_a_day_that_nanoseconds_cannot_hold() -> None:
    """Dates and seconds of the whole calendar compare with nanoseconds, which reach from 1677 to 2262 only."""
    days = [None if second is None else second // 86_400 for second in SECONDS]
    table = pa.table(
        {
            "day": pa.array(days, pa.int32()).view(pa.date32()),
            "second": pa.array(SECONDS).view(pa.timestamp("s")),
            "fine": pa.array(FINE).view(pa.timestamp("ns")),
        }
    )
    ticks = {"day": 86_400 * 10**9, "second": 10**9, "fine": 1}
    exact = {
        name: [None if t is None else t * ticks[name] for t in given]
        for name, given in (("day", days), ("second", SECONDS), ("fine", FINE))
    }
    for one in exact:
        for other in exact:
            a, b, _ = RankedTable(table).ranks(one, other)
            for x, rank_x in zip(exact[one], a, strict=True):
                assert (rank_x == -1) == (x is None)
                for y, rank_y in zip(exact[other], b, strict=True):
                    if x is not None and y is not None:
                        assert (x < y, x == y) == (rank_x < rank_y, rank_x == rank_y)


@pytest.mark.parametrize(
    "text", ["a -> b", "not (t1.a < t2.a and t1.b > t2.b)", "not (t1.a = t2.b)", "check (a != 'x')"]
)
def test_texts_in_dictionaries_count_as_texts(text: str) -> None:
    """In chunks whose dictionaries differ at first, with nulls."""
    table = pa.table(
        {
            "a": pa.chunked_array([["x", "y", None], ["z", "x", "b"]]),
            "b": pa.chunked_array([["q", "x", "p"], [None, "p", "z"]]),
        }
    )
    encoded = pa.table({name: table.column(name).dictionary_encode() for name in ("a", "b")}).unify_dictionaries()
    (constraint,) = Constraints.parse(text)
    assert count_violations(encoded, constraint) == count_violations(table, constraint)


def random_problem(rng: np.random.Generator, unequal: int, orders: int) -> Problem:
    left, right = rng.integers(0, 60, size=2)

    def axis(size: int) -> Axis:
        return Axis(left=rng.integers(0, size, left), right=rng.integers(0, size, right), size=size)

    return Problem(
        key=axis(int(rng.integers(1, 4))),
        unequal=tuple(axis(int(rng.integers(1, 6))) for _ in range(unequal)),
        orders=tuple(
            strict_order(axis(int(rng.integers(1, 30))), or_equal=bool(rng.integers(2))) for _ in range(orders)
        ),
    )


@pytest.mark.parametrize("unequal", range(3))
@pytest.mark.parametrize("orders", range(5))
def test_kernels_agree(unequal: int, orders: int) -> None:
    rng = np.random.default_rng(1000 * unequal + orders)
    for _ in range(15):
        problem = random_problem(rng, unequal, orders)
        expected = count_pairs(problem).tolist()
        if problem.cells < 10**6:
            assert count_dense(problem).tolist() == expected
        assert count(problem).tolist() == expected
        if not unequal:
            assert count_orders(problem).tolist() == expected


def greatest_by_hand(problem: Problem, values: np.ndarray) -> list[int]:
    found = []
    for i in range(problem.num_left):
        matches = problem.key.right == problem.key.left[i]
        for axis in problem.unequal:
            matches &= axis.right != axis.left[i]
        for axis in problem.orders:
            matches &= axis.right > axis.left[i]
        found.append(int(values[matches].max(initial=-1)))
    return found


@pytest.mark.parametrize("unequal", range(3))
@pytest.mark.parametrize("orders", range(5))
def test_greatest_matches_agree_with_brute_force(unequal: int, orders: int) -> None:
    rng = np.random.default_rng(1000 * unequal + orders)
    for _ in range(15):
        problem = random_problem(rng, unequal, orders)
        values = rng.integers(0, 2**62, problem.num_right) if rng.integers(2) else rng.integers(0, 9, problem.num_right)
        assert greatest_matches(problem, values).tolist() == greatest_by_hand(problem, values)
        if orders:
            assert has_matches(problem) == bool(count_pairs(problem).any())


@pytest.mark.parametrize("broken", [False, True])
def test_a_single_violation_among_many_rows_is_found(broken: bool) -> None:
    """Tables that keep an order are known by the greatest partner alone; one pair is enough to count them."""
    rng = np.random.default_rng(0)
    x = rng.permutation(5000)
    table = {"x": x, "y": rng.permutation(5000), "a": x * 3}
    if broken:
        table["a"] = np.where(x == 2500, 3 * 2500 + 5, x * 3)
    (two,) = Constraints.parse("not (t1.x < t2.x and t1.a > t2.a)")
    (three,) = Constraints.parse("not (t1.x < t2.x and t1.a > t2.a and t1.y != t2.y)")
    assert [count_violations(pa.table(table), c) for c in (two, three)] == [int(broken)] * 2


def test_every_kernel_is_chosen_somewhere() -> None:
    rng = np.random.default_rng(5)
    n = 3000

    def axis(size: int) -> Axis:
        return Axis(left=rng.integers(0, size, n), right=rng.integers(0, size, n), size=size)

    wide, narrow = axis(n), axis(3)
    assert choose_method(Problem(key=narrow, orders=(narrow,))) is Method.DENSE
    assert choose_method(Problem(key=combine_keys([wide, wide]))) in (Method.HASH, Method.DENSE)
    assert choose_method(Problem(key=wide, orders=(wide,))) is Method.SORT
    assert choose_method(Problem(key=narrow, orders=(wide, wide))) is Method.HALVING
    assert choose_method(Problem(key=narrow, orders=(wide,) * 7)) is Method.PAIRS


def test_no_kernel_takes_all_memory() -> None:
    """A table of all combinations would be quick for 100,000 rows and three scales of 1,000, and 8 GB large."""
    ranks = np.zeros(100_000, dtype=np.int64)
    axis = Axis(left=ranks, right=ranks, size=1000)
    nobody = Axis(left=ranks, right=ranks, size=1)
    assert choose_method(Problem(key=nobody, orders=(axis,) * 3)) is not Method.DENSE


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_tiny_tables(rows: int) -> None:
    table = pa.table({"a": pa.array([1, 1][:rows], pa.int64()), "b": pa.array([1, 2][:rows], pa.int64())})
    (dependency,) = Constraints.parse("a -> b")
    assert count_violations(table, dependency) == (1 if rows == 2 else 0)
    assert violations_per_row(table, dependency).tolist() == ([1, 1] if rows == 2 else [0] * rows)


def test_a_row_never_pairs_with_itself() -> None:
    table = pa.table({"a": [1, 2, 3]})
    (constraint,) = Constraints.parse("not (t1.a <= t2.a and t1.a >= t2.a)")
    assert count_violations(table, constraint) == 0


def test_big_numbers_are_compared_exactly() -> None:
    # 2^53 and 2^53 + 1 are the same float; the integers and decimals beside it are not.
    big = 2**53
    table = pa.table(
        {
            "n": pa.array([big, big + 1], pa.int64()),
            "f": pa.array([float(big), float(big)]),
            "d": pa.array([big, big + 1]).cast(pa.decimal128(20, 0)),
        }
    )
    equal, differs, decimals = Constraints.parse("not (t1.n = t1.f)\nnot (t1.n != t1.f)\nnot (t1.n != t1.d)")
    assert [count_violations(table, c) for c in (equal, differs, decimals)] == [1, 1, 0]


def test_dates_meet_timestamps_at_midnight() -> None:
    from datetime import date, datetime

    table = pa.table(
        {
            "day": pa.array([date(2024, 2, 29), date(2024, 3, 1)]),
            "at": pa.array([datetime(2024, 2, 29), datetime(2024, 3, 1, 12)], pa.timestamp("ms")),
            "nanos": pa.array([1_709_164_800_000_000_001, 0], pa.timestamp("ns")),
        }
    )
    texts = [
        "not (t1.day = t1.at)",
        "not (t1.day < t1.at)",
        "check (day < timestamp '2024-02-29 00:00:01')",
        "check (at >= date '2024-03-01')",
        "check (nanos <= timestamp '2024-02-29 00:00:00')",
    ]
    counts = [count_violations(table, c) for c in Constraints.parse("\n".join(texts))]
    assert counts == [1, 1, 1, 1, 1]


def test_explanation_names_the_kernel_and_the_directions() -> None:
    table = pa.table({"a": [1, 2, 3], "b": [1, 2, 3]})
    fd, order, never, unary = Constraints.parse(
        "a -> b\nnot (t1.a < t2.a and t1.b > t2.b)\nnot (t1.a < t2.a and t1.a > t2.a)\ncheck (a > 0)"
    )
    assert explain_count(table, fd).directions == 1
    assert explain_count(table, order).directions == 2
    assert "never" in explain_count(table, never).method
    assert explain_count(table, unary).method == "scan of the rows"


def test_ranked_table_shows_no_value() -> None:
    ranked = RankedTable(pa.table({"a": ["MARKER-7731"]}))
    ranked.ranks("a")
    assert "MARKER" not in repr(ranked)

"""Suggested constraints: what was planted is found, chance is not, and nothing leaks."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from bench.suggest import titanic_like
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.constraints import Constraints, count_violations
from kamino.engine import broken_rows
from kamino.engine.broken_rows import (
    Codes,
    Ranks,
    StrayCounts,
    chance_of_greater,
    codes_of,
    count_greater,
    count_out_of_order,
    count_repeats,
    count_strays,
)
from kamino.engine.implied_rules import determined_by, without_implied
from kamino.engine.judging import Columns, Release, Suggestion
from kamino.engine.order_rules import Order, compare_columns
from kamino.engine.suggesting import suggest_constraints
from kamino.privacy import Budget, Gate, SeededNoise
from kamino.privacy.private import PrivateTable


def made(num_rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    town, sort, pay = rng.integers(0, 40, num_rows), rng.integers(0, 6, num_rows), rng.integers(0, 1000, num_rows)
    return pa.table(
        {
            "number": [f"n{i}" for i in range(num_rows)],
            "town": [f"t{i}" for i in town],
            "county": town % 7,
            "sort": sort,
            "fee": (town % 7 * 3 + sort * 5) % 11,
            "pay": pay,
            "tax": pa.array(pay // 10, mask=rng.random(num_rows) < 0.01),
            "coin": rng.integers(0, 2, num_rows),
        }
    )


def test_planted_constraints_are_suggested() -> None:
    gate = Gate(Budget(epsilon=0.5, delta=1e-6), noise=SeededNoise(4))
    found = suggest_constraints(PrivateTable(made(20_000)), gate, ordered=("pay", "tax", "coin"))
    lines = {each.line for each in found}
    assert {"key (number)", "town -> county", "pay -> tax"} <= lines
    assert "county, sort -> fee" in lines
    assert "not (t1.pay < t2.pay and t1.tax > t2.tax)" in lines
    assert not any(line.endswith(("-> coin", "-> town", "-> pay")) for line in lines)
    assert not any("coin <" in line or "coin >" in line for line in lines)
    assert len(Constraints.parse("\n".join(map(str, found)))) == len(found)


def test_the_budget_is_spent_in_five_releases() -> None:
    gate = Gate(Budget(epsilon=0.5, delta=1e-6), noise=SeededNoise(4))
    suggest_constraints(PrivateTable(made(20_000)), gate)
    assert len(gate.ledger.to_rows()) == 5
    assert 0.49 < gate.ledger.spent() <= 0.5


def test_exact_dependencies_are_found_in_a_small_table() -> None:
    """Epsilon 2, ten runs: nearly all of the eight that hold, whatever else is there, and little else."""
    exact = {"class -> pclass", "pclass -> class", "embarked -> embark_town", "embark_town -> embarked",
             "survived -> alive", "alive -> survived", "who -> adult_male"}  # fmt: skip
    near = {"who -> sex", "sex -> adult_male"}  # broken by few children
    found = []
    for seed in range(10):
        gate = Gate(Budget(epsilon=2.0, delta=1e-6), noise=SeededNoise(seed))
        numbers = ("survived", "pclass", "age", "sibsp", "parch", "fare")
        found.append(
            {each.line for each in suggest_constraints(PrivateTable(titanic_like(seed)), gate, ordered=numbers)}
        )
    for wanted in ("class -> pclass", "embarked -> embark_town"):
        assert sum(wanted in lines for lines in found) >= 8, wanted
    assert sum(len(exact & lines) for lines in found) >= 55
    assert sum(len(lines - exact - near) for lines in found) <= 2, [lines - exact - near for lines in found]


def test_an_almost_unique_left_side_tells_nothing() -> None:
    rng = np.random.default_rng(7)
    rows = 10_000
    customer = rng.integers(0, 800, rows)
    table = pa.table(
        {
            "price": np.round(rng.random(rows) * 9_000, 0),
            "order": rng.permutation(rows) // 1.1,
            "customer": customer,
            "nation": customer % 25,
            "status": rng.choice(["F", "O", "P"], rows),
        }
    )
    for seed in range(5):
        gate = Gate(Budget(epsilon=2.0, delta=1e-6), noise=SeededNoise(seed))
        lines = {each.line for each in suggest_constraints(PrivateTable(table), gate)}
        assert {line for line in lines if "->" in line} == {"customer -> nation"}


def test_comparisons_within_rows_are_suggested() -> None:
    """Discharged after admission, 1% aside; what holds for any two rows is no constraint worth a word."""
    rng = np.random.default_rng(5)
    admitted = rng.integers(19_000, 19_700, 5_000)
    days = pa.array(admitted + rng.integers(0, 30, 5_000) - 20 * (rng.random(5_000) < 0.01), pa.int32())
    table = pa.table(
        {
            "admitted": pa.array(admitted, pa.int32()).cast(pa.date32()),
            "discharged": pa.array(days, mask=rng.random(5_000) < 0.05).cast(pa.date32()),
            "age": rng.integers(0, 100, 5_000),
            "year": rng.integers(2_000, 2_020, 5_000),
        }
    )
    gate = Gate(Budget(epsilon=1.0, delta=1e-6), noise=SeededNoise(4))
    found = suggest_constraints(PrivateTable(table), gate, ordered=tuple(table.column_names))
    lines = {each.line for each in found if each.line.startswith("check")}
    assert lines == {"check (admitted <= discharged)"}


@examples(200, suppress_health_check=list(HealthCheck))
@given(st.integers(2, 12), st.lists(st.tuples(*[st.integers(-1, 3)] * 2), min_size=3, max_size=12))
@example(2, [(3, 0)] * 12)
@example(12, [(3, 0), *[(1, 2)] * 11])
def test_no_row_moves_a_comparison_further(top: int, drawn: list[tuple[int, int]]) -> None:
    rows, other = np.array(drawn[:-1]), np.array([drawn[-1], *drawn[1:-1]])

    def of(some: np.ndarray) -> tuple[float, ...]:
        table = pa.table({name: pa.array(some[:, i], mask=some[:, i] < 0) for i, name in enumerate("xy")})
        return count_greater(table, "x", "y"), chance_of_greater(table, "x", "y", top)

    valid = rows[(rows >= 0).all(axis=1)]
    pairs = sum(a > b for i, (a, _) in enumerate(valid) for j, (_, b) in enumerate(valid) if i != j)
    assert of(rows)[1] == pairs / (2 * (max(len(valid), top) - 1))
    assert np.all(np.abs(np.subtract(of(rows), of(rows[1:]))) <= 1 + 1e-9)
    assert np.all(np.abs(np.subtract(of(rows), of(other))) <= 1 + 1e-9)


def test_orders_within_groups_are_suggested() -> None:
    """Grades rise with points within a school, and each school has its own scale; over all rows they do not."""
    rng = np.random.default_rng(2)
    school, points = rng.integers(0, 5, 20_000), rng.integers(0, 500, 20_000)
    table = pa.table({"school": school, "points": points, "grade": points * (1 + school) // 10 - 60 * school})
    gate = Gate(Budget(epsilon=0.5, delta=1e-6), noise=SeededNoise(4))
    lines = {each.line for each in suggest_constraints(PrivateTable(table), gate, ordered=("points", "grade"))}
    assert "not (t1.school = t2.school and t1.points < t2.points and t1.grade > t2.grade)" in lines
    assert not any(line.startswith("not (t1.points") for line in lines)


def test_what_was_released_twice_counts_twice() -> None:
    """A rate is the mean of both releases by inverse variance, with the error of that mean; the higher bar counts."""
    rng = np.random.default_rng(2)
    points = rng.integers(0, 500, 2_000)
    table = pa.table({"points": points, "grade": points // 10, "coin": rng.integers(0, 400, 2_000)})
    codes = {name: codes_of(table.column(name)) for name in table.column_names}
    first = Release(values=np.zeros(0), sigma=1.0, bar=2.0)
    chance = dict.fromkeys(codes, 0.9)
    known = Columns(num_rows=2_000.0, release=first, repeats=dict.fromkeys(codes, 0.0), chance=chance)
    every = compare_columns(table, codes, known, ("coin", "points", "grade"))
    assert (len(every.orders), len(every.checks)) == (6, 6)
    truth = np.array(every.statistics())
    left = every.plausible(Release(values=truth + 30, sigma=30.0, bar=5.0))
    assert [order.falls for order in left.orders] == [True, False]
    assert left.checks == [("grade", "points")]
    assert left.rough is not None
    np.testing.assert_array_equal(left.rough.values, np.array(left.statistics()) + 30)
    found = {
        each.line: each for each in left.judge(Release(values=np.array(left.statistics()), sigma=15.0, bar=3.0)) if each
    }
    order = found["not (t1.points < t2.points and t1.grade > t2.grade)"]
    assert order.rate == pytest.approx(30 / 5 / 2_000)
    assert order.error == pytest.approx(15 * 30 / np.hypot(15, 30) / 2_000)
    assert left.rough.joined(Release(values=left.rough.values, sigma=1.0, bar=3.0)).bar == 5.0


ROWS = st.lists(st.tuples(*[st.integers(-1, 2)] * 3), min_size=3, max_size=9)


def grouped(some: np.ndarray) -> pa.Table:
    """Columns g, x and y, null where a number is negative."""
    return pa.table({name: pa.array(some[:, i], mask=some[:, i] < 0) for i, name in enumerate("gxy")})


def out_of_order(table: pa.Table, one: str, other: str, *, falls: bool, groups: Codes | None = None) -> float:
    return count_out_of_order(Ranks.of(table.column(one)), Ranks.of(table.column(other)), falls=falls, groups=groups)


@examples(100, suppress_health_check=list(HealthCheck))
@given(ROWS)
@example([(0, 0, 1), (0, 1, 0), (0, 2, 2)])
def test_no_row_moves_a_statistic_further(drawn: list[tuple[int, int, int]]) -> None:
    rows, other = np.array(drawn[:-1]), np.array([drawn[-1], *drawn[1:-1]])

    def of(some: np.ndarray) -> list[float]:
        columns, table = {name: some[:, place] for place, name in enumerate("gxy")}, grouped(some)
        found = [count_strays(columns, ("g", "x"), "y"), count_repeats(columns["g"], columns["x"])]
        for groups in (None, columns["g"]):
            found += [out_of_order(table, "x", "y", falls=falls, groups=groups) for falls in (True, False)]
        return found

    assert np.all(np.abs(np.subtract(of(rows), of(rows[1:]))) <= 1)
    assert np.all(np.abs(np.subtract(of(rows), of(other))) <= 1)


@examples(40, suppress_health_check=list(HealthCheck))
@given(ROWS, st.booleans(), st.booleans())
def test_rows_out_of_order_are_the_fewest(drawn: list[tuple[int, int, int]], falls: bool, within: bool) -> None:
    table = grouped(np.array(drawn))
    order = Order(one="x", other="y", falls=falls, group="g" if within else None)
    (rule,) = Constraints.parse(order.line)
    groups = codes_of(table.column("g")) if within else None
    pairs = [(i, j) for i, j in combinations(range(len(drawn)), 2) if count_violations(table.take([i, j]), rule)]
    left = (set(kept) for size in range(len(drawn) + 1) for kept in combinations(range(len(drawn)), size))
    fewest = len(drawn) - max(len(kept) for kept in left if not any(kept.issuperset(pair) for pair in pairs))
    assert out_of_order(table, "x", "y", falls=falls, groups=groups) == fewest


@examples(200)
@given(st.lists(st.integers(0, 12), max_size=60), st.integers(0, 4))
def test_runs_at_once_count_as_numbers_do(drawn: list[int], sorted_parts: int) -> None:
    """Whether runs are taken at once is a question of speed; runs of any length, also of equal numbers, are drawn."""
    heights = np.array(drawn, dtype=np.int64)
    for part in np.array_split(heights, sorted_parts) if sorted_parts else ():
        part.sort()
    fewest = len(drawn) - len(broken_rows._ends_one_by_one(heights.tolist()))
    with pytest.MonkeyPatch.context() as patch:
        for long in (0, 2, 1_000):
            patch.setattr(broken_rows, "_LONG_RUN", long)
            assert broken_rows._count_beyond_longest(heights) == fewest


def test_orders_of_many_groups_and_values_are_counted() -> None:
    """Where the numbers of combinations leave 64 bits, another way of sorting counts the same."""
    rng, rows = np.random.default_rng(5), 400
    columns = [Ranks(codes=rng.integers(-1, 30, rows), size=30) for _ in range(2)]
    groups = rng.integers(-1, 9, rows)
    for falls in (True, False):
        plain = count_out_of_order(*columns, falls=falls, groups=groups)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(broken_rows, "MOST_NUMBERS", 100)
            assert count_out_of_order(*columns, falls=falls, groups=groups) == plain
        assert count_out_of_order(columns[1], columns[0], falls=falls, groups=groups) == plain


@pytest.mark.parametrize("weights", [[1], [1, 1], [9, 1], [4, 3, 2, 1], [1] * 12, [30, *[1] * 40]])
def test_chance_of_an_order_is_not_overstated(weights: list[int]) -> None:
    """Of independent columns at least as many rows are out of order, but for the few that a finite table lets by."""
    rng, rows = np.random.default_rng(3), 20_000
    parts = np.array(weights) / sum(weights)
    columns = {name: rng.choice(len(parts), rows, p=parts) for name in "xy"} | {"z": rng.integers(0, 1_000, rows)}
    usual = {name: np.bincount(values).max() / rows for name, values in columns.items()}
    release = Release(values=np.zeros(0), sigma=0.0, bar=2.0)
    known = Columns(num_rows=rows, release=release, repeats={}, chance={name: 1 - part for name, part in usual.items()})
    for one, other in combinations("xyz", 2):
        for falls in (True, False):
            there = out_of_order(pa.table(columns), one, other, falls=falls)
            assert known.by_chance_out_of_order(one, other) <= there + 0.03 * rows


def test_columns_of_two_values_suggest_exact_comparisons_only() -> None:
    """Who climbs walks, but for a few: no constraint. Who was convicted was charged."""
    rng, rows = np.random.default_rng(4), 60_000
    frail, half, charged = rng.normal(size=rows), rng.random(rows) < 0.5, rng.random(rows) < 0.5
    table = pa.table(
        {
            **{f"c{i}": (frail + 0.1 * rng.normal(size=rows) > 0.3).astype(int) for i in range(3)},
            "walks": half.astype(int),
            "climbs": np.where(half, rng.random(rows) < 0.5, rng.random(rows) < 0.01).astype(int),
            "charged": charged.astype(int),
            "convicted": (charged & (rng.random(rows) < 0.5)).astype(int),
        }
    )
    found: list[str] = []
    for seed in range(10):
        gate = Gate(Budget(epsilon=2.0, delta=1e-6), noise=SeededNoise(seed))
        found += [each.line for each in suggest_constraints(PrivateTable(table), gate, ordered=table.column_names)]
    assert set(found) == {"check (convicted <= charged)"}
    assert len(found) >= 7  # noise hides it in few runs


def test_noise_alone_suggests_nothing() -> None:
    """Independent columns, ten times: the bar is such that any of ten runs suggests something in few of 100 cases."""
    rng = np.random.default_rng(3)
    for seed in range(10):
        table = pa.table({f"c{i}": rng.integers(0, 2 + 3 * i, 4_000) for i in range(8)})
        gate = Gate(Budget(epsilon=0.5, delta=1e-6), noise=SeededNoise(seed))
        assert suggest_constraints(PrivateTable(table), gate, ordered=tuple(table.column_names)) == ()


def test_replay_passes_for_suggestions_within_groups(replays: Callable[..., None]) -> None:
    def run(table: pa.Table, gate: Gate) -> Any:
        return [str(each) for each in suggest_constraints(PrivateTable(table), gate, ordered=("pay", "tax"))]

    replays(run, made(300).select(["sort", "county", "pay", "tax"]), epsilon=40.0)


def test_replay_passes_for_suggestions(replays: Callable[..., None]) -> None:
    def run(table: pa.Table, gate: Gate) -> Any:
        return [str(each) for each in suggest_constraints(PrivateTable(table), gate, ordered=("pay", "tax"))]

    replays(run, made(60))


def test_an_empty_table_suggests_nothing() -> None:
    gate = Gate(Budget(epsilon=0.5, delta=1e-6), noise=SeededNoise(4))
    assert not any("->" in each.line for each in suggest_constraints(PrivateTable(made(0)), gate))


def test_amounts_and_times_are_no_keys() -> None:
    """Amounts and times that hardly repeat are so by chance: as a hard key they would be a promise that nobody made."""
    rng, rows = np.random.default_rng(2), 4_000
    table = pa.table(
        {
            "order": rng.permutation(rows),
            "price": np.round(rng.random(rows) * 1e9, 2),
            "seen": pa.array(rng.integers(0, 10**15, rows)).cast(pa.timestamp("us")),
            "sort": rng.integers(0, 5, rows),
        }
    )
    gate = Gate(Budget(epsilon=2.0, delta=1e-6), noise=SeededNoise(4))
    assert [each.line for each in suggest_constraints(PrivateTable(table), gate)] == ["key (order)"]


def test_correlated_columns_are_no_constraint() -> None:
    """Columns that rise together in 24 of 25 pairs are correlated; an order is broken by far fewer."""
    rng, rows = np.random.default_rng(5), 20_000
    common = rng.normal(size=rows)
    table = pa.table({f"c{i}": common + 0.09 * rng.normal(size=rows) for i in range(6)})
    table = table.append_column("sort", pa.array(rng.integers(0, 5, rows)))
    for seed in range(3):
        gate = Gate(Budget(epsilon=2.0, delta=1e-6), noise=SeededNoise(seed))
        assert suggest_constraints(PrivateTable(table), gate, ordered=table.column_names[:6]) == ()


def test_a_group_that_adds_nothing_is_not_suggested() -> None:
    """An order of most pairs is one of most pairs within any group, and a dependency on a column is one on two."""
    rng, rows = np.random.default_rng(6), 20_000
    size = rng.integers(0, 1_000, rows)
    weight = np.where(rng.random(rows) < 0.1, rng.integers(0, 1_000, rows), size)
    town = rng.integers(0, 40, rows)
    county = np.where(rng.random(rows) < 0.06, rng.integers(0, 7, rows), town % 7)
    table = pa.table({"size": size, "weight": weight, "town": town, "county": county, "sort": rng.integers(0, 6, rows)})
    gate = Gate(Budget(epsilon=2.0, delta=1e-6), noise=SeededNoise(1))
    lines = [each.line for each in suggest_constraints(PrivateTable(table), gate, ordered=("size", "weight"))]
    assert not [line for line in lines if "t1.town" in line or "t1.sort" in line or "t1.county" in line]
    assert not [line for line in lines if "," in line]


def test_what_an_owner_determines_does_not_determine_the_owner() -> None:
    """Balances, of which hardly two are the same, seem to determine all that is known of an owner."""
    rng, rows = np.random.default_rng(7), 10_000
    owner = rng.integers(0, 800, rows)
    balance, segment = np.round(rng.random(800) * 1e4, 2), rng.integers(0, 5, 800)
    table = pa.table({"owner": owner, "balance": balance[owner], "nation": owner % 25, "segment": segment[owner]})
    for seed in range(5):
        gate = Gate(Budget(epsilon=2.0, delta=1e-6), noise=SeededNoise(seed))
        lines = {each.line for each in suggest_constraints(PrivateTable(table), gate)}
        assert lines == {"owner -> balance", "owner -> nation", "owner -> segment"}


@examples(200)
@given(st.lists(st.tuples(st.sets(st.sampled_from("abcd"), min_size=1, max_size=2), st.sampled_from("abcd"))))
def test_what_is_left_implies_the_rest(drawn: list[tuple[set[str], str]]) -> None:
    found = list(dict.fromkeys((tuple(sorted(left)), right) for left, right in drawn if right not in left))
    kept = without_implied(found, {left: float(len(left)) for left, _ in found})
    assert set(kept) <= set(found)
    assert all(right in determined_by(left, kept) for left, right in found)
    assert not any(each[1] in determined_by(each[0], [one for one in kept if one != each]) for each in kept)


def test_a_rate_below_zero_is_shown_as_none() -> None:
    assert str(Suggestion(line="a -> b", rate=-0.02, error=0.01)) == "a -> b  # 0.00% ± 1.00%"
    assert str(Suggestion(line="a -> b", rate=0.03, error=0.01)) == "soft: a -> b  # 3.00% ± 1.00%"


def test_counts_that_are_kept_are_those_of_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a table or by sorting, asked once or again, with nulls on either side."""
    rng = np.random.default_rng(5)
    codes = {name: rng.integers(-1, size, 400) for name, size in {"a": 3, "b": 20, "c": 300}.items()}
    kept = StrayCounts(codes)
    sides = [(left, right) for left in [(), ("a",), ("b", "a"), ("c", "b")] for right in "abc" if right not in left]
    for cells in (0, 4, 10_000):
        monkeypatch.setattr(broken_rows, "_CELLS_A_ROW", cells)
        for left, right in sides:
            assert kept.of(left, right) == count_strays(codes, left, right)

"""Fast paths against brute force: comparing, counting, searching, grouping, drawing."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.constraints.brute_force import violates, violations
from tests.sampling.brute_force import table_exists
from tests.sampling.fakes import integers
from tests.sampling.strategies import problems
from tests.sampling.test_guarantee import named_constraints, rows_of
from tests.trying import examples

from kamino.constraints import Constraints
from kamino.errors import SamplingError
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.codes.grouping import first_success, join_groups
from kamino.sampling.codes.stratified import draw_one_each, draw_places, spread_points
from kamino.sampling.feasible.clique import find_clique
from kamino.sampling.feasible.existence import Answer, find_table
from kamino.sampling.feasible.refusal import refuse_unsatisfiable
from kamino.sampling.feasible.row_search import find_rows
from kamino.schema import Codec, Date, Integer, Real, Schema

SETTINGS = examples(60, suppress_health_check=list(HealthCheck))
Problem = tuple[Codec, Constraints, int]


def random_table(codec: Codec, num_rows: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.integers(0, codec[name].size, num_rows) for name in codec.attributes}


@SETTINGS
@given(problems(), st.integers(0, 2**32))
def test_judge_agrees_with_brute_force(problem: Problem, seed: int) -> None:
    codec, constraints, _ = problem
    table = random_table(codec, 6, seed)
    rows = rows_of(codec, table, 6)
    down = {name: codes[:, None] for name, codes in table.items()}
    across = {name: codes[None, :] for name, codes in table.items()}
    for constraint in constraints:
        found = Judge(codec).violates(constraint, down, across)
        assert found.tolist() == [[violates(constraint, one, other) for other in rows] for one in rows]


def test_judge_compares_wide_attributes() -> None:
    attributes = {
        "a": Integer(min=-10, max=10**8),
        "b": Real(min=-1, max=10**5, decimals=3),
        "c": Integer(min=3, max=10**7),
    }
    codec = Codec(Schema(attributes=attributes))
    rng = np.random.default_rng(0)
    table = {name: rng.integers(0, 40_000, 60) for name in attributes}
    table["c"][:20] = table["a"][:20] - 13
    for name in attributes:
        table[name][40:] = codec[name].num_values - 1 - table[name][40:]
    constraints = Constraints.parse(
        "not (t1.a < t2.b and t1.c >= t2.a)\nnot (t1.b <= t2.c)\nnot (a = c)\nnot (b < 17.0005)\nnot (a != 5)"
    )
    rows = rows_of(codec, table, 60)
    for constraint in constraints:
        found = Judge(codec).violates(constraint, table, table)
        assert found.tolist() == [violates(constraint, row, row) for row in rows]


@SETTINGS
@given(problems())
def test_found_rows_are_all_rows(problem: Problem) -> None:
    codec, constraints, _ = problem
    names = sorted({name for c in constraints for name in c.attributes})
    domains = [range(codec[name].size) for name in names]
    every = {name: np.array([values[i] for values in product(*domains)]) for i, name in enumerate(names)}
    rows = rows_of(codec, every, len(every[names[0]]))
    for repeatable in (False, True):
        found = find_rows(Judge(codec), list(constraints), repeatable=repeatable)
        wanted = [
            tuple(int(every[name][i]) for name in names)
            for i, row in enumerate(rows)
            if not any(violates(c, row, row) for c in constraints if c.is_unary or repeatable)
        ]
        mine = [tuple(int(found.columns[name][i]) for name in names) for i in range(found.num_rows)]
        assert found.complete
        assert sorted(mine) == sorted(wanted)


@SETTINGS
@given(problems(), st.integers(1, 6))
def test_existence_agrees_with_brute_force(problem: Problem, num_rows: int) -> None:
    codec, constraints, _ = problem
    witness = find_table(Judge(codec), list(constraints), num_rows)
    assert (witness.answer is Answer.YES) == table_exists(codec, list(constraints), num_rows)
    if witness.answer is Answer.YES:
        rows = rows_of(codec, witness.columns, num_rows)
        assert not any(violations(c, rows) for c in constraints)


@SETTINGS
@given(problems(), st.integers(1, 12))
def test_refused_sets_are_unsatisfiable(problem: Problem, num_rows: int) -> None:
    codec, constraints, _ = problem
    try:
        refuse_unsatisfiable(Judge(codec), list(constraints), num_rows)
    except SamplingError as error:
        named = list(named_constraints(error))
        assert not table_exists(codec, named, num_rows)
        assert all(table_exists(codec, [c for c in named if c is not one], num_rows) for one in named)


@examples(100)
@given(st.integers(1, 7), st.integers(0, 7), st.integers(0, 2**32))
def test_clique_agrees_with_brute_force(num: int, size: int, seed: int) -> None:
    graph = np.random.default_rng(seed).random((num, num)) < 0.6
    graph |= graph.T
    found, certain = find_clique(graph, size)
    exists = any(all(graph[i, j] for i, j in combinations(group, 2)) for group in combinations(range(num), size))
    assert certain
    assert (found is not None) == exists
    if found is not None:
        assert len(set(found)) == size
        assert all(graph[i, j] for i, j in combinations(found, 2))


def test_large_cliques_are_found() -> None:
    """More rows that go together than calls may be nested."""
    graph = np.ones((1_500, 1_500), dtype=np.bool_)
    found, certain = find_clique(graph, 1_200)
    assert certain
    assert found is not None
    assert len(set(found)) == 1_200


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.booleans()), min_size=1, max_size=8))
def test_join_groups_is_the_closure(lines: list[tuple[int, int, bool]]) -> None:
    x, y = np.array([line[0] for line in lines]), np.array([line[1] for line in lines])
    there = np.array([line[2] for line in lines])
    groups = join_groups(len(lines), [(x, np.ones(len(lines), bool)), (y, there)])
    label = list(range(len(lines)))
    for _ in lines:
        for i, j in combinations(range(len(lines)), 2):
            if x[i] == x[j] or (y[i] == y[j] and there[i] and there[j]):
                label[i] = label[j] = min(label[i], label[j])
    for i, j in combinations(range(len(lines)), 2):
        assert (groups[i] == groups[j]) == (label[i] == label[j])


def test_first_success_has_its_law() -> None:
    """The false-alarm rate is below 1e-4: the limit is four standard deviations of each share."""
    chance = np.array([0.2, 0.5, 0.0, 0.9])
    copies = 20_000
    groups = np.repeat(np.arange(copies), 4)
    marked = first_success(groups, np.tile(chance, copies), np.random.default_rng(0)).reshape(copies, 4)
    assert np.all(marked.sum(axis=1) == 1)
    law = chance * np.concatenate([[1.0], np.cumprod(1 - chance)[:-1]])
    law /= law.sum()
    assert np.all(np.abs(marked.mean(axis=0) - law) <= 4.5 * np.sqrt(law * (1 - law) / copies) + 1e-12)


def test_points_are_spread() -> None:
    groups = np.random.default_rng(1).integers(0, 7, 1000)
    points = spread_points(groups, np.random.default_rng(2))
    assert points.min() >= 0
    assert points.max() < 1
    for group in range(7):
        mine = points[groups == group]
        for edge in (0.1, 0.37, 0.8):
            assert abs(np.sum(mine < edge) - edge * len(mine)) <= 2


def test_draws_follow_their_weights_and_never_leave_them() -> None:
    with np.errstate(divide="ignore"):
        log_weight = np.log(np.array([[0.0, 0.25, 0.75, 0.0], [0.0, 0.0, 0.0, 0.0], [1e-30, 0.0, 0.0, 1.0]]))
    places = draw_places(np.repeat([0, 1, 2], 1000), log_weight, np.random.default_rng(0))
    assert np.bincount(places[:1000], minlength=4).tolist() == [0, 250, 750, 0]
    assert np.all(places[1000:2000] == -1)
    assert np.all(places[2000:] == 3)


def test_one_each_has_its_law() -> None:
    """20,000 lines of three kinds: each share within 4.5 deviations (5e-5 in all)."""
    law = np.array([[0.0, 0.2, 0.5, 0.3, 0.0], [1e-300, 0.0, 1.0, 0.0, 0.0], [0.25, 0.25, 0.0, 0.25, 0.25]])
    with np.errstate(divide="ignore"):
        log_weight = np.log(law) + np.array([[-800.0], [0.0], [900.0]])
    places = draw_one_each(np.repeat(log_weight, 20_000, axis=0), np.random.default_rng(0)).reshape(3, 20_000)
    for found, expected in zip(places, law, strict=True):
        share = np.bincount(found, minlength=5) / 20_000
        assert np.all(np.abs(share - expected) <= 4.5 * np.sqrt(expected * (1 - expected) / 20_000))
    assert draw_one_each(np.full((2, 3), -np.inf), np.random.default_rng(0)).tolist() == [-1, -1]


def test_dates_compare() -> None:
    import datetime as dt

    codec = Codec(Schema(attributes={n: Date(min=dt.date(1900, 1, 1), max=dt.date(2100, 1, 1)) for n in ("a", "b")}))
    table = {"a": np.array([5, 70_000]), "b": np.array([6, 69_999])}
    (constraint,) = Constraints.parse("not (a < b)")
    assert Judge(codec).violates(constraint, table, table).tolist() == [True, False]
    assert integers(a=3)["a"].size == 3

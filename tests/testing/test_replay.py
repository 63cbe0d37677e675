from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from kamino.privacy import Budget, Neighbours, PrivacyUnit, SecureNoise, Sensitivity
from kamino.privacy.mechanisms.bounds import number_cells
from kamino.testing.replay import LeakError, add_row, assert_replay, remove_row, replace_row, replay
from kamino.testing.same import first_difference

TABLE = pa.table(
    {
        "who": [0, 0, 0, 1, 1, 2, 3, 4, 5, 6],
        "age": [30, 31, 32, 33, 34, 35, 36, 37, 38, 17],
        "pay": [1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 3.0, 1.0, 2.0, 5000.0],
        "city": ["Rome", "Rome", "Oslo", "Oslo", "Rome", "Rome", "Oslo", "Oslo", "Rome", "Vaduz"],
    }
)
LAST = TABLE.num_rows - 1
BUDGET = Budget(epsilon=4.0, delta=1e-3)


def ages(table):
    return table["age"].to_numpy()


def release_ages(table, gate, size=100):
    counts = np.bincount(np.clip(ages(table), 0, size - 1), minlength=size)
    return gate.release_counts(counts, what="ages", attributes=("age",), noise_multiplier=9.0)


def clean(table, gate):
    """Every mechanism, each used as it should be."""
    table = gate.select_rows(table)
    histogram = release_ages(table, gate)
    rows = gate.release_row_count(table.num_rows, noise_multiplier=9.0)
    pay = np.clip(np.nan_to_num(table["pay"].to_numpy()), 0, 4)
    mean = gate.release_vector(
        np.array([pay.sum() / 10]),
        what="pay",
        attributes=("pay",),
        noise_multiplier=9.0,
        sensitivity=Sensitivity(add_remove=0.4),
    )
    cities = gate.release_categories({"city": table["city"]}, noise_multiplier=9.0, delta=1e-4)
    cells = {"pay": number_cells(integer=False)}
    bounds = gate.release_bounds({"pay": table["pay"].to_numpy()}, cells, noise_multiplier=9.0, about_rows=90_000)
    rng = np.random.default_rng(7)
    weights = np.maximum(histogram, 0) + 1.0
    made = pa.table({"age": rng.choice(100, size=max(rows, 1), p=weights / weights.sum())})
    return {"table": made, "mean": mean, "cities": cities, "bounds": bounds, "ledger": gate.ledger.to_json()}


ADDED = {"who": 9, "age": 99, "pay": math.inf, "city": "Paris"}
NEIGHBOURS = [
    (Neighbours.ADD_REMOVE, remove_row(TABLE, LAST)),
    (Neighbours.ADD_REMOVE, remove_row(TABLE, 0)),
    (Neighbours.ADD_REMOVE, add_row(TABLE, ADDED)),
    (Neighbours.ADD_REMOVE, add_row(TABLE, {"who": None, "age": 40, "pay": math.nan, "city": None})),
    (Neighbours.REPLACE, replace_row(TABLE, LAST, ADDED)),
    (Neighbours.REPLACE, replace_row(TABLE, 2, ADDED)),
]


@pytest.mark.parametrize(("relation", "neighbour"), NEIGHBOURS)
def test_replay_passes_on_the_clean_path(relation, neighbour):
    budget = Budget(epsilon=4.0, delta=1e-3, neighbours=relation)
    assert replay(clean, TABLE, neighbour, budget=budget).num_releases == 6
    assert_replay(clean, TABLE, neighbour, budget=budget)
    assert_replay(clean, neighbour, TABLE, budget=budget)


@pytest.mark.parametrize("max_rows", [1, 2, 3])
def test_replay_passes_for_units(max_rows):
    unit = PrivacyUnit(column="who", max_rows=max_rows)
    neighbour = TABLE.slice(3)  # without the unit of three rows
    for first, second in ((TABLE, neighbour), (neighbour, TABLE)):
        assert_replay(clean, first, second, budget=BUDGET, unit=unit, noise=SecureNoise())


def test_replay_catches_a_unit_without_its_column():
    assert problems(release_ages, TABLE.slice(3)) == [
        "the true input of release 1 (counts on age) moved by about 1.7 times its declared sensitivity"
    ]


def problems(run, neighbour=None, **options):
    neighbour = remove_row(TABLE, LAST) if neighbour is None else neighbour
    report = replay(run, TABLE, neighbour, budget=BUDGET, **options)
    with pytest.raises(LeakError):
        assert_replay(run, TABLE, neighbour, budget=BUDGET, **options)
    return list(report.problems)


def test_replay_catches_the_row_count():
    def run(table, gate):
        noisy = release_ages(table, gate)
        return noisy[: table.num_rows]

    assert problems(run) == ["the output differs: <output>: arrays of another shape or type"]


def test_replay_catches_the_row_count_in_a_rate():
    def run(table, gate):
        return release_ages(table, gate) / table.num_rows

    assert problems(run) == ["the output differs: <output>: arrays not equal"]


def test_replay_catches_the_active_domain():
    def run(table, gate):
        _, counts = np.unique(table["city"].to_pylist(), return_counts=True)
        return gate.release_counts(counts, what="cities", attributes=("city",), noise_multiplier=9.0)

    assert problems(run) == ["release 1 differs between the tables in: shape"]


def test_replay_catches_the_exact_minimum():
    def run(table, gate):
        counts, _ = np.histogram(ages(table), bins=5, range=(ages(table).min(), 100))
        return gate.release_counts(counts, what="ages", attributes=("age",), noise_multiplier=9.0)

    found = problems(run)
    assert len(found) == 1
    assert "moved by about" in found[0]

    def edges(table, gate):
        return release_ages(table, gate), float(ages(table).min())

    assert problems(edges) == ["the output differs: <output>[1]: not equal"]


def test_replay_catches_a_branch():
    def more(table, gate):
        if (ages(table) < 18).any():
            release_ages(table, gate)
        return release_ages(table, gate)

    assert problems(more) == ["release 2 was asked for on the first table only"]

    def other(table, gate):
        return release_ages(table, gate, size=50 if (ages(table) < 18).any() else 100)

    assert problems(other) == ["release 1 differs between the tables in: shape"]

    def extra(table, gate):
        if not (ages(table) < 18).any():
            release_ages(table, gate)
        return release_ages(table, gate)

    assert problems(extra) == ["release 2 (counts on age) was not asked for on the first table"]

    def silent(table, gate):
        return "minors" if (ages(table) < 18).any() else "adults"

    assert problems(silent) == ["the output differs: <output>: not equal"]


def test_replay_catches_an_unclamped_outlier():
    def run(table, gate):
        total = np.array([table["pay"].to_numpy().sum()])
        return gate.release_vector(total, what="pay", attributes=("pay",), noise_multiplier=9.0, sensitivity=4.0)

    assert problems(run) == [
        "the true input of release 1 (vector on pay) moved by more than 1,000 times its declared sensitivity"
    ]


def test_replay_catches_a_sum_that_one_nan_spoils():
    def run(table, gate):
        total = np.array([np.clip(table["pay"].to_numpy(), 0, 4).sum()])
        return gate.release_vector(total, what="pay", attributes=("pay",), noise_multiplier=9.0, sensitivity=4.0)

    assert "moved by about 5" in problems(run, add_row(TABLE, ADDED | {"pay": math.nan}))[0]


def test_replay_catches_too_small_a_sensitivity():
    def run(table, gate):
        both = np.concatenate([np.bincount(ages(table), minlength=100)] * 2)
        return gate.release_counts(both, what="ages, twice", attributes=("age",), noise_multiplier=9.0)

    assert problems(run) == [
        "the true input of release 1 (counts on age) moved by about 1.4 times its declared sensitivity"
    ]


def test_replay_catches_a_crash_on_one_table():
    def run(table, gate):
        noisy = release_ages(table, gate)
        if (ages(table) < 18).any():
            return noisy
        raise ValueError("17")

    assert problems(run) == ["the output differs: <output>: ndarray and _Failed"]


def test_replay_catches_a_swallowed_divergence():
    def run(table, gate):
        try:
            return release_ages(table, gate, size=100 if (ages(table) < 18).any() else 50)
        except Exception:
            return None

    assert problems(run) == ["release 1 differs between the tables in: shape"]


def test_a_run_that_fails_on_the_first_table_is_no_pass():
    with pytest.raises(ZeroDivisionError):
        assert_replay(lambda table, gate: 1 // 0, TABLE, remove_row(TABLE, 0))


def test_played_back_releases_cannot_be_changed_by_the_run():
    def run(table, gate):
        noisy = release_ages(table, gate)
        noisy += 1
        return noisy

    assert_replay(run, TABLE, remove_row(TABLE, LAST))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, 2),
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("a", "b"),
        (b"a", b"b"),
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ((1,), [1]),
        ({"a": 1}, {"a": 2}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (np.arange(3), np.arange(4)),
        (np.arange(3), np.arange(3.0)),
        (np.array([0.0]), np.array([-0.0])),
        (np.array(["a"], dtype=object), np.array(["b"], dtype=object)),
        (pa.table({"a": [1]}), pa.table({"a": [2]})),
        (pa.table({"a": [1]}), pa.table({"b": [1]})),
        (pa.table({"a": [1]}), pa.table({"a": [1.0]})),
        (pa.table({"a": [None, 1]}), pa.table({"a": [1, None]})),
        (BUDGET, Budget(epsilon=4.0, delta=1e-4)),
        (None, 0),
    ],
)
def test_first_difference_sees_every_difference(first, second):
    assert first_difference(first, second)
    assert first_difference([first], [second])
    assert not first_difference(first, first)


def test_equal_values_do_not_differ():
    for make in (lambda: math.nan, lambda: np.array([math.nan]), lambda: pa.table({"a": [math.nan, None]})):
        assert first_difference({"x": make()}, {"x": make()}) == ""

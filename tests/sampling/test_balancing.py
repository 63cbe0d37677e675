"""Rows of a context change places: what the model knows stays, and chance goes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling.fakes import FakeModel, integers

from kamino.constraints import Constraints
from kamino.sampling import Sampling, build_plan, draw_table
from kamino.sampling.codes import balancing
from kamino.sampling.codes.balancing import balance, group_values
from kamino.sampling.draw_options import DrawOptions

ROWS = 4000


def _chance(a: np.ndarray, b: np.ndarray) -> float:
    """The squared excess over independence, in parts of its expectation under chance: about 1 for random rows."""
    counts = np.zeros((a.max() + 1, b.max() + 1))
    np.add.at(counts, (a, b), 1)
    expected = counts.sum(1, keepdims=True) * counts.sum(0) / len(a)
    return float(((counts - expected) ** 2 / expected).sum() / ((counts.shape[0] - 1) * (counts.shape[1] - 1)))


@given(
    rows=st.integers(1, 60),
    contexts=st.integers(1, 8),
    others=st.integers(0, 3),
    low=st.sampled_from([-1, 0, 2**62]),
    seed=st.integers(0, 2**32 - 1),
)
def test_balancing_keeps_the_codes_of_a_context(rows: int, contexts: int, others: int, low: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    column, context = low + rng.integers(0, 5, rows), rng.integers(0, contexts, rows) * 7
    before = column.copy()
    with_these = [group_values(rng.integers(0, 4, rows)) for _ in range(others)]
    made = balance(column, context, with_these, rng)
    assert np.array_equal(column, before), "what was given stays"
    for each in np.unique(context):
        assert sorted(made[context == each]) == sorted(column[context == each])


def test_balancing_takes_chance_away() -> None:
    rng = np.random.default_rng(1)
    others = [rng.integers(0, size, ROWS) for size in (3, 8, 20)]
    column, context = rng.integers(0, 6, ROWS), rng.integers(0, 10, ROWS)
    made = balance(column, context, others, rng)
    for other in others:
        assert _chance(other, column) > 0.5
        assert _chance(other, made) < 0.25


def test_balancing_keeps_dependence() -> None:
    """The column follows the context, and so does another: what they share through it is no chance, and stays."""
    rng = np.random.default_rng(2)
    context = rng.integers(0, 5, ROWS)
    column, other = (np.where(rng.random(ROWS) < 0.7, context, rng.integers(0, 5, ROWS)) for _ in range(2))
    made = balance(column, context, [other], rng)
    counts, by_context, with_context = np.zeros((5, 5)), np.zeros((5, 5)), np.zeros((5, 5))
    np.add.at(counts, (other, made), 1)
    np.add.at(by_context, (context, column), 1)
    np.add.at(with_context, (other, context), 1)
    expected = with_context @ (by_context / by_context.sum(1, keepdims=True))
    assert np.abs(counts - expected).max() < 4
    assert np.corrcoef(made, other)[0, 1] > 0.3


def test_balancing_favours_no_row() -> None:
    """Over many draws, a row with any other value gets each code as often as its context does."""
    context, other = np.repeat([0, 1], 20), np.tile([0, 0, 0, 1, 2], 8)
    column = np.where(context == 0, np.arange(40) % 2, np.arange(40) % 4 // 3)
    rng, ones = np.random.default_rng(3), np.zeros(40)
    for _ in range(1000):
        mixed = column.copy()
        for each in (0, 1):
            mixed[context == each] = rng.permutation(column[context == each])
        ones += balance(mixed, context, [other], rng)
    assert ones[:20] / 1000 == pytest.approx(np.full(20, 0.5), abs=0.065)
    assert ones[20:] / 1000 == pytest.approx(np.full(20, 0.25), abs=0.065)


def test_wide_columns_are_grouped() -> None:
    rng = np.random.default_rng(4)
    for values, rows, contexts, most in (
        (1 << 40, ROWS, 1, 128),
        (1 << 40, 100_000, 1, 128),
        (500, 100_000, 1, 500),
        (500, 20_000, 1, 128),
        (500, 100_000, 80_000, 128),
        (600, 100_000, 1, 128),
        (100, ROWS, 4000, 100),
    ):
        wide = rng.integers(0, values, rows)
        groups = group_values(wide, contexts)
        assert (groups.min(), groups.max()) == (0, most - 1)
        assert np.all(np.diff(groups[np.argsort(wide)]) >= 0), "neighbours stay together"
        assert np.bincount(groups).max() < 2 * rows / most


def test_names_are_balanced_one_by_one() -> None:
    """Each of 400 names comes with a rare value as often as it should, and not only each group of names."""
    rng = np.random.default_rng(6)
    names, rare = rng.integers(0, 400, 40_000), (np.arange(40_000) % 10 == 0).astype(np.int64)
    made = balance(names, np.zeros(40_000, dtype=np.int64), [rare], rng)
    seen, chance = (np.bincount(each[rare == 1], minlength=400) for each in (made, names))
    expected = np.bincount(names, minlength=400) / 10
    assert np.abs(seen - expected).mean() < 0.4 * np.abs(chance - expected).mean()


def test_drawn_columns_are_balanced() -> None:
    """Nothing joins a, b and c but that c follows a; values of b and c inside their bins are balanced as well."""
    codec = integers(a=6, b=300, c=300)
    model = FakeModel(codec, ("a", "b", "c"), parents={"c": ("a",)}, max_bins=10)
    plan = build_plan(codec, Constraints.parse(""), sequence=("a", "b", "c"))
    few, usual = {}, DrawOptions()
    for name, sampling in (("usual", usual.sampling), ("paper", Sampling.ROW_BY_ROW)):
        drawn = draw_table(plan, model, codec, ROWS, np.random.default_rng(5), DrawOptions(sampling=sampling))
        thirds = {n: drawn[n] // 10 for n in ("b", "c")}
        few[name] = _chance(drawn["a"], thirds["b"]), _chance(thirds["b"], thirds["c"])
    assert max(few["usual"]) < 0.7 < min(few["paper"])


def test_many_rows_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = integers(a=4, b=4)
    plan = build_plan(codec, Constraints.parse(""), sequence=("a", "b"))
    tried = []
    monkeypatch.setattr("kamino.sampling.steps.free.balance", lambda column, *rest: tried.append(1) or column)
    for most in (ROWS, ROWS - 1):
        monkeypatch.setattr("kamino.sampling.sampler.MOST_ROWS", most)
        draw_table(plan, FakeModel(codec, ("a", "b")), codec, ROWS, np.random.default_rng(6))
        assert len(tried) == 1


def test_wide_counts_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where contexts times groups are too many, the column stays as it was."""
    monkeypatch.setattr(balancing, "_MOST_CELLS", 10)
    rng = np.random.default_rng(7)
    column, context, other = (rng.integers(0, 6, 200) for _ in range(3))
    assert np.array_equal(balance(column, context, [other], rng), column)


def test_wide_tables_take_some_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The work for a column does not grow with the columns before it, and each of them has its turn."""
    rng, seen = np.random.default_rng(8), []
    monkeypatch.setattr(balancing._Tables, "of", lambda others, *rest: seen.extend(int(z[0]) for z in others))
    monkeypatch.setattr(balancing, "_ROUNDS", 0)
    others = [np.full(200, i) for i in range(1, 101)]
    for _ in range(30):
        balance(rng.integers(0, 6, 200), np.zeros(200, np.int64), others, rng)
    assert len(seen) == 30 * 32
    assert set(seen) == set(range(1, 101))

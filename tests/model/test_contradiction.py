"""Maps that were estimated are believed only where nothing beyond the noise contradicts them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.model.memory import MemoryMeasurer

from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.marginal.maps.contradiction import excluded_by, is_contradicted, lacks_rows, stands_out
from kamino.model.marginal.marginal_schedule import Hints
from kamino.model.marginal.pairs.rounds import is_implied
from kamino.model.parts import Part
from kamino.model.protocol import CodeMap, ModelAttribute

LINES, VALUES = 60, 12


def noisy_table(seed: int, sigma: float) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    """The counts of a map of 60 lines to 12 values, with noise."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, VALUES, LINES)
    table = rng.normal(0, sigma, (LINES, VALUES))
    table[np.arange(LINES), values] += rng.integers(0, 400, LINES)
    return table, values, rng


def test_noise_alone_contradicts_hardly_any_map() -> None:
    """Four looks at a table, each wrong once in a thousand: of 2,000 tables 8 are expected, and 30 in no millionth."""
    wrong = 0
    for seed in range(2_000):
        table, values, _ = noisy_table(seed, 6.0)
        wrong += is_contradicted(table, excluded_by(values, VALUES), 6.0)
    assert wrong < 30
    assert not stands_out(np.zeros(5), 1.0).any()


@pytest.mark.parametrize("seed", range(20))
def test_a_group_of_exceptions_contradicts_a_map(seed: int) -> None:
    table, values, rng = noisy_table(seed, 6.0)
    line = rng.integers(LINES)
    table[line, (values[line] + 1) % VALUES] += 80
    assert is_contradicted(table, excluded_by(values, VALUES), 6.0)


@pytest.mark.parametrize("seed", range(20))
def test_scattered_exceptions_contradict_a_map(seed: int) -> None:
    """Two rows in each cell, a third of the noise, are 1,300 rows together: six times the noise of the sum."""
    table, values, _ = noisy_table(seed, 6.0)
    excluded = excluded_by(values, VALUES)
    assert is_contradicted(table + 2.0 * excluded, excluded, 6.0)


def histogram(counts: np.ndarray, sigma: float) -> Histogram:
    size = len(counts)
    return Histogram(
        size=size,
        starts=np.arange(size),
        noisy=counts,
        sigma=np.full(size, sigma),
        counts=counts,
        family=np.arange(size),
    )


def test_a_value_without_a_left_side_contradicts_a_map() -> None:
    attribute = ModelAttribute(name="y", size=6, null_code=5)
    counts = np.array([400.0, 300.0, 70.0, 3.0, 0.0, 500.0])
    found = histogram(counts, 5.0)
    assert lacks_rows(np.array([0, 1, -1]), found, attribute)
    assert not lacks_rows(np.array([0, 1, 2]), found, attribute)
    # As many rows have no left side: they may have that value.
    assert not lacks_rows(np.array([0, 1]), found, attribute, spare=70.0)


def test_nothing_is_implied_by_what_is_not_modelled() -> None:
    """1 is a function of 0: what 1 says of 2 follows from 0, if the model holds 0 with 1 and 0 with 2."""
    determined = {1: 0}
    assert not is_implied((1, 2), determined, set())
    assert not is_implied((1, 2), determined, {(0, 1)})
    assert is_implied((1, 2), determined, {(0, 1), (0, 2)})
    assert not is_implied((0, 1), determined, {(0, 1), (0, 2)})
    assert not is_implied((1, 2, 3), determined, {(0, 1), (0, 2), (0, 3)})
    assert is_implied((1, 2, 3), determined, {(0, 1), (0, 2, 3)})


@pytest.mark.parametrize("way", ["steps", "parts"])
@pytest.mark.parametrize("seed", range(3))
def test_no_map_excludes_what_the_counts_show(way: str, seed: int) -> None:
    """Codes have their first digit as section, but for the rarest, which are in another one: 4 rows in 100.

    A map that explains 96% would leave those rows no cell. The sections stay as frequent as they are counted, and an
    income that goes with them stays, too.
    """
    rng = np.random.default_rng(seed)
    share = 1.0 / np.arange(1, 401) ** 0.6
    code = rng.permutation(400)[np.searchsorted(np.cumsum(share / share.sum()), rng.random(30_000))]
    section = code // 50
    rare = np.bincount(code, minlength=400)[code] < 34
    section[rare] = 7 - section[rare]
    assert 0.02 < rare.mean() < 0.2
    income = np.minimum(rng.poisson(2 + 3 * section), 39)
    table = {"code": code, "section": section, "income": income}
    attributes = (
        ModelAttribute(name="code", size=400, ordered=True),
        ModelAttribute(name="section", size=8),
        ModelAttribute(name="income", size=40, ordered=True),
    )
    digit = Part(name="first digits", map=CodeMap.identity(400).merged(np.arange(400) // 50), numbers=np.arange(8))
    from kamino.model.marginal.maps.part_maps import Following

    following = (Following(left="code", right="section", part=digit, first=0),) if way == "parts" else ()
    hints = Hints(functional=(("code", "section"),), together=(("code", "section"),), following=following)
    model = fit_marginal(MemoryMeasurer(table, seed=seed), attributes, noise_multiplier=0.1, hints=hints)
    drawn = model.sample(30_000, np.random.default_rng(0))
    for name, size in (("section", 8), ("income", 40)):
        true, made = (np.bincount(each, minlength=size) / 30_000 for each in (table[name], drawn[name]))
        assert np.abs(true - made).sum() / 2 < 0.01


@pytest.mark.parametrize("seed", range(3))
def test_nulls_are_no_exceptions_to_steps(seed: int) -> None:
    """An age and its group, each null in a tenth of the rows: the map is found, and nulls go with everything."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(3.0, 9.0, 20_000), 0, 79).astype(np.int64)
    group = np.searchsorted([8, 28, 50], age, side="right")
    age = np.where(rng.random(20_000) < 0.1, 80, age)
    group = np.where(rng.random(20_000) < 0.1, 4, group)
    table = {"age": age, "group": group, "other": rng.integers(0, 4, 20_000)}
    attributes = (
        ModelAttribute(name="age", size=81, ordered=True, null_code=80),
        ModelAttribute(name="group", size=5, null_code=4),
        ModelAttribute(name="other", size=4),
    )
    hints = Hints(functional=(("age", "group"),), together=(("age", "group"),))
    model = fit_marginal(MemoryMeasurer(table, seed=seed), attributes, noise_multiplier=1.0, hints=hints)
    drawn = model.sample(20_000, np.random.default_rng(0))
    both = (drawn["age"] < 80) & (drawn["group"] < 4)
    right = np.searchsorted([8, 28, 50], drawn["age"], side="right") == drawn["group"]
    assert right[both].mean() > 0.98
    assert np.mean(drawn["group"] == 4) == pytest.approx(0.1, abs=0.01)
    assert np.mean((drawn["age"] == 80) & (drawn["group"] == 4)) == pytest.approx(0.01, abs=0.004)
    assert len(np.unique(drawn["group"][drawn["age"] == 80])) == 5

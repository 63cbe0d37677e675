"""What three attributes of two values say together is measured without being scored."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from tests.model.memory import MemoryMeasurer, ReplayMeasurer

from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.inference import Measurement
from kamino.model.marginal.marginal_schedule import MarginalSettings
from kamino.model.marginal.pairs.parities import MOST_PARITIES, Parities, most_dependent, plan_parities, within_size
from kamino.model.protocol import Cells, CodeMap, ModelAttribute

BITS = tuple(ModelAttribute(name=f"b{i:02}", size=2, ordered=False) for i in range(12))


def answers_to_questions(rows: int = 20_000, seed: int = 1) -> dict[str, np.ndarray]:
    """Twelve answers that follow one hidden cause, and four parities of three of them that are even too often."""
    rng = np.random.default_rng(seed)
    cause = rng.random(rows)
    bits = [(cause * 0.6 + rng.random(rows) * 0.4 < 0.2 + 0.05 * i).astype(np.int64) for i in range(len(BITS))]
    for first in range(0, len(BITS), 3):
        odd = (bits[first] + bits[first + 1] + bits[first + 2]) % 2 == 1
        bits[first + 2] = np.where(odd & (rng.random(rows) < 0.4), 1 - bits[first + 2], bits[first + 2])
    return {attribute.name: bit for attribute, bit in zip(BITS, bits, strict=True)}


def distance_of_triples(columns: dict[str, np.ndarray], made: dict[str, np.ndarray]) -> float:
    """The mean total variation distance of all 3-way marginals."""

    def shares(table: dict[str, np.ndarray], names: tuple[str, ...]) -> np.ndarray:
        index = sum(table[name] << i for i, name in enumerate(names))
        return np.bincount(index, minlength=8) / len(index)

    triples = combinations(columns, 3)
    return float(np.mean([np.abs(shares(columns, each) - shares(made, each)).sum() / 2 for each in triples]))


def frame_of(attributes: tuple[ModelAttribute, ...], num_rows: float) -> Frame:
    cells = [
        Cells(map=CodeMap.identity(a.size), width=np.ones(a.size, dtype=np.int64), share=np.ones(a.size))
        for a in attributes
    ]
    return Frame(attributes=attributes, cells=tuple(cells), num_rows=num_rows, sequence=None, chains=(), allowed={})


@pytest.mark.slow
def test_parities_bring_triples_nearer() -> None:
    columns, distances = answers_to_questions(), {}
    for share in (0.0, 0.02):
        settings = MarginalSettings(parities=share)
        models = [
            fit_marginal(MemoryMeasurer(columns, seed=seed), BITS, noise_multiplier=4.6, settings=settings)
            for seed in range(3)
        ]
        made = [model.sample(20_000, np.random.default_rng(7)) for model in models]
        distances[share] = np.mean([distance_of_triples(columns, each) for each in made])
    assert distances[0.02] < 0.9 * distances[0.0]


def test_a_fit_with_parities_costs_the_budget() -> None:
    measurer = MemoryMeasurer(answers_to_questions(5000), seed=4)
    model = fit_marginal(measurer, BITS, noise_multiplier=2.0)
    assert measurer.cost == pytest.approx(1 / 2.0**2, rel=1e-5)
    assert sum(name.count(" x ") == 2 for name, _ in model.releases) > 20


def test_a_fit_with_parities_depends_on_releases_only() -> None:
    columns = answers_to_questions(3000)
    measurer = MemoryMeasurer(columns, seed=5)
    model = fit_marginal(measurer, BITS, noise_multiplier=1.0)
    again = fit_marginal(ReplayMeasurer(answers_to_questions(40, seed=9), measurer.record), BITS, noise_multiplier=1.0)
    drawn = again.sample(500, np.random.default_rng(1))
    for name, column in model.sample(500, np.random.default_rng(1)).items():
        np.testing.assert_array_equal(column, drawn[name])


def test_parities_find_what_no_pair_shows() -> None:
    """Three bits of which one is the parity of the others, in a model that scores no triples."""
    rng = np.random.default_rng(3)
    columns = {attribute.name: rng.integers(0, 2, 20_000) for attribute in BITS[:6]}
    columns["b02"] = columns["b00"] ^ columns["b01"]
    for share, least, most in ((0.02, 0.9, 1.0), (0.0, 0.4, 0.6)):
        settings = MarginalSettings(triples=False, parities=share)
        model = fit_marginal(MemoryMeasurer(columns, seed=1), BITS[:6], noise_multiplier=4.6, settings=settings)
        drawn = model.sample(20_000, np.random.default_rng(0))
        assert least <= float((drawn["b02"] == drawn["b00"] ^ drawn["b01"]).mean()) <= most


@pytest.mark.parametrize("num_rows", [1.0, 100.0, 2_000.0, 20_000.0, 1e9])
@pytest.mark.parametrize("noise", [0.0, 0.5, 4.6, 50.0])
def test_parities_stay_within_their_share(num_rows: float, noise: float) -> None:
    planned = plan_parities(frame_of(BITS, num_rows), noise, 0.02)
    assert 0 <= planned.share <= 0.02
    assert planned.count <= 220
    assert (planned.count > 0) == (planned.share > 0)
    if noise == 0.0 or num_rows == 1.0:
        assert planned.count == 0


def test_many_attributes_have_no_more_than_the_most() -> None:
    many = tuple(ModelAttribute(name=f"b{i}", size=2, ordered=False) for i in range(40))
    assert plan_parities(frame_of(many, 1e9), 4.6, 0.02).count == MOST_PARITIES


def test_only_attributes_of_two_values_have_parities() -> None:
    others = (
        ModelAttribute(name="three", size=3, ordered=False),
        ModelAttribute(name="nullable", size=3, ordered=False, null_code=2),
        ModelAttribute(name="known", size=2, ordered=False),
        *BITS[:3],
    )
    planned = plan_parities(frame_of(others, 1e9), 4.6, 0.02, without={2})
    assert planned.attributes == (3, 4, 5)
    assert planned.count == 1


def test_parities_are_those_of_the_most_dependent() -> None:
    answers = {pair: np.full((2, 2), 25.0) for pair in combinations(range(5), 2)}
    for pair in combinations((0, 2, 4), 2):
        answers[pair] = np.array([[40.0, 10.0], [10.0, 40.0]])
    answers[0, 1] = np.array([[30.0, 20.0], [20.0, 30.0]])
    planned = Parities(attributes=tuple(range(5)), count=3, share=0.02)
    assert most_dependent(answers, planned) == [(0, 2, 4), (0, 1, 2), (0, 1, 4)]


def test_parities_keep_the_model_within_its_size() -> None:
    frame = frame_of(BITS, 1000.0)
    triples = [(0, 1, 2), (2, 3, 4), (0, 3, 5)]
    measured = [Measurement(attributes=t, counts=np.zeros((2, 2, 2)), sigma=np.ones((2, 2, 2))) for t in triples]
    alone = [(i,) for i in range(len(BITS))]
    assert [each.attributes for each in within_size(frame, measured, alone, 10**6)] == triples
    assert [each.attributes for each in within_size(frame, measured, alone, 29)] == triples[:1]

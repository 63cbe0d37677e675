"""A fit knows how noisy its counts are, whatever the relation and however many rows a unit has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from tests.model.memory import MemoryMeasurer

from kamino.constraints import Constraints
from kamino.model.marginal import fit_marginal
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.measurement import Measurement
from kamino.model.marginal.pairs import scoring
from kamino.model.marginal.purse import InDeviations
from kamino.model.protocol import CodeMap
from kamino.pipeline import Settings, Synthesizer
from kamino.pipeline.fitting import fit, open_gate
from kamino.pipeline.plan.run_plan import plan_table
from kamino.privacy import Neighbours
from kamino.privacy.private import PrivateTable
from kamino.schema import Categorical, Integer, Key, Schema

VIEW = CodeMap.identity(4)
VALUES = [f"v{i:02}" for i in range(60)]
SCHEMA = Schema(
    attributes={
        "who": Key(repeats=True),
        "a": Integer(min=0, max=9),
        "b": Categorical(values=["x", "y", "z"]),
        "c": Integer(min=0, max=9),
        "d": Categorical(values=VALUES),
    }
)


def visits(people: int = 2000, each: int = 5) -> pa.Table:
    rng = np.random.default_rng(1)
    rows, share = people * each, rng.pareto(1.0, len(VALUES)) + 0.05
    a = rng.integers(0, 6, rows)
    return pa.table(
        {
            "who": np.repeat(np.arange(people), each),
            "a": a,
            "b": rng.choice(["x", "y", "z"], rows),
            "c": (a + rng.integers(0, 3, rows)) % 8,
            "d": rng.choice(VALUES, rows, p=share / share.sum()),
        }
    )


@contextmanager
def believed() -> Iterator[list[tuple[tuple[str, ...], float]]]:
    """Collect what a fit takes for the noise of each release: of histograms, tables, interactions and distances."""
    found: list[tuple[tuple[str, ...], float]] = []
    first, histogram = fit_marginal.measure_first, fit_marginal.measure_histogram
    measure, shrink = Frame.measure, scoring.shrink_scores

    def noted(attribute: Any, count: Any) -> Any:
        def noted_count(*args: Any) -> Any:
            counts, sigma = count(*args)
            found.append(((attribute.name,), sigma))
            return counts, sigma

        return noted_count

    def noted_first(attribute: Any, count: Any) -> Any:
        return first(attribute, noted(attribute, count))

    def noted_histogram(attribute: Any, count: Any, *known: Any) -> Any:
        return histogram(attribute, noted(attribute, count), *known)

    def noted_measure(self: Frame, *args: Any, **others: Any) -> Measurement:
        made = measure(self, *args, **others)
        # Interactions are released as whole numbers, times the number of cells.
        unit = made.counts.size if made.is_interaction else 1
        found.append((tuple(self.attributes[a].name for a in args[2]), unit * float(made.sigma.max())))
        return made

    def noted_scores(noisy: Any, sigma: float) -> Any:
        found.append((("distances",), sigma))
        return shrink(noisy, sigma)

    with (
        patch.object(fit_marginal, "measure_first", noted_first),
        patch.object(fit_marginal, "measure_histogram", noted_histogram),
        patch.object(Frame, "measure", noted_measure),
        patch.object(scoring, "shrink_scores", noted_scores),
    ):
        yield found


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize("max_rows", [None, 1, 5])
def test_noise_of_units_is_known(neighbours: Neighbours, max_rows: int | None) -> None:
    """What the ledger says of the scale of the noise is what the model reckons with."""
    owned = {"unit": "who", "max_rows": max_rows} if max_rows else {"unit": "row", "accept": True}
    settings = Settings(epsilon=2.0, neighbours=neighbours, seed=3, **owned)
    private, gate = PrivateTable(visits()), open_gate(settings)
    plan = plan_table(private, SCHEMA, Constraints(), settings)
    with believed() as found:
        fit(private, plan, gate)
    noise: dict[tuple[str, ...], list[float]] = {}
    for entry in gate.ledger.entries:
        noise.setdefault(("distances",) if entry.kind == "vector" else entry.attributes, []).append(entry.sigma)
    assert len(found) >= 5
    assert any(names == ("distances",) for names, _ in found)
    for names, sigma in found:
        assert any(sigma == pytest.approx(each, rel=0.01) for each in noise[names]), (names, sigma, noise[names])


def test_units_cost_the_same() -> None:
    columns = {"x": np.arange(100) % 4}
    costs = []
    for distance in (1.0, 5.0):
        measurer = MemoryMeasurer(columns)
        InDeviations(measurer=measurer, distance=distance).marginal(("x",), {"x": VIEW}, noise_multiplier=8 * distance)
        costs.append(measurer.cost)
    assert costs[0] == costs[1]


@pytest.mark.parametrize(("seeds", "most"), [(6, 1.4), pytest.param(24, 1.25, marks=pytest.mark.slow)])
def test_units_are_fitted_as_well_as_their_noise_allows(seeds: int, most: float) -> None:
    """Five rows a person at epsilon 5 have the noise of rows at epsilon 1, nearly, and so have pairs their distance.

    Their ratio is 1.154, and that of one run of each has a standard deviation of 0.095: means lie six deviations from
    the first bound, five from the second.
    """
    table = visits(4000)
    distances = []
    for settings in ({"unit": "who", "max_rows": 5, "epsilon": 5.0}, {"unit": "row", "accept": True, "epsilon": 1.0}):
        runs = []
        for seed in range(seeds):
            made = Synthesizer(SCHEMA, None, seed=seed, **settings).fit(table).sample(table.num_rows)
            runs.append(np.mean([distance(table, made, pair) for pair in combinations("abcd", 2)]))
        distances.append(np.mean(runs))
    assert distances[0] < most * distances[1]


def distance(true: pa.Table, made: pa.Table, names: tuple[str, str]) -> float:
    """Total variation distance of a pair of columns."""
    counts = []
    for table in (true, made):
        grouped = table.select(names).group_by(list(names)).aggregate([([], "count_all")]).to_pylist()
        counts.append({(row[names[0]], row[names[1]]): row["count_all"] / table.num_rows for row in grouped})
    return sum(abs(counts[0].get(key, 0.0) - counts[1].get(key, 0.0)) for key in {*counts[0], *counts[1]}) / 2

"""How far the truth of a release moves where it moves farthest: neighbours that no table of ours happens to have.

Mechanisms are asked directly, with inputs whose coordinates all move at once: sums at the edges of their grid, a unit
whose rows are all alike or all different, and numbers at the ends of the cells. As in a replay, neither an entry nor an
answer may differ, and no true input may move by more than its sensitivity. What was charged must cover the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kamino.audit.probes.probe import Probe
from kamino.audit.repricing import price_problems
from kamino.privacy import Budget, Gate, Neighbours, PrivacyUnit, Sensitivity
from kamino.privacy.mechanisms.bounds import number_cells
from kamino.privacy.mechanisms.factored_gradients import Plain
from kamino.privacy.mechanisms.gradients import DescentPlan
from kamino.privacy.mechanisms.samples import SamplePlan
from kamino.testing.replay import record

_UNITS = (PrivacyUnit(), PrivacyUnit(column="who", max_rows=3))


@dataclass(frozen=True, kw_only=True)
class _Case:
    """What is released of an input, the input, and its neighbours by relation."""

    name: str
    run: Callable[[Any, Gate], object]
    first: Any
    near: dict[Neighbours, tuple[Any, ...]]
    units: bool = True


def far_moves() -> Iterator[str]:
    """Tell which releases move further than they say."""
    for relation in Neighbours:
        for unit in _UNITS:
            for case in _cases(unit.max_rows):
                if unit.max_rows > 1 and not case.units:
                    continue
                budget = Budget(epsilon=4.0, delta=1e-6, neighbours=relation)
                for problem in _problems(case, budget, unit):
                    yield f"{case.name} ({relation.value}, {unit.describe()}): {problem}"


def _problems(case: _Case, budget: Budget, unit: PrivacyUnit) -> Iterator[str]:
    """Replay a case on its neighbours, and price what it released."""
    gates: list[Gate] = []

    def opened(given: Any, gate: Gate) -> object:
        gates.append(gate)
        gate.select_rows(pa.table({"who": [0]}))
        return case.run(given, gate)

    recording = record(opened, case.first, budget=budget, unit=unit)
    yield from price_problems(recording.records, gates[0].ledger)
    for near in case.near[budget.neighbours]:
        yield from recording.play(near).problems


def _cases(rows: int) -> Iterator[_Case]:
    """Inputs and neighbours that differ in `rows` rows."""
    yield _histograms(rows)
    yield from _vectors(rows)
    yield _categories(rows)
    yield _bounds(rows)
    yield _sample()
    yield _descent()


def _histograms(rows: int) -> _Case:
    """Four histograms side by side: all rows of a unit in the same cells, or in the others."""

    def run(counts: Any, gate: Gate) -> object:
        sensitivity = Sensitivity.of_histogram(4)
        plain = gate.release_counts(counts[0], what="one", attributes=("a",), noise_multiplier=50.0)
        return plain, gate.release_counts(
            counts, what="four", attributes=("a",), noise_multiplier=50.0, sensitivity=sensitivity
        )

    base = np.full((4, 6), 10)
    one, other = base.copy(), base.copy()
    one[:, 0] += rows
    other[:, 5] += rows
    near = {Neighbours.ADD_REMOVE: (base,), Neighbours.REPLACE: (other,)}
    return _Case(name="histograms", run=run, first=one, near=near)


def _vectors(rows: int) -> Iterator[_Case]:
    """Vectors on a coarse grid whose coordinates are all rounded away from each other, and some beyond their bounds."""
    size, own, grid = 25, 0.5, 0.25

    def run(values: Any, gate: Gate) -> object:
        return gate.release_vector(
            values,
            what="rates",
            attributes=("a",),
            noise_multiplier=50.0,
            sensitivity=Sensitivity(add_remove=own),
            grid=grid,
        )

    def bounded(values: Any, gate: Gate) -> object:
        return gate.release_vector(
            values,
            what="bounded",
            attributes=("a",),
            noise_multiplier=50.0,
            sensitivity=Sensitivity(add_remove=math.sqrt(size), replace=math.sqrt(size)),
            lower=0.0,
            upper=1.0,
        )

    middle = np.full(size, 5 * grid + grid / 2)

    def moved(distance: float) -> Any:
        # Below the middle of a step it is rounded down, above it up.
        return middle - 1e-9, middle - 1e-9 + distance / math.sqrt(size) * (1 - 1e-6) + 2e-9

    for relation, times in ((Neighbours.ADD_REMOVE, 1), (Neighbours.REPLACE, 2)):
        first, second = moved(times * rows * own)
        near: dict[Neighbours, tuple[Any, ...]] = dict.fromkeys(Neighbours, ())
        near[relation] = (second,)
        yield _Case(name="a vector on its grid", run=run, first=first, near=near)
    odd = np.array([math.nan, math.inf, -math.inf, 1e300, -1e300] * 5)
    yield _Case(
        name="a vector within its bounds",
        run=bounded,
        first=np.zeros(size),
        near={each: (odd, np.ones(size), -odd) for each in Neighbours},
        units=False,
    )


def _categories(rows: int) -> _Case:
    """Categories of three attributes: all rows of a unit have the same."""

    def run(columns: Any, gate: Gate) -> object:
        made = gate.release_categories(columns, noise_multiplier=30.0, delta=1e-7)
        return {name: each.values for name, each in made.items()}

    def table(common: int, usual: int) -> Any:
        return {name: {"common": 500 + common, "usual": 400 + usual} for name in "abc"}

    near = {Neighbours.ADD_REMOVE: (table(0, 0),), Neighbours.REPLACE: (table(rows, 0),)}
    return _Case(name="categories", run=run, first=table(0, rows), near=near)


def _bounds(rows: int) -> _Case:
    """Ranges of three attributes: the rows of a unit are beyond all others, or no numbers."""
    cells = {name: number_cells(integer=False) for name in "abc"}

    def run(columns: Any, gate: Gate) -> object:
        return gate.release_bounds(
            columns, cells, noise_multiplier=30.0, about_rows=1e6
        )  # so many that there is a second histogram

    usual = np.random.default_rng(1).uniform(1, 100, 5_000)

    def table(*more: float) -> Any:
        return {name: np.concatenate([usual, *[np.array(more)] * rows]) for name in "abc"}

    ends = (math.nan, math.inf, -math.inf, 1e300, 1e-300, 0.0, 50.0)
    near = {
        Neighbours.ADD_REMOVE: (dict.fromkeys("abc", usual),),
        Neighbours.REPLACE: tuple(table(end) for end in ends),
    }
    return _Case(name="ranges", run=run, first=table(50.5), near=near)


def _sample() -> _Case:
    """A sample of rows that are nearly all taken: one more row, an equal one, another."""
    plan = SamplePlan(
        what="sample",
        attributes=("a",),
        sample_rows=40,
        sampling_rate=0.9,
        noise_multiplier=40.0,
        num_columns=2,
        sensitivity=math.sqrt(2),
    )

    def run(rows: Any, gate: Gate) -> object:
        return gate.release_sample(rows, lambda places: np.ones((len(places), 2), dtype=np.int64), plan)

    rows = np.column_stack([np.arange(30) // 3, np.zeros(30, dtype=np.int64)])
    near: dict[Neighbours, tuple[Any, ...]] = {
        Neighbours.ADD_REMOVE: (rows[1:], rows[:-1], np.concatenate([rows, rows[:1]])),
        Neighbours.REPLACE: (np.concatenate([rows[:-1], rows[:1]]), np.concatenate([rows[1:], [[99, 1]]])),
    }
    return _Case(name="a sample", run=run, first=rows, near=near, units=False)


class _Descent:
    """A descent whose rows are their own gradients, in two parts."""

    def start(self) -> tuple[Any, ...]:
        return (np.zeros(1),)

    def gradients(self, state: Any, rows: Any) -> tuple[Plain, ...]:
        del state
        half = rows[0].shape[1] // 2
        return Plain(start=0, values=rows[0][:, :half]), Plain(start=half, values=rows[0][:, half:])

    def advance(self, state: Any, gradient: Any) -> tuple[Any, ...]:
        del state
        return (gradient.sum(keepdims=True),)


def _descent() -> _Case:
    """Sums of gradients: a row whose gradient is long in both parts, one at the edges of the grid, and no numbers."""
    size = 200
    plan = DescentPlan(
        what="gradients",
        attributes=("a",),
        noise_multiplier=20.0,
        sampling_rate=0.9,
        steps=4,
        clip_norm=2.0,
        batch_size=20.0,
        num_parameters=size,
        factored=True,
    )

    def run(rows: Any, gate: Gate) -> object:
        return gate.release_descent((rows,), _Descent(), plan)

    usual = np.random.default_rng(2).normal(0, 0.05, (20, size))
    step = plan.grid
    target = plan.clip_norm / math.sqrt(size)
    rows = [
        np.full(size, 1e3),
        np.full(size, (math.floor(target / step) + 0.6) * step),
        np.full(size, -1e-3),
        np.full(size, math.nan),
        np.where(np.arange(size) % 2, math.inf, 1.0),
    ]
    near = {
        Neighbours.ADD_REMOVE: tuple(np.vstack([usual, row]) for row in rows),
        Neighbours.REPLACE: tuple(np.vstack([usual[:-1], row]) for row in rows),
    }
    return _Case(name="sums of gradients", run=run, first=usual, near=near, units=False)


MOVES = Probe(
    name="farthest moves",
    does="Mechanisms are replayed on made-up neighbours whose truths move as far as they can in all coordinates.",
    cannot="What the engine counts: runs are replayed for that.",
    search=far_moves,
)

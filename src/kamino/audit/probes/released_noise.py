"""The noise of each mechanism, as it leaves: its law must be that of the scale which is written in the entry.

The price of a release is checked by that scale, and a run has too few numbers to tell a scale from one next to it. So
long vectors are released here, of which all that is told is noise: counts, vectors on a grid, categories, samples and
sums of gradients. Lines of a sample that are free, and rows that add nothing, must have noise as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kamino.audit.probes.drawn_noise import FALSE_ALARM, law_p_value
from kamino.audit.probes.probe import Probe
from kamino.privacy import Budget, Gate, SecureNoise
from kamino.privacy.ledger import Entry
from kamino.privacy.mechanisms.factored_gradients import Plain
from kamino.privacy.mechanisms.gradients import DescentPlan
from kamino.privacy.mechanisms.samples import SamplePlan
from kamino.testing.replay import record

_BUDGET = Budget(epsilon=200.0, delta=1e-6)
_SIZE = 200_000
_CATEGORIES = 40_000
_OFTEN = 1_000_000
# Noise that is no whole number of a small grid is told by parts of equal probability.
_PARTS = 60


def released_problems() -> Iterator[str]:
    """Tell which mechanisms add other noise than their entries say."""
    for name, run in _RELEASES.items():
        yield from _of_a_run(name, run)


def _of_a_run(name: str, run: Callable[[Gate], object]) -> Iterator[str]:
    recording = record(lambda _, gate: run(gate), None, budget=_BUDGET, noise=SecureNoise())
    seen = False
    for entry, truth, released in recording.records:
        noise = _noise(entry, truth, released)
        if noise is None:
            continue
        seen = True
        if _chance(entry, noise) < FALSE_ALARM:
            yield f"{name}: the noise has not the law that its entry says"
    if not seen:
        yield f"{name}: nothing was released"


def _noise(entry: Entry, truth: Any, released: Any) -> NDArray[np.int64] | None:
    """What was released less what is true, in steps of the grid."""
    if entry.kind == "coins":
        return None
    if entry.kind == "categories":
        shown = dict(zip(released["a"].values, released["a"].counts, strict=True))
        return np.array([shown.get(value, 0) - count for (_, value), count in truth.items()])
    if entry.kind == "sample":
        return np.asarray(released).ravel()
    return np.asarray(released - np.asarray(truth)).ravel()


def _chance(entry: Entry, noise: NDArray[np.int64]) -> float:
    """How likely noise is that is so far from its law."""
    from scipy.special import chdtrc, ndtr  # only when it is asked

    scale = entry.sigma / entry.grid
    if entry.kind not in ("sample", "gradient step"):
        return law_p_value(noise, scale)
    # Steps of the grid may be as wide as a part: within a step all places are alike.
    spread = noise + np.random.default_rng(1).uniform(-0.5, 0.5, len(noise))
    parts = np.floor(ndtr(spread / scale) * _PARTS).astype(np.int64).clip(0, _PARTS - 1)
    expected = len(noise) / _PARTS
    statistic = ((np.bincount(parts, minlength=_PARTS) - expected) ** 2 / expected).sum()
    return float(chdtrc(_PARTS - 1, statistic))


def _counts(gate: Gate) -> None:
    for multiplier in (4.9, 300.4):
        gate.release_counts(np.zeros(_SIZE, np.int64), what="c", attributes=("a",), noise_multiplier=multiplier)


def _vectors(gate: Gate) -> None:
    values = np.zeros(_SIZE)
    gate.release_vector(values, what="v", attributes=("a",), noise_multiplier=0.2, sensitivity=1.0, grid=0.25)


def _categories(gate: Gate) -> None:
    gate.release_categories(
        {"a": {f"c{place}": _OFTEN + place % 3 for place in range(_CATEGORIES)}}, noise_multiplier=6.3, delta=1e-8
    )


def _sample(gate: Gate) -> None:
    plan = SamplePlan(
        what="sample",
        attributes=("a",),
        sample_rows=400,
        sampling_rate=0.01,
        noise_multiplier=60.0,
        num_columns=100,
        sensitivity=math.sqrt(3),
    )
    rows = np.arange(500)[:, None]
    gate.release_sample(rows, lambda places: np.zeros((len(places), 100), dtype=np.int64), plan)


class _Descent:
    """A descent whose rows have no gradient."""

    def start(self) -> tuple[Any, ...]:
        return (np.zeros(1),)

    def gradients(self, state: Any, rows: Any) -> tuple[Plain, ...]:
        del state
        return (Plain(start=0, values=np.zeros((len(rows[0]), 10_000))),)

    def advance(self, state: Any, gradient: Any) -> tuple[Any, ...]:
        del gradient
        return (state[0],)


def _gradients(gate: Gate) -> None:
    plan = DescentPlan(
        what="gradients",
        attributes=("a",),
        noise_multiplier=12.0,
        sampling_rate=0.1,
        steps=3,
        clip_norm=2.0,
        batch_size=2.0,
        num_parameters=10_000,
        factored=True,
    )
    gate.release_descent((np.zeros((20, 1)),), _Descent(), plan)


_RELEASES: dict[str, Callable[[Gate], None]] = {
    "counts": _counts,
    "vectors": _vectors,
    "categories": _categories,
    "samples": _sample,
    "gradients": _gradients,
}
RELEASED = Probe(
    name="noise of releases",
    does="Mechanisms release long vectors of nothing: what leaves must have the law that the entry says.",
    cannot="Less than a hundredth of a scale does not show.",
    search=released_problems,
)

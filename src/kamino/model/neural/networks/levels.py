"""Sub-models over levels: what a network sees and predicts of a unit, and its gradient in factors. Needs numpy alone.

The levels of a unit are runs of its cells, found from its released histogram; a code of a unit without order is a level
of its own. Every unit has a histogram, so a network has to learn only how levels depend on the context:

    e_a = row of a lookup table, for the level of context unit a
    w   = softmax over context units of (query . e_a + prior_a);   h = sum of w_a e_a
    P(level | context)      = softmax(log of the released share of the level + out h + bias)
    P(cell | level, context) = the released share of the cell within its level

So a number is no normal distribution but the released one, tilted level by level.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kamino.model.neural.networks.layers import log_softmax
from kamino.model.neural.networks.layout import Array, Layout
from kamino.model.neural.neural_settings import Optimizer
from kamino.model.protocol import FloatArray, IntArray
from kamino.privacy.mechanisms.factored_gradients import Lines, Outer, Part, Plain, State

# Embeddings and output vectors begin small: what is known at first is the released histogram.
_SPREAD = 0.3
# No level is thought rarer than this: what noise hid may still be drawn.
_LEAST_SHARE = 1e-6
_MOMENTS = (0.9, 0.99)
NAMES = ("table", "query", "prior", "out", "bias")


def find_levels(distribution: FloatArray, *, ordered: bool, most: int, null: int | None = None) -> IntArray:
    """Return the level of each cell: cells of an ordered unit are joined until a level holds 1/most of the rows.

    A cell that holds so many alone is a level of its own, and so is that of null. Units without order, and those of few
    cells, are not joined.

    >>> find_levels(np.array([0.05, 0.05, 0.6, 0.1, 0.1, 0.1]), ordered=True, most=2).tolist()
    [0, 0, 1, 2, 2, 2]

    Guarantees:
        Levels are runs of cells, numbered from 0, none left out.  [test_levels_are_runs_of_cells]
    """
    if not ordered or len(distribution) <= 2 * most:
        return np.arange(len(distribution), dtype=np.int64)
    share = 1.0 / most
    found, held = [0], float(distribution[0])
    for place in range(1, len(distribution)):
        before, here = float(distribution[place - 1]), float(distribution[place])
        new = max(before, here, held + here) > share or null in (place - 1, place)
        found.append(found[-1] + new)
        held = here if new else held + here
    return np.array(found, dtype=np.int64)


def level_shares(distribution: FloatArray, labels: IntArray) -> FloatArray:
    """Return the share of each level."""
    shares: FloatArray = np.bincount(labels, weights=distribution, minlength=int(labels.max()) + 1).astype(np.float64)
    return shares


def log_shares(shares: FloatArray) -> FloatArray:
    """Return logarithms of shares, none of them minus infinity."""
    return np.asarray(np.log(np.maximum(shares, _LEAST_SHARE)))


def first_parameters(
    embeddings: Mapping[str, Array] | None, context: Sequence[int], levels: int, dim: int, rng: np.random.Generator
) -> dict[str, Array]:
    """Return the first parameters of a sub-model: those of `embeddings`, of units with so many levels, a new head."""
    if embeddings is None:
        embeddings = {
            "table": _random(rng, (sum(context), dim)),
            "query": np.zeros(dim, dtype=np.float32),
            "prior": np.zeros(len(context), dtype=np.float32),
        }
    return {**embeddings, "out": _random(rng, (levels, dim)), "bias": np.zeros(levels, dtype=np.float32)}


def with_levels(params: Mapping[str, Array]) -> dict[str, Array]:
    """Return what a sub-model hands on to the next: its embeddings, and its output vectors as those of its own unit."""
    return {
        "table": np.concatenate([params["table"], params["out"]]),
        "query": params["query"],
        "prior": np.append(params["prior"], np.float32(0)),
    }


def level_logits(params: Mapping[str, NDArray[Any]], codes: IntArray) -> FloatArray:
    """Return the logits of levels; `codes` are lines of the table, one column for each context unit."""
    _, _, vector = _context(params, codes)
    return np.asarray(vector @ params["out"].T + params["bias"])


def _context(params: Mapping[str, NDArray[Any]], codes: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return embeddings, attention and the context vector of rows."""
    embedded = params["table"][codes]
    score = embedded @ params["query"] + params["prior"]
    weight = np.exp(score - score.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    return embedded, weight, np.einsum("ik,ikd->id", weight, embedded)


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelDescent:
    """A sub-model over levels as the DP-SGD mechanism knows it: public facts and functions.

    sections: where the levels of each context unit begin in the table. offset: logs of the shares of its own levels.
    """

    layout: Layout
    first: Array
    sections: tuple[int, ...]
    offset: FloatArray
    optimizer: Optimizer
    steps: int
    batch_size: float

    def start(self) -> State:
        """Return the first parameters, the optimizer's two moments, the mean so far and the number of the step."""
        zeros = np.zeros(self.layout.size)
        return self.first.astype(np.float64), zeros, zeros, zeros, np.zeros((), dtype=np.int64)

    def gradients(self, state: State, rows: tuple[NDArray[Any], ...]) -> Sequence[Part]:
        """Return the gradients of the negative log-likelihood of each row.

        Guarantees:
            They are those of the loss.  [test_level_gradients_agree_with_finite_differences]
        """
        params = self.layout.unpack(state[0])
        codes, target = np.asarray(rows[0], dtype=np.int64), np.asarray(rows[1], dtype=np.int64)
        embedded, weight, vector = _context(params, codes)
        error = np.exp(log_softmax(np, vector @ params["out"].T + params["bias"] + self.offset))
        error[np.arange(len(target)), target] -= 1.0
        back = error @ params["out"]
        along = np.einsum("ikd,id->ik", embedded, back)
        score = weight * (along - np.einsum("ik,ik->i", weight, along)[:, None])
        lines = weight[:, :, None] * back[:, None, :] + score[:, :, None] * params["query"]
        place = self.layout.places
        return (
            Lines(start=place["table"], index=codes, values=lines, sections=self.sections),
            Plain(start=place["query"], values=np.einsum("ik,ikd->id", score, embedded)),
            Plain(start=place["prior"], values=score),
            Outer(start=place["out"], left=error, right=vector),
            Plain(start=place["bias"], values=error),
        )

    def loss(self, state: State, rows: tuple[NDArray[Any], ...]) -> FloatArray:
        """Return the negative log-likelihood of each row."""
        params = self.layout.unpack(state[0])
        codes, target = np.asarray(rows[0], dtype=np.int64), np.asarray(rows[1], dtype=np.int64)
        log = log_softmax(np, level_logits(params, codes) + self.offset)
        return np.asarray(-log[np.arange(len(target)), target])

    def advance(self, state: State, gradient: FloatArray) -> State:
        """Take one step of Adam, and average the last parameters."""
        params, first, second, mean, number = state
        step, chosen = int(number), self.optimizer
        gradient = gradient / self.batch_size
        first = _MOMENTS[0] * first + (1 - _MOMENTS[0]) * gradient
        second = _MOMENTS[1] * second + (1 - _MOMENTS[1]) * gradient**2
        direction = first / (1 - _MOMENTS[0] ** (step + 1))
        size = np.sqrt(second / (1 - _MOMENTS[1] ** (step + 1))) + 1e-8
        params = params - self._rate(step) * direction / size
        begin = int((1 - chosen.averaged) * self.steps)
        if step >= begin:
            mean = mean + (params - mean) / (step - begin + 1)
        return params, first, second, mean, np.asarray(step + 1)

    def _rate(self, step: int) -> float:
        """The learning rate: rising at first, then along half a cosine."""
        warm = max(1, int(self.optimizer.warm_up * self.steps))
        if step < warm:
            return self.optimizer.learning_rate * (0.1 + 0.9 * step / warm)
        part = (step - warm) / max(1, self.steps - warm)
        return self.optimizer.learning_rate * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * part)))

    def result(self, state: State) -> dict[str, Array]:
        """Return the averaged parameters by name; the bias holds the released shares."""
        found: dict[str, Array] = self.layout.unpack(np.asarray(state[3], dtype=np.float32))
        return {**found, "bias": (found["bias"] + self.offset).astype(np.float32)}


def _random(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return (_SPREAD * rng.standard_normal(shape)).astype(np.float32)

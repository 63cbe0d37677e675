"""Draws from the choices of rows, each cut down to a range: all its values are weighed, and none is tried in vain."""

from __future__ import annotations

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.model.phase import codes_inside
from kamino.sampling.codes.choices import Choices
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.partners.block import DEAD
from kamino.schema import AttributeCodec


class Ranges:
    """Draws from the choices of rows, cut down to ranges of keys."""

    def __init__(self, choices: Choices, codec: AttributeCodec, rng: np.random.Generator) -> None:
        self._choices: Choices = choices if codec.ordered else choices.by_code()
        self._rng = rng
        # Codes of an ordered domain are their own keys; elsewhere each run is one code.
        self._first = codec.order_keys(self._choices.starts)
        self._last = self._first + self._choices.width - 1
        with np.errstate(divide="ignore"):
            self._log_share: FloatArray = np.log(self._choices.share)

    def draw(self, rows: IntArray, low: IntArray, high: IntArray, number: int) -> IntArray:
        """Return `number` independent draws for each row, a line for each; `DEAD` where its range has no value."""
        choices = self._choices
        if len(choices.starts) == 0:
            return np.full((len(rows), number), DEAD, dtype=np.int64)
        first = np.maximum(self._first[None, :], low[:, None])
        width = np.minimum(self._last[None, :], high[:, None]) - first + 1
        inside: Mask = width > 0
        log = choices.log_weight[choices.context[rows]][:, choices.label] + self._log_share[None, :]
        cut = np.flatnonzero((inside & (width < choices.width[None, :])).any(axis=0))
        log[:, cut] += self._log_part(first[:, cut], width[:, cut], cut)
        log[~inside] = -np.inf
        top = log.max(axis=1, keepdims=True)
        ends = np.cumsum(np.exp(log - np.where(np.isfinite(top), top, 0.0)), axis=1)
        points = self._rng.random((len(rows), number)) * ends[:, -1:]
        run = np.minimum((ends[:, None, :] <= points[:, :, None]).sum(axis=2), len(choices.starts) - 1)
        line = np.arange(len(rows))[:, None]
        start = choices.starts[run] + first[line, run] - self._first[run]
        found = codes_inside(
            choices.weights,
            start.ravel(),
            np.maximum(width[line, run], 1).ravel(),
            self._rng.random(run.size),
            self._rng,
        )
        return np.where(np.isfinite(top) & inside[line, run], found.reshape(run.shape), DEAD)

    def _log_part(self, first: IntArray, width: IntArray, runs: IntArray) -> FloatArray:
        """The logarithm of the part of runs that is left of them."""
        choices, held = self._choices, np.maximum(width, 1)
        if choices.weights is None:
            return np.asarray(np.log(held / choices.width[runs][None, :]))
        mass = choices.weights.mass
        whole = mass(choices.starts[runs], choices.width[runs])
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(mass(first.ravel(), held.ravel()).reshape(held.shape) / whole[None, :]))

"""The values of an attribute as cells in the order of a chain, with each context's probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.sampling.codes.choices import Choices
from kamino.sampling.codes.stratified import draw_places, normalised
from kamino.schema import AttributeCodec


@dataclass(frozen=True, kw_only=True, eq=False)
class ChainCells:
    """Neighbouring runs of codes joined to cells, from the lowest to the highest in the chain's direction.

    `probability[c, s]` is that of cell s in context c. `run` lists the runs in order; `cell_of[k]` is the k-th's cell.
    """

    choices: Choices
    run: IntArray
    cell_of: IntArray
    probability: FloatArray

    @property
    def num_cells(self) -> int:
        """How many cells there are."""
        return int(self.probability.shape[1])

    def draw_codes(self, context: IntArray, cells: IntArray, rng: np.random.Generator) -> IntArray:
        """Draw a code inside each row's cell, as likely as its context has it."""
        begin = np.searchsorted(self.cell_of, np.arange(self.num_cells + 1))
        run = self.run[begin[cells]]
        for cell in np.flatnonzero(np.diff(begin) > 1):
            rows = np.flatnonzero(cells == cell)
            inside = self.run[begin[cell] : begin[cell + 1]]
            weight = self.choices.log_weight[:, self.choices.label[inside]] + np.log(self.choices.share[inside])
            run[rows] = inside[np.maximum(draw_places(context[rows], weight, rng), 0)]
        return self.choices.codes_at(run, rng.random(len(run)), rng)


def make_cells(choices: Choices, codec: AttributeCodec, *, falling: bool, max_cells: int) -> ChainCells:
    """Order the runs by value (downwards if `falling`) and join neighbours until there are at most `max_cells`.

    `choices` are of values alone: null has no place in an order.
    """
    ordered = choices if codec.ordered else choices.by_code()
    keys = codec.order_keys(ordered.starts)
    run = np.argsort(-keys if falling else keys, kind="stable")
    table = normalised(ordered.log_weight)
    by_run = _spread(table, ordered, run)
    cell_of = np.arange(len(run), dtype=np.int64)
    if len(run) > max_cells:
        rows = np.bincount(ordered.context, minlength=len(table)).astype(np.float64)
        mass = np.cumsum(rows @ by_run + 1e-12)
        cell_of = np.unique((mass / mass[-1] * (max_cells - 1e-9)).astype(np.int64), return_inverse=True)[1]
    begin = np.searchsorted(cell_of, np.arange(int(cell_of.max(initial=-1)) + 1))
    probability = np.add.reduceat(by_run, begin, axis=1) if len(run) else np.zeros((len(table), 0))
    return ChainCells(choices=ordered, run=run, cell_of=cell_of.astype(np.int64), probability=probability)


def _spread(table: FloatArray, choices: Choices, run: IntArray) -> FloatArray:
    return np.asarray(table[:, choices.label[run]] * choices.share[run][None, :])

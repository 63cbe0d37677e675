"""What the measured pairs of a dependency X -> Y tell of its map: which bins of Y the rows of a value of X may be in.

All rows of one value of X are in one bin of Y. A measured line is that bin's count and noise elsewhere, so each bin of
Y has a posterior, and those that have none are closed to the value. Without that the model keeps a little of a line's
noise in each of its cells; rows of one value, which get one Y all together, cannot follow it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.inference import Measurement, combine, interactions_of
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.maps.contradiction import is_contradicted
from kamino.model.protocol import FloatArray

#: A bin of Y is closed to a value of X if all that are as unlikely hold it in no more than one table of so many.
LEAST_LIKELY = 1e-4


def find_clear_lines(
    frame: Frame,
    functional: Sequence[tuple[int, int]],
    measured: Sequence[Measurement],
    answers: Mapping[Clique, FloatArray],
) -> dict[Clique, FloatArray]:
    """Return masks over variables of the model that close what the lines of these dependencies X -> Y exclude.

    `answers` are the model's counts of all pairs. Bins of several values of X, and nulls, go with everything.

    Guarantees:
        A value of X whose line is clear has one bin of Y.  [test_clear_lines_have_one_right_side]
        One whose line is noise may have any, and no line loses the bin that holds its rows.
        [test_no_line_loses_its_right_side]
    """
    tables = {frame.levels.bins(tuple(sorted(pair))): pair for pair in functional}
    found: dict[Clique, FloatArray] = {}
    for each in combine(measured):
        if each.attributes not in tables or each.group is not None:
            continue
        x, y = tables[each.attributes]
        counts, model = each.counts, answers[min(x, y), max(x, y)]
        if each.is_interaction:
            # What interactions do not tell is in the model's margins.
            counts = counts + model - interactions_of(model)
        if x > y:
            counts, model = counts.T, model.T
        open_ = _open(frame, x, y, counts, model, float(each.sigma.max())).astype(float)
        if not open_.all():
            found[each.attributes] = open_ if x < y else open_.T
    return found


def _open(frame: Frame, x: int, y: int, table: FloatArray, model: FloatArray, sigma: float) -> NDArray[np.bool_]:
    """Return which bins of Y are open to each bin of X."""
    open_ = np.ones(table.shape, dtype=np.bool_)
    is_value, rights = _single_values(frame, x), np.ones(table.shape[1], dtype=np.bool_)
    null = frame.null_bin(y)
    if null is not None:
        rights[null] = False
    elif frame.attributes[y].null_code is not None:
        return open_
    size = np.maximum(model[:, rights].sum(axis=1, keepdims=True), 0.0)
    prior = model[:, rights].sum(axis=0) + sigma
    log = np.log(prior / prior.sum()) + (table[:, rights] - size / 2) * size / sigma**2
    chance = np.exp(log - log.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    ascending = np.sort(chance, axis=1)
    # The least likely bins, as many as together hold hardly a line, are closed.
    closed = (np.cumsum(ascending, axis=1) <= LEAST_LIKELY).sum(axis=1)
    least = np.take_along_axis(ascending, np.minimum(closed, ascending.shape[1] - 1)[:, None], axis=1)
    told = np.ones(table.shape, dtype=np.bool_)
    told[:, rights] = chance >= least
    told[~is_value] = True
    return open_ if is_contradicted(table, ~told, sigma) else told


def _single_values(frame: Frame, a: int) -> NDArray[np.bool_]:
    """Tell which bins of an attribute hold one value, and not null."""
    if a in frame.relatives:
        return np.zeros(frame.sizes[a], dtype=np.bool_)
    cells = frame.cells[a]
    codes = np.bincount(cells.map.labels, weights=cells.width, minlength=cells.map.bins)
    single: NDArray[np.bool_] = codes == 1
    null = frame.null_bin(a)
    if null is not None:
        single[null] = False
    return single

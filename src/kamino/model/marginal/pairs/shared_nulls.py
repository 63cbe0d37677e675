"""Attributes that are null in the same rows: a stay that has neither start nor end, an address that is missing whole.

Noise makes more nulls of one attribute than of the other, and so takes rows out of those that both share. Where what
was measured says that hardly a row has one null without the other, none is let have it; the counts of both attributes
then tell of the same rows. Reads releases only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.inference import Measurement, combine
from kamino.model.marginal.graph.junction import Clique
from kamino.model.protocol import FloatArray

#: Nulls are taken for shared if rows with one of them are fewer than so many standard deviations of their number, and
#: so many fewer than independent attributes have.
HARDLY_ANY, FEWER = 1.5, 4.0


def find_shared_nulls(
    frame: Frame, measured: Sequence[Measurement], answers: Mapping[Clique, FloatArray]
) -> dict[Clique, FloatArray]:
    """Return masks over variables of the model that let two attributes be null together only.

    `answers` are the model's counts of all pairs.

    Guarantees:
        Attributes that are null together stay so.  [test_nulls_that_are_shared_stay_shared]
        Attributes of which one is null in some other rows are left as they are.  [test_other_nulls_are_not_shared]
    """
    found: dict[Clique, FloatArray] = {}
    for each in combine(measured):
        pair = tuple(frame.levels.attribute[v] for v in each.attributes)
        if each.counts.shape != (2, 2) or not all(a in frame.nulls and a not in frame.relatives for a in pair):
            continue
        apart, deviation = _apart(each, frame.num_rows)
        if apart <= HARDLY_ANY * deviation and apart <= _independent(frame, pair, answers[pair]) - FEWER * deviation:
            same = np.array([1.0, 0.0, 0.0, 1.0])
            shape = [frame.levels.all_sizes[v] for v in each.attributes]
            found[each.attributes] = (same if each.group is None else same[each.group]).reshape(shape)
    return found


def _apart(measured: Measurement, num_rows: float) -> tuple[float, float]:
    """Return how many rows have one null without the other, and the standard deviation of that."""
    counts, sigma = measured.counts, float(measured.sigma.max())
    if measured.is_interaction:
        # The interactions of four cells are one number, with two signs: a quarter of the even rows less the odd ones.
        even = float(counts[0, 0] - counts[0, 1] - counts[1, 0] + counts[1, 1])
        return (num_rows - even) / 2, 2 * sigma
    return float(counts[0, 1] + counts[1, 0]), math.sqrt(2) * sigma


def _independent(frame: Frame, pair: Clique, table: FloatArray) -> float:
    """Return how many rows would have one null without the other if both were independent."""
    total = float(table.sum())
    first, second = (float(np.moveaxis(table, axis, 0)[frame.null_bin(a)].sum()) / total for axis, a in enumerate(pair))
    return total * (first * (1 - second) + second * (1 - first))

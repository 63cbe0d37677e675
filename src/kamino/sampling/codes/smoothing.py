"""Dependence goes on inside bins: rows that are alike to the model take their values in the order of their parents.

A model of bins says how a column depends on the bins of earlier ones, and nothing of what is inside them: two columns
that rise together would do so from bin to bin only. Here the model is read as a curve through its bins. Each row has a
latent logistic score: its mean follows the places of the parents' values among rows of the same context, with the slope
that the model has from context to context. Codes then change hands, first among rows of a context, then among rows of a
bin, until they stand in the order of these scores. Every context keeps its bins, and every bin its codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kamino.arrays import FloatArray, IntArray, stable_order
from kamino.schema.coding.joint_codes import distinct_values

#: The variance of the standard logistic distribution.
_VARIANCE = np.pi**2 / 3
#: No context is more certain of a score than this part of that variance.
_LEAST_VARIANCE = 1e-4 * _VARIANCE
#: Codes stay where they are if the order would explain less than this part of the scores' variance.
_LEAST_GAIN = 0.01
#: Logistic distribution functions are not looked at beyond so many scales.
_FAR = 30.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Parents:
    """The earlier columns that a distribution depends on: scores of the ordered ones, codes of the others."""

    scores: tuple[FloatArray, ...]
    codes: tuple[IntArray, ...]


def rank_scores(codes: IntArray, null: int | None = None) -> FloatArray:
    """Return the logistic score of each row's mean rank among equal codes; null has the middle score 0.

    >>> rank_scores(np.array([5, 7, 5, 9]), null=9).round(3).tolist()
    [-0.693, 1.609, -0.693, 0.0]
    """
    values, number = distinct_values(codes)
    counts = np.bincount(number).astype(float)
    counts[values == (-1 if null is None else null)] = 0.0
    place = (np.cumsum(counts) - counts / 2) / max(counts.sum(), 1.0)
    scores = np.zeros(len(values))
    known = counts > 0
    scores[known] = np.log(place[known] / (1 - place[known]))
    return scores[number]


def smooth(
    codes: IntArray,
    bins: IntArray,
    context: IntArray,
    probability: FloatArray,
    parents: Parents,
    rng: np.random.Generator,
) -> tuple[IntArray, bool] | None:
    """Return codes that have changed hands within contexts, then within bins; None where that would explain nothing.

    Also tells whether rows of a context are still alike: whether all hands changed within bins. `probability` has a
    line for each context and a column for each bin. Rows with bin -1, null and dead ones, stay.

    Guarantees:
        Every context keeps its codes but for exchanges inside a bin.  [test_smoothing_keeps_bins_and_codes]
        Columns that rise together do so inside bins.  [test_dependence_goes_on_inside_bins]
    """
    rows = np.flatnonzero(bins >= 0)
    if len(rows) < 2:
        return None
    curve = _curve(codes[rows], bins[rows], context[rows], probability, parents, rows, rng)
    rest = np.maximum(curve.variance - _mean_of(curve.context, curve.shift**2), _LEAST_VARIANCE)
    scale = np.sqrt(rest / _VARIANCE)
    found, moved = codes[rows].copy(), bins[rows].copy()
    within_contexts = bool(np.mean(curve.shift**2) > _LEAST_GAIN * np.mean(curve.variance))
    if within_contexts:
        order = _order_by(curve.context, curve.shift + scale * _logit(rng.random(len(rows))))
        held = stable_order(curve.context, found)
        found[order], moved[order] = found[held], moved[held]
    mean, width = curve.mean + curve.shift, curve.high[moved] - curve.low[moved]
    apart = mean - _mean_of(moved, mean)
    within_bins = np.mean(np.minimum(apart**2 * width**2 / (12 * rest**2), 1.0)) > _LEAST_GAIN
    if within_bins:
        key = _between(curve.low[moved], curve.high[moved], mean, scale, rng)
        found[_order_by(moved, key)] = found[stable_order(moved, found)]
    if not (within_contexts or within_bins):
        return None
    result = codes.copy()
    result[rows] = found
    return result, not within_contexts


@dataclass(frozen=True, kw_only=True, eq=False)
class _Curve:
    """Latent scores of rows: mean and variance in their context, and a shift inside it; and the ends of bins.

    The mean is the median, and the variance at most that of the logistic distribution with the context's quartiles:
    strays do not matter.
    """

    context: IntArray
    mean: FloatArray
    variance: FloatArray
    shift: FloatArray
    low: FloatArray
    high: FloatArray


def _curve(
    codes: IntArray,
    bins: IntArray,
    context: IntArray,
    probability: FloatArray,
    parents: Parents,
    rows: IntArray,
    rng: np.random.Generator,
) -> _Curve:
    score = np.empty(len(codes))
    shuffled = rng.permutation(len(codes))
    score[shuffled[stable_order(codes[shuffled])]] = _logit((np.arange(len(codes)) + 0.5) / len(codes))
    size = probability.shape[1]
    count = np.bincount(bins, minlength=size)
    low, high = np.full(size, np.inf), np.full(size, -np.inf)
    np.minimum.at(low, bins, score)
    np.maximum.at(high, bins, score)
    used, context = distinct_values(context)
    weight = np.where(count > 0, probability[used], 0.0)
    first, middle, third = (_quantile(weight, low, high, part) for part in (0.25, 0.5, 0.75))
    quartiles = ((third - first) / (2 * np.log(3.0))) ** 2 * _VARIANCE
    variance = np.maximum(np.minimum(quartiles, _moment(weight, bins, score)), _LEAST_VARIANCE)
    shift = _shift(middle, context, [each[rows] for each in parents.scores], [each[rows] for each in parents.codes])
    return _Curve(context=context, mean=middle[context], variance=variance[context], shift=shift, low=low, high=high)


def _moment(weight: FloatArray, bins: IntArray, score: FloatArray) -> FloatArray:
    """Return the variance of scores for each line of weights of bins."""
    size = weight.shape[1]
    count = np.maximum(np.bincount(bins, minlength=size), 1)
    mean, square = (np.bincount(bins, weights=each, minlength=size) / count for each in (score, score**2))
    weight = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(weight @ square - (weight @ mean) ** 2)


def _quantile(weight: FloatArray, low: FloatArray, high: FloatArray, part: float) -> FloatArray:
    """Return a quantile of each line of weights of bins with these ends; ranks lie evenly inside a bin."""
    order = np.argsort(low, kind="stable")
    weight = weight[:, order] / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    above = np.cumsum(weight, axis=1)
    place = np.minimum((above < part).sum(axis=1), weight.shape[1] - 1)
    line = np.arange(len(weight))
    held = np.maximum(weight[line, place], 1e-300)
    inside = np.clip((part - above[line, place] + held) / held, 0.0, 1.0)
    start, end = (_below(each)[order[place]] for each in (low, high))
    return _logit(start + inside * (end - start))


def _shift(means: FloatArray, context: IntArray, scores: Sequence[FloatArray], codes: Sequence[IntArray]) -> FloatArray:
    """Return how far each row's mean lies from that of its context, by what it differs from the context in its parents.

    Slopes are those of the contexts' means on the means of their parents' scores, beside the effects of categories. A
    direction in which contexts hardly differ, but rows of a context do, tells no slope (ridge regression).
    """
    inner = [_mean_of(context, each) for each in scores]
    deviations = [each - mean for each, mean in zip(scores, inner, strict=True)]
    effects = [_mean_of(context, _mean_of(distinct_values(each)[1], means[context])) for each in codes]
    if not scores:
        return np.zeros(len(context))
    table = np.stack([*inner, *effects], axis=1)
    table -= table.mean(axis=0)
    gram = table.T @ table
    gram += np.diag([*(float((each**2).sum()) for each in deviations), *(0.0 for _ in effects)])
    gram += 1e-6 * max(float(np.trace(gram)), 1e-9) * np.eye(len(gram))
    target = means[context] - means[context].mean()
    slopes = np.linalg.solve(gram, table.T @ target)
    return np.asarray(sum(slope * each for slope, each in zip(slopes[: len(scores)], deviations, strict=True)))


def _mean_of(groups: IntArray, values: FloatArray) -> FloatArray:
    """Return the mean of each row's group."""
    return np.asarray((np.bincount(groups, weights=values) / np.maximum(np.bincount(groups), 1))[groups])


def _order_by(groups: IntArray, key: FloatArray) -> IntArray:
    """Return the rows group by group, those of a group by their keys."""
    rank = np.empty(len(key), dtype=np.int64)
    rank[np.argsort(key)] = np.arange(len(key))
    return stable_order(groups, rank)


def _below(scores: FloatArray) -> FloatArray:
    """Return the logistic distribution function."""
    return np.asarray(1 / (1 + np.exp(-np.clip(scores, -_FAR, _FAR))))


def _logit(points: FloatArray) -> FloatArray:
    points = np.clip(points, 1e-13, 1 - 1e-13)
    return np.asarray(np.log(points / (1 - points)))


def _between(
    low: FloatArray, high: FloatArray, mean: FloatArray, scale: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draw logistic scores between two ends; far outside of them, by the mean alone."""
    ends = [_below((end - mean) / scale) for end in (low, high)]
    points = ends[0] + rng.random(len(mean)) * (ends[1] - ends[0])
    return np.asarray(np.clip(mean + scale * _logit(points), low, high) + 1e-9 * mean)

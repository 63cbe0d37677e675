"""Histograms of a true and a synthetic column on one scale, as shares of rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.evaluate.measure.columns import Kind, Numbers, kind_of, numbers, shown, texts

NUM_BINS = 24
TOP_VALUES = 20


@dataclass(frozen=True, kw_only=True)
class Bar:
    """The share of rows with a value, or with a value in an interval, in both tables."""

    label: str
    true: float
    synthetic: float


@dataclass(frozen=True, kw_only=True)
class Histogram:
    """The bars of one column: `scale` in order of the values, `rest` what is on no scale (null, other, outside)."""

    kind: Kind
    scale: tuple[Bar, ...]
    rest: tuple[Bar, ...] = ()


def histogram(true: pa.ChunkedArray, synthetic: pa.ChunkedArray) -> Histogram:
    """Bars of both columns. Numbers and times in bins over the true range, categories by the most frequent values.

    Guarantees:
        The shares of each table add up to 1, unless it is empty.  [test_histogram_shares_add_up]
    """
    kind = kind_of(true.type)
    readable = kind_of(synthetic.type) is kind or synthetic.null_count == len(synthetic)
    if kind is Kind.CATEGORY or not readable:
        return _of_values(texts(true), texts(synthetic))
    integers = pa.types.is_integer(true.type)
    step = 86400.0 if pa.types.is_date(true.type) else 1.0 if integers else 0.0
    return _of_numbers(numbers(true), _numbers(synthetic), kind, step)


def _numbers(column: pa.ChunkedArray) -> Numbers:
    return np.full(len(column), np.nan) if column.null_count == len(column) else numbers(column)


def _of_values(true: pa.ChunkedArray, synthetic: pa.ChunkedArray) -> Histogram:
    one, two = _counts(true), _counts(synthetic)
    ranked = sorted({**one, **two}, key=lambda value: (-one.get(value, 0), -two.get(value, 0), value))
    # a single value more than fits is shown rather than called "other"
    top = ranked if len(ranked) <= TOP_VALUES + 1 else ranked[:TOP_VALUES]
    bars = tuple(_bar(value, one.get(value, 0), two.get(value, 0), true, synthetic) for value in top)
    left = ranked[len(top) :]
    rest = []
    if left:
        label = f"{len(left):,} others"
        rest.append(_bar(label, sum(one.get(v, 0) for v in left), sum(two.get(v, 0) for v in left), true, synthetic))
    if true.null_count or synthetic.null_count:
        rest.append(_bar("null", true.null_count, synthetic.null_count, true, synthetic))
    return Histogram(kind=Kind.CATEGORY, scale=bars, rest=tuple(rest))


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    found = pc.value_counts(column.drop_null())
    return dict(zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True))


def _bar(label: str, one: float, two: float, true: pa.ChunkedArray, synthetic: pa.ChunkedArray) -> Bar:
    return Bar(label=label, true=one / max(1, len(true)), synthetic=two / max(1, len(synthetic)))


def _of_numbers(true: Numbers, synthetic: Numbers, kind: Kind, step: float) -> Histogram:
    finite = true[np.isfinite(true)]
    if not len(finite):
        finite = synthetic[np.isfinite(synthetic)]
    edges, labels = _bins(finite, kind, step)
    rows = max(1, len(true)), max(1, len(synthetic))
    bars = tuple(
        Bar(label=label, true=one / rows[0], synthetic=two / rows[1])
        for label, one, two in zip(labels, _count(true, edges), _count(synthetic, edges), strict=True)
    )
    low, high = (edges[0], edges[-1]) if len(edges) else (0.0, 0.0)
    outside = {
        "below": (true < low, synthetic < low),
        "above": (true > high, synthetic > high),
        "null": (np.isnan(true), np.isnan(synthetic)),
    }
    rest = tuple(
        Bar(label=label, true=float(one.sum()) / rows[0], synthetic=float(two.sum()) / rows[1])
        for label, (one, two) in outside.items()
        if one.any() or two.any()
    )
    return Histogram(kind=kind, scale=bars, rest=rest)


def _bins(values: Numbers, kind: Kind, step: float) -> tuple[Numbers, list[str]]:
    """Edges and labels: a bin for each value where these are few, whole steps for integers and dates, else equal."""
    distinct = np.unique(values)
    if not len(distinct):
        return np.empty(0), []
    if len(distinct) <= NUM_BINS and not (step and _span(distinct, step) <= NUM_BINS):
        return _edges_between(distinct), [label_of(v, kind, step) for v in distinct]
    if step:
        width = math.ceil(_span(distinct, step) / NUM_BINS) * step
        starts = np.arange(distinct[0], distinct[-1] + step / 2, width)
        ends = np.minimum(starts + width - step, distinct[-1])
        labels = [interval(a, b, kind, step) for a, b in zip(starts, ends, strict=True)]
        return np.append(starts, starts[-1] + width) - step / 2, labels
    edges = np.linspace(distinct[0], distinct[-1], NUM_BINS + 1)
    return edges, [interval(a, b, kind, step) for a, b in pairwise(edges)]


def _span(distinct: Numbers, step: float) -> float:
    return float((distinct[-1] - distinct[0]) / step + 1)


def _edges_between(distinct: Numbers) -> Numbers:
    middle = (distinct[:-1] + distinct[1:]) / 2
    return np.concatenate([[distinct[0]], middle, [distinct[-1]]])


def _count(values: Numbers, edges: Numbers) -> list[float]:
    if len(edges) < 2:
        return []
    inside = values[(values >= edges[0]) & (values <= edges[-1])]
    place = np.clip(np.searchsorted(edges, inside, side="right") - 1, 0, len(edges) - 2)
    return [float(count) for count in np.bincount(place, minlength=len(edges) - 1)]


def interval(low: float, high: float, kind: Kind, step: float) -> str:
    """The label of a bin."""
    one, two = label_of(low, kind, step), label_of(high, kind, step)
    return one if one == two else f"{one} to {two}"


def label_of(value: float, kind: Kind, step: float) -> str:
    """The label of a value, as short as four digits allow where it is not whole."""
    if kind is Kind.TIME:
        return str(shown(value, kind, whole_days=step == 86400.0))
    whole = step or 1e4 <= abs(value) < 1e12 or (float(value).is_integer() and abs(value) < 1e12)
    return f"{value:.0f}" if whole else f"{value:.4g}"

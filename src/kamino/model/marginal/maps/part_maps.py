"""Dependencies X -> Y in which Y follows a part of X: the hour of a time, the month of a date, the last digits of a
number.

A date has the same month as thousands of others. Counted part by part instead of value by value, the map stands far out
of the noise at next to no cost, and is then known of every value of X, also of those that no row has.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kamino.arrays import distinct
from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.graph.inference import LEAST_SIGMA
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.graph.masks import MOST_CELLS
from kamino.model.marginal.maps.contradiction import excluded_by, is_contradicted, lacks_rows
from kamino.model.marginal.maps.step_maps import MOST_STEPS, StepMap
from kamino.model.marginal.purse import Purse
from kamino.model.parts import KnownMap, Part
from kamino.model.protocol import Candidate, Cells, CodeMap, FloatArray, IntArray, Measurer, ModelAttribute

#: A right side with less than this part of the values of a part hardly is that part, unless the part has few values.
LEAST_VALUES, FEW_VALUES = 0.5, 12
#: One with more values is none; numbers may have a range that is wider than what occurs, up to so many times.
MOST_TIMES = 4
#: A value of a part is followed if its largest count is this many deviations above the second.
LEAST_LEAD = 4.0
#: A map explains at least this part of the rows, but for two deviations of the noise: a year that changes in October
#: is no part of a date.
LEAST_EXPLAINED = 0.95
#: Nothing is believed if a deviation is more than this part of the rows: what explains few is then four away.
MOST_NOISE = 0.15


@dataclass(frozen=True, kw_only=True, eq=False)
class Following:
    """A dependency X -> Y that may follow a part of X; `first` and `step` say which numbers codes of Y stand for."""

    left: str
    right: str
    part: Part
    first: int | None = None
    step: int = 1

    def candidate(self, attributes: Mapping[str, ModelAttribute]) -> Candidate:
        """Name the marginal of the part and the right side for the private side."""
        views = {self.left: self.part.map, self.right: CodeMap.identity(attributes[self.right].size)}
        return Candidate(attributes=(self.left, self.right), binning=views)


def can_follow(part: Part, right: ModelAttribute) -> bool:
    """Whether an attribute may follow a part, as far as the schema tells."""
    values = right.size - (right.null_code is not None)
    enough = values >= LEAST_VALUES * part.count or part.count <= FEW_VALUES
    most = part.count * (MOST_TIMES if right.ordered else 1)
    return 1 < values <= most and part.count > 1 and enough


def measure_part_maps(
    attributes: Sequence[ModelAttribute],
    histograms: Sequence[Histogram],
    candidates: Sequence[Following],
    measurer: Measurer,
    purse: Purse,
    share: float,
) -> list[KnownMap]:
    """Measure the tables of these candidates, each with `share` of the budget; return the maps that are believed.

    Of several parts that a right side follows, the one that explains most rows is taken; of equals, the first.
    """
    named = {a.name: (a, h) for a, h in zip(attributes, histograms, strict=True)}
    only = {name: attribute for name, (attribute, _) in named.items()}
    measurer.expect([each.candidate(only) for each in candidates])
    best: dict[tuple[str, str], tuple[float, KnownMap]] = {}
    for each in candidates:
        asked = each.candidate(only)
        multiplier = purse.take(f"{each.part.name} of {each.left} -> {each.right}", share)
        noisy = measurer.marginal(asked.attributes, asked.binning, noise_multiplier=multiplier)
        right, num_rows = only[each.right], _rows_with_both(each, named)
        table = np.asarray(noisy, dtype=float).reshape(each.part.map.bins, right.size)[: each.part.count]
        if right.null_code is not None:
            table = np.delete(table, right.null_code, axis=1)
        values, share_right = follow(each, table, num_rows, max(multiplier, LEAST_SIGMA))
        pair = (each.left, each.right)
        if values is None:
            continue
        spare = _without_left(*named[each.left]) + _untold(table, values, max(multiplier, LEAST_SIGMA))
        if lacks_rows(values, named[each.right][1], right, spare):
            continue
        if share_right > best.get(pair, (0.0,))[0]:
            best[pair] = (share_right, known_map(each, values))
    return [found for _, found in best.values()]


def _without_left(attribute: ModelAttribute, histogram: Histogram) -> float:
    """Return about how many rows have null on the left: they may have any right side."""
    if attribute.null_code is None:
        return 0.0
    return float(np.maximum(histogram.counts[histogram.starts == attribute.null_code], 0.0).sum())


def _untold(table: FloatArray, values: IntArray, sigma: float) -> float:
    """Return how many rows, at most, have parts whose right side is not known: they may have any."""
    lines = table[values < 0]
    return max(float(lines.sum()) + LEAST_LEAD * sigma * math.sqrt(lines.size), 0.0) if lines.size else 0.0


def _rows_with_both(each: Following, named: Mapping[str, tuple[ModelAttribute, Histogram]]) -> float:
    """Return about how many rows have a value on both sides, at least, if nulls have nothing to do with each other."""
    shares, totals = [], []
    for attribute, histogram in (named[each.left], named[each.right]):
        counts = np.maximum(histogram.counts, 0.0)
        there = histogram.starts != (-1 if attribute.null_code is None else attribute.null_code)
        totals.append(max(float(counts.sum()), 1.0))
        shares.append(float(counts[there].sum()) / totals[-1])
    return max(math.prod(shares) * min(totals), 1.0)


def follow(candidate: Following, table: FloatArray, num_rows: float, sigma: float) -> tuple[IntArray | None, float]:
    """Return the code of Y for each value of the part, -1 where none is known, and the share of rows it explains.

    Two hypotheses are tried: that Y is the number of the part itself, which takes one noisy sum, and that each value of
    the part has a Y of its own, whatever it is, which takes a clear lead in each.

    A dependency has no exceptions: one map with more of them than noise makes is not believed.

    Guarantees:
        What the noise cannot excuse is not excluded.  [test_no_map_excludes_what_the_counts_show]
        A right side that does not follow the part is not believed to.  [test_what_follows_no_part_is_not_believed]
        Renamed parts are found, and numbers in small tables.  [test_parts_are_found, test_numbers_need_few_rows]
    """
    same = same_numbers(candidate, table.shape[1])
    for values in (same, leading(table, sigma)):
        if values is None:
            continue
        kept = np.flatnonzero(values >= 0)
        noise = sigma * math.sqrt(max(len(kept), 1)) / num_rows
        explained = float(table[kept, values[kept]].sum()) / num_rows
        if noise > MOST_NOISE or explained < LEAST_EXPLAINED - 2 * noise:
            continue
        if not is_contradicted(table, excluded_by(values, table.shape[1]), sigma):
            return values, explained
    return None, 0.0


def same_numbers(candidate: Following, size: int) -> IntArray | None:
    """Return the code of Y that stands for the number of each value of the part; None where Y has no numbers."""
    if candidate.first is None:
        return None
    place, rest = np.divmod(candidate.part.numbers - candidate.first, candidate.step)
    return np.where((rest == 0) & (place >= 0) & (place < size), place, -1)


def leading(table: FloatArray, sigma: float) -> IntArray:
    """Return the code with the largest count in each line, -1 where its lead may be noise."""
    second, first = np.sort(table, axis=1)[:, -2:].T
    return np.where(first - second >= LEAST_LEAD * math.sqrt(2.0) * sigma, np.argmax(table, axis=1), -1)


def known_map(candidate: Following, values: IntArray) -> KnownMap:
    """Spell a map out for the codes of X; null has no right side."""
    bins = candidate.part.map
    found = np.append(values, np.full(bins.bins - len(values), -1))[bins.labels]
    first = np.flatnonzero(np.append(True, np.diff(found) != 0))
    return KnownMap(left=candidate.left, right=candidate.right, starts=bins.starts[first], values=found[first])


def as_steps(maps: Sequence[KnownMap], place: Mapping[str, int], histograms: Sequence[Histogram]) -> Iterator[StepMap]:
    """Read those maps that change seldom as step functions, to cut bins near the steps: the month, within a year."""
    for each in maps:
        histogram = histograms[place[each.left]]
        values = each(histogram.starts + (histogram.width - 1) // 2)
        # What has no right side, such as null, makes no step.
        known = np.maximum.accumulate(np.where(values >= 0, np.arange(len(values)), 0))
        found = StepMap(left=place[each.left], right=place[each.right], values=np.maximum(values[known], 0))
        if 0 < found.steps <= MOST_STEPS:
            yield found


def known_masks(
    attributes: Sequence[ModelAttribute], cells: Sequence[Cells], maps: Sequence[KnownMap], place: Mapping[str, int]
) -> dict[Clique, FloatArray]:
    """Return which combinations of bins known maps allow, where they exclude some. Null goes with everything.

    Right sides of one left side are masked together, as far as a clique can hold them: an hour and a minute tell the
    bin of a time, and what is measured of either has to fit the counts of these bins.

    Guarantees:
        What the maps say of any code of a bin is allowed, and nothing else.  [test_masks_allow_what_a_map_says]
    """
    masks: dict[Clique, FloatArray] = {}
    for left in dict.fromkeys(each.left for each in maps):
        mine = [each for each in maps if each.left == left]
        # Those that tell something alone go first, small ones before wide ones.
        tells = {each.right: not _mask(attributes, cells, [each], place).all() for each in mine}
        mine.sort(key=lambda each: (not tells[each.right], cells[place[each.right]].map.bins))
        joined: list[KnownMap] = []
        mask = np.ones(cells[place[left]].map.bins)
        for each in mine:
            if mask.size * cells[place[each.right]].map.bins > MOST_CELLS:
                continue
            grown = _mask(attributes, cells, [*joined, each], place)
            if np.any(grown < mask[..., None]):
                joined, mask = [*joined, each], grown
        for some in ([joined] if joined else []) + [[each] for each in mine if each not in joined]:
            clique = [place[left], *(place[each.right] for each in some)]
            told = _mask(attributes, cells, some, place)
            if not told.all():
                masks[tuple(sorted(clique))] = told.transpose(np.argsort(clique))
    return masks


def _mask(
    attributes: Sequence[ModelAttribute], cells: Sequence[Cells], maps: Sequence[KnownMap], place: Mapping[str, int]
) -> FloatArray:
    """Return which combinations of bins maps of one left side allow: the left side first, then each right side."""
    left, rights = cells[place[maps[0].left]].map, [cells[place[each.right]].map for each in maps]
    starts = distinct(left.starts, *(each.starts for each in maps))
    values = [each(starts) for each in maps]
    known = np.logical_and.reduce([codes >= 0 for codes in values])
    mask = np.zeros((left.bins, *(right.bins for right in rights)))
    mask[left(starts[known]), *(right(codes[known]) for right, codes in zip(rights, values, strict=True))] = 1.0
    mask[left(starts[~known])] = 1.0
    for axis, (each, right) in enumerate(zip(maps, rights, strict=True), start=1):
        null = attributes[place[each.right]].null_code
        if null is not None:
            label = int(right(np.array([null]))[0])
            np.moveaxis(mask, axis, 0)[label] = mask.max(axis=axis)
    return mask

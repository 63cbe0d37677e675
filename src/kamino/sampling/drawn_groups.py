"""Ids of groups of rows: how large groups are, from a noisy histogram of sizes, and groups drawn like that.

The number of rows is known well and the sizes are not: of 94 patients with 111 rows each, noise of 30 groups in a cell
says little about how many have one row. So the histogram is read with the number of rows in mind: cells that stand out
of the noise say what they say, and the rows that these leave belong to groups of log-normal sizes, those that come
closest to the other cells. Groups of more rows than there are, or noise that would make up too many rows, fall away.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kamino.arrays import FloatArray, IntArray, distinct
from kamino.constraints import ConstraintClass, DenialConstraint, classify
from kamino.constraints.analysis.classify import dependency_of
from kamino.errors import SamplingError
from kamino.sampling.codes.comparing import Mask
from kamino.schema import Codec

# A cell of sizes that is so many deviations off the smooth distribution says more than that.
_STANDS_OUT = 3.0
# Medians and spreads of log-normal sizes that are tried: each half a cell, from one size only to any.
_MEDIANS = 96
_NOTHING = 1e-100
_SPREADS = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3, 1.6, 2.0, 2.5)


@dataclass(frozen=True, kw_only=True)
class GroupSizes:
    """How many rows groups have: cells of sizes, each with its first and last, and the share of groups in each.

    Every field may be published.
    """

    cells: tuple[tuple[int, int], ...]
    shares: tuple[float, ...]

    def __post_init__(self) -> None:
        firsts, lasts = [first for first, _ in self.cells], [last for _, last in self.cells]
        ends_meet = firsts[:1] == [1] and firsts[1:] == [last + 1 for last in lasts[:-1]]
        fits = len(self.cells) == len(self.shares) and ends_meet and all(f <= e for f, e in self.cells)
        if not fits or not all(0 <= share <= 1 for share in self.shares) or not math.isclose(sum(self.shares), 1.0):
            raise SamplingError("sizes of groups must be cells from 1 on, without gaps, with shares that sum to 1.")

    @property
    def mean(self) -> float:
        """The mean number of rows of a group."""
        return float(np.dot(_middles(self.cells), self.shares))


def estimate_sizes(noisy: IntArray, cells: Sequence[tuple[int, int]], *, sigma: float, num_rows: float) -> GroupSizes:
    """Return sizes of groups that have about `num_rows` rows in all, and come close to a noisy histogram.

    Without noise, the shares are those of the histogram.

    Guarantees:
        Sizes of many groups, and one size of few groups, are found.  [test_sizes_of_groups_are_found]
    """
    middles, counts = _middles(cells), np.asarray(noisy, dtype=np.float64)
    possible = np.array([first for first, _ in cells]) <= max(1.0, num_rows)
    counts = np.where(possible, counts, 0.0)
    if sigma > 0:
        counts = _read(counts, middles, possible, sigma, max(1.0, num_rows))
    counts = np.maximum(counts, 0.0)
    if counts.sum() <= 0:
        counts = np.eye(1, len(cells))[0]
    shares = counts / counts.sum()
    return GroupSizes(cells=tuple(cells), shares=tuple(shares.tolist()))


def _read(counts: FloatArray, middles: FloatArray, possible: Mask, sigma: float, num_rows: float) -> FloatArray:
    """Numbers of groups with so many rows in all: of cells that stand out what they say, of others a smooth curve.

    The curve has all rows, or those that the clear cells leave, whichever comes closer to the counts in the end.
    """
    whole = _closest_smooth(counts, middles, possible, num_rows)
    clear = np.abs(counts - whole) > _STANDS_OUT * sigma
    left = max(0.0, num_rows - float(middles[clear] @ np.maximum(counts[clear], 0.0)))
    rest = _closest_smooth(np.where(clear, 0.0, counts), middles, possible & ~clear, left)
    found = [_with_rows(np.where(clear, counts, smooth), middles, num_rows) for smooth in (whole, rest)]
    return min(found, key=lambda each: float(((each - counts) ** 2).sum()))


def _closest_smooth(counts: FloatArray, middles: FloatArray, possible: Mask, num_rows: float) -> FloatArray:
    """The log-normal sizes with so many rows in all that come closest to the counts."""
    logs = np.log(middles)
    best, least = np.zeros_like(counts), math.inf
    if not possible.any():
        return best
    medians = np.concatenate([np.linspace(0.0, logs[possible].max(), _MEDIANS), logs[possible]])
    for spread in _SPREADS:
        # A spread of nothing is one cell: that of the median.
        far = np.abs(medians[:, None] - logs[None, :])
        weights = np.exp(-((far / spread) ** 2) / 2) if spread else (far == far.min(axis=1, keepdims=True)) * 1.0
        weights = np.where(possible, weights * _widths(middles), 0.0)
        rows = weights @ middles
        fitted = weights * np.divide(num_rows, rows, out=np.zeros_like(rows), where=rows > _NOTHING)[:, None]
        losses = ((fitted - counts) ** 2).sum(axis=1)
        place = int(np.argmin(losses))
        if losses[place] < least:
            best, least = fitted[place], float(losses[place])
    return best


def _widths(middles: FloatArray) -> FloatArray:
    """How wide cells are on the scale of logarithms, about."""
    logs = np.log(middles)
    widths: FloatArray = np.gradient(logs) if len(logs) > 1 else np.ones(1)
    return widths


def _with_rows(counts: FloatArray, middles: FloatArray, num_rows: float) -> FloatArray:
    """The counts nearest to `counts` that are not negative and have so many rows in all: projected by bisection.

    By the conditions of Karush, Kuhn and Tucker they are `max(0, counts - step * middles)` for one number `step`.
    """
    low = -(num_rows + np.abs(counts).max()) / middles.min()
    high = np.max(counts / middles)
    for _ in range(200):
        step = (low + high) / 2
        rows = float(np.maximum(counts - step * middles, 0.0) @ middles)
        low, high = (step, high) if rows > num_rows else (low, step)
    nearest: FloatArray = np.maximum(counts - low * middles, 0.0)
    return nearest


def _middles(cells: Sequence[tuple[int, int]]) -> FloatArray:
    return np.array([(first + last) / 2 for first, last in cells])


@dataclass(frozen=True, kw_only=True)
class GroupDrawer:
    """Draws the ids of groups for tables of any number of rows.

    `above` are the ids that each id determines: a visit belongs to one patient. `most` is the most rows that hard keys
    allow a group.

    Guarantees:
        An id that determines another does so in what is drawn.  [test_ids_that_determine_ids_do]
        No group has more rows than hard keys allow.  [test_a_key_with_an_id_is_kept]
    """

    sizes: Mapping[str, GroupSizes]
    num_groups: Mapping[str, int]
    above: Mapping[str, frozenset[str]]
    most: Mapping[str, int]

    @staticmethod
    def of(sizes: Mapping[str, GroupSizes], codec: Codec, constraints: Iterable[DenialConstraint]) -> GroupDrawer:
        """A drawer that keeps what hard constraints say of ids alone."""
        hard = [c for c in constraints if c.is_hard]
        return GroupDrawer(
            sizes=sizes,
            num_groups={name: codec[name].num_values for name in sizes},
            above=_ids_above(hard, sizes),
            most={name: _most_rows(hard, codec, name) for name in sizes},
        )

    def __call__(self, num_rows: int, rng: np.random.Generator) -> dict[str, IntArray]:
        """Draw a code for each row and id: rows of a group are together for the first id, and for those it is tied to.

        Ids that have nothing to do with it are dealt out at random.
        """
        found: dict[str, IntArray] = {}
        for place, tied in enumerate(self._tied()):
            order = rng.permutation(num_rows) if place else np.arange(num_rows)
            starts: dict[str, IntArray] = {}
            for name in tied:
                sizes = _draw_sizes(self.sizes[name], num_rows, self.most[name], rng)
                own = np.cumsum(sizes) - sizes
                starts[name] = distinct(own, *(starts[each] for each in self.above[name]))
                codes = np.searchsorted(starts[name], np.arange(num_rows), side="right") - 1
                found[name] = (codes % self.num_groups[name])[order]
        return found

    def _tied(self) -> list[list[str]]:
        """Ids that determine each other together, each after all that it determines."""
        left, parts = list(self.sizes), []
        while left:
            tied = {left[0]}
            while more := {n for n in left if n not in tied and (self.above[n] & tied or _below(self.above, tied, n))}:
                tied |= more
            parts.append(sorted((n for n in left if n in tied), key=lambda name: len(self.above[name])))
            left = [name for name in left if name not in tied]
        return parts


def _below(above: Mapping[str, frozenset[str]], names: set[str], name: str) -> bool:
    return any(name in above[each] for each in names)


def _ids_above(hard: Sequence[DenialConstraint], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """For each id, all ids that it determines, directly or by others; of two that determine each other, one does."""
    ids = list(names)
    direct = {name: set[str]() for name in ids}
    for constraint in hard:
        dependency = dependency_of(constraint)
        if dependency is not None and len(dependency.left) == 1:
            (left,) = dependency.left
            if left in direct and dependency.right in direct:
                direct[left].add(dependency.right)
    found = {}
    for name in ids:
        reached, new = set[str](), {name}
        while new:
            reached |= new
            new = {other for each in new for other in direct[each]} - reached
        found[name] = frozenset(reached - {name})
    return found


def _most_rows(hard: Sequence[DenialConstraint], codec: Codec, name: str) -> int:
    """The most rows of a group: a key over the id and other attributes has as many combinations of these."""
    most = 1 << 62
    for constraint in hard:
        if classify(constraint) is ConstraintClass.KEY and name in constraint.attributes:
            others = [codec[each] for each in constraint.attributes if each != name]
            if all(each.null_code is None for each in others):
                most = min(most, math.prod(each.num_values for each in others))
    return most


def _draw_sizes(sizes: GroupSizes, num_rows: int, most: int, rng: np.random.Generator) -> IntArray:
    """Draw sizes of groups that have exactly `num_rows` rows in all: spread evenly over the cells, the last one cut."""
    found: list[IntArray] = []
    left = num_rows
    cumulative = np.cumsum(sizes.shares)
    firsts = np.array([first for first, _ in sizes.cells], dtype=np.int64)
    lasts = np.array([last for _, last in sizes.cells], dtype=np.int64)
    while left > 0:
        groups = max(1, math.ceil(left / min(sizes.mean, float(most))))
        points = (rng.permutation(groups) + rng.random()) / groups
        cells = np.minimum(np.searchsorted(cumulative, points * cumulative[-1], side="right"), len(firsts) - 1)
        drawn = np.minimum(rng.integers(firsts[cells], lasts[cells] + 1), most)
        kept = drawn[np.cumsum(drawn) - drawn < left]
        kept[-1] = min(kept[-1], left - int(kept[:-1].sum()))
        found.append(kept)
        left -= int(kept.sum())
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)

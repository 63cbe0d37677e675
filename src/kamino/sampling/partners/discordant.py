"""Counting the rows that two orders put differently: for each candidate, those before in one and behind in the other.

Take `not (t1.g = t2.g and t1.x < t2.x and t1.y > t2.y)` while y is drawn. The places of rows by x in their groups never
change, so they are found once. By y, the rows of a group have ranks. What a candidate clashes with are differences of

    D(p, r) = how many rows of the group have a place below p and a rank below r,

and the rows form a permutation, so that D needs one table over chunks of places and chunks of ranks, and a look at the
two chunks that p and r cut: about the square root of the group instead of all of it, whatever the domains are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from kamino.arrays import FloatArray, IntArray, stable_order
from kamino.constraints import DenialConstraint
from kamino.constraints.counting.conjunction import Cross, conjunction_of
from kamino.constraints.tree import Operator
from kamino.sampling.codes.comparing import Columns, Judge, Mask
from kamino.sampling.codes.grouping import join_keys
from kamino.sampling.partners.block import Block
from kamino.sampling.partners.kernel import Kernel
from kamino.schema.coding.joint_codes import MOST_NUMBERS, distinct_values

# Chunks are words of eight flags. The smallest are taken whose table has at most so many cells a row.
_CHUNKS = (8, 16, 32, 64, 128, 256, 512, 1024)
_CELLS_A_ROW = 12
# So many comparisons with members of chunks at once; they stay in the processor's cache.
_AT_ONCE = 1 << 19
# Boundaries of ranks stand in a table of at most so many numbers a row, and are looked up among sorted ones elsewhere.
_BOUNDS_A_ROW = 4
_NOBODY = np.iinfo(np.int32).max

_Ranks = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Discordance:
    """Rows of one group clash if x is less (or equal) and y is greater (or equal), where at least one is strict.

    With `falling`, y is read from the other end: rows clash if both are less.
    """

    groups: tuple[str, ...]
    other: str
    strict_other: bool
    strict_own: bool
    falling: bool


def discordance_of(constraint: DenialConstraint, attribute: str) -> Discordance | None:
    """Read a constraint as a discordance of `attribute` and one other, within groups; None if it is something else."""
    found = _discordance(constraint, attribute)
    return None if found is None or attribute in found[1].groups else found[1]


def regrouping_of(constraint: DenialConstraint, attribute: str) -> tuple[str, Discordance] | None:
    """Read a constraint as a discordance of two others within groups by `attribute`; with y, which `other` is not."""
    found = _discordance(constraint, attribute)
    return None if found is None or attribute not in found[1].groups else found


def _discordance(constraint: DenialConstraint, attribute: str) -> tuple[str, Discordance] | None:
    """Which attribute is y, and the discordance; y is `attribute`, unless that is one of the groups."""
    if constraint.is_unary:
        return None
    conjunction = conjunction_of(constraint)
    crosses = conjunction.cross
    if conjunction.never or conjunction.left or conjunction.right or not conjunction.both_ways().never:
        return None
    if any(cross.op is None or cross.left != cross.right for cross in crosses):
        return None
    orders = [cross for cross in crosses if cross.op is not None and cross.op.is_order]
    keys = tuple(cross.left for cross in crosses if cross.op is Operator.EQ)
    if len(orders) != 2 or len(keys) + 2 != len(crosses):
        return None
    other, own = sorted(orders, key=lambda cross: cross.left == attribute)
    shape = Discordance(
        groups=keys,
        other=other.left,
        strict_other=_is_strict(other),
        strict_own=_is_strict(own),
        falling=_is_less(other) == _is_less(own),
    )
    return own.left, shape


def _is_strict(cross: Cross) -> bool:
    return cross.op in (Operator.LT, Operator.GT)


def _is_less(cross: Cross) -> bool:
    return cross.op in (Operator.LT, Operator.LE)


class Discordant(Kernel):
    """All rows of a block at once are counted by chunks; one row after the other by the kernels.

    Guarantees:
        Counts are those of the kernels.  [test_chunks_count_as_kernels_do]
    """

    def __init__(
        self, constraint: DenialConstraint, judge: Judge, attribute: str, columns: Columns, shape: Discordance
    ) -> None:
        super().__init__(constraint, judge, attribute, columns)
        self._shape = shape

    @cached_property
    def _grid(self) -> _Grid:
        return _Grid.of(self._judge, self._columns, self._shape)

    def of_block(self, block: Block) -> FloatArray:
        """Count for all rows at once."""
        candidates = np.maximum(block.candidates, 0)
        found = self._grid.count(self._keys(block.column()), block.rows, self._keys(candidates))
        if not self._shape.strict_other:
            found -= self._with_itself(block, candidates)
        return found.astype(np.float64)

    def _keys(self, codes: IntArray) -> IntArray:
        """Numbers from 0 on in the order in which a clash asks for the lower one; -1 for none."""
        codec = self._judge.codec[self._attribute]
        keys = np.where(codes >= 0, codec.order_keys(np.maximum(codes, 0)), -1)
        return np.where(keys >= 0, codec.size - 1 - keys, -1) if self._shape.falling else keys

    def _with_itself(self, block: Block, candidates: IntArray) -> Mask:
        rows = {name: codes[block.rows][:, None] for name, codes in self._columns.items()}
        itself = rows | {self._attribute: np.maximum(block.inside, 0)[:, None]}
        clash = self._judge.clashes(self._constraint, rows | {self._attribute: candidates}, itself)
        return np.asarray(clash & (block.inside >= 0)[:, None])


class Regrouped(Kernel):
    """The same where the drawn column says which group a row is in: places and ranks are found for each block.

    Guarantees:
        Counts are those of the kernels.  [test_chunks_count_as_kernels_do_where_groups_are_drawn]
    """

    def __init__(
        self, constraint: DenialConstraint, judge: Judge, attribute: str, columns: Columns, y: str, shape: Discordance
    ) -> None:
        super().__init__(constraint, judge, attribute, columns)
        self._shape, self._size, self._null = shape, judge.codec[attribute].size, judge.codec[attribute].null_code
        self._x = judge.codec[shape.other].order_keys(columns[shape.other])
        keys = judge.codec[y].order_keys(columns[y])
        self._y = np.where(keys >= 0, judge.codec[y].size - 1 - keys, -1) if shape.falling else keys
        others = [name for name in shape.groups if name != attribute]
        self._able = (self._x >= 0) & (self._y >= 0)
        for name in others:
            self._able &= ~judge.is_null(name, columns[name])
        self._others = join_keys([columns[name] for name in others]) if others else np.zeros_like(self._x)
        self._fits = (int(self._others.max(initial=0)) + 1) * self._size <= MOST_NUMBERS

    def of_block(self, block: Block) -> FloatArray:
        """Count for all rows at once."""
        column = block.column()
        there = np.flatnonzero(self._able & (column >= 0) & (column != self._null if self._null is not None else True))
        if not self._fits or len(there) == 0:
            return super().of_block(block)
        values, group = distinct_values(self._others[there] * self._size + column[there])
        asked = self._others[block.rows][:, None] * self._size + np.maximum(block.candidates, 0)
        known = np.minimum(np.searchsorted(values, asked), len(values) - 1)
        clashing = (values[known] == asked) & self._able[block.rows][:, None]
        if self._null is not None:
            clashing &= block.candidates != self._null
        line, place = np.nonzero(clashing)
        grid = _Grid.arranged(self._x[there], group, np.arange(len(there)), self._shape)
        found = np.zeros(block.candidates.shape)
        found[line, place] = self._between(grid, self._y[there], there, block.rows[line], known[line, place])
        return found

    def _between(self, grid: _Grid, y: IntArray, there: IntArray, rows: IntArray, groups: IntArray) -> IntArray:
        """With how many rows that are there each of some rows clashes in a group."""
        ranked, number = _Ranked.of(grid, y), grid.number[groups]
        by_x, _ = _Bounds.of(grid.group, self._x[there], len(grid.chunks))
        below, up_to = by_x.ranks(number, self._x[rows])
        first, last = (up_to, below) if self._shape.strict_other else (below, up_to)
        found, at_once = np.empty(len(rows), dtype=np.int64), max(1, _AT_ONCE // grid.size)
        for begin in range(0, len(rows), at_once):
            some = slice(begin, begin + at_once)
            keys = self._y[rows[some]][:, None]
            found[some] = ranked.between(number[some], (first[some], last[some]), keys)[:, 0]
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class _Grid:
    """Places of rows in their groups, and the chunks of these: what does not change while a column is drawn.

    Groups are numbered anew (`number`) by their chunks, so that tables of one shape stand together. A row that can
    clash with nobody has the place -1. `first` and `last` are how many places of its group lie before a row that would
    clash in one direction, and before those that would in the other.
    """

    size: int
    number: IntArray
    group: IntArray
    place: IntArray
    first: IntArray
    last: IntArray
    chunks: IntArray
    strict_own: bool

    @staticmethod
    def of(judge: Judge, columns: Columns, shape: Discordance) -> _Grid:
        """Order the rows by what is there already."""
        x = judge.codec[shape.other].order_keys(columns[shape.other])
        able = x >= 0
        for name in shape.groups:
            able &= ~judge.is_null(name, columns[name])
        group = np.zeros(len(x), dtype=np.int64)
        rows = np.flatnonzero(able)
        if shape.groups:
            group[rows] = join_keys([columns[name][rows] for name in shape.groups])
        return _Grid.arranged(x, group, rows, shape)

    @staticmethod
    def arranged(x: IntArray, group: IntArray, rows: IntArray, shape: Discordance) -> _Grid:
        """Order some rows by x in groups that are numbered from 0."""
        members = np.bincount(group[rows], minlength=1)
        size = _chunk_size(members)
        by_chunks = np.argsort(-(-members // size), kind="stable")
        number = np.empty_like(by_chunks)
        number[by_chunks] = np.arange(len(by_chunks))
        group, members = number[group], members[by_chunks]
        order = rows[stable_order(group[rows], x[rows])]
        ties = np.append(True, (np.diff(x[order]) != 0) | (np.diff(group[order]) != 0))[: len(order)]
        inside = np.arange(len(order)) - np.repeat(np.cumsum(members) - members, members)
        begin = np.flatnonzero(ties)
        lengths = np.diff(np.append(begin, len(order)))
        place, before, after = (np.full(len(x), -1, dtype=np.int64) for _ in range(3))
        place[order] = inside
        before[order] = np.repeat(inside[begin], lengths)
        after[order] = np.repeat(inside[begin] + lengths, lengths)
        first, last = (after, before) if shape.strict_other else (before, after)
        chunks = -(-members // size)
        return _Grid(
            size=size,
            number=number,
            group=group,
            place=place,
            first=first,
            last=last,
            chunks=chunks,
            strict_own=shape.strict_own,
        )

    @cached_property
    def _first_chunk(self) -> IntArray:
        return np.asarray(np.cumsum(self.chunks) - self.chunks)

    @cached_property
    def _first_cell(self) -> IntArray:
        cells = (self.chunks + 1) ** 2
        return np.asarray(np.cumsum(cells) - cells)

    def count(self, keys: IntArray, rows: IntArray, candidates: IntArray) -> IntArray:
        """Return with how many rows of the column `keys` each candidate of some rows clashes; -1 stands for nobody."""
        found = np.zeros(candidates.shape, dtype=np.int64)
        asking = np.flatnonzero(self.place[rows] >= 0)
        ranked = _Ranked.of(self, keys)
        at_once = max(1, _AT_ONCE // max(1, candidates.shape[1] * self.size))
        for begin in range(0, len(asking), at_once):
            some = asking[begin : begin + at_once]
            found[some] = ranked.count(rows[some], candidates[some])
        found[candidates < 0] = 0
        return found


@dataclass(frozen=True, kw_only=True, eq=False)
class _Ranked:
    """A column over a grid: ranks by chunks of places, places by chunks of ranks, and the table of both."""

    grid: _Grid
    bounds: _Bounds
    ranks: _Ranks
    places: _Ranks
    table: _Ranks

    @staticmethod
    def of(grid: _Grid, keys: IntArray) -> _Ranked:
        """Rank the rows of each group that have a value."""
        there = np.flatnonzero((keys >= 0) & (grid.place >= 0))
        group, place = grid.group[there], grid.place[there]
        bounds, rank = _Bounds.of(group, keys[there], len(grid.chunks))
        size, first = grid.size, grid._first_chunk[group] * grid.size
        length = (int(grid.chunks.sum()) + 1) * size
        ranks, places = (np.full(length, _NOBODY, dtype=np.int32) for _ in range(2))
        ranks[first + place] = rank
        places[first + rank] = place
        width = grid.chunks[group] + 1
        cell = grid._first_cell[group] + (place // size + 1) * width + rank // size + 1
        table = np.bincount(cell, minlength=int(((grid.chunks + 1) ** 2).sum())).astype(np.int32)
        _add_up(table, grid.chunks + 1)
        shape = (-1, size)
        return _Ranked(grid=grid, bounds=bounds, ranks=ranks.reshape(shape), places=places.reshape(shape), table=table)

    def count(self, rows: IntArray, candidates: IntArray) -> IntArray:
        """Count for candidates of some rows that have a place."""
        grid = self.grid
        return self.between(grid.group[rows], (grid.first[rows], grid.last[rows]), candidates)

    def between(self, group: IntArray, places: tuple[IntArray, IntArray], keys: IntArray) -> IntArray:
        """Count for keys of y in groups, where the places before (and from) which rows clash are known."""
        below, up_to = self.bounds.ranks(group[:, None], keys)
        front, behind = (below, up_to) if self.grid.strict_own else (up_to, below)
        every = self.bounds.members[group][:, None]
        last = self._dominated(group, places[1], np.concatenate([behind, every], axis=1))
        return front - self._dominated(group, places[0], front) + last[:, -1:] - last[:, :-1]

    def _dominated(self, group: IntArray, place: IntArray, rank: IntArray) -> IntArray:
        """Count the rows of groups below a place and below each of some ranks."""
        grid = self.grid
        chunk, inside = np.divmod(place, grid.size)
        of_rank, cut = np.divmod(rank, grid.size)
        each = np.arange(grid.size, dtype=np.int64)
        first = grid._first_chunk[group]
        before = np.where(each < inside[:, None], self.ranks[first + chunk], _NOBODY)
        found = self.table[(grid._first_cell[group] + chunk * (grid.chunks[group] + 1))[:, None] + of_rank]
        in_places = before[:, None, :] < rank.astype(np.int32)[:, :, None]
        members = self.places.take((first[:, None] + of_rank).ravel(), axis=0).reshape(in_places.shape)
        in_ranks = members < (chunk * grid.size).astype(np.int32)[:, None, None]
        in_ranks &= each.astype(np.int32) < cut.astype(np.int32)[:, :, None]
        return np.asarray(found + _count_flags(in_places) + _count_flags(in_ranks))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Bounds:
    """Where the ranks of each value begin: in a table of all groups and values, or among the sorted ones."""

    members: IntArray
    first: IntArray
    width: int
    values: IntArray | None
    starts: IntArray | None
    ordered: IntArray

    @staticmethod
    def of(group: IntArray, keys: IntArray, num_groups: int) -> tuple[_Bounds, IntArray]:
        """Sort rows by group and key; return the bounds, and the rank of each row in its group."""
        values, width = None, int(keys.max(initial=-1)) + 1
        if num_groups * width > _BOUNDS_A_ROW * len(keys) + 1024:
            values, keys = distinct_values(keys)
            width = len(values)
        joined = group * max(width, 1) + keys
        order = stable_order(joined)
        members = np.bincount(group, minlength=num_groups)
        first = np.cumsum(members) - members
        rank = np.empty(len(keys), dtype=np.int64)
        rank[order] = np.arange(len(keys)) - np.repeat(first, members)
        starts = None
        if num_groups * width <= _BOUNDS_A_ROW * len(keys) + 1024:
            starts = np.append(0, np.cumsum(np.bincount(joined, minlength=num_groups * width)))
        bounds = _Bounds(members=members, first=first, width=width, values=values, starts=starts, ordered=joined[order])
        return bounds, rank

    def ranks(self, group: IntArray, keys: IntArray) -> tuple[IntArray, IntArray]:
        """Return how many rows of the groups have a lower key, and how many a lower or equal one."""
        if self.values is None:
            below, up_to = np.clip(keys, 0, self.width), np.clip(keys + 1, 0, self.width)
        else:
            below, up_to = (np.searchsorted(self.values, keys, side=side) for side in ("left", "right"))
        return self._start(group, below), self._start(group, up_to)

    def _start(self, group: IntArray, key: IntArray) -> IntArray:
        wanted = group * self.width + key
        begin = self.starts[wanted] if self.starts is not None else np.searchsorted(self.ordered, wanted)
        return np.asarray(begin - self.first[group])


def _chunk_size(members: IntArray) -> int:
    """The smallest chunks whose table stays in proportion to the rows."""
    most = _CELLS_A_ROW * int(members.sum()) + 1024
    for size in _CHUNKS:
        if int(((-(-members // size) + 1) ** 2).sum()) <= most:
            return size
    return _CHUNKS[-1]


def _add_up(table: _Ranks, widths: IntArray) -> None:
    """Turn counts into running sums in both directions, in square tables of ascending widths that stand together."""
    begin = 0
    for width, number in zip(*np.unique(widths, return_counts=True), strict=True):
        end = begin + int(number) * int(width) ** 2
        part = table[begin:end].reshape(-1, int(width), int(width))
        np.cumsum(part, axis=2, out=part)
        np.cumsum(part, axis=1, out=part)
        begin = end


def _count_flags(flags: Mask) -> IntArray:
    """Count the flags of each line of a multiple of eight: eight at a time, as the bytes of one word."""
    words = flags.view(np.uint64)
    total = words[..., 0].copy()
    for place in range(1, words.shape[-1]):
        total += words[..., place]
    half = np.uint64(0x00FF00FF00FF00FF)
    pairs = (total & half) + ((total >> np.uint64(8)) & half)
    return np.asarray(((pairs * np.uint64(0x0001000100010001)) >> np.uint64(48)).astype(np.int64))

"""What the rows of all blocks of a long table must agree on, fixed by the first block.

A table that is too long to be drawn at once is drawn block by block. The first block is drawn as any table, and then
taken for the world: of a dependency X -> y, a row of a later block may only have an X that occurs there, with its y; of
an order of y along x in groups, y may only lie between what the first block has for this x and this group. Where x does
not occur, all rows take the largest y below it. Rows that fit the world break no dependency and no order with each
other, whatever block they are in: equal X have one y, and bounds rise with x and do not overlap. Nulls are free, for
they break nothing. Checks hold for each row by itself. A row that does not fit takes the value that a row of the first
block has beside the same others; where there is none it becomes a copy of a row that fits.

What no world can say (uniqueness, constraints of other shapes, soft constraints on pairs) keeps a table from being
drawn in blocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kamino.arrays import IntArray, stable_order
from kamino.constraints import DenialConstraint, print_constraint
from kamino.constraints.tree import Kind
from kamino.sampling.codes.comparing import Columns, Judge, Mask
from kamino.sampling.codes.grouping import join_keys, match_at_random
from kamino.sampling.partners.block import DEAD
from kamino.sampling.plan.reference_maps import ReferenceMap
from kamino.sampling.plan.sampling_plan import SamplingPlan, Step
from kamino.sampling.plan.shapes import Order, order_of, shape_of
from kamino.schema.coding.joint_codes import number_combinations, number_values

#: Rows of the first block that are kept in all columns, to be copied where a block finds no row that fits.
MOST_WHOLE = 1_000


def why_not_closed(constraints: Iterable[DenialConstraint]) -> str | None:
    """Say which constraint keeps a table from being drawn in blocks, by its shape; None if there is none."""
    for constraint in constraints:
        soft = constraint.strength.kind is not Kind.HARD
        fits = constraint.is_unary or (not soft and _shape(constraint) is not None)
        if not fits:
            return f"{print_constraint(constraint)} binds all rows together"
    return None


def _shape(constraint: DenialConstraint, later: str | None = None) -> object | None:
    """The dependency or the order that a constraint states; None where it states something else."""
    dependency = shape_of(constraint)[1]
    if dependency is not None:
        return dependency
    names = constraint.attributes if later is None else (later,)
    return next((order for name in names if (order := order_of(constraint, name)) is not None), None)


@dataclass(frozen=True, kw_only=True, eq=False)
class Bounds:
    """Of an order, the codes of the least and the largest y for each x of each group that occurs."""

    order: Order
    groups: Mapping[str, IntArray]
    heights: IntArray
    low: IntArray
    high: IntArray

    @staticmethod
    def of(judge: Judge, columns: Columns, order: Order) -> Bounds:
        """Read the bounds off a table that keeps the order."""
        names = sorted(order.groups)
        there = np.logical_and.reduce([~judge.is_null(n, columns[n]) for n in (*names, order.earlier, order.later)])
        rows = np.flatnonzero(there)
        group = _group_keys([columns[name][rows] for name in names], len(rows))
        height = judge.codec[order.earlier].order_keys(columns[order.earlier][rows])
        y = columns[order.later][rows]
        place = stable_order(group, height, _rank(judge, order, y))
        new = np.ones(len(place), dtype=np.bool_)
        new[1:] = (np.diff(group[place]) != 0) | (np.diff(height[place]) != 0)
        first = np.flatnonzero(new)
        last = np.append(first[1:], len(place)) - 1
        kept = place[first]
        return Bounds(
            order=order,
            groups={name: columns[name][rows][kept] for name in names},
            heights=height[kept],
            low=y[kept],
            high=y[place[last[last >= 0]]] if len(place) else y[:0],
        )

    def clamp(self, judge: Judge, columns: Columns, codes: IntArray) -> IntArray:
        """Bring the codes of y within their bounds; `DEAD` for a group that does not occur. Nulls stay.

        Guarantees:
            Codes of different blocks keep the order together.  [test_bounds_of_blocks_keep_the_order]
        """
        order = self.order
        names = sorted(order.groups)
        bound = np.logical_and.reduce([~judge.is_null(n, columns[n]) for n in (*names, order.earlier)])
        rows = np.flatnonzero(bound & (codes != DEAD) & ~judge.is_null(order.later, np.maximum(codes, 0)))
        low, high = self._find({n: columns[n][rows] for n in (*names, order.earlier)}, judge)
        own = codes[rows]
        rank, least, most = (_rank(judge, order, np.maximum(each, 0)) for each in (own, low, high))
        fitted = np.where(low == DEAD, DEAD, np.where(rank < least, low, np.where(rank > most, high, own)))
        result: IntArray = codes.copy()
        result[rows] = fitted
        return result

    def _find(self, columns: Columns, judge: Judge) -> tuple[IntArray, IntArray]:
        """The bounds of rows: those of their x, or the largest y below it, or the least of all."""
        known = len(self.heights)
        own = judge.codec[self.order.earlier].order_keys(columns[self.order.earlier])
        names = sorted(self.groups)
        total = known + len(own)
        group = _group_keys([np.concatenate([self.groups[name], columns[name]]) for name in names], total)
        height, size = number_values(np.concatenate([self.heights, own]))
        joint, _ = number_combinations([group, height], [int(group.max(initial=0)) + 1, max(size, 1)])
        sorter = np.argsort(joint[:known], kind="stable")
        place = np.searchsorted(joint[:known], joint[known:], side="right", sorter=sorter) - 1
        if known == 0:
            nothing = np.full(len(own), DEAD, dtype=np.int64)
            return nothing, nothing
        below, above = sorter[np.maximum(place, 0)], sorter[np.minimum(place + 1, known - 1)]
        mine = group[known:]
        has_below = (place >= 0) & (group[:known][below] == mine)
        has_above = (place + 1 < known) & (group[:known][above] == mine)
        exact = has_below & (joint[:known][below] == joint[known:])
        outside = np.where(has_above, self.low[above], DEAD)
        low = np.where(exact, self.low[below], np.where(has_below, self.high[below], outside))
        high = np.where(has_below, self.high[below], outside)
        return low, high


@dataclass(frozen=True, kw_only=True, eq=False)
class ClosedWorld:
    """The maps and bounds of a first block, by the attribute whose step they end at. Public, as what was drawn.

    `rows` are the columns that these were read off, and `whole` some rows of the first block in all columns.
    """

    maps: Mapping[str, tuple[ReferenceMap, ...]]
    bounds: Mapping[str, tuple[Bounds, ...]]
    rows: Columns
    whole: Columns

    @property
    def references(self) -> dict[tuple[tuple[str, ...], str], ReferenceMap]:
        """The maps as steps follow them."""
        return {(each.left, each.right): each for found in self.maps.values() for each in found}

    def settle(self, judge: Judge, step: Step, columns: Columns, codes: IntArray, rng: np.random.Generator) -> IntArray:
        """Bring a drawn column into the world; where a row does not fit, take a value that it has beside equal others.

        `DEAD` remains where no row of the world has the values that constraints compare.

        Guarantees:
            Cycles of dependencies keep together in blocks.  [test_cycles_keep_together_in_blocks]
        """
        fitted = self.fit(judge, step, columns, codes)
        lost = np.flatnonzero(fitted == DEAD)
        names = sorted({n for c in step.constraints for n in c.attributes} - {step.attribute})
        if len(lost) == 0 or not names:
            return fitted
        own = {name: codes_of[lost] for name, codes_of in columns.items()}
        known = len(self.rows[step.attribute])
        keys = join_keys([np.concatenate([self.rows[name], own[name]]) for name in names])
        found = match_at_random(keys[:known], keys[known:], rng)
        taken = self.fit(judge, step, own, np.where(found >= 0, self.rows[step.attribute][found], DEAD))
        here = {**own, step.attribute: np.maximum(taken, 0)}
        for check in step.checks:
            taken = np.where(judge.violates(check, here, here), DEAD, taken)
        fitted[lost] = taken
        return fitted

    def fit(self, judge: Judge, step: Step, columns: Columns, codes: IntArray) -> IntArray:
        """Bring a drawn column into the world; `DEAD` where a row does not fit.

        Guarantees:
            Rows of different blocks break no hard constraint together.  [test_blocks_keep_all_constraints_together]
        """
        for bounds in self.bounds.get(step.attribute, ()):
            codes = bounds.clamp(judge, columns, codes)
        alive: Mask = codes != DEAD
        here = {**columns, step.attribute: np.maximum(codes, 0)}
        for each in self.maps.get(step.attribute, ()):
            alive &= ~_contradicts(judge, each, here)
        if self.bounds.get(step.attribute):
            for check in step.checks:
                alive &= ~judge.violates(check, here, here)
        return np.where(alive, codes, DEAD)


def close_world(judge: Judge, plan: SamplingPlan, columns: Columns, first: Columns) -> ClosedWorld:
    """Take a table that keeps the hard constraints of a plan for the world; `first` is the block it was made of."""
    maps: dict[str, list[ReferenceMap]] = {}
    bounds: dict[str, list[Bounds]] = {}
    for step in plan.steps:
        for constraint in step.constraints:
            dependency = shape_of(constraint)[1]
            if dependency is not None:
                made = _map_of(judge, columns, tuple(sorted(dependency.left)), dependency.right)
                maps.setdefault(step.attribute, []).append(made)
                continue
            order = order_of(constraint, step.attribute)
            assert order is not None, "steps of other shapes are not drawn in blocks"
            bounds.setdefault(step.attribute, []).append(Bounds.of(judge, columns, order))
    return ClosedWorld(
        maps={name: tuple(found) for name, found in maps.items()},
        bounds={name: tuple(found) for name, found in bounds.items()},
        rows=columns,
        whole={name: codes[:MOST_WHOLE] for name, codes in first.items()},
    )


def can_close(plan: SamplingPlan) -> bool:
    """Whether all hard constraints of a plan are such as a world can say, each seen from the step where it ends."""
    hard = ((step, c) for step in plan.steps for c in step.constraints if c.is_hard)
    return all(_shape(constraint, step.attribute) is not None for step, constraint in hard)


def _map_of(judge: Judge, columns: Columns, left: tuple[str, ...], right: str) -> ReferenceMap:
    """The right side of each left side that occurs."""
    rows = np.flatnonzero(np.logical_and.reduce([~judge.is_null(name, columns[name]) for name in (*left, right)]))
    keys = join_keys([columns[name][rows] for name in left])
    first = np.zeros(int(keys.max(initial=-1)) + 1, dtype=np.int64)
    first[keys] = rows
    return ReferenceMap(
        left=left,
        right=right,
        left_codes={name: columns[name][first] for name in left},
        right_codes=columns[right][first],
    )


def _contradicts(judge: Judge, each: ReferenceMap, columns: Columns) -> Mask:
    """Which rows have values on both sides that the map does not give."""
    there: Mask = np.logical_and.reduce([~judge.is_null(name, columns[name]) for name in (*each.left, each.right)])
    found: Mask = each.find({name: columns[name] for name in each.left}) != columns[each.right]
    return there & found


def _group_keys(columns: Sequence[IntArray], num_rows: int) -> IntArray:
    return join_keys(columns) if columns else np.zeros(num_rows, dtype=np.int64)


def _rank(judge: Judge, order: Order, codes: IntArray) -> IntArray:
    """Numbers that must rise with x."""
    key = judge.codec[order.later].order_keys(codes)
    return -key if order.falling else key

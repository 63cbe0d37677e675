"""The model of rows that meet a condition: P(row | each given attribute has one of its allowed codes).

The condition is carried back along the sequence. From the last attribute to the first, P(attribute | parents) is
multiplied by what later attributes say of it, and by the share of its own codes that are allowed; the sum over the
attribute is what it says of the earlier ones. Divided by that sum, the product is P(attribute | earlier, condition).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from kamino.arrays import distinct
from kamino.model.marginal.graph.elimination import Factor, multiply
from kamino.model.marginal.graph.factor import first_of_runs
from kamino.model.marginal.network import MarginalModel
from kamino.model.marginal.nodes import Coarse, Node, parents_of
from kamino.model.protocol import Cells, CodeMap, FloatArray, IntArray

# No table of a conditioned model gets larger than this.
MOST_CELLS = 20_000_000
# What a bin is worth whose allowed codes have no share: zeros of a model are estimates.
_NO_SHARE = 1e-12


def condition(model: MarginalModel, allowed: Mapping[str, IntArray]) -> MarginalModel | None:
    """Return the model of rows whose given attributes have an allowed code; None if a table would get too large.

    Where the model rules the condition out for a context, the attribute follows the context and its own codes alone.

    Guarantees:
        Equal to restricting the joint table.  [test_conditioned_models_match_brute_force]
    """
    factors, axis = model.factors()
    back = _Back(model=model, axis=axis, sizes=_sizes(factors))
    nodes = list(model.nodes)
    try:
        for i in range(len(nodes) - 1, -1, -1):
            nodes[i] = back.condition(nodes[i], allowed.get(nodes[i].attribute.name))
    except _TooLargeError:
        return None
    return replace(model, nodes=tuple(nodes))


class _TooLargeError(Exception):
    """A table would get too large."""


def _sizes(factors: Sequence[Factor]) -> dict[int, int]:
    return {a: size for axes, table in factors for a, size in zip(axes, table.shape, strict=True)}


@dataclass(kw_only=True, eq=False)
class _Back:
    """What later attributes say of earlier ones. Axes are those of `MarginalModel.factors`: groups even, bins odd."""

    model: MarginalModel
    axis: Mapping[str, int]
    sizes: Mapping[int, int]
    messages: list[Factor] = field(default_factory=list)

    def condition(self, node: Node, codes: IntArray | None) -> Node:
        """Return a node under the condition on it and on what comes after; and tell the earlier ones."""
        own = self.axis[node.attribute.name]
        bins = self.sizes[own]
        link: list[Factor] = []
        if node.groups is not None:
            link = [((own - 1, own), np.eye(self.sizes[own - 1])[:, node.groups])]
        if node.coarse is None and any(own - 1 in axes for axes, _ in self.messages):
            # What is said of the groups is said of the bins.
            about = self._taken(own - 1)
            self.messages.append(self._product([*about, *link], leave=(own - 1,)))
        if codes is None and not any(own in axes or own - 1 in axes for axes, _ in self.messages):
            return node
        cells, share = _restricted(node.cells, codes) if codes is not None else (node.cells, np.ones(bins))
        if node.coarse is None:
            table, before = self._settle(own, (node.parents, node.in_groups, node.table), [((own,), share)])
            parents, in_groups = self._names(before)
            return replace(node, cells=cells, parents=parents, in_groups=in_groups, table=table)
        if codes is not None or any(own in axes for axes, _ in self.messages):
            own_part = (node.parents, node.in_groups, node.table)
            table, before = self._settle(own, own_part, [((own,), share), *link], within=node.groups)
            parents, in_groups = self._names(before)
            node = replace(node, cells=cells, parents=parents, in_groups=in_groups, table=table)
        assert node.coarse is not None
        above = (node.coarse.parents, node.coarse.in_groups, node.coarse.table)
        table, before = self._settle(own - 1, above, [])
        parents, in_groups = self._names(before)
        return replace(node, coarse=Coarse(parents=parents, in_groups=in_groups, table=table))

    def _settle(
        self,
        own: int,
        part: tuple[Sequence[str], Sequence[bool], FloatArray],
        more: Sequence[Factor],
        within: IntArray | None = None,
    ) -> tuple[FloatArray, tuple[int, ...]]:
        """Return the table of one axis under the condition, and the axes of its lines; and tell the earlier ones."""
        about = self._taken(own)
        axes = (*(self.axis[p] - grouped for p, grouped in parents_of(part[0], part[1])), own)
        factors: list[Factor] = [(axes, part[2].reshape([self.sizes[a] for a in axes])), *more]
        named = {a for axes, _ in (*factors, *about) for a in axes} - {own}
        last = () if within is None else (own - 1,)
        before = tuple(sorted(named - set(last)))
        out = (*before, *last, own)
        if prod(self.sizes[a] for a in out) > MOST_CELLS:
            raise _TooLargeError
        spread: list[Factor] = [((a,), np.ones(self.sizes[a])) for a in out]
        shape = [self.sizes[a] for a in out]
        joint = multiply([*factors, *about, *spread], out).reshape(shape)
        alone = multiply([*factors, *spread], out).reshape(shape)
        if out != (own,):
            total = joint.sum(axis=-1)
            self.messages.append((out[:-1], total / max(float(total.max()), 1e-300)))
        size = self.sizes[own]
        if within is None:
            share = more[0][1] if more else np.ones(size)
            return _normalised(joint.reshape(-1, size), alone.reshape(-1, size), share), before
        joint, alone = (t.reshape(-1, self.sizes[own - 1], size)[:, within, np.arange(size)] for t in (joint, alone))
        return _normalised_within(joint, alone, more[0][1], within), before

    def _taken(self, axis: int) -> list[Factor]:
        """Take the messages about an axis."""
        about = [message for message in self.messages if axis in message[0]]
        self.messages = [message for message in self.messages if axis not in message[0]]
        return about

    def _product(self, factors: Sequence[Factor], leave: tuple[int, ...]) -> Factor:
        axes = tuple(sorted({a for axes, _ in factors for a in axes} - set(leave)))
        if prod(self.sizes[a] for a in (*axes, *leave)) > MOST_CELLS:
            raise _TooLargeError
        return axes, multiply(factors, axes)

    def _names(self, axes: Sequence[int]) -> tuple[tuple[str, ...], tuple[bool, ...]]:
        sequence = self.model.sequence
        return tuple(sequence[a // 2] for a in axes), tuple(a % 2 == 0 for a in axes)


def _normalised_within(joint: FloatArray, alone: FloatArray, share: FloatArray, groups: IntArray) -> FloatArray:
    """Divide each line by its sum in each group of columns; a group without any falls back as lines do."""
    starts = first_of_runs(groups)
    table = joint
    for other in (alone, np.broadcast_to(share, joint.shape), np.ones_like(joint)):
        table = np.where(np.add.reduceat(table, starts, axis=1)[:, groups] > 0, table, other)
    return np.asarray(table / np.add.reduceat(table, starts, axis=1)[:, groups])


def _normalised(joint: FloatArray, alone: FloatArray, share: FloatArray) -> FloatArray:
    """Divide each line by its sum; a line without any falls back on the attribute alone, then on its codes."""
    table = np.where(joint.sum(axis=1, keepdims=True) > 0, joint, alone)
    table = np.where(table.sum(axis=1, keepdims=True) > 0, table, share)
    total = table.sum(axis=1, keepdims=True)
    return np.asarray(table / np.where(total > 0, total, 1.0))


def _restricted(cells: Cells, codes: IntArray) -> tuple[Cells, FloatArray]:
    """Return cells in which only these codes have a share, and what part of each bin they are."""
    size = cells.map.size
    codes = distinct(codes)
    starts = distinct(cells.map.starts, codes, codes + 1)
    starts = starts[starts < size]
    run = np.searchsorted(cells.map.starts, starts, side="right") - 1
    width = np.diff(starts, append=size)
    labels = cells.map.labels[run]
    is_allowed = np.append(codes, -1)[np.searchsorted(codes, starts)] == starts
    share = np.where(is_allowed, cells.share[run] * width / cells.width[run], 0.0)
    part = np.bincount(labels, weights=share, minlength=cells.map.bins).astype(np.float64)
    # Codes that a model gives no share are allowed all the same, and share what is left of a bin.
    width_allowed = np.where(is_allowed, width, 0).astype(np.float64)
    count = np.bincount(labels, weights=width_allowed, minlength=cells.map.bins)
    even = width_allowed / np.maximum(count, 1)[labels]
    inside = np.where(part[labels] > 0, share / np.where(part > 0, part, 1.0)[labels], even)
    part = np.where((part == 0) & (count > 0), _NO_SHARE, part)
    code_map = CodeMap(size=size, bins=cells.map.bins, starts=starts, labels=labels)
    return Cells(map=code_map, width=width, share=inside), part

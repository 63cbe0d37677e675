"""The fitted model: one table P(attribute | parents) for each attribute of the sequence. Public facts only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kamino.errors import ModelError
from kamino.model.marginal.even_draws import draw_bins, draw_codes
from kamino.model.marginal.frequencies import count_frequencies
from kamino.model.marginal.graph.elimination import Factor, largest_table, sum_product
from kamino.model.marginal.maps.relative import Relative
from kamino.model.marginal.nodes import Node, parents_of
from kamino.model.parts import KnownMap
from kamino.model.protocol import (
    Conditional,
    FloatArray,
    IntArray,
    ModelAttribute,
    View,
    read,
)
from kamino.schema.coding.joint_codes import distinct_values, flatten_codes

#: Rows that are drawn to count marginals which no sum over the network gives.
COUNTED_ROWS = 200_000
#: Larger tables than this are not summed: half a gigabyte.
MOST_SUMMED = 1 << 26


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalModel:
    """A distribution of one row, as a network along a sequence of attributes.

    Guarantees:
        Holds what was released and what follows from it, nothing else.  [test_fit_depends_on_releases_only]
        Saving and loading keep every number.  [test_save_and_load_round_trip]
    """

    nodes: tuple[Node, ...]
    num_rows: float
    releases: tuple[tuple[str, float], ...] = ()
    maps: tuple[KnownMap, ...] = ()
    """Maps of dependencies that are known of every value, for whoever draws rows that keep them."""

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for node in self.nodes:
            if not set(node.all_parents) <= seen:
                raise ModelError(f"attribute {node.attribute.name!r} has a parent that comes after it.")
            seen.add(node.attribute.name)

    @property
    def sequence(self) -> tuple[str, ...]:
        """The attributes, in the order in which a row is filled."""
        return tuple(node.attribute.name for node in self.nodes)

    @property
    def attributes(self) -> tuple[ModelAttribute, ...]:
        """What the model knows of each attribute, along the sequence."""
        return tuple(node.attribute for node in self.nodes)

    @property
    def reads_codes(self) -> frozenset[str]:
        """The attributes of which other attributes' distributions read more than the bin."""
        return frozenset(name for node in self.nodes if node.relative is not None for name in node.reads)

    def node(self, attribute: str) -> Node:
        """Return the node of an attribute."""
        for node in self.nodes:
            if node.attribute.name == attribute:
                return node
        raise ModelError(f"the model has no attribute {attribute!r}. Attributes: {', '.join(self.sequence)}.")

    def parents(self, attribute: str) -> tuple[str, ...]:
        """Return the earlier attributes that `attribute` depends on."""
        node = self.node(attribute)
        needed = [*node.reads, *(name for parent in node.all_parents for name in self.node(parent).reads)]
        return tuple(dict.fromkeys(name for name in needed if name != attribute))

    def conditional(self, attribute: str, context: Mapping[str, IntArray], num_rows: int) -> Conditional:
        """Return P(attribute | earlier attributes) for rows whose parents' codes are in `context`."""
        node = self.node(attribute)
        lines, index = self._lines(node.parents, node.in_groups, context, num_rows)
        if node.relative is not None:
            return tilted(node, node.relative, lines, index, context)
        with np.errstate(divide="ignore"):
            log = np.log(node.table[lines])
        if node.coarse is not None and node.groups is not None:
            coarse, place = self._lines(node.coarse.parents, node.coarse.in_groups, context, num_rows)
            both, index = distinct_values(index * len(coarse) + place)
            with np.errstate(divide="ignore"):
                above = np.log(node.coarse.table[coarse])[:, node.groups]
            log = log[both // len(coarse)] + above[both % len(coarse)]
        return Conditional(attribute=attribute, context=index, log_prob=log, cells=node.cells)

    def _lines(
        self, parents: Sequence[str], in_groups: Sequence[bool], context: Mapping[str, IntArray], num_rows: int
    ) -> tuple[IntArray, IntArray]:
        """Return the lines of a table that rows need, and the place of each row's line among them."""
        if not parents:
            return np.zeros(1, dtype=np.int64), np.zeros(num_rows, dtype=np.int64)
        views = [self._parent_view(name, grouped) for name, grouped in parents_of(parents, in_groups)]
        bins = [read(view, name, context) for name, view in zip(parents, views, strict=True)]
        return distinct_values(flatten_codes(bins, [view.bins for view in views]))

    def _parent_view(self, name: str, grouped: bool) -> View:
        return self.node(name).grouped_view() if grouped else self.node(name).view

    def marginal(self, attributes: Sequence[str]) -> FloatArray:
        """Return the joint probabilities of the codes of `attributes`, one axis each."""
        joint = self.frequencies(attributes[0]) if len(attributes) == 1 else self.bin_marginal(attributes)
        for axis, name in enumerate(attributes):
            cells = self.node(name).cells
            codes = np.arange(cells.map.size, dtype=np.int64)
            share = np.exp(cells.log_share(codes))
            shape = [1] * joint.ndim
            shape[axis] = len(codes)
            joint = np.take(joint, cells.map(codes), axis=axis) * share.reshape(shape)
        return joint

    def bin_marginal(self, attributes: Sequence[str]) -> FloatArray:
        """Return the joint probabilities of the bins of `attributes`, one axis each.

        They are exact, unless an attribute is read relative to another, or sums would take much memory: then they are
        counted in drawn rows.
        """
        if any(node.relative is not None for node in self.nodes):
            return self._counted(attributes)
        factors, axis = self.factors()
        wanted = [axis[self.node(name).attribute.name] for name in attributes]
        if largest_table(factors, wanted) > MOST_SUMMED:
            return self._counted(attributes)
        return sum_product(factors, wanted)

    def frequencies(self, attribute: str) -> FloatArray:
        """Return the probability of each bin of an attribute: from cliques, or from its ancestors alone.

        Guarantees:
            Equals `bin_marginal`.  [test_frequencies_are_marginals]
        """
        if attribute not in self._frequencies:
            relative = any(node.relative is not None for node in self.nodes)
            marginal = self._counted if relative else self._upto(attribute).bin_marginal
            self._frequencies[attribute] = marginal([attribute])
        return self._frequencies[attribute]

    @cached_property
    def _frequencies(self) -> dict[str, FloatArray]:
        return count_frequencies(self.nodes)

    def _upto(self, attribute: str) -> MarginalModel:
        """Return the model of an attribute and of those that its distribution depends on."""
        needed, waiting = {attribute}, [attribute]
        while waiting:
            new = set(self.parents(waiting.pop())) - needed
            needed |= new
            waiting += sorted(new)
        return replace(self, nodes=tuple(node for node in self.nodes if node.attribute.name in needed))

    def factors(self) -> tuple[list[Factor], dict[str, int]]:
        """Return the tables whose product is the distribution, and the axis of each attribute's bins in them.

        An attribute has two axes, in the order of the sequence: groups of bins, where it has some, then bins.
        """
        axis = {node.attribute.name: 2 * i + 1 for i, node in enumerate(self.nodes)}
        sizes = {axis[node.attribute.name]: node.view.bins for node in self.nodes}
        sizes |= {axis[n.attribute.name] - 1: int(n.groups.max()) + 1 for n in self.nodes if n.groups is not None}
        factors: list[Factor] = []
        for node in self.nodes:
            own = axis[node.attribute.name]
            over = (*(axis[p] - grouped for p, grouped in parents_of(node.parents, node.in_groups)), own)
            factors.append((over, node.table.reshape([sizes[a] for a in over])))
            if node.groups is not None:
                factors.append(((own - 1, own), np.eye(sizes[own - 1])[:, node.groups]))
            if node.coarse is not None:
                above = parents_of(node.coarse.parents, node.coarse.in_groups)
                over = (*(axis[p] - grouped for p, grouped in above), own - 1)
                factors.append((over, node.coarse.table.reshape([sizes[a] for a in over])))
        return factors, axis

    def sample(
        self, num_rows: int, rng: np.random.Generator, given: Mapping[str, IntArray] | None = None
    ) -> dict[str, IntArray]:
        """Draw rows; columns in `given` are taken as they are when their turn comes, and later ones follow them."""
        columns: dict[str, IntArray] = {}
        for node in self.nodes:
            name = node.attribute.name
            if given is not None and name in given:
                columns[name] = np.asarray(given[name], dtype=np.int64)
                continue
            found = self.conditional(name, columns, num_rows)
            columns[name] = draw_codes(draw_bins(found.context, np.exp(found.log_prob), rng), found.cells, rng)
        return columns

    def given(self, allowed: Mapping[str, IntArray]) -> MarginalModel | None:
        """Return the model of rows whose named attributes have one of these codes; None if that is too large,
        or if an attribute is read relative to another.
        """
        from kamino.model.marginal.conditioning import condition

        return None if any(node.relative is not None for node in self.nodes) else condition(self, allowed)

    def _counted(self, attributes: Sequence[str]) -> FloatArray:
        """Count the bins of drawn rows; the same rows for the same model."""
        columns = self._drawn
        maps = [self.node(name).cells.map for name in attributes]
        shape = tuple(each.bins for each in maps)
        flat = flatten_codes([each(columns[name]) for name, each in zip(attributes, maps, strict=True)], shape)
        counts = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
        result: FloatArray = counts / COUNTED_ROWS
        return result

    @cached_property
    def _drawn(self) -> dict[str, IntArray]:
        """Rows to count in, once for all attributes."""
        return self.sample(COUNTED_ROWS, np.random.default_rng(0))

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return a JSON-able description and the arrays that it names."""
        from kamino.model.marginal.network_file import describe

        return describe(self)

    @staticmethod
    def from_arrays(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> MarginalModel:
        """Rebuild a model from `to_arrays`.

        Raises:
            ModelError: anything else was given.

        Guarantees:
            What is returned holds distributions of the shapes that drawing needs.  [test_crafted_models_are_refused]
        """
        from kamino.model.marginal.network_file import rebuild

        return rebuild(meta, arrays)


def tilted(
    node: Node, relative: Relative, lines: IntArray, line: IntArray, context: Mapping[str, IntArray]
) -> Conditional:
    """Return P(fine bin | base's fine bin, parents): the fine table, tilted by what the parents say of quantile bins.

    `lines` are the lines of the node's table that occur, `line` is the place of each row's among them.
    """
    base = relative.view.over(context[relative.view.base])
    fine = relative.view.over.bins
    both, index = distinct_values(line * fine + base)
    rows, over = lines[both // fine], both % fine
    with np.errstate(divide="ignore"):
        log = np.log(np.take_along_axis(node.table[rows], relative.view.labels[over], axis=1))
        log += np.log(relative.joint)[over]
    log -= np.logaddexp.reduce(log, axis=1, keepdims=True)
    return Conditional(attribute=node.attribute.name, context=index, log_prob=log, cells=relative.cells)

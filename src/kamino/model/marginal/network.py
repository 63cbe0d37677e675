"""The fitted model: one table P(attribute | parents) for each attribute of the sequence. Public facts only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kamino.errors import ModelError
from kamino.model.marginal.even_draws import draw_bins, draw_codes
from kamino.model.marginal.graph.elimination import Factor, sum_product
from kamino.model.marginal.maps.relative import Relative
from kamino.model.phase import MOST_PHASES, Phase, PhaseWeights
from kamino.model.protocol import (
    MOST_ROWS,
    Cells,
    CodeMap,
    Conditional,
    ConditionalMap,
    FloatArray,
    IntArray,
    ModelAttribute,
    View,
    read,
)
from kamino.model.saved import Arrays, Fields, attribute_of, refuse_repeated, shown
from kamino.schema.coding.joint_codes import distinct_values, flatten_codes

FORMAT = "kamino-marginal-2"
#: Rows that are drawn to count marginals which no sum over the network gives.
COUNTED_ROWS = 200_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Coarse:
    """P(group of an attribute's bins | parents), parents in C order on the rows; `in_groups` says which are groups."""

    parents: tuple[str, ...]
    in_groups: tuple[bool, ...]
    table: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Node:
    """An attribute, its bins, its parents, and P(bin | parents' bins): parents' bins in C order on the rows.

    `in_groups` says which parents are read in groups of their bins; without it, none. `groups` are those of this
    attribute's own bins, for others to read. With `coarse`, `table` is P(bin | group of the bin, parents).

    An attribute that is read relative to another (`relative`) has fine bins in `cells`; its parents see its quantile
    bins, and `table` says how much likelier each quantile bin is than its base alone makes it.
    """

    attribute: ModelAttribute
    cells: Cells
    parents: tuple[str, ...]
    table: FloatArray
    relative: Relative | None = None
    in_groups: tuple[bool, ...] = ()
    groups: IntArray | None = None
    coarse: Coarse | None = None

    @property
    def all_parents(self) -> tuple[str, ...]:
        """The attributes that the bins or their groups depend on."""
        return tuple(dict.fromkeys((*self.parents, *(self.coarse.parents if self.coarse is not None else ()))))

    def grouped_view(self) -> View:
        """How the groups of the attribute's bins are read."""
        if self.groups is None:
            raise ModelError(f"attribute {self.attribute.name!r} has no groups of bins.")
        return self.view.merged(self.groups)

    @property
    def view(self) -> View:
        """How the model reads the attribute."""
        return self.cells.map if self.relative is None else self.relative.view

    @property
    def reads(self) -> tuple[str, ...]:
        """The attributes whose codes the model needs to read this one."""
        return (self.attribute.name,) if self.relative is None else (self.attribute.name, self.relative.view.base)


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
        views = [self._parent_view(name, grouped) for name, grouped in _parents(parents, in_groups)]
        bins = [read(view, name, context) for name, view in zip(parents, views, strict=True)]
        return distinct_values(flatten_codes(bins, [view.bins for view in views]))

    def _parent_view(self, name: str, grouped: bool) -> View:
        return self.node(name).grouped_view() if grouped else self.node(name).view

    def marginal(self, attributes: Sequence[str]) -> FloatArray:
        """Return the joint probabilities of the codes of `attributes`, one axis each."""
        joint = self.bin_marginal(attributes)
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

        They are exact, unless an attribute is read relative to another: then they are counted in drawn rows.
        """
        if any(node.relative is not None for node in self.nodes):
            return self._counted(attributes)
        factors, axis = self.factors()
        return sum_product(factors, [axis[self.node(name).attribute.name] for name in attributes])

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
            over = (*(axis[p] - grouped for p, grouped in _parents(node.parents, node.in_groups)), own)
            factors.append((over, node.table.reshape([sizes[a] for a in over])))
            if node.groups is not None:
                factors.append(((own - 1, own), np.eye(sizes[own - 1])[:, node.groups]))
            if node.coarse is not None:
                above = _parents(node.coarse.parents, node.coarse.in_groups)
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

        return None if any(node.relative is not None or node.coarse is not None or any(node.in_groups) for node in self.nodes) else condition(self, allowed)

    def _counted(self, attributes: Sequence[str]) -> FloatArray:
        """Count the bins of drawn rows; the same rows for the same model."""
        columns = self.sample(COUNTED_ROWS, np.random.default_rng(0))
        maps = [self.node(name).cells.map for name in attributes]
        shape = tuple(each.bins for each in maps)
        flat = flatten_codes([each(columns[name]) for name, each in zip(attributes, maps, strict=True)], shape)
        counts = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
        result: FloatArray = counts / COUNTED_ROWS
        return result

    def to_arrays(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return a JSON-able description and the arrays that it names."""
        arrays: dict[str, np.ndarray] = {}
        nodes = []
        for i, node in enumerate(self.nodes):
            a, cells = node.attribute, node.cells
            nodes.append(
                {
                    "name": a.name,
                    "size": a.size,
                    "ordered": a.ordered,
                    "null_code": a.null_code,
                    "bins": cells.map.bins,
                    "parents": list(node.parents),
                    **_described(cells.weights),
                }
            )
            if node.relative is not None:
                view = node.relative.view
                nodes[-1] |= {"base": view.base, "base_bins": view.over.bins, "quantile_bins": view.bins}
                arrays[f"{i}.base_starts"] = view.over.starts
                arrays[f"{i}.base_labels"] = view.over.labels
                arrays[f"{i}.quantiles"] = view.labels
                arrays[f"{i}.joint"] = node.relative.joint
            arrays[f"{i}.table"] = node.table
            arrays[f"{i}.starts"] = cells.map.starts
            arrays[f"{i}.labels"] = cells.map.labels
            arrays[f"{i}.share"] = cells.share
            for digit, part in enumerate(cells.weights.parts if cells.weights is not None else ()):
                arrays[f"{i}.phase.{digit}"] = part
        meta = {
            "format": FORMAT,
            "num_rows": self.num_rows,
            "nodes": nodes,
            "releases": [list(r) for r in self.releases],
        }
        return meta, arrays

    @staticmethod
    def from_arrays(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> MarginalModel:
        """Rebuild a model from `to_arrays`.

        Raises:
            ModelError: anything else was given.

        Guarantees:
            What is returned holds distributions of the shapes that drawing needs.  [test_crafted_models_are_refused]
        """
        if meta.get("format") != FORMAT:
            raise ModelError(f"the model has format {shown(meta.get('format'))}; this version reads {FORMAT!r}.")
        fields, own = Fields(meta, where="model").only("format", "num_rows", "nodes", "releases"), Arrays(arrays)
        nodes: dict[str, Node] = {}
        described = fields.objects("nodes")
        refuse_repeated([each.text("name") for each in described])
        for i, each in enumerate(described):
            node = _node(i, each, nodes, own)
            nodes[node.attribute.name] = node
        own.refuse_others()
        return MarginalModel(
            nodes=tuple(nodes.values()),
            num_rows=fields.number("num_rows", least=0, most=MOST_ROWS),
            releases=_releases(fields.items("releases")),
        )


def _node(i: int, fields: Fields, earlier: Mapping[str, Node], arrays: Arrays) -> Node:
    """Read one node; its parents must be among the earlier ones."""
    relative = "base" in set(fields)
    fields.only("name", "size", "ordered", "null_code", "bins", "parents", "phase", *(_RELATIVE if relative else ()))
    attribute = attribute_of(fields)
    parents = fields.texts("parents")
    if len(set(parents)) != len(parents) or not set(parents) <= set(earlier):
        raise ModelError(f"attribute {shown(attribute.name)} has a parent that does not come before it.")
    runs = arrays.shape(f"{i}.starts")[0] if arrays.shape(f"{i}.starts") else 0
    bins = fields.whole("bins", least=1, most=runs)
    starts, labels = arrays.codes(f"{i}.starts", runs), arrays.codes(f"{i}.labels", runs)
    code_map = CodeMap(size=attribute.size, bins=bins, starts=starts, labels=labels)
    share = arrays.finite(f"{i}.share", (runs,))
    within = np.bincount(labels, weights=share, minlength=bins)
    if (share < 0).any() or (np.abs(within - 1) > 1e-6).any():
        raise ModelError(f"attribute {shown(attribute.name)} has shares of a bin below 0, or that do not sum to 1.")
    contexts = math.prod(earlier[name].view.bins for name in parents)
    weights = _weights(i, fields.within("phase"), arrays) if "phase" in set(fields) else None
    cells = Cells(map=code_map, width=np.diff(starts, append=attribute.size), share=share, weights=weights)
    if relative:
        return _relative_node(i, fields, attribute, cells, parents, contexts, earlier, arrays)
    table = arrays.distributions(f"{i}.table", (contexts, bins))
    return Node(attribute=attribute, cells=cells, parents=parents, table=table)


def _relative_node(
    i: int,
    fields: Fields,
    attribute: ModelAttribute,
    cells: Cells,
    parents: tuple[str, ...],
    contexts: int,
    earlier: Mapping[str, Node],
    arrays: Arrays,
) -> Node:
    """Read a node whose attribute is read relative to another, which must come before it and be read by itself."""
    base = fields.text("base")
    if base not in earlier or earlier[base].relative is not None:
        raise ModelError(f"attribute {shown(attribute.name)} is relative to one that does not come before it.")
    runs = arrays.shape(f"{i}.base_starts")[0] if arrays.shape(f"{i}.base_starts") else 0
    over = CodeMap(
        size=earlier[base].attribute.size,
        bins=fields.whole("base_bins", least=1, most=runs),
        starts=arrays.codes(f"{i}.base_starts", runs),
        labels=arrays.codes(f"{i}.base_labels", runs),
    )
    shape = (over.bins, cells.map.bins)
    quantiles = fields.whole("quantile_bins", least=1, most=cells.map.bins)
    labels = arrays.codes(f"{i}.quantiles", *shape)
    joint, table = arrays.finite(f"{i}.joint", shape), arrays.finite(f"{i}.table", (contexts, quantiles))
    if (joint < 0).any() or (joint.sum(axis=1) <= 0).any() or (table < 0).any() or (table.sum(axis=1) <= 0).any():
        raise ModelError(f"attribute {shown(attribute.name)} has probabilities below 0, or none above.")
    view = ConditionalMap(base=base, over=over, own=cells.map, labels=labels, bins=quantiles)
    relative = Relative(view=view, cells=cells, joint=joint)
    return Node(attribute=attribute, cells=cells, parents=parents, table=table, relative=relative)


_RELATIVE = ("base", "base_bins", "quantile_bins")


def _described(weights: PhaseWeights | None) -> dict[str, Any]:
    """Say which phase weights are of; models without weights say nothing, as those of earlier versions did."""
    if weights is None:
        return {}
    phase = weights.phase
    return {"phase": {"factors": list(phase.factors), "block": phase.block, "offset": phase.offset}}


def _weights(i: int, fields: Fields, arrays: Arrays) -> PhaseWeights:
    """Read how likely the phases of an attribute are."""
    fields.only("factors", "block", "offset")
    sizes = Fields(dict(enumerate(fields.items("factors"))), where=f"{fields.where}: factors")
    factors = tuple(sizes.whole(digit, least=2, most=MOST_PHASES) for digit in range(len(fields.items("factors"))))
    phase = Phase(factors=factors, block=fields.whole("block", least=1), offset=fields.whole("offset"))
    parts = tuple(arrays.distributions(f"{i}.phase.{digit}", (size,)) for digit, size in enumerate(factors))
    return PhaseWeights(phase=phase, parts=parts)


def _releases(items: Sequence[Any]) -> tuple[tuple[str, float], ...]:
    pairs = [Fields(dict(enumerate(each)) if isinstance(each, list) else None, where="release") for each in items]
    return tuple((pair.only(0, 1).text(0), pair.number(1)) for pair in pairs)


def _parents(parents: Sequence[str], in_groups: Sequence[bool]) -> list[tuple[str, bool]]:
    return list(zip(parents, in_groups or (False,) * len(parents), strict=True))


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

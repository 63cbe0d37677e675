"""A network as plain data and arrays, and back: what a model file holds of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from kamino.errors import ModelError
from kamino.model.marginal.graph.factor import first_of_runs
from kamino.model.marginal.maps.relative import Relative
from kamino.model.marginal.network import MarginalModel
from kamino.model.marginal.nodes import Coarse, Node, parents_of
from kamino.model.parts import KnownMap
from kamino.model.phase import MOST_PHASES, Phase, PhaseWeights
from kamino.model.protocol import MOST_ROWS, Cells, CodeMap, ConditionalMap, IntArray, ModelAttribute
from kamino.model.rounding import Rounding
from kamino.model.saved import Arrays, Fields, attribute_of, refuse_repeated, shown

FORMAT = "kamino-marginal-2"
#: More groups of bins than this were never written, and would take memory that a file does not show.
MOST_GROUPS = 64


def describe(model: MarginalModel) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a JSON-able description of a network, and the arrays that it names."""
    arrays: dict[str, np.ndarray] = {}
    nodes = []
    for i, node in enumerate(model.nodes):
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
                **_described_groups(node),
            }
        )
        if node.relative is not None:
            view = node.relative.view
            nodes[-1] |= {"base": view.base, "base_bins": view.over.bins, "quantile_bins": view.bins}
            arrays[f"{i}.base_starts"] = view.over.starts
            arrays[f"{i}.base_labels"] = view.over.labels
            arrays[f"{i}.quantiles"] = view.labels
            arrays[f"{i}.joint"] = node.relative.joint
        if node.groups is not None:
            arrays[f"{i}.groups"] = node.groups
        if node.coarse is not None:
            arrays[f"{i}.coarse"] = node.coarse.table
        arrays[f"{i}.table"] = node.table
        arrays[f"{i}.starts"] = cells.map.starts
        arrays[f"{i}.labels"] = cells.map.labels
        arrays[f"{i}.share"] = cells.share
        for digit, part in enumerate(cells.weights.parts if cells.weights is not None else ()):
            arrays[f"{i}.phase.{digit}"] = part
    meta: dict[str, Any] = {
        "format": FORMAT,
        "num_rows": model.num_rows,
        "nodes": nodes,
        "releases": [list(r) for r in model.releases],
    }
    if model.maps:  # models without maps say nothing, as those of earlier versions did
        meta["maps"] = [{"left": each.left, "right": each.right} for each in model.maps]
    for i, each in enumerate(model.maps):
        arrays |= {f"map.{i}.starts": each.starts, f"map.{i}.values": each.values}
    return meta, arrays


def rebuild(meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> MarginalModel:
    """Rebuild a network from `describe`; see `MarginalModel.from_arrays`."""
    if meta.get("format") != FORMAT:
        raise ModelError(f"the model has format {shown(meta.get('format'))}; this version reads {FORMAT!r}.")
    fields = Fields(meta, where="model").only("format", "num_rows", "nodes", "releases", "maps")
    own = Arrays(arrays)
    nodes: dict[str, Node] = {}
    described = fields.objects("nodes")
    refuse_repeated([each.text("name") for each in described])
    for i, each in enumerate(described):
        node = _node(i, each, nodes, own)
        nodes[node.attribute.name] = node
    maps = _maps(fields.objects("maps"), nodes, own) if "maps" in set(fields) else ()
    own.refuse_others()
    return MarginalModel(
        nodes=tuple(nodes.values()),
        num_rows=fields.number("num_rows", least=0, most=MOST_ROWS),
        releases=_releases(fields.items("releases")),
        maps=maps,
    )


def _maps(described: Sequence[Fields], nodes: Mapping[str, Node], arrays: Arrays) -> tuple[KnownMap, ...]:
    """Read the maps of dependencies; each is of attributes that there are, and stays inside their domains."""
    found: dict[tuple[str, str], KnownMap] = {}
    for i, each in enumerate(described):
        left, right = each.only("left", "right").text("left"), each.text("right")
        if left not in nodes or right not in nodes or left == right or (left, right) in found:
            raise ModelError(f"map {i} is not of two attributes of the model, or there twice.")
        runs = arrays.shape(f"map.{i}.starts")[0] if arrays.shape(f"map.{i}.starts") else 0
        starts, values = arrays.codes(f"map.{i}.starts", runs), arrays.codes(f"map.{i}.values", runs)
        if runs == 0 or starts[-1] >= nodes[left].attribute.size or values.max() >= nodes[right].attribute.size:
            raise ModelError(f"map {i} has codes outside the domains of its attributes.")
        found[left, right] = KnownMap(left=left, right=right, starts=starts, values=values)
    return tuple(found.values())


def _node(i: int, fields: Fields, earlier: Mapping[str, Node], arrays: Arrays) -> Node:
    """Read one node; its parents must be among the earlier ones."""
    relative = "base" in set(fields)
    fields.only(*_ALWAYS, "phase", "in_groups", *(_RELATIVE if relative else ("groups", "coarse")))
    attribute = attribute_of(fields)
    parents, in_groups, contexts = _parents(fields, attribute.name, earlier)
    runs = arrays.shape(f"{i}.starts")[0] if arrays.shape(f"{i}.starts") else 0
    bins = fields.whole("bins", least=1, most=runs)
    starts, labels = arrays.codes(f"{i}.starts", runs), arrays.codes(f"{i}.labels", runs)
    code_map = CodeMap(size=attribute.size, bins=bins, starts=starts, labels=labels)
    share = arrays.finite(f"{i}.share", (runs,))
    within = np.bincount(labels, weights=share, minlength=bins)
    if (share < 0).any() or (np.abs(within - 1) > 1e-6).any():
        raise ModelError(f"attribute {shown(attribute.name)} has shares of a bin below 0, or that do not sum to 1.")
    weights = _weights(i, fields.within("phase"), arrays) if "phase" in set(fields) else None
    cells = Cells(map=code_map, width=np.diff(starts, append=attribute.size), share=share, weights=weights)
    if relative:
        node = _relative_node(i, fields, attribute, cells, parents, contexts, earlier, arrays)
        return replace(node, in_groups=in_groups)
    most = min(bins, MOST_GROUPS)
    groups = _groups(i, fields.whole("groups", least=1, most=most), bins, arrays) if "groups" in set(fields) else None
    if "coarse" not in set(fields):
        table = arrays.distributions(f"{i}.table", (contexts, bins))
        return Node(attribute=attribute, cells=cells, parents=parents, table=table, in_groups=in_groups, groups=groups)
    if groups is None:
        raise ModelError(f"attribute {shown(attribute.name)} depends on groups that it does not have.")
    above, above_groups, lines = _parents(fields.within("coarse").only("parents", "in_groups"), attribute.name, earlier)
    coarse = arrays.distributions(f"{i}.coarse", (lines, int(groups[-1]) + 1))
    table = arrays.finite(f"{i}.table", (contexts, bins))
    held = np.add.reduceat(table, first_of_runs(groups), axis=1)
    if (table < 0).any() or (np.abs(held - 1) > 1e-6).any():
        raise ModelError(
            f"attribute {shown(attribute.name)} has probabilities that do not sum to 1 in a group of bins."
        )
    return Node(
        attribute=attribute,
        cells=cells,
        parents=parents,
        table=table,
        in_groups=in_groups,
        groups=groups,
        coarse=Coarse(parents=above, in_groups=above_groups, table=coarse),
    )


def _parents(
    fields: Fields, attribute: str, earlier: Mapping[str, Node]
) -> tuple[tuple[str, ...], tuple[bool, ...], int]:
    """Read parents, which of them are read in groups, and how many lines that makes of a table."""
    parents = fields.texts("parents")
    grouped = set(fields.texts("in_groups")) if "in_groups" in set(fields) else set()
    if len(set(parents)) != len(parents) or not set(parents) <= set(earlier):
        raise ModelError(f"attribute {shown(attribute)} has a parent that does not come before it.")
    if not grouped <= set(parents) or any(earlier[name].groups is None for name in grouped):
        raise ModelError(f"attribute {shown(attribute)} reads groups of a parent that has none.")
    in_groups = tuple(name in grouped for name in parents) if grouped else ()
    views = [earlier[p].grouped_view() if p in grouped else earlier[p].view for p in parents]
    return parents, in_groups, math.prod(view.bins for view in views)


def _groups(i: int, count: int, bins: int, arrays: Arrays) -> IntArray:
    """Read the group of each bin: runs of bins, counted from 0."""
    groups = arrays.codes(f"{i}.groups", bins)
    if groups[0] != 0 or groups[-1] != count - 1 or not np.isin(np.diff(groups), (0, 1)).all():
        raise ModelError(f"array {shown(f'{i}.groups')} does not name runs of bins.")
    return groups


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


def _described_groups(node: Node) -> dict[str, Any]:
    """Say what is read in groups; nodes without groups say nothing, as those of earlier versions did."""
    found: dict[str, Any] = {}
    if any(node.in_groups):
        found["in_groups"] = _grouped(node.parents, node.in_groups)
    if node.groups is not None:
        found["groups"] = int(node.groups[-1]) + 1
    if node.coarse is not None:
        above = _grouped(node.coarse.parents, node.coarse.in_groups)
        found["coarse"] = {"parents": list(node.coarse.parents), "in_groups": above}
    return found


def _grouped(parents: Sequence[str], in_groups: Sequence[bool]) -> list[str]:
    return [name for name, grouped in parents_of(parents, in_groups) if grouped]


_ALWAYS = ("name", "size", "ordered", "null_code", "bins", "parents")
_RELATIVE = ("base", "base_bins", "quantile_bins")


def _described(weights: PhaseWeights | None) -> dict[str, Any]:
    """Say which phase weights are of; models without weights say nothing, as those of earlier versions did."""
    if weights is None:
        return {}
    phase = weights.phase
    described: dict[str, Any] = {"factors": list(phase.factors), "block": phase.block, "offset": phase.offset}
    if weights.rounding is not None:
        described["rounding"] = {"pairs_at": weights.rounding.pairs_at}
    return {"phase": described}


def _weights(i: int, fields: Fields, arrays: Arrays) -> PhaseWeights:
    """Read how likely the phases of an attribute are."""
    fields.only("factors", "block", "offset", "rounding")
    sizes = Fields(dict(enumerate(fields.items("factors"))), where=f"{fields.where}: factors")
    factors = tuple(sizes.whole(digit, least=2, most=MOST_PHASES) for digit in range(len(fields.items("factors"))))
    phase = Phase(factors=factors, block=fields.whole("block", least=1), offset=fields.whole("offset"))
    if "rounding" in set(fields):
        how = fields.within("rounding").only("pairs_at")
        at = None if how.any("pairs_at") is None else how.whole("pairs_at")
        rounding = Rounding(depth=len(factors), offset=phase.offset, pairs_at=at)
        part = arrays.distributions(f"{i}.phase.0", (rounding.count,))
        return PhaseWeights(phase=phase, parts=(part,), rounding=rounding)
    parts = tuple(arrays.distributions(f"{i}.phase.{digit}", (size,)) for digit, size in enumerate(factors))
    return PhaseWeights(phase=phase, parts=parts)


def _releases(items: Sequence[Any]) -> tuple[tuple[str, float], ...]:
    pairs = [Fields(dict(enumerate(each)) if isinstance(each, list) else None, where="release") for each in items]
    return tuple((pair.only(0, 1).text(0), pair.number(1)) for pair in pairs)

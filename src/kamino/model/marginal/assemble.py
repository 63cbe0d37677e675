"""From the fitted cliques to the network: links of wide attributes, and P(attribute | parents) for the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.even_draws import draw_bins, draw_codes
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.factor import first_of_runs, without_groups
from kamino.model.marginal.graph.inference import Fit
from kamino.model.marginal.maps.links import Link, drop_implied, measure_link, wide_cells
from kamino.model.marginal.network import MarginalModel
from kamino.model.marginal.nodes import Coarse, Node
from kamino.model.marginal.pairs.rounds import find_determined, pair_answers
from kamino.model.marginal.purse import Purse
from kamino.model.protocol import FloatArray, IntArray, Measurer


def measure_links(
    frame: Frame,
    fit: Fit,
    links: Sequence[Link],
    histograms: Sequence[Histogram],
    measurer: Measurer,
    purse: Purse,
) -> dict[int, tuple[tuple[int, ...], FloatArray]]:
    """Spend what is left on the links; return owners and table of each wide attribute."""
    if not links:
        return {}
    levels = frame.levels
    pairs = [tuple(levels.attribute[v] for v in c) for c, *_ in fit.multipliers if len(c) == 2]
    known = find_determined(pair_answers(frame, fit), pairs, frame.num_rows)
    tables = {}
    for link in (drop_implied(link, known) for link in links):
        joint = fit.joint(levels.bins(link.owners))
        table = measure_link(frame, link, histograms[link.wide], joint, measurer, purse)
        tables[link.wide] = (link.owners, table)
    return tables


def build_network(
    frame: Frame,
    fit: Fit,
    histograms: Sequence[Histogram],
    tables: Mapping[int, tuple[tuple[int, ...], FloatArray]],
    purse: Purse,
) -> MarginalModel:
    """Read P(attribute | parents) off the cliques."""
    levels = frame.levels
    names = [a.name for a in frame.attributes]
    sequence = [levels.attribute[v] for v in fit.tree.sequence if v not in fit.tree.groups]
    order = _drawn_in(frame, sequence, tables)
    nodes = []
    for a in order:
        groups: IntArray | None = None
        coarse: Coarse | None = None
        in_groups: tuple[bool, ...] = ()
        if a in tables:
            owners, table = tables[a]
            parents = tuple(names[p] for p in owners)
            cells = wide_cells(histograms[a])
        else:
            cells = frame.cells[a]
            groups, coarse = _groups(frame, fit, a)
            drawn = fit.tree.parents[levels.fine[a]]
            given, joint = _conditional(fit, levels.fine[a], [v for v in drawn if levels.attribute[v] != a])
            parents, in_groups = _read(frame, given)
            table = normalise(joint.reshape(-1, joint.shape[-1]))
            if coarse is not None and groups is not None:
                table = within_groups(joint.reshape(-1, joint.shape[-1]), groups)
            if a in frame.relatives:
                cells = frame.relatives[a].cells
                base = levels.fine[frame.after[a]]
                table = _tilt(joint, table, given.index(base) if base in given else None)
        cells = replace(cells, weights=histograms[a].weights)
        relative = replace(frame.relatives[a], cells=cells) if a in frame.relatives else None
        node = Node(
            attribute=frame.attributes[a],
            cells=cells,
            parents=parents,
            table=table,
            relative=relative,
            in_groups=in_groups,
            groups=groups,
            coarse=coarse,
        )
        nodes.append(node)
    measured = {names[a]: fit.joint((levels.fine[a],)).ravel() for a in order if a not in tables}
    nodes = keep_margins(nodes, measured)
    return MarginalModel(nodes=tuple(nodes), num_rows=frame.num_rows, releases=tuple(purse.entries))


def _groups(frame: Frame, fit: Fit, a: int) -> tuple[IntArray | None, Coarse | None]:
    """Return the groups of an attribute's bins, and P(group | parents) if that is more than P(bin | parents) says."""
    levels, tree = frame.levels, fit.tree
    if a not in levels.coarse:
        return None, None
    own = levels.coarse[a]
    fine = {v for v in tree.parents[levels.fine[a]] if v != own}
    if fine == set(tree.parents[own]):
        return levels.groups[a], None
    owners, joint = _conditional(fit, own, tree.parents[own])
    parents, in_groups = _read(frame, owners)
    return levels.groups[a], Coarse(
        parents=parents, in_groups=in_groups, table=normalise(joint.reshape(-1, joint.shape[-1]))
    )


def _conditional(fit: Fit, variable: int, parents: Iterable[int]) -> tuple[list[int], FloatArray]:
    """Return the parents of a variable, those it depends on most first, and their joint table, the variable last."""
    owners = without_groups(parents, fit.tree.groups)
    clique = tuple(sorted((*owners, variable)))
    joint = fit.joint(clique)
    ordered = sorted(owners, key=lambda p: -dependence(joint, clique.index(p), clique.index(variable)))
    return ordered, joint.transpose([clique.index(p) for p in (*ordered, variable)])


def _read(frame: Frame, variables: Sequence[int]) -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """Return the names of the attributes of variables, and which of them are read in groups."""
    attribute, coarse = frame.levels.attribute, set(frame.levels.coarse.values())
    return tuple(frame.attributes[attribute[v]].name for v in variables), tuple(v in coarse for v in variables)


def _drawn_in(frame: Frame, sequence: Sequence[int], linked: Collection[int]) -> list[int]:
    """Return the order of the network: linked attributes, unknown to the tree, as late as their chains allow."""
    if frame.sequence is not None:
        return list(frame.sequence)
    order = [a for a in sequence if a not in linked]
    for chain in frame.chains:
        for a, *later in (chain[i:] for i in reversed(range(len(chain))) if chain[i] in linked):
            places = [order.index(b) for b in later]
            order.insert(min(places, default=len(order)), a)
    return order + [a for a in sequence if a in linked and a not in order]


def _tilt(joint: FloatArray, table: FloatArray, base: int | None) -> FloatArray:
    """Return how much likelier the parents make each quantile bin than the base alone (an axis of `joint`) does."""
    others = tuple(i for i in range(joint.ndim - 1) if i != base)
    alone = joint.sum(axis=others, keepdims=True)
    alone = alone / np.maximum(alone.sum(axis=-1, keepdims=True), 1e-300)
    result: FloatArray = (table.reshape(joint.shape) / np.maximum(alone, 1e-12)).reshape(table.shape)
    return result


def keep_margins(
    nodes: Sequence[Node], measured: Mapping[str, FloatArray], num_rows: int = 20_000, steps: int = 15
) -> list[Node]:
    """Bring 1-way marginals back to what was measured, from the first attribute on that is read relative to another.

    Tilting moves them a little: those of such attributes, and through them those of later ones. Rows are drawn from the
    model, and its tables are scaled (iterative proportional fitting) until the rows' distributions have the measured
    marginal on average. `measured` has those of attributes that are read by themselves.

    Guarantees:
        What depends on relative attributes keeps its marginal.  [test_margins_after_relations_are_kept]
    """
    rng = np.random.default_rng(0)
    done: list[Node] = []
    columns: dict[str, IntArray] = {}
    first = next((i for i, node in enumerate(nodes) if node.relative is not None), len(nodes))
    if first == len(nodes):
        return list(nodes)
    for i, node in enumerate(nodes):
        kept = node
        found = MarginalModel(nodes=(*done, node), num_rows=1.0).conditional(node.attribute.name, columns, num_rows)
        probability, weight = np.exp(found.log_prob), np.bincount(found.context) / num_rows
        if node.relative is not None:
            wanted = node.relative.joint.sum(axis=0)
            factor = _scale_to(probability, weight, wanted / wanted.sum(), steps)
            kept = replace(node, relative=replace(node.relative, joint=node.relative.joint * factor))
        elif i > first and node.attribute.name in measured:
            factor = _scale_to(probability, weight, measured[node.attribute.name], steps)
            kept = _scaled(node, factor, weight @ probability)
        if kept is not node:
            probability = normalise(probability * factor)
        done.append(kept)
        columns[node.attribute.name] = draw_codes(draw_bins(found.context, probability, rng), found.cells, rng)
    return done


def _scaled(node: Node, factor: FloatArray, mean: FloatArray) -> Node:
    """Return the node with its bins' probabilities scaled; where groups are drawn first, they by their mean factor."""
    if node.coarse is None or node.groups is None:
        return replace(node, table=normalise(node.table * factor))
    starts = first_of_runs(node.groups)
    above = np.add.reduceat(mean * factor, starts) / np.maximum(np.add.reduceat(mean, starts), 1e-300)
    coarse = replace(node.coarse, table=normalise(node.coarse.table * above))
    return replace(node, table=within_groups(node.table * factor, node.groups), coarse=coarse)


def _scale_to(table: FloatArray, weight: FloatArray, wanted: FloatArray, steps: int) -> FloatArray:
    """Return a factor for each column with which the lines of a table, normalised, have the `wanted` mean."""
    factor = np.ones(len(wanted))
    for _ in range(steps):
        mean = weight @ normalise(table * factor)
        factor *= np.clip(wanted / np.maximum(mean, 1e-12), 0.5, 2.0)
    return factor


def dependence(joint: FloatArray, first: int, second: int) -> float:
    """Return the mutual information of two axes of a joint table; what is too small to be told from 0 counts as 0.

    Guarantees:
        It is finite, however small a probability is.  [test_dependence_of_vanishing_cells_is_finite]
    """
    table = joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in (first, second)))
    even = table.sum(axis=0, keepdims=True) * table.sum(axis=1, keepdims=True)
    seen = (table > 0) & (even > 0)
    return float((table[seen] * np.log(table[seen] / even[seen])).sum())


def within_groups(joint: FloatArray, groups: IntArray) -> FloatArray:
    """Turn joint probabilities into P(column | row, its group); where there is no mass, into the overall one."""
    starts = first_of_runs(groups)
    total = np.add.reduceat(joint, starts, axis=1)[:, groups]
    overall = np.maximum(joint.sum(axis=0), 1e-300)
    overall = overall / np.add.reduceat(overall, starts)[groups]
    result: FloatArray = np.where(total > 1e-300, joint / np.where(total > 1e-300, total, 1.0), overall)
    return result


def normalise(joint: FloatArray) -> FloatArray:
    """Turn joint probabilities into P(column | row); a row without mass gets the overall distribution."""
    total = joint.sum(axis=1, keepdims=True)
    overall = joint.sum(axis=0, keepdims=True)
    overall = overall / overall.sum()
    result: FloatArray = np.where(total > 1e-300, joint / np.where(total > 1e-300, total, 1.0), overall)
    result /= result.sum(axis=1, keepdims=True)
    return result

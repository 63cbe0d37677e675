"""From the fitted cliques to the network: links of wide attributes, and P(attribute | parents) for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kamino.model.marginal.budget import Purse
from kamino.model.marginal.factor import project
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.histogram import Histogram
from kamino.model.marginal.inference import Fit
from kamino.model.marginal.links import Link, drop_implied, measure_link, wide_cells
from kamino.model.marginal.network import MarginalModel, Node
from kamino.model.marginal.rounds import find_determined, pair_answers
from kamino.model.protocol import FloatArray, Measurer


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
    pairs = [c for c in fit.multipliers if len(c) == 2]
    known = find_determined(pair_answers(fit, frame.num_rows), pairs, frame.num_rows)
    tables = {}
    for link in (drop_implied(link, known) for link in links):
        home = fit.tree.home(link.owners)
        assert home is not None
        joint = project(fit.beliefs[home], fit.tree.cliques[home], link.owners)
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
    tree = fit.tree
    names = [a.name for a in frame.attributes]
    order = [a for a in tree.sequence if a not in tables] + [a for a in tree.sequence if a in tables]
    if frame.sequence is not None:
        order = list(frame.sequence)
    nodes = []
    for a in order:
        if a in tables:
            owners, table = tables[a]
            cells = wide_cells(histograms[a])
        else:
            owners, cells = tree.parents[a], frame.cells[a]
            clique = tuple(sorted((*owners, a)))
            home = tree.home(clique)
            assert home is not None
            joint = project(fit.beliefs[home], tree.cliques[home], clique)
            owners = tuple(sorted(owners, key=lambda p: -dependence(joint, clique.index(p), clique.index(a))))
            joint = joint.transpose([clique.index(p) for p in (*owners, a)])
            table = normalise(joint.reshape(-1, tree.sizes[a]))
        parents = tuple(names[p] for p in owners)
        cells = replace(cells, weights=histograms[a].weights)
        nodes.append(Node(attribute=frame.attributes[a], cells=cells, parents=parents, table=table))
    return MarginalModel(nodes=tuple(nodes), num_rows=frame.num_rows, releases=tuple(purse.entries))


def dependence(joint: FloatArray, first: int, second: int) -> float:
    """Return the mutual information of two axes of a joint table."""
    table = joint.sum(axis=tuple(i for i in range(joint.ndim) if i not in (first, second)))
    even = table.sum(axis=0, keepdims=True) * table.sum(axis=1, keepdims=True)
    seen = table > 0
    return float((table[seen] * np.log(table[seen] / even[seen])).sum())


def normalise(joint: FloatArray) -> FloatArray:
    """Turn joint probabilities into P(column | row); a row without mass gets the overall distribution."""
    total = joint.sum(axis=1, keepdims=True)
    overall = joint.sum(axis=0, keepdims=True)
    overall = overall / overall.sum()
    result: FloatArray = np.where(total > 1e-300, joint / np.where(total > 1e-300, total, 1.0), overall)
    result /= result.sum(axis=1, keepdims=True)
    return result

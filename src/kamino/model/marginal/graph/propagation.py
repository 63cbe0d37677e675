"""Exact inference on the junction tree: from log potentials to the marginal of every clique.

The upward pass turns each clique into P(rest | separator), shifted by its own maximum for each separator
configuration, so nothing over- or underflows; the downward pass multiplies by the separator's marginal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kamino.model.marginal.graph.factor import FloatArray, divide, drop_axes, project, spread_shape
from kamino.model.marginal.graph.junction import JunctionTree


class Propagator:
    """The index work of one tree, done once; calling it with log potentials costs a few passes over the cells."""

    def __init__(self, tree: JunctionTree) -> None:
        self.tree = tree
        sizes, cliques = tree.sizes, tree.cliques
        self.shapes = [tuple(sizes[a] for a in clique) for clique in cliques]
        separators = [tree.separator(i) for i in range(len(cliques))]
        self._rest = [drop_axes(clique, sep) for clique, sep in zip(cliques, separators, strict=True)]
        self._in_child = [spread_shape(c, s, sizes) for c, s in zip(cliques, separators, strict=True)]
        above = [cliques[max(p, 0)] for p in tree.parent]
        self._in_parent = [spread_shape(c, s, sizes) for c, s in zip(above, separators, strict=True)]
        self._off_parent = [drop_axes(c, s) for c, s in zip(above, separators, strict=True)]

    def __call__(self, potentials: Sequence[FloatArray]) -> tuple[list[FloatArray], float]:
        """Return the marginal of each clique, and the log of the normaliser.

        Guarantees:
            Equals summing the whole joint table.  [test_propagation_matches_brute_force]
        """
        parent = self.tree.parent
        beliefs = [np.array(table) for table in potentials]
        log_total = 0.0
        for i in range(len(beliefs) - 1, -1, -1):
            table, rest = beliefs[i], self._rest[i]
            peak = table.max(axis=rest, keepdims=True)
            # A separator configuration without any allowed cell sends -inf up and keeps no mass.
            np.copyto(peak, 0.0, where=np.isneginf(peak))
            table -= peak
            np.exp(table, out=table)
            total = table.sum(axis=rest, keepdims=True)
            with np.errstate(divide="ignore"):
                message = np.log(total) + peak
            np.copyto(total, 1.0, where=total == 0)
            table /= total
            if parent[i] >= 0:
                beliefs[parent[i]] += message.reshape(self._in_parent[i])
            else:
                log_total = float(message.reshape(()))
        for i in range(1, len(beliefs)):
            above = beliefs[parent[i]]
            axes = self._off_parent[i]
            beliefs[i] *= (above.sum(axis=axes) if axes else above).reshape(self._in_child[i])
        return beliefs, log_total


def pair_marginals(tree: JunctionTree, beliefs: Sequence[FloatArray], first: int) -> dict[int, FloatArray]:
    """Return P(first, b) for every other attribute b, as tables with `first` on the rows.

    Walks the tree away from a clique that holds `first`, carrying `first` along as an extra axis.

    Guarantees:
        Equals summing the whole joint table.  [test_pair_marginals_match_brute_force]
    """
    sizes = tree.sizes
    start = tree.home((first,))
    assert start is not None
    found: dict[int, FloatArray] = {}
    only = np.eye(sizes[first]).reshape(sizes[first], *spread_shape(tree.cliques[start], (first,), sizes))
    joint: FloatArray = beliefs[start][None] * only
    pending: list[tuple[int, int, FloatArray]] = [(start, -1, joint)]
    while pending:
        here, origin, table = pending.pop()
        clique = tree.cliques[here]
        for i, b in enumerate(clique):
            if b != first and b not in found:
                found[b] = table.sum(axis=tuple(j + 1 for j in range(len(clique)) if j != i))
        for there, separator in neighbours(tree, here):
            if there == origin:
                continue
            axes = tuple(j + 1 for j in drop_axes(clique, separator))
            carried = table.sum(axis=axes) if axes else table
            shape = spread_shape(tree.cliques[there], separator, sizes)
            base = project(beliefs[there], tree.cliques[there], separator).reshape(shape)
            step = divide(beliefs[there], base)
            pending.append((there, here, carried.reshape(sizes[first], *shape) * step[None]))
    return found


def neighbours(tree: JunctionTree, index: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the cliques next to `index`, with the separators between."""
    if tree.parent[index] >= 0:
        yield tree.parent[index], tree.separator(index)
    for child, above in enumerate(tree.parent):
        if above == index:
            yield child, tree.separator(child)

"""Exact inference on the junction tree: from log potentials to the marginal of every clique.

The upward pass turns each clique into P(rest | separator), shifted by its own maximum for each separator
configuration, so nothing over- or underflows; the downward pass multiplies by the separator's marginal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kamino.model.marginal.graph.factor import FloatArray, drop_axes, spread_shape
from kamino.model.marginal.graph.junction import JunctionTree

#: Sums that are smaller, relative to the shift, or larger than its inverse, are computed again with another shift.
_LEAST = 1e-6


class Propagator:
    """The index work of one tree, done once; calling it with log potentials costs a few passes over the cells.

    Tables are shifted by what the last call found to be their logarithm, which keeps numbers near 1 where potentials
    move little, and by their maximum where that is not enough. Works in the type of the potentials.
    """

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
        self._shift: list[FloatArray | None] = [None] * len(cliques)

    def __call__(self, potentials: Sequence[FloatArray]) -> tuple[list[FloatArray], float]:
        """Return the marginal of each clique, and the log of the normaliser.

        Guarantees:
            Equals summing the whole joint table.  [test_propagation_matches_brute_force]
            So it does whatever was called before.  [test_propagation_forgets_earlier_potentials]
        """
        parent = self.tree.parent
        beliefs = [np.array(table) for table in potentials]
        totals: list[FloatArray] = [np.ones(())] * len(beliefs)
        log_total = 0.0
        for i in range(len(beliefs) - 1, -1, -1):
            beliefs[i], totals[i], message = self._close(i, beliefs[i])
            if parent[i] >= 0:
                beliefs[parent[i]] += message.reshape(self._in_parent[i])
            else:
                log_total = float(message.reshape(()))
        for i in range(len(beliefs)):
            above = np.ones((), dtype=beliefs[i].dtype)
            if parent[i] >= 0:
                above = beliefs[parent[i]]
                axes = self._off_parent[i]
                above = (np.add.reduce(above, axis=axes) if axes else above).reshape(self._in_child[i])
            beliefs[i] *= above / totals[i]
        return beliefs, log_total

    def _close(self, i: int, table: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return exp of a table, shifted; its sums for each separator configuration (1 for 0); their logarithms."""
        rest, shift = self._rest[i], self._shift[i]
        if shift is not None:
            with np.errstate(over="ignore"):
                near = np.exp(table - shift)
                total = np.add.reduce(near, axis=rest, keepdims=True)
            if total.min() > _LEAST and total.max() < 1 / _LEAST:
                message = np.log(total) + shift
                self._shift[i] = message
                return near, total, message
        peak = table.max(axis=rest, keepdims=True)
        # A separator configuration without any allowed cell sends -inf up and keeps no mass.
        np.copyto(peak, 0.0, where=np.isneginf(peak))
        table = np.exp(table - peak)
        total = np.add.reduce(table, axis=rest, keepdims=True)
        with np.errstate(divide="ignore"):
            message = np.log(total) + peak
        self._shift[i] = message if total.min() > 0 else None
        np.copyto(total, 1.0, where=total == 0)
        return table, total, message

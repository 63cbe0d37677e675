"""Exact inference on the junction tree: from log potentials to the marginal of every clique.

The upward pass turns each clique into P(rest | separator), shifted by its own maximum for each separator
configuration, so nothing over- or underflows; the downward pass multiplies by the separator's marginal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kamino.model.marginal.graph.factor import FloatArray, Projection
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
        sizes, cliques, groups = tree.sizes, tree.cliques, tree.groups
        self.shapes = [tuple(sizes[a] for a in clique) for clique in cliques]
        separators = [tree.separator(i) for i in range(len(cliques))]
        above = [cliques[max(p, 0)] for p in tree.parent]
        self._own = [Projection(c, s, sizes, groups) for c, s in zip(cliques, separators, strict=True)]
        self._above = [Projection(c, s, sizes, groups) for c, s in zip(above, separators, strict=True)]
        self._shift: list[FloatArray | None] = [None] * len(cliques)

    def __call__(self, potentials: Sequence[FloatArray]) -> tuple[list[FloatArray], float]:
        """Return the marginal of each clique, and the log of the normaliser.

        Guarantees:
            Equals summing the whole joint table.  [test_propagation_matches_brute_force]
            So it does whatever was called before.  [test_propagation_forgets_earlier_potentials]
        """
        parent = self.tree.parent
        beliefs, heard = list(potentials), set[int]()
        totals: list[FloatArray] = [np.ones(())] * len(beliefs)
        log_total = 0.0
        for i in range(len(beliefs) - 1, -1, -1):
            beliefs[i], totals[i], message = self._close(i, beliefs[i])
            if (above := parent[i]) >= 0:
                # The potentials are the caller's: the first message makes a table of ours.
                out = beliefs[above] if above in heard else None
                beliefs[above] = np.add(beliefs[above], self._above[i].spread(message), out=out)
                heard.add(above)
            else:
                log_total = float(message.reshape(()))
        for i in range(len(beliefs)):
            own = 1 / totals[i] if parent[i] < 0 else self._above[i].sum(beliefs[parent[i]]) / totals[i]
            beliefs[i] *= self._own[i].spread(own)
        return beliefs, log_total

    def _close(self, i: int, table: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return exp of a table, shifted; its sums for each separator configuration (1 for 0); their logarithms."""
        own, shift = self._own[i], self._shift[i]
        if shift is not None:
            with np.errstate(over="ignore", invalid="ignore"):
                near = table - own.spread(shift)
                np.exp(near, out=near)
                total = own.sum(near)
            if total.min() > _LEAST and total.max() < 1 / _LEAST:
                message = np.log(total) + shift
                self._shift[i] = message
                return near, total, message
        peak = own.max(table)
        # A separator configuration without any allowed cell sends -inf up and keeps no mass.
        peak = np.where(np.isneginf(peak), np.zeros((), dtype=peak.dtype), peak)
        table = table - own.spread(peak)
        np.exp(table, out=table)
        total = own.sum(table)
        with np.errstate(divide="ignore"):
            message = np.log(total) + peak
        self._shift[i] = message if total.min() > 0 else None
        total = np.where(total == 0, np.ones((), dtype=total.dtype), total)
        return table, total, message

"""The marginal of every pair of attributes, by walks over the junction tree.

From each clique all attributes that are at home in it walk together, away from it. Along the way only
P(attribute, separator) is carried: from one separator S to the next target T it is multiplied by P(T | S), one matrix
for each value of what S and T share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kamino.model.marginal.graph.factor import FloatArray, Projection, divide, with_both
from kamino.model.marginal.graph.junction import Clique, JunctionTree


def pair_marginals(tree: JunctionTree, beliefs: Sequence[FloatArray]) -> dict[Clique, FloatArray]:
    """Return P(a, b) for all pairs of variables a < b but those that are groups of another's values.

    Guarantees:
        Equals summing the whole joint table.  [test_pair_marginals_match_brute_force]
    """
    steps = _Steps(tree, beliefs)
    at_home: dict[int, list[int]] = {}
    for a in (a for a in range(len(tree.sizes)) if a not in tree.groups):
        home = tree.home((a,))
        assert home is not None
        at_home.setdefault(home, []).append(a)
    found: dict[Clique, FloatArray] = {}
    for home, walkers in at_home.items():
        _walk(steps, home, walkers, found)
    return found


class _Steps:
    """P(target | separator) inside each clique, found once."""

    def __init__(self, tree: JunctionTree, beliefs: Sequence[FloatArray]) -> None:
        self.tree, self.beliefs = tree, beliefs
        self.next: list[list[tuple[int, Clique]]] = [[] for _ in tree.cliques]
        for child, parent in enumerate(tree.parent):
            if parent >= 0:
                separator = tree.separator(child)
                self.next[child].append((parent, separator))
                self.next[parent].append((child, separator))
        self._known: dict[tuple[int, Clique, Clique], FloatArray] = {}

    def start(self, clique: int, walker: int, target: Clique) -> FloatArray:
        """Return P(walker, target), a line for each value of the walker; both are in the clique."""
        sizes, inside = self.tree.sizes, self.tree.cliques[clique]
        joint = with_both(self.beliefs[clique], inside, sorted({walker, *target}), sizes, self.tree.groups)
        if walker in target:
            only = np.eye(sizes[walker]).reshape(sizes[walker], *Projection(target, (walker,), sizes, {}).shape)
            return (only * joint).reshape(sizes[walker], -1)
        place = sum(a < walker for a in target)
        return np.moveaxis(joint, place, 0).reshape(sizes[walker], -1)

    def __call__(self, carried: FloatArray, clique: int, separator: Clique, target: Clique) -> FloatArray:
        """Return P(walkers, target) from P(walkers, separator), as lines of flattened tables."""
        sizes = self.tree.sizes
        shared = [a for a in separator if a in target]
        left = [a for a in separator if a not in target]
        new = [a for a in target if a not in separator]
        key = clique, separator, target
        if key not in self._known:
            self._known[key] = self._conditional(clique, shared, left, new)
        lines = len(carried)
        table = carried.reshape(lines, *(sizes[a] for a in separator))
        table = table.transpose([separator.index(a) + 1 for a in shared] + [0] + [separator.index(a) + 1 for a in left])
        moved = table.reshape(-1, lines, math.prod(sizes[a] for a in left)) @ self._known[key]
        moved = moved.reshape(*(sizes[a] for a in shared), lines, *(sizes[a] for a in new))
        order = [*shared, -1, *new]
        return moved.transpose([order.index(-1), *(order.index(a) for a in target)]).reshape(lines, -1)

    def _conditional(self, clique: int, shared: list[int], left: list[int], new: list[int]) -> FloatArray:
        """Return P(new | shared, left) as a matrix (left by new) for each value of what is shared."""
        sizes = self.tree.sizes
        axes = sorted((*shared, *left, *new))
        joint = with_both(self.beliefs[clique], self.tree.cliques[clique], axes, sizes, self.tree.groups)
        joint = joint.transpose([axes.index(a) for a in (*shared, *left, *new)])
        joint = joint.reshape(-1, math.prod(sizes[a] for a in left), math.prod(sizes[a] for a in new))
        return divide(joint, joint.sum(axis=2, keepdims=True))


def _walk(steps: _Steps, home: int, walkers: Sequence[int], found: dict[Clique, FloatArray]) -> None:
    """Take the attributes that are at home in a clique to all others; note the pairs they are the first of."""
    tree = steps.tree
    ends = np.cumsum([tree.sizes[a] for a in walkers])
    met = set(tree.cliques[home])
    for b in _not_grouped(tree, home):
        for a in walkers:
            if a < b:
                found[a, b] = steps.start(home, a, (b,))
    pending = [
        (there, home, separator, np.concatenate([steps.start(home, a, separator) for a in walkers]))
        for there, separator in steps.next[home]
    ]
    while pending:
        here, origin, separator, carried = pending.pop()
        for b in _not_grouped(tree, here):
            if b not in met and any(a < b for a in walkers):
                tables = np.split(steps(carried, here, separator, (b,)), ends[:-1])
                found.update(((a, b), table) for a, table in zip(walkers, tables, strict=True) if a < b)
        met.update(tree.cliques[here])
        pending.extend(
            (there, here, onward, steps(carried, here, separator, onward))
            for there, onward in steps.next[here]
            if there != origin
        )


def _not_grouped(tree: JunctionTree, clique: int) -> list[int]:
    return [b for b in tree.cliques[clique] if b not in tree.groups]

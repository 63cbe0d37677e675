"""The marginal of every pair of attributes, by one walk over the junction tree for many attributes at once.

Attributes are carried from clique to clique, and only P(attribute, separator) of each: from one separator S to the next
target T it is multiplied by P(T | S), one matrix for each value of what S and T share. The tree is walked from its
root, each branch to its end and back. What comes down to a clique are the attributes that were met before it: in
cliques above it, and in branches that are done.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from kamino.model.marginal.graph.factor import FloatArray, Projection, divide, with_both
from kamino.model.marginal.graph.junction import Clique, JunctionTree

#: One walk carries attributes with so many numbers for a usual separator together: more would not fit the cache, fewer
#: would take more steps.
NUMBERS = 40_000


def pair_marginals(tree: JunctionTree, beliefs: Sequence[FloatArray]) -> dict[Clique, FloatArray]:
    """Return P(a, b) for all pairs of variables a < b but those that are groups of another's values.

    Guarantees:
        Equals summing the whole joint table, however many attributes are carried at once.
        [test_pair_marginals_match_brute_force]
    """
    if not tree.cliques:
        return {}
    steps = _Steps(tree, beliefs)
    route = _Route(tree)
    found: dict[Clique, FloatArray] = {}
    cells = sum(math.prod(tree.sizes[a] for a in separator) for separator in route.separator)
    in_order = [a for clique in route.entered for a in route.first_met[clique]]
    for walkers in _in_blocks(in_order, tree.sizes, NUMBERS * len(route.separator) // cells):
        _walk(steps, route, walkers, found)
    return found


def _in_blocks(walkers: Sequence[int], sizes: Sequence[int], most: int) -> Iterator[set[int]]:
    """Yield runs of attributes with at most so many values together, or one that has more."""
    block, lines = set[int](), 0
    for a in walkers:
        if block and lines + sizes[a] > most:
            yield block
            block, lines = set[int](), 0
        block.add(a)
        lines += sizes[a]
    if block:
        yield block


class _Route:
    """How the tree is walked: each clique is entered once, after its parent, and left after its whole branch."""

    def __init__(self, tree: JunctionTree) -> None:
        self.parent = tree.parent
        self.separator = [tree.separator(i) for i in range(len(tree.cliques))]
        children: list[list[int]] = [[] for _ in tree.cliques]
        branch = [1] * len(tree.cliques)
        for i in range(len(tree.cliques) - 1, 0, -1):
            children[tree.parent[i]].append(i)
            branch[tree.parent[i]] += branch[i]
        self.events: list[tuple[int, bool]] = []
        """Which clique comes next, and whether it is entered. The largest branch of each comes last: nothing has to be
        carried out of it for the others."""
        pending = [(0, True)]
        while pending:
            clique, entering = pending.pop()
            self.events.append((clique, entering))
            if entering:
                pending.append((clique, False))
                pending += [(i, True) for i in sorted(children[clique], key=lambda i: (-branch[i], i))]
        #: The variables that are met first in each clique.
        self.first_met: list[list[int]] = [[] for _ in tree.cliques]
        met = set(tree.groups)
        for clique in self.entered:
            self.first_met[clique] = [a for a in tree.cliques[clique] if a not in met]
            met.update(tree.cliques[clique])

    @cached_property
    def entered(self) -> list[int]:
        """The cliques in the order in which they are entered."""
        return [clique for clique, entering in self.events if entering]


@dataclass(frozen=True, eq=False)
class _Carried:
    """Attributes, and P(attribute, separator): a line for each value of each, and a column for each cell."""

    walkers: tuple[int, ...] = ()
    table: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    @staticmethod
    def joined(parts: Sequence[_Carried]) -> _Carried:
        parts = [part for part in parts if part.walkers]
        if len(parts) < 2:
            return parts[0] if parts else _Carried()
        return _Carried(tuple(a for p in parts for a in p.walkers), np.concatenate([p.table for p in parts]))


class _Steps:
    """P(target | separator) inside each clique, found once."""

    def __init__(self, tree: JunctionTree, beliefs: Sequence[FloatArray]) -> None:
        self.tree, self.beliefs = tree, beliefs
        self._known: dict[tuple[int, Clique, Clique], FloatArray] = {}
        self._onto: dict[int, FloatArray] = {}

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
        if separator == target:
            return carried
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

    def onto(self, clique: int, separator: Clique, new: Sequence[int]) -> FloatArray:
        """Return P(a | separator) for each of some new variables of a clique, side by side."""
        if clique not in self._onto:
            parts = [self._conditional(clique, [], list(separator), [a])[0] for a in new]
            self._onto[clique] = np.concatenate(parts, axis=1)
        return self._onto[clique]

    def _conditional(self, clique: int, shared: list[int], left: list[int], new: list[int]) -> FloatArray:
        """Return P(new | shared, left) as a matrix (left by new) for each value of what is shared."""
        sizes = self.tree.sizes
        axes = sorted((*shared, *left, *new))
        joint = with_both(self.beliefs[clique], self.tree.cliques[clique], axes, sizes, self.tree.groups)
        joint = joint.transpose([axes.index(a) for a in (*shared, *left, *new)])
        joint = joint.reshape(-1, math.prod(sizes[a] for a in left), math.prod(sizes[a] for a in new))
        return divide(joint, joint.sum(axis=2, keepdims=True))


def _walk(steps: _Steps, route: _Route, block: set[int], found: dict[Clique, FloatArray]) -> None:
    """Carry the attributes of a block over the tree; note their pairs with what is met after them."""
    own = [[a for a in first if a in block] for first in route.first_met]
    down: dict[int, _Carried] = {}
    #: What came back to a clique from its branches, by the separator it came over.
    back: dict[int, dict[Clique, _Carried]] = {}

    def gathered(clique: int, target: Clique) -> _Carried:
        parts = [_Carried((a,), steps.start(clique, a, target)) for a in own[clique]]
        sources = (*back[clique].items(), (route.separator[clique], down.get(clique, _Carried())))
        for separator, each in sources:
            if each.walkers:
                parts.append(_Carried(each.walkers, steps(each.table, clique, separator, target)))
        return _Carried.joined(parts)

    left_to_enter = len(route.parent)
    for clique, entering in route.events:
        above, separator = route.parent[clique], route.separator[clique]
        if entering:
            down[clique] = gathered(above, separator) if above >= 0 else _Carried()
            back[clique] = {}
            _note(steps, route, clique, own[clique], down[clique], found)
            left_to_enter -= 1
        elif left_to_enter == 0:
            return
        else:
            # What came down is known above; what was met in this branch goes back.
            del down[clique]
            up = gathered(clique, separator)
            del back[clique]
            back[above][separator] = _Carried.joined([back[above].get(separator, _Carried()), up])


def _note(
    steps: _Steps, route: _Route, clique: int, own: Sequence[int], down: _Carried, found: dict[Clique, FloatArray]
) -> None:
    """Note the pairs of the variables that are met first in a clique: with each other, and with what came down."""
    sizes, new = steps.tree.sizes, route.first_met[clique]
    for a in own:
        found.update(((a, b), steps.start(clique, a, (b,))) for b in new if a < b)
    if not (new and down.walkers):
        return
    tables = down.table @ steps.onto(clique, route.separator[clique], new)
    columns = np.split(tables, np.cumsum([sizes[b] for b in new])[:-1], axis=1)
    ends = np.cumsum([sizes[a] for a in down.walkers])[:-1]
    for b, lines in zip(new, columns, strict=True):
        for a, table in zip(down.walkers, np.split(lines, ends), strict=True):
            found[min(a, b), max(a, b)] = table if a < b else table.T

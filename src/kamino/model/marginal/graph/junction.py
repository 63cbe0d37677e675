"""The shape of the graphical model: attributes, an order that eliminates them, and the tree of cliques it gives.

Attributes are indices 0..d-1 here. Eliminating them in the reverse of the sequence makes the parents of each attribute
(its neighbours when it is eliminated) earlier attributes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

Clique = tuple[int, ...]
_UNIT = 2**40


@dataclass(frozen=True, kw_only=True)
class JunctionTree:
    """Maximal cliques (sorted indices) in an order where each clique's parent comes before it.

    Guarantees:
        Every clique given to `build_tree` lies in one of `cliques`.  [test_tree_covers_the_given_cliques]
        The cliques that hold an attribute are connected.  [test_tree_has_the_running_intersection_property]
    """

    sizes: tuple[int, ...]
    sequence: tuple[int, ...]
    parents: tuple[Clique, ...]
    cliques: tuple[Clique, ...]
    parent: tuple[int, ...]

    @property
    def cells(self) -> int:
        """The number of cells of all clique tables together."""
        return sum(math.prod(self.sizes[a] for a in clique) for clique in self.cliques)

    def home(self, attributes: Iterable[int]) -> int | None:
        """Return the smallest clique that holds all `attributes`, or None."""
        wanted = set(attributes)
        holding = [i for i, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(holding, key=lambda i: math.prod(self.sizes[a] for a in self.cliques[i]), default=None)

    def separator(self, index: int) -> Clique:
        """Return what clique `index` shares with its parent."""
        if self.parent[index] < 0:
            return ()
        above = set(self.cliques[self.parent[index]])
        return tuple(a for a in self.cliques[index] if a in above)


def eliminate(
    sizes: Sequence[int],
    cliques: Iterable[Clique],
    sequence: Sequence[int] | None,
    after: Mapping[int, int] | None = None,
) -> tuple[tuple[int, ...], tuple[Clique, ...]]:
    """Eliminate all attributes; return the sequence (last eliminated first) and each attribute's parents.

    Without a sequence the attribute whose clique is smallest goes next; `after` says which attribute must come after
    which other in the sequence then.
    """
    done, parents = Graph(sizes, cliques, sequence, after).eliminate()
    return tuple(reversed(done)), tuple(tuple(sorted(near)) for near in parents)


class Graph:
    """Which attributes share a clique, and how large a model that makes."""

    def __init__(
        self,
        sizes: Sequence[int],
        cliques: Iterable[Clique],
        sequence: Sequence[int] | None,
        after: Mapping[int, int] | None = None,
    ) -> None:
        self._sizes, self._sequence, self._after = sizes, sequence, after or {}
        # Whole numbers add up to the same in any order.
        self._logs = [round(math.log(size) * _UNIT) for size in sizes]
        self._near: list[set[int]] = [set() for _ in sizes]
        self._weight = list(self._logs)
        self._counted: dict[Clique, int] = {}
        for clique in cliques:
            self.add(clique)

    def add(self, clique: Clique) -> None:
        """Let the attributes of a clique share one."""
        self._join(self._near, self._weight, clique)
        self._counted.clear()

    def cells_with(self, clique: Clique = ()) -> int:
        """Return the cells of the tree that one more clique would give, without making the tree.

        A clique is counted once until another one is added: marginals of several resolutions share their attributes.

        Guarantees:
            Equals the cells of `build_tree`.  [test_cells_are_counted_without_the_tree]
        """
        if clique not in self._counted:
            self._counted[clique] = self._count(clique)
        return self._counted[clique]

    def _count(self, clique: Clique) -> int:
        sizes = self._sizes
        done, parents = self.eliminate(clique)
        place = {a: i for i, a in enumerate(done)}
        # The clique of an attribute is not maximal if it is all that another one had when it went.
        inner = set()
        for above in parents:
            if above:
                first = min(above, key=place.__getitem__)
                if len(above) == len(parents[first]) + 1:
                    inner.add(first)
        return sum(math.prod((sizes[a], *(sizes[b] for b in parents[a]))) for a in done if a not in inner)

    def eliminate(self, clique: Clique = ()) -> tuple[list[int], list[set[int]]]:
        """Return the order of elimination, with one more clique, and the neighbours of each attribute when it goes."""
        near, weight, logs = [set(others) for others in self._near], list(self._weight), self._logs
        self._join(near, weight, clique)
        if self._sequence is not None:
            for a in reversed(self._sequence):
                for b in near[a]:
                    near[b] |= near[a]
                    near[b] -= {a, b}
            return list(reversed(self._sequence)), near
        waiting = Counter(self._after.values())
        # The heap also holds what weights were before. Ties go to the last attribute.
        heap = [(weight[a], -a) for a in range(len(near)) if not waiting[a]]
        heapify(heap)
        gone = [False] * len(near)
        done: list[int] = []
        while len(done) < len(near):
            size, a = heappop(heap)
            a = -a
            if gone[a] or size != weight[a]:
                continue
            gone[a] = True
            done.append(a)
            around = near[a]
            for b in around:
                others = near[b]
                others.discard(a)
                new = around - others
                new.discard(b)
                others |= new
                weight[b] += sum(logs[c] for c in new) - logs[a]
                if not waiting[b]:
                    heappush(heap, (weight[b], -b))
            base = self._after.get(a)
            if base is not None:
                waiting[base] -= 1
                if not waiting[base]:
                    heappush(heap, (weight[base], -base))
        return done, near

    def _join(self, near: list[set[int]], weight: list[int], clique: Clique) -> None:
        for a in clique:
            new = set(clique) - near[a]
            new.discard(a)
            near[a] |= new
            weight[a] += sum(self._logs[b] for b in new)


def build_tree(
    sizes: Sequence[int],
    cliques: Iterable[Clique],
    sequence: Sequence[int] | None = None,
    after: Mapping[int, int] | None = None,
) -> JunctionTree:
    """Triangulate along the sequence (see `eliminate`) and connect the maximal cliques."""
    order, parents = eliminate(sizes, cliques, sequence, after)
    place = {a: i for i, a in enumerate(order)}
    kept: list[Clique] = []
    parent: list[int] = []
    holder: dict[int, int] = {}
    for a in order:
        above = parents[a]
        if not above:
            # Each separate part of the model hangs on the first one by an empty separator.
            index, link = None, (0 if kept else -1)
        else:
            link = holder[max(above, key=lambda b: place[b])]
            index = link if set(kept[link]) == set(above) else None
        if index is None:
            kept.append(tuple(sorted((*above, a))))
            parent.append(link)
            holder[a] = len(kept) - 1
        else:
            # The clique above is exactly the parents: it grows instead of getting a child that contains it.
            kept[index] = tuple(sorted((*kept[index], a)))
            holder[a] = index
    return JunctionTree(sizes=tuple(sizes), sequence=order, parents=parents, cliques=tuple(kept), parent=tuple(parent))

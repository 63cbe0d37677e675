"""The shape of the graphical model: variables, an order that eliminates them, and the tree of cliques it gives.

Variables are indices 0..d-1 here. Eliminating them in the reverse of the sequence makes the parents of each variable
(its neighbours when it is eliminated) earlier variables.

A variable may be the groups of the values of the one before it (`groups`). It comes right before that one in the
sequence, and where a clique has both, the table of the clique needs an axis for the finer one only. So a dependence
that was measured between groups costs the model the cells of groups, and not those of all values.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heapify, heappop, heappush

from kamino.model.marginal.graph.factor import Groups, with_groups, without_groups

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
    groups: Groups = field(default_factory=dict)

    @property
    def cells(self) -> int:
        """The number of cells of all clique tables together."""
        return sum(math.prod(self.sizes[a] for a in clique) for clique in self.cliques)

    def home(self, variables: Iterable[int]) -> int | None:
        """Return the smallest clique that holds all `variables`, or None."""
        wanted = set(variables)
        holding = [i for i, held in enumerate(self._held) if wanted <= held]
        return min(holding, key=lambda i: math.prod(self.sizes[a] for a in self.cliques[i]), default=None)

    def separator(self, index: int) -> Clique:
        """Return what clique `index` shares with its parent."""
        if self.parent[index] < 0:
            return ()
        return without_groups(self._held[index] & self._held[self.parent[index]], self.groups)

    @cached_property
    def _held(self) -> list[set[int]]:
        """What each clique says something of: its variables, and the groups of their values."""
        return [with_groups(clique, self.groups) for clique in self.cliques]


def eliminate(
    sizes: Sequence[int],
    cliques: Iterable[Clique],
    sequence: Sequence[int] | None,
    after: Mapping[int, int] | None = None,
    groups: Groups | None = None,
) -> tuple[tuple[int, ...], tuple[Clique, ...]]:
    """Eliminate all variables; return the sequence (last eliminated first) and each variable's parents.

    Without a sequence the variable whose clique is smallest goes next, and its groups right after it; `after` says
    which variable must come after which other in the sequence then.
    """
    done, parents = Graph(sizes, cliques, sequence, after, groups).eliminate()
    return tuple(reversed(done)), tuple(parents)


class Graph:
    """Which attributes share a clique, and how large a model that makes.

    Sets of variables are whole numbers with a bit for each. What a set weighs is remembered: candidates differ in a few
    variables, and meet the same sets again and again.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        cliques: Iterable[Clique],
        sequence: Sequence[int] | None,
        after: Mapping[int, int] | None = None,
        groups: Groups | None = None,
    ) -> None:
        self._sizes, self._sequence, self._after, self._groups = sizes, sequence, after or {}, groups or {}
        self._group_bits = sum(1 << v for v in self._groups)
        # Whole numbers add up to the same in any order.
        self._logs = [round(math.log(size) * _UNIT) for size in sizes]
        self._near = [0] * len(sizes)
        self._counted: dict[Clique, int] = {}
        #: What eliminating each variable first would make, while no clique is added.
        self._weights: list[int] | None = None
        self._members: dict[int, tuple[int, ...]] = {}
        self._owners: dict[int, tuple[int, ...]] = {}
        self._log_cells: dict[int, int] = {}
        self._cells: dict[int, int] = {}
        for clique in (*cliques, *((v - 1, v) for v in self._groups)):
            self.add(clique)

    def add(self, clique: Clique) -> None:
        """Let the variables of a clique share one."""
        _join(self._near, clique)
        self._counted.clear()
        self._weights = None

    def cells_with(self, clique: Clique = ()) -> int:
        """Return the cells of the tree that one more clique would give, without making the tree.

        A clique is counted once until another one is added: marginals of several resolutions share their variables.

        Guarantees:
            Equals the cells of `build_tree`.  [test_cells_are_counted_without_the_tree]
        """
        whole = sum(1 << a for a in clique)
        if all(not whole & ~(self._near[a] | 1 << a) for a in clique):
            clique = ()  # its variables share one already
        if clique not in self._counted:
            self._counted[clique] = self._count(clique)
        return self._counted[clique]

    def _count(self, clique: Clique) -> int:
        done, parents = self._eliminate(clique)
        place = [0] * len(done)
        for i, a in enumerate(done):
            place[a] = i
        # The clique of a variable is not maximal if it is all that another one had when it went.
        inner = 0
        for above in parents:
            if above:
                first = min(self._in(above), key=place.__getitem__)
                if above.bit_count() == parents[first].bit_count() + 1:
                    inner |= 1 << first
        return sum([self._cells_of(parents[a] | 1 << a) for a in done if not inner >> a & 1])

    def eliminate(self) -> tuple[list[int], list[tuple[int, ...]]]:
        """Return the order of elimination, and the neighbours of each variable when it goes."""
        done, parents = self._eliminate()
        return done, [self._in(above) for above in parents]

    def _eliminate(self, clique: Clique = ()) -> tuple[list[int], list[int]]:
        near = list(self._near)
        _join(near, clique)
        if self._sequence is not None:
            for a in reversed(self._sequence):
                self._take_out(near, a)
            return list(reversed(self._sequence)), near
        done: list[int] = []
        groups, last = self._groups, len(near)
        waiting = [0] * last
        for awaited in self._after.values():
            waiting[awaited] += 1
        if self._weights is None:
            self._weights = [0 if a in groups else self._weight(self._near, a) for a in range(last)]
        weight = list(self._weights)
        for a in {a - 1 if a in groups else a for a in clique}:
            weight[a] = self._weight(near, a)
        # The heap also holds what weights were before. Ties go to the last variable.
        heap = [(weight[a], -a) for a in range(last) if a not in groups and not waiting[a]]
        heapify(heap)
        gone = [False] * last
        while heap:
            size, a = heappop(heap)
            a = -a
            if gone[a] or size != weight[a]:
                continue
            gone[a] = True
            around = near[a]
            done.append(a)
            self._take_out(near, a)
            if a + 1 in groups:
                around = (around | near[a + 1]) & ~(3 << a)
                done.append(a + 1)
                self._take_out(near, a + 1)
            base = self._after.get(a)
            if base is not None:
                waiting[base] -= 1
                if not waiting[base]:
                    heappush(heap, (weight[base], -base))
            for b in self._whole(around):
                new = self._weight(near, b)
                if new != weight[b]:
                    weight[b] = new
                    if not waiting[b]:
                        heappush(heap, (new, -b))
        return done, near

    def _take_out(self, near: list[int], a: int) -> None:
        """Eliminate a variable: its neighbours become each other's. Its own set stays as it was."""
        around = near[a]
        for b in self._in(around):
            near[b] = (near[b] | around) & ~(1 << a | 1 << b)

    def _weight(self, near: Sequence[int], a: int) -> int:
        """The logarithm of the cells of the larger clique that eliminating `a`, and its groups, would make."""
        held = near[a] | 1 << a
        own = self._log_cells.get(held)
        if own is None:
            own = self._log_cells_of(held)
        if a + 1 not in self._groups:
            return own
        return max(own, self._log_cells_of((near[a] | near[a + 1]) & ~(1 << a)))

    def _in(self, held: int) -> tuple[int, ...]:
        """The variables of a set, in order."""
        found = self._members.get(held)
        if found is None:
            members, rest = [], held
            while rest:
                lowest = rest & -rest
                members.append(lowest.bit_length() - 1)
                rest ^= lowest
            found = self._members[held] = tuple(members)
        return found

    def _whole(self, held: int) -> tuple[int, ...]:
        """The variables of a set, and those whose groups are in it."""
        found = self._owners.get(held)
        if found is None:
            found = self._owners[held] = self._in(held & ~self._group_bits | (held & self._group_bits) >> 1)
        return found

    def _axes(self, held: int) -> tuple[int, ...]:
        """The variables of a set without the groups of another one of them."""
        return self._in(held & ~(self._group_bits & held << 1))

    def _log_cells_of(self, held: int) -> int:
        found = self._log_cells.get(held)
        if found is None:
            found = self._log_cells[held] = sum([self._logs[b] for b in self._axes(held)])
        return found

    def _cells_of(self, held: int) -> int:
        found = self._cells.get(held)
        if found is None:
            found = self._cells[held] = math.prod([self._sizes[b] for b in self._axes(held)])
        return found


def _join(near: list[int], clique: Clique) -> None:
    whole = sum(1 << a for a in set(clique))
    for a in clique:
        near[a] |= whole & ~(1 << a)


def build_tree(
    sizes: Sequence[int],
    cliques: Iterable[Clique],
    sequence: Sequence[int] | None = None,
    after: Mapping[int, int] | None = None,
    groups: Groups | None = None,
) -> JunctionTree:
    """Triangulate along the sequence (see `eliminate`) and connect the maximal cliques."""
    groups = groups or {}
    order, parents = eliminate(sizes, cliques, sequence, after, groups)
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
    return JunctionTree(
        sizes=tuple(sizes),
        sequence=order,
        parents=parents,
        cliques=tuple(without_groups(clique, groups) for clique in kept),
        parent=tuple(parent),
        groups=groups,
    )

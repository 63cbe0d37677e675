"""The shape of the graphical model: attributes, an order that eliminates them, and the tree of cliques it gives.

Attributes are indices 0..d-1 here. Eliminating them in the reverse of the sequence makes the parents of each attribute
(its neighbours when it is eliminated) earlier attributes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Clique = tuple[int, ...]


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
    near: list[set[int]] = [set() for _ in sizes]
    for clique in cliques:
        for a in clique:
            near[a].update(clique)
    for a, others in enumerate(near):
        others.discard(a)
    left = set(range(len(sizes)))
    parents: list[Clique] = [()] * len(sizes)
    done: list[int] = []
    logs = [math.log(size) for size in sizes]
    while left:
        if sequence is not None:
            a = sequence[len(sequence) - 1 - len(done)]
        else:
            early = {base for later, base in (after or {}).items() if later in left}
            a = min(left - early, key=lambda i: (logs[i] + sum(logs[b] for b in near[i]), -i))
        parents[a] = tuple(sorted(near[a]))
        for b in near[a]:
            near[b] |= near[a]
            near[b] -= {a, b}
        left.discard(a)
        done.append(a)
    return tuple(reversed(done)), tuple(parents)


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

"""A set of rows no two of which clash: branch and bound over a graph of compatible rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kamino.sampling.codes.comparing import Mask

MAX_NODES = 20_000


class _OutOfNodesError(Exception):
    """The search was cut off."""


def find_clique(compatible: Mask, size: int) -> tuple[list[int] | None, bool]:
    """Return `size` vertices that are pairwise compatible, or None; and whether the answer is certain.

    Bounds by greedy colouring (Tomita and Seki, 2003): vertices of one colour are pairwise incompatible, so a clique
    holds at most one of each.

    Guarantees:
        Agrees with trying every set of vertices.  [test_clique_agrees_with_brute_force]
        Large cliques are found, too.  [test_large_cliques_are_found]
    """
    neighbours = [int.from_bytes(np.packbits(row, bitorder="little").tobytes(), "little") for row in compatible]
    for vertex in range(len(neighbours)):
        neighbours[vertex] &= ~(1 << vertex)
    search = _Search(neighbours, size)
    try:
        return search.run((1 << len(neighbours)) - 1), True
    except _OutOfNodesError:
        return None, False


class _Search:
    """The state of one search: the graph, the wanted size and how many nodes are left."""

    def __init__(self, neighbours: list[int], size: int) -> None:
        self._neighbours = neighbours
        self._size = size
        self._nodes = MAX_NODES

    def run(self, candidates: int) -> list[int] | None:
        """Return a clique of the wanted size among `candidates`, if there is one."""
        chosen: list[int] = []
        if len(chosen) >= self._size:
            return chosen
        # What is left of each node on the way to this one: its candidates, and the branches not taken yet.
        left, branches = [candidates], [self._branches(candidates)]
        while branches:
            vertex, colour = next(branches[-1], (-1, 0))
            if len(chosen) + colour < self._size:
                left.pop()
                branches.pop()
                del chosen[-1:]
                continue
            chosen.append(vertex)
            if len(chosen) >= self._size:
                return chosen
            inner = left[-1] & self._neighbours[vertex]
            left[-1] &= ~(1 << vertex)
            left.append(inner)
            branches.append(self._branches(inner))
        return None

    def _branches(self, candidates: int) -> Iterator[tuple[int, int]]:
        """The candidates of a node with their colours, the highest colours first."""
        self._nodes -= 1
        if self._nodes < 0:
            raise _OutOfNodesError
        order, colours = self._coloured(candidates)
        return zip(reversed(order), reversed(colours), strict=True)

    def _coloured(self, candidates: int) -> tuple[list[int], list[int]]:
        """Return the candidates in order of their colour, colours counting from 1."""
        order: list[int] = []
        colours: list[int] = []
        colour = 0
        while candidates:
            colour += 1
            same = candidates
            while same:
                lowest = same & -same
                vertex = lowest.bit_length() - 1
                order.append(vertex)
                colours.append(colour)
                candidates &= ~lowest
                same &= ~lowest & ~self._neighbours[vertex]
        return order, colours

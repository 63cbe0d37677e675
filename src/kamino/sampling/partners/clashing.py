"""Which combinations of a context and a code clash, and with how many of some rows each combination does.

Most predicates speak either of the code alone or of the context alone. A violation is then a product of two small
tables, R[c, c'] for contexts and O[v, v'] for codes, and a clash is one in either direction:

    clash = R O + R' O' - (R R') (O O'),    R'[c, c'] = R[c', c],    O'[v, v'] = O[v', v].

Counting takes two products of small matrices for each term. Elsewhere one table holds all pairs of combinations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import DenialConstraint
from kamino.sampling.codes.comparing import Columns, Judge, Mask

# Tables hold whole numbers, and so do their products: sums are exact in any order, of so many rows in single precision.
_Table: TypeAlias = NDArray[np.float32]
_EXACT = 1 << 24


class Clashes(Protocol):
    """The combinations that clash. Combination c * V + v is that of context c and the v-th of V codes.

    Guarantees:
        Counts are those of comparing every pair.  [test_clashes_are_those_of_every_pair]
    """

    def partners(self, held: IntArray) -> FloatArray:
        """Return with how many rows each combination clashes, where `held` says how many rows have each."""
        ...

    def table(self) -> _Table:
        """Return 1 for each pair of combinations that clash, and 0 for the others."""
        ...


def find_clashes(
    constraint: DenialConstraint, judge: Judge, attribute: str, contexts: Columns, listed: IntArray
) -> Clashes:
    """Compare all combinations of contexts, given by the other attributes' columns, and listed codes."""
    num_contexts = len(next(iter(contexts.values()))) if contexts else 1
    names = {p: {column.name for column in p.columns} for p in constraint.predicates}
    of_code = [p for p in constraint.predicates if names[p] == {attribute}]
    of_context = [p for p in constraint.predicates if attribute not in names[p]]
    if len(of_code) + len(of_context) < len(constraint.predicates):
        combined = {name: np.repeat(codes, len(listed)) for name, codes in contexts.items()}
        combined[attribute] = np.tile(listed, num_contexts)
        return _Listed(judge.clashes(constraint, *_all_pairs(combined)).astype(np.float32))
    codes = judge.holds(of_code, *_all_pairs({attribute: listed}))
    others = np.broadcast_to(judge.holds(of_context, *_all_pairs(contexts)), (num_contexts, num_contexts))
    return _Products(_either_way(others, codes))


def _all_pairs(columns: Columns) -> tuple[Columns, Columns]:
    down = {name: codes[:, None] for name, codes in columns.items()}
    across = {name: codes[None, :] for name, codes in columns.items()}
    return down, across


def _either_way(others: Mask, codes: Mask) -> tuple[tuple[_Table, _Table], ...]:
    """Return the terms of the formula: one where both directions are the same, and no third that is zero."""
    forth = (others.astype(np.float32), codes.astype(np.float32))
    in_both = (others & others.T, codes & codes.T)
    if np.array_equal(in_both[0], others) and np.array_equal(in_both[1], codes):
        return (forth,)
    back = (forth[0].T, forth[1].T)
    if not (in_both[0].any() and in_both[1].any()):
        return (forth, back)
    return (forth, back, (-in_both[0].astype(np.float32), in_both[1].astype(np.float32)))


def _as_floats(held: IntArray) -> NDArray[np.floating[Any]]:
    """Numbers of rows in the smallest type in which their sums are exact."""
    return held.astype(np.float32 if int(np.abs(held).sum()) < _EXACT else np.float64)


@dataclass(frozen=True, eq=False)
class _Products:
    """The sum of some products of a table for contexts and one for codes."""

    terms: tuple[tuple[_Table, _Table], ...]

    def partners(self, held: IntArray) -> FloatArray:
        """Return with how many rows each combination clashes."""
        num_contexts = len(self.terms[0][0])
        rows = _as_floats(held).reshape(num_contexts, -1)
        total = np.zeros(rows.shape)
        for others, codes in self.terms:
            total += others @ rows @ codes.T
        return total.ravel()

    def table(self) -> _Table:
        """Return which combinations clash."""
        return np.asarray(sum(np.kron(others, codes) for others, codes in self.terms), dtype=np.float32)


@dataclass(frozen=True, eq=False)
class _Listed:
    """All pairs of combinations in one table."""

    pairs: _Table

    def partners(self, held: IntArray) -> FloatArray:
        """Return with how many rows each combination clashes."""
        some = np.flatnonzero(held)
        if 2 * len(some) < len(held):
            return np.asarray(_as_floats(held[some]) @ self.pairs[some], dtype=np.float64)
        return np.asarray(_as_floats(held) @ self.pairs, dtype=np.float64)

    def table(self) -> _Table:
        """Return which combinations clash."""
        return self.pairs

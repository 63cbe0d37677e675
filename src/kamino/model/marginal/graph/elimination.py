"""Summing a product of factors down to a few attributes, one attribute at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kamino.model.protocol import FloatArray

Factor = tuple[tuple[int, ...], FloatArray]


def sum_product(factors: Sequence[Factor], wanted: Sequence[int]) -> FloatArray:
    """Return the sum over all but `wanted` of the product of `factors`, one axis for each wanted attribute.

    Attributes go from the last to the first, so a factor P(a | parents) whose attribute nobody needs sums to 1 and
    vanishes, and no table gets larger than a clique of the model times the wanted attributes (`largest_table`).

    Guarantees:
        Equals summing the whole joint table.  [test_marginals_match_brute_force]
    """
    live: list[Factor] = list(factors)
    for a in sorted({a for axes, _ in factors for a in axes}, reverse=True):
        if a in wanted:
            continue
        mine = [f for f in live if a in f[0]]
        rest = [f for f in live if a not in f[0]]
        axes = tuple(sorted({b for f in mine for b in f[0]} - {a}))
        live = [*rest, (axes, multiply(mine, axes))]
    return multiply(live, tuple(wanted))


def largest_table(factors: Sequence[Factor], wanted: Sequence[int]) -> int:
    """Return the most cells of a table that `sum_product` makes on its way.

    Guarantees:
        No table is larger.  [test_the_largest_table_is_known_before]
    """
    sizes = {a: size for axes, table in factors for a, size in zip(axes, table.shape, strict=True)}
    live, largest = [set(axes) for axes, _ in factors], 1
    for a in sorted(sizes, reverse=True):
        if a in wanted:
            continue
        joined: set[int] = set().union(*(axes for axes in live if a in axes))
        largest = max(largest, int(math.prod(sizes[b] for b in joined)))
        live = [axes for axes in live if a not in axes] + [joined - {a}]
    return max(largest, int(math.prod(sizes[a] for a in wanted)))


def multiply(factors: Sequence[Factor], out: tuple[int, ...]) -> FloatArray:
    """Multiply factors and sum to the attributes `out`, in that order."""
    names = {a: i for i, a in enumerate(sorted({a for axes, _ in factors for a in axes}))}
    operands: list[object] = []
    for axes, table in factors:
        operands += [table, [names[a] for a in axes]]
    result: FloatArray = np.einsum(*operands, [names[a] for a in out], optimize=len(factors) > 2)  # type: ignore[call-overload]
    return result

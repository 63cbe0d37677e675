"""Choosing the kernel for a problem, and saying which was chosen."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass

from kamino.constraints.counting.brute import count_pairs
from kamino.constraints.counting.dense import count_dense
from kamino.constraints.counting.dominance import count_orders
from kamino.constraints.counting.problem import Counts, Problem

# A table of rank combinations has at most so many cells: 8 bytes each, twice.
_MOST_CELLS = 1 << 25


class Method(enum.Enum):
    """How one conjunction is counted."""

    DENSE = "running sums over all rank combinations"
    HASH = "hash on equal keys"
    SORT = "hash on equal keys, sort on one order"
    HALVING = "hash on equal keys, sort and halve on the orders"
    PAIRS = "all pairs, in blocks"


@dataclass(frozen=True)
class _Cost:
    """Rough operations per kernel, in units of one pass over one number."""

    dense: float
    sorted: float
    pairs: float


def choose_method(problem: Problem) -> Method:
    """The kernel with the least estimated work."""
    cost = _estimate(problem)
    if len(problem.orders) >= 3 and cost.pairs < min(cost.dense, cost.sorted):
        return Method.PAIRS
    if cost.dense < cost.sorted:
        return Method.DENSE
    return (Method.HASH, Method.SORT)[len(problem.orders)] if len(problem.orders) < 2 else Method.HALVING


def _estimate(problem: Problem) -> _Cost:
    rows = problem.num_left + problem.num_right
    axes = len(problem.unequal) + len(problem.orders)
    log = math.log2(rows + 2)
    once = rows * (4 + (0 if not problem.orders else 2 * log * (4 * log) ** (len(problem.orders) - 1)))
    return _Cost(
        dense=rows * (2 + axes) + problem.cells * (1 + 2 * axes) if problem.cells <= _MOST_CELLS else math.inf,
        sorted=once * 2 ** len(problem.unequal),
        pairs=problem.num_left * problem.num_right * (1 + axes) * 0.5,
    )


def count(problem: Problem) -> Counts:
    """For each left row, how many right rows match.

    Unequal axes are counted as all minus equal, so sorting never sees them.

    Guarantees:
        The choice of kernel does not change the counts.  [test_kernels_agree]
    """
    match choose_method(problem):
        case Method.DENSE:
            return count_dense(problem)
        case Method.PAIRS:
            return count_pairs(problem)
        case _ if problem.unequal:
            return count(problem.without_unequal()) - count(problem.with_equal())
        case _:
            return count_orders(problem)

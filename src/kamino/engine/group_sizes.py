"""How many rows the groups of a table have, released as a noisy histogram of sizes.

A group is all rows with one value of a column, such as the rows of a patient; null is a value as any other. Sizes are
counted in cells, each half as wide again as the one before: 1, 2, 3, 4 to 5, 6 to 8, 9 to 12, and so on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kamino.arrays import IntArray
from kamino.privacy import Gate, Sensitivity
from kamino.privacy.private import PrivateTable, open_parts
from kamino.privacy.unit import PrivacyUnit
from kamino.schema.coding.value_hashes import hash_values

GROUP_SIZES = "how many rows groups have"
# Larger groups count as ones of this size, unless a privacy unit has a limit of its own.
MOST_ROWS = 1 << 20
_GROWTH = 1.5
# The key of hashes that hide nothing: they only tell values apart.
_KEY = bytes(range(64))


def size_cells(name: str, unit: PrivacyUnit) -> tuple[tuple[int, int], ...]:
    """The cells of sizes, each with its first and its last. The ids of privacy units end at the rows that are kept.

    >>> size_cells("patient", PrivacyUnit(column="patient", max_rows=7))
    ((1, 1), (2, 2), (3, 3), (4, 5), (6, 6), (7, 7))
    """
    most = unit.max_rows if unit.column == name else MOST_ROWS
    found, first = [], 1
    while first < most:
        last = min(math.ceil(_GROWTH * (first - 1)), most - 1) if first > 1 else 1
        found.append((first, max(first, last)))
        first = found[-1][1] + 1
    return (*found, (most, most))


def sensitivity_of_sizes(name: str, unit: PrivacyUnit) -> Sensitivity:
    """How far one row, or one privacy unit, moves the histogram of sizes.

    A row more takes its group from one size to the next: one cell loses a group and another gains it, or a group of one
    row is new. That is √2. A row that is replaced takes one group a size down and another a size up: two cells lose one
    and two gain one; either two may be the same cell, but not both, for cells are in the order of sizes (if s and t are
    in one cell, and s - 1 and t + 1 in one, then all are). That is √(2² + 1 + 1) = √6 at most.

    Where the groups are the privacy units, a unit more is one group more in one cell, however many rows it has, and a
    unit replaced moves one group from a cell to another: 1 and √2.

    Guarantees:
        No row and no unit moves the histogram further.  [test_sizes_of_groups_move_as_declared]
    """
    if unit.column == name:
        return Sensitivity(add_remove=1.0, replace=math.sqrt(2), of_unit=True)
    return Sensitivity(add_remove=math.sqrt(2), replace=math.sqrt(6))


def release_group_sizes(private: PrivateTable, name: str, gate: Gate, *, noise_multiplier: float) -> IntArray:
    """Release how many groups of a column have a size in each of `size_cells`.

    Guarantees:
        What is returned depends on the table through the gate only.  [test_replay_passes_for_groups]
        The release is the one that was planned.  [test_the_ledger_is_what_was_planned]
    """
    noisy: IntArray = gate.release_counts(
        count_group_sizes(private, name, size_cells(name, gate.unit)),
        what=GROUP_SIZES,
        attributes=(name,),
        noise_multiplier=noise_multiplier,
        sensitivity=sensitivity_of_sizes(name, gate.unit),
    )
    return noisy


def count_group_sizes(private: PrivateTable, name: str, cells: Sequence[tuple[int, int]]) -> IntArray:
    """Count the groups of each cell of sizes; larger ones count in the last. Private."""
    groups, rows = np.zeros((0, 2), dtype=np.uint64), np.zeros(0, dtype=np.int64)
    for part in open_parts(private, [name]):
        words = hash_values(part.column(name), _KEY)
        every = np.concatenate([groups, words])
        weights = np.concatenate([rows, np.ones(len(words), dtype=np.int64)])
        groups, rows = _added_up(every, weights)
    lasts = np.array([last for _, last in cells], dtype=np.int64)
    found = np.minimum(np.searchsorted(lasts, rows), len(cells) - 1)
    return np.bincount(found, minlength=len(cells)).astype(np.int64)


def _added_up(groups: NDArray[np.uint64], rows: IntArray) -> tuple[NDArray[np.uint64], IntArray]:
    """Each group once, with all its rows."""
    if len(rows) == 0:
        return groups, rows
    order = np.lexsort((groups[:, 1], groups[:, 0]))
    groups, rows = groups[order], rows[order]
    first = np.flatnonzero(np.append(True, np.any(groups[1:] != groups[:-1], axis=1)))
    return groups[first], np.add.reduceat(rows, first)

"""Many marginals of one table in one pass over its rows.

Columns are read through their views once for each block of rows, into the smallest unsigned type that holds their
codes; all marginals are then counted while the block is in the cache. Counts add up over blocks, so that a table need
not be there as a whole.

    >>> codes = [np.array([0, 1, 1], dtype=np.uint8), np.array([2, 0, 2], dtype=np.uint8)]
    >>> [table.tolist() for table in count_blocks(codes, [2, 3], [(0,), (0, 1)])]
    [[1, 2], [0, 0, 1, 1, 0, 1]]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kamino.errors import SchemaError
from kamino.model.protocol import Candidate, IntArray, View, read
from kamino.schema.coding.joint_codes import MOST_NUMBERS

#: Rows of a block: a few columns of them, and the numbers of their cells, fit the second-level cache.
BLOCK_ROWS = 2**15


def count_blocks(
    codes: Sequence[NDArray[Any]], sizes: Sequence[int], marginals: Sequence[Sequence[int]]
) -> list[NDArray[np.int64]]:
    """Count the cells of marginals (tuples of places in `codes`), flattened in C order.

    The codes of column i run from 0 to below `sizes[i]`, in any unsigned type. Counts of parts of a table add up to
    the counts of the table.

    Guarantees:
        Equal to counting each marginal by itself.  [test_blocks_count_what_single_passes_count]
        Counts of blocks add up.  [test_counts_of_blocks_add_up]
    """
    found = []
    for places in marginals:
        cells = math.prod(sizes[place] for place in places)
        if cells > MOST_NUMBERS:
            raise SchemaError(
                f"a table over {len(places)} attributes has {cells} cells; at most 2^63 - 1 can be numbered. "
                "Ask for fewer attributes, or for bins."
            )
        kind = smallest(cells)
        number = codes[places[0]].astype(kind, copy=False)
        for place in places[1:]:
            number = np.multiply(number, kind(sizes[place]), dtype=kind)
            number += codes[place]
        found.append(np.bincount(number, minlength=cells))
    return found


def count_candidates(
    candidates: Sequence[Candidate], columns: Mapping[str, IntArray], num_rows: int
) -> list[NDArray[np.int64]]:
    """Count the marginals of a table that `candidates` name, each attribute read through its view."""
    place: dict[tuple[str, int], int] = {}
    views: list[tuple[str, View]] = []
    marginals = []
    for candidate in candidates:
        places = []
        for name in candidate.attributes:
            view = candidate.binning[name]
            if (name, id(view)) not in place:
                place[name, id(view)] = len(views)
                views.append((name, view))
            places.append(place[name, id(view)])
        marginals.append(tuple(places))
    sizes = [view.bins for _, view in views]
    largest = max((math.prod(sizes[p] for p in places) for places in marginals), default=0)
    step = max(BLOCK_ROWS, min(largest, num_rows))
    total: list[NDArray[np.int64]] = []
    for start in range(0, max(num_rows, 1), step):
        block = {name: column[start : start + step] for name, column in columns.items()}
        codes = [read(view, name, block).astype(smallest(view.bins)) for name, view in views]
        add_up(total, count_blocks(codes, sizes, marginals))
    return total


def add_up(total: list[NDArray[np.int64]], counts: Sequence[NDArray[np.int64]]) -> None:
    """Add the counts of one more part to `total`, which is empty before the first."""
    if not total:
        total.extend(counts)
        return
    for table, new in zip(total, counts, strict=True):
        table += new


def smallest(cells: int) -> Any:
    """The smallest type that holds the number of cells, and that `bincount` takes."""
    return np.uint8 if cells < 2**8 else np.uint16 if cells < 2**16 else np.uint32 if cells < 2**32 else np.int64

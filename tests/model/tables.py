"""Sums of whole tables, and how parts of them broadcast: what brute force in these tests needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def spread_shape(clique: Sequence[int], part: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """The shape that lets a table over `part` broadcast against a table over `clique`."""
    return tuple(sizes[a] if a in set(part) else 1 for a in clique)


def project(table: NDArray[np.float64], clique: Sequence[int], keep: Sequence[int]) -> Any:
    """Sum a table over `clique` down to `keep` (both sorted)."""
    return table.sum(axis=tuple(i for i, a in enumerate(clique) if a not in set(keep)))

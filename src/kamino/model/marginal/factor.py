"""Tables over attributes with one fixed order of axes, so that no operation ever needs a transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]


def drop_axes(clique: Sequence[int], keep: Sequence[int]) -> tuple[int, ...]:
    """Return the axes of `clique` that summing down to `keep` removes."""
    kept = set(keep)
    return tuple(i for i, a in enumerate(clique) if a not in kept)


def spread_shape(clique: Sequence[int], part: Sequence[int], sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that lets a table over `part` broadcast against a table over `clique`."""
    kept = set(part)
    return tuple(sizes[a] if a in kept else 1 for a in clique)


def project(table: FloatArray, clique: Sequence[int], keep: Sequence[int]) -> FloatArray:
    """Sum a table over `clique` down to `keep` (both sorted)."""
    axes = drop_axes(clique, keep)
    result: FloatArray = table.sum(axis=axes) if axes else table
    return result


def divide(top: FloatArray, bottom: FloatArray) -> FloatArray:
    """Divide, with 0/0 = 0: a configuration that cannot occur has no mass to hand on."""
    shape = np.broadcast_shapes(top.shape, bottom.shape)
    return np.divide(top, bottom, out=np.zeros(shape), where=np.broadcast_to(bottom, shape) > 0)

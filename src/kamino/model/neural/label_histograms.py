"""The histograms of units: the cells in which they are released, and distributions made of noisy counts."""

from __future__ import annotations

import numpy as np

from kamino.model.neural.units import Kind, Unit
from kamino.model.protocol import Cells, CodeMap, FloatArray
from kamino.schema.coding.joint_codes import even_starts


def numeric_cells(unit: Unit, num_cells: int) -> Cells:
    """Return runs of codes of about equal width for a numeric unit; the outermost codes and null stand alone."""
    values = unit.num_values
    if values <= num_cells + 2:
        starts = np.arange(values, dtype=np.int64)
    else:
        inner = 1 + even_starts(values - 2, num_cells)
        starts = np.concatenate([[0], inner, [values - 1]])
    if values < unit.size:
        starts = np.append(starts, values)
    runs = np.arange(len(starts), dtype=np.int64)
    code_map = CodeMap(size=unit.size, bins=len(starts), starts=starts, labels=runs)
    return Cells(map=code_map, width=np.diff(starts, append=unit.size), share=np.ones(len(starts)))


def single_cells(size: int) -> Cells:
    """Return a cell for each code."""
    return Cells(map=CodeMap.identity(size), width=np.ones(size, dtype=np.int64), share=np.ones(size))


def cells_of(unit: Unit, num_cells: int) -> Cells:
    """Return the cells in which a unit is released: runs of codes of a numeric one, (joint) codes otherwise."""
    return numeric_cells(unit, num_cells) if unit.kind is Kind.NUMERIC else single_cells(unit.size)


def to_distribution(noisy: FloatArray) -> FloatArray:
    """Return the nearest distribution to noisy counts: one level is taken off all of them, and none stays negative.

    Guarantees:
        It is the projection on non-negative counts with the same total.  [test_projection_keeps_the_total]
    """
    total = max(float(noisy.sum()), 1.0)
    falling = np.sort(noisy)[::-1]
    level = (np.cumsum(falling) - total) / np.arange(1, len(noisy) + 1)
    kept = int(np.flatnonzero(falling > level)[-1]) if np.any(falling > level) else 0
    kept_counts = np.maximum(noisy - level[kept], 0.0)
    result: FloatArray = kept_counts / kept_counts.sum()
    return result

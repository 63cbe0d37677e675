"""A table as digits for a network: every column becomes one or two small codes, by its public domain alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from bench.peers.exchange import Column

Codes = npt.NDArray[np.int64]
# Integers with more values than this, and reals, are binned.
FEW = 128
NUM_BINS = 32
# Columns with more codes than this are written as two digits: a softmax over all of them would dwarf the rest.
WIDE = 1_000


@dataclass(frozen=True, kw_only=True)
class Digits:
    """One column's code as one digit, or as two with `base`."""

    column: Column
    size: int
    base: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each digit."""
        return (self.size,) if not self.base else (-(-self.size // self.base), self.base)


def digits_of(column: Column) -> Digits:
    """How a column is written: bins or values, one more for null if there may be any."""
    binned = column.kind != "category" and column.width > FEW
    size = (NUM_BINS if binned else int(column.width)) + column.nullable
    return Digits(column=column, size=size, base=int(np.ceil(np.sqrt(size))) if size > WIDE else 0)


def encode(values: pd.Series, digits: Digits) -> list[Codes]:
    """The digits of a column's values."""
    column, missing = digits.column, np.asarray(values.isna())
    if column.kind == "category":
        codes = pd.Categorical(values, categories=list(column.values)).codes.astype(np.int64)
    else:
        numbers = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=column.lower)
        cells = digits.size - column.nullable
        step = (column.upper - column.lower) / cells if column.width > FEW else 1.0
        codes = np.clip((numbers - column.lower) / (step or 1.0), 0, cells - 1).astype(np.int64)
    codes = np.where(missing, digits.size - 1, codes)
    return [codes // digits.base, codes % digits.base] if digits.base else [codes]


def decode(parts: list[Codes], digits: Digits, rng: np.random.Generator) -> pd.Series:
    """The values of digits: the value itself, or a number drawn uniformly from the bin."""
    column = digits.column
    codes = parts[0] * digits.base + parts[1] if digits.base else parts[0]
    codes = np.minimum(codes, digits.size - 1)
    missing = (codes == digits.size - 1) & column.nullable
    cells = digits.size - column.nullable
    inside = np.minimum(codes, cells - 1)
    if column.kind == "category":
        return pd.Series(np.array(column.values, dtype=object)[inside]).mask(missing)
    if column.width <= FEW:
        return pd.Series(column.lower + inside).mask(missing)
    step = (column.upper - column.lower) / cells
    return pd.Series(column.lower + (inside + rng.random(len(inside))) * step).mask(missing)

"""Tests of terms on codes: the values that codes stand for, and where a test of them is true."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.constraints.terms.evaluation import compared, values_of
from kamino.constraints.terms.term import with_tuple
from kamino.constraints.tree import TermTest
from kamino.schema import AttributeCodec

# Cells are computed so many at a time: exact numbers take several arrays of their own.
_AT_ONCE = 1 << 20


def decoded(codec: AttributeCodec, codes: NDArray[np.int64]) -> Any:
    """The values of codes as a plain Arrow array."""
    values = codec.decode(np.asarray(codes, dtype=np.int64))
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def true_of_codes(
    test: TermTest, codec_of: Callable[[str], AttributeCodec], columns: Mapping[str, NDArray[np.int64]]
) -> NDArray[np.bool_]:
    """Where a test of one tuple is true, for codes of arrays that broadcast.

    Guarantees:
        As the test of the values.  [test_judge_knows_terms]
    """
    names = sorted({column.name for column in test.columns})
    shape = np.broadcast_shapes(*(np.shape(columns[name]) for name in names))
    flat = {name: np.broadcast_to(columns[name], shape).ravel() for name in names}
    size = int(np.prod(shape, dtype=np.int64))
    found = np.zeros(size, dtype=np.bool_)
    left, right = with_tuple(test.left, 1), with_tuple(test.right, 1)
    for begin in range(0, size, _AT_ONCE):
        piece = slice(begin, begin + _AT_ONCE)
        values = {name: decoded(codec_of(name), codes[piece]) for name, codes in flat.items()}
        truth = compared(values_of(left, values), test.op, values_of(right, values))
        found[piece] = np.asarray(truth.fill_null(False).cast(pa.uint8())).astype(np.bool_)
    return found.reshape(shape)

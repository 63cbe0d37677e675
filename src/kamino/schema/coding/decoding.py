"""Codes back to the values that constraints compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa

from kamino.arrays import IntArray
from kamino.schema.coding.codec import Codec


def decode_columns(codec: Codec, columns: Mapping[str, IntArray], names: Iterable[str]) -> pa.Table:
    """Return the values of some columns, texts as plain texts."""
    arrays = {}
    for name in names:
        values = codec[name].decode(columns[name])
        arrays[name] = values.dictionary_decode() if pa.types.is_dictionary(values.type) else values
    return pa.table(arrays)

"""Whether two outputs of a run are the same to the last byte, and where they are not.

>>> first_difference({"a": [1, 2]}, {"a": [1, 3]})
'<output>[#0][1]: not equal'
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa


def first_difference(first: object, second: object, path: str = "<output>") -> str:
    """Return where two values first differ, or "". No value and no key of either is named.

    Guarantees:
        Values that differ in type, order, shape or one byte differ.
        [test_first_difference_sees_every_difference]
    """
    if type(first) is not type(second):
        return f"{path}: {type(first).__name__} and {type(second).__name__}"
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return _arrays(first, second, path)
    if isinstance(first, pa.Table) and isinstance(second, pa.Table):
        return _tables(first, second, path)
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        keys = first_difference(list(first), list(second), f"{path}.keys")
        return keys or _items(list(first.values()), list(second.values()), f"{path}", "#")
    if isinstance(first, str | bytes):
        return "" if first == second else f"{path}: not equal"
    if isinstance(first, Sequence) and isinstance(second, Sequence):
        return _items(list(first), list(second), path, "")
    if dataclasses.is_dataclass(first) and not isinstance(first, type):
        names = [field.name for field in dataclasses.fields(first)]
        return _fields(first, second, names, path)
    if isinstance(first, float) and isinstance(second, float):
        return "" if np.float64(first).tobytes() == np.float64(second).tobytes() else f"{path}: not equal"
    return "" if first == second else f"{path}: not equal"


def _arrays(first: np.ndarray, second: np.ndarray, path: str) -> str:
    if first.shape != second.shape or first.dtype != second.dtype:
        return f"{path}: arrays of another shape or type"
    if first.dtype.hasobject:
        return _items(first.tolist(), second.tolist(), path, "")
    return "" if first.tobytes() == second.tobytes() else f"{path}: arrays not equal"


def _tables(first: pa.Table, second: pa.Table, path: str) -> str:
    if first.num_rows != second.num_rows or not first.schema.equals(second.schema, check_metadata=True):
        return f"{path}: tables of another size or schema"
    for name in first.column_names:
        # NaN equals nothing, itself included: compare as text too.
        columns = first[name], second[name]
        if not columns[0].equals(columns[1]) and repr(columns[0].to_pylist()) != repr(columns[1].to_pylist()):
            return f"{path}: tables differ in column '{name}'"
    return ""


def _items(first: list[object], second: list[object], path: str, mark: str) -> str:
    if len(first) != len(second):
        return f"{path}: another length"
    for place, (one, other) in enumerate(zip(first, second, strict=True)):
        difference = first_difference(one, other, f"{path}[{mark}{place}]")
        if difference:
            return difference
    return ""


def _fields(first: object, second: object, names: list[str], path: str) -> str:
    for name in names:
        difference = first_difference(getattr(first, name), getattr(second, name), f"{path}.{name}")
        if difference:
            return difference
    return ""

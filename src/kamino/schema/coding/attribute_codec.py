"""Codes of one attribute: 0 to size - 1, in the order of the values where they have one; null is the last code."""

from __future__ import annotations

import abc
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kamino.errors import SchemaError
from kamino.schema.attributes import Attribute
from kamino.schema.column_types import misfit

Codes = npt.NDArray[np.int64]


def with_nulls(numbers: npt.NDArray[Any], null: npt.NDArray[np.bool_]) -> pa.Array:
    """Return numbers as an array of Arrow, null where `null`.

    As `pa.array` does, but that imports masked arrays and pandas, to see that the numbers are neither.

    Guarantees:
        Equal to `pa.array`.  [test_numbers_with_nulls_are_those_of_arrow]

    >>> with_nulls(np.array([7, 0, 8]), np.array([False, True, False])).to_pylist()
    [7, None, 8]
    """
    missing = int(np.count_nonzero(null))
    validity = pa.py_buffer(np.packbits(~null, bitorder="little")) if missing else None
    data = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.from_numpy_dtype(numbers.dtype), len(numbers), [validity, data], missing)


class AttributeCodec(abc.ABC):
    """Raw values of one attribute to codes and back. Holds public facts only.

    Guarantees:
        Decoding what was encoded gives back every value of the domain.  [test_every_value_survives]
        A value outside the domain gives a code inside it and no message.  [test_anything_encodes]
        Where `ordered`, a smaller value has a smaller code.  [test_code_order_is_value_order]

    Attributes:
        name: the attribute's name.
        num_values: the number of codes that are no null.
        null_code: the code of null, the last; `None` if the attribute is not nullable.
        fallback_code: the code of what cannot be read, and of null where the attribute is not nullable.
        ordered: whether the order of codes is the order of values.
    """

    name: str
    attribute: Attribute
    num_values: int
    null_code: int | None
    fallback_code: int
    arrow_type: pa.DataType
    ordered: bool = True

    def __init__(self, name: str, attribute: Attribute, *, num_values: int) -> None:
        self.name = name
        self.attribute = attribute
        self.num_values = num_values
        self.null_code = num_values if attribute.nullable else None
        self.fallback_code = 0 if self.null_code is None else self.null_code
        self.arrow_type = attribute.arrow_type

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, size={self.size})"

    @property
    def size(self) -> int:
        """The number of codes, null's included."""
        return self.num_values + (self.null_code is not None)

    @abc.abstractmethod
    def _encode(self, array: pa.Array) -> Codes:
        """Return the codes of a plain array whose type can be read."""

    @abc.abstractmethod
    def _decode(self, codes: Codes, null: npt.NDArray[np.bool_]) -> pa.Array:
        """Return the values of codes; where `null`, the code is 0 and the value null."""

    @abc.abstractmethod
    def value_of(self, code: int) -> Any:
        """Return the value of one code as a Python object; `None` for null."""

    @abc.abstractmethod
    def code_of(self, value: Any) -> int | None:
        """Return the code of a public value (a constant, say), or `None` if it is not in the domain."""

    def position(self, value: Any) -> Fraction | None:
        """Return where a public value lies on the axis of codes, exactly and unclamped; `None` if nowhere.

        For a value of the domain that is its code; `code < position(v)` says `value < v` for any `v` of the right type.
        """
        code = self.code_of(value) if self.ordered else None
        return None if code is None else Fraction(code)

    def order_keys(self, codes: Codes) -> Codes:
        """Return numbers in the order of the values of `codes`, equal where these are; -1 for null."""
        return codes if self.null_code is None else np.where(codes == self.null_code, -1, codes)

    def encode(self, column: pa.Array | pa.ChunkedArray) -> Codes:
        """Return the code of each value; whatever is outside the domain gets a code inside it.

        Raises:
            SchemaError: the type of the column, whatever its values, does not fit the attribute.
        """
        problem = misfit(self.name, self.attribute, column.type)
        if problem:
            raise SchemaError(problem)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        parts = [self._encode_plain(chunk) for chunk in chunks]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _encode_plain(self, array: pa.Array) -> Codes:
        if isinstance(array, pa.ExtensionArray):
            return self._encode_plain(array.storage)
        if not pa.types.is_dictionary(array.type):
            return self._encode(array)
        null = self.fallback_code if self.null_code is None else self.null_code
        table = np.append(self._encode_plain(array.dictionary), null)
        places = array.indices.cast(pa.int64()).fill_null(len(table) - 1)
        codes: Codes = table[places.to_numpy(zero_copy_only=False)]
        return codes

    def decode(self, codes: npt.ArrayLike) -> pa.Array:
        """Return the values of codes as an array of the attribute's Arrow type.

        Raises:
            SchemaError: a code lies outside 0 to size - 1.
        """
        checked = np.asarray(codes)
        if checked.size and (checked.dtype.kind not in "iu" or checked.min() < 0 or checked.max() >= self.size):
            raise SchemaError(f"codes of {self.name!r}: found some that are no integers from 0 to {self.size - 1}")
        checked = checked.astype(np.int64)
        null = np.zeros(len(checked), np.bool_) if self.null_code is None else checked == self.null_code
        return self._decode(np.where(null, 0, checked), null)

"""Codes of categories and booleans: the places in the list of values."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kamino.schema.category import Boolean, Categorical, Category
from kamino.schema.coding.attribute_codec import AttributeCodec, Codes, with_nulls
from kamino.schema.dtypes import is_text

_TRUE = ("true", "t", "yes", "y", "1", "1.0", "on")
_FALSE = ("false", "f", "no", "n", "0", "0.0", "off")


class CategoryCodec(AttributeCodec):
    """Codes of a categorical attribute, in the order in which the schema lists the values.

    What is not listed is `other` if there is one, else null or, where the attribute is not nullable, the first value.
    """

    def __init__(self, name: str, attribute: Categorical) -> None:
        self.categories: tuple[Category, ...] = attribute.categories
        self._integers = attribute.holds_integers
        super().__init__(name, attribute, num_values=len(self.categories))
        if attribute.other is not None:
            self.fallback_code = self.categories.index(attribute.other)
        self._codes = {value: code for code, value in enumerate(self.categories)}
        self._list = pa.array(self.categories, pa.int64() if self._integers else pa.string())
        ranks = np.argsort(np.argsort(np.array(self.categories, dtype=object), kind="stable"), kind="stable")
        self._ranks = np.append(ranks, -1).astype(np.int64)
        self.ordered = bool(np.all(ranks == np.arange(len(ranks))))

    def _encode(self, array: pa.Array) -> Codes:
        null = array.is_null().to_numpy(zero_copy_only=False)
        found = pc.index_in(self._comparable(array), value_set=self._list, skip_nulls=True)
        codes = found.cast(pa.int64()).fill_null(self.fallback_code).to_numpy(zero_copy_only=False)
        return codes if self.null_code is None else np.where(null, self.null_code, codes)

    def _comparable(self, array: pa.Array) -> pa.Array:
        """Bring a column to the type of the listed values; what cannot be brought there is null."""
        kind, wanted = array.type, self._list.type
        if kind == wanted or pa.types.is_null(kind):
            return array.cast(wanted)
        if self._integers and pa.types.is_integer(kind):
            if not pa.types.is_uint64(kind):
                return array.cast(wanted)
            fits = pc.less_equal(array, pa.scalar(2**63 - 1, pa.uint64()))
            return pc.if_else(fits, array, pa.scalar(None, pa.uint64())).cast(wanted)
        plain = pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        if not plain and not (self._integers and is_text(kind)):
            return array.cast(wanted)
        # Older versions of pyarrow cannot number half floats.
        coded = (array.cast(pa.float32()) if pa.types.is_float16(kind) else array).dictionary_encode()
        read = _read_integer if self._integers else _write_number
        values = pa.array([read(value) for value in coded.dictionary.to_pylist()], wanted)
        return values.take(coded.indices)

    def _decode(self, codes: Codes, null: npt.NDArray[np.bool_]) -> pa.Array:
        places = with_nulls(codes, null)
        if not pa.types.is_dictionary(self.arrow_type):
            return self._list.take(places).cast(self.arrow_type)
        return pa.DictionaryArray.from_arrays(places.cast(pa.int32()), self._list)

    def value_of(self, code: int) -> Category | None:
        """Return a text or an integer; `None` for null."""
        return None if code == self.null_code else self.categories[code]

    def code_of(self, value: Any) -> int | None:
        """Return the code of a public value, or `None` if it is not listed."""
        return self.null_code if value is None else self._codes.get(value)

    def order_keys(self, codes: Codes) -> Codes:
        """Return the rank of each value in the order of texts (by code point) or integers; -1 for null."""
        return self._ranks[codes]


def _read_integer(value: Any) -> int | None:
    try:
        number = Decimal(value.strip() if isinstance(value, str) else value)
        fits = number.is_finite() and number.adjusted() < 19 and number == number.to_integral_value()
        return int(number) if fits and -(2**63) <= int(number) < 2**63 else None
    except (InvalidOperation, ValueError):
        return None


def _write_number(value: float | Decimal) -> str | None:
    """Write a number as people list it among texts: 1 rather than 1.0, and no exponent for a decimal."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if value != value:
        return None
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


class BooleanCodec(AttributeCodec):
    """Codes of a boolean attribute: false is 0, true is 1. What cannot be read is null or, failing that, false."""

    def __init__(self, name: str, attribute: Boolean) -> None:
        super().__init__(name, attribute, num_values=2)

    def _encode(self, array: pa.Array) -> Codes:
        if pa.types.is_boolean(array.type) or pa.types.is_null(array.type):
            codes = array.cast(pa.bool_()).cast(pa.int64())
        elif is_text(array.type):
            text = pc.utf8_lower(pc.utf8_trim_whitespace(array.cast(pa.string())))
            place = pc.index_in(text, value_set=pa.array(_FALSE + _TRUE), skip_nulls=True)
            codes = pc.greater_equal(place, len(_FALSE)).cast(pa.int64())
        else:
            numbers = array.cast(pa.float64(), safe=False)
            known = pc.or_(pc.equal(numbers, 0.0), pc.equal(numbers, 1.0))
            codes = pc.if_else(known, pc.equal(numbers, 1.0).cast(pa.int64()), pa.scalar(None, pa.int64()))
        return np.asarray(codes.fill_null(self.fallback_code).to_numpy(zero_copy_only=False), np.int64)

    def _decode(self, codes: Codes, null: npt.NDArray[np.bool_]) -> pa.Array:
        return pa.array(codes == 1, mask=null).cast(self.arrow_type)

    def value_of(self, code: int) -> bool | None:
        """Return true, false or `None` for null."""
        return None if code == self.null_code else bool(code)

    def code_of(self, value: Any) -> int | None:
        """Return the code of a public value, or `None` if it is no boolean."""
        return self.null_code if value is None else int(value) if isinstance(value, bool) else None

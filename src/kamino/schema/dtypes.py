"""Arrow types by name: what a column was, and is to be again in the output.

A schema file names the type of an output column by a short text (`int32`, `decimal128(10, 2)`, `timestamp[ms]`).
The timezone of a timestamp is a field of its attribute and no part of the name.
"""

from __future__ import annotations

import re

import pyarrow as pa

_PLAIN: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "string": pa.string(),
    "large_string": pa.large_string(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "date32": pa.date32(),
    "date64": pa.date64(),
    **{f"{sign}int{bits}": getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **{f"timestamp[{unit}]": pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")},
}
_DECIMAL = re.compile(r"decimal(128|256)\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")

DICTIONARY = "dictionary"
"""The name for text or integer categories that come back dictionary-encoded (a pandas category)."""


def parse_dtype(name: str) -> pa.DataType:
    """Return the Arrow type called `name`, or raise a `ValueError` that lists what can be named.

    >>> parse_dtype("decimal128(10, 2)")
    Decimal128Type(decimal128(10, 2))
    """
    if name in _PLAIN:
        return _PLAIN[name]
    match = _DECIMAL.fullmatch(name)
    if match:
        bits, precision, scale = (int(part) for part in match.groups())
        if 1 <= precision <= (38 if bits == 128 else 76) and abs(scale) <= precision:
            return (pa.decimal128 if bits == 128 else pa.decimal256)(precision, scale)
    raise ValueError(f"found {name!r}, expected one of {', '.join(_PLAIN)}, decimal128(precision, scale)")


def dtype_name(arrow_type: pa.DataType) -> str:
    """Return the name that `parse_dtype` reads as `arrow_type`, without any timezone; `""` if it has none.

    Narrow or unusual relatives go to the nearest type that holds them (float16 to float32, string_view to string).
    """
    types = pa.types
    if types.is_dictionary(arrow_type):
        return DICTIONARY
    if types.is_timestamp(arrow_type):
        return f"timestamp[{arrow_type.unit}]"
    if types.is_decimal(arrow_type):
        bits = 256 if types.is_decimal256(arrow_type) else 128
        return f"decimal{bits}({arrow_type.precision}, {arrow_type.scale})"
    if types.is_float16(arrow_type):
        return "float32"
    if is_text(arrow_type) and not types.is_large_string(arrow_type):
        return "string"
    return next((name for name, known in _PLAIN.items() if known == arrow_type), "")


def plain_decimal(arrow_type: pa.DataType) -> pa.DataType | None:
    """Return the type of decimals that every format has and that holds what `arrow_type` holds; None if there is none.

    >>> plain_decimal(pa.decimal128(5, -2))
    Decimal128Type(decimal128(7, 0))
    """
    scale = max(arrow_type.scale, 0)
    precision = max(arrow_type.precision - min(arrow_type.scale, 0), scale)
    if precision > 76:
        return None
    is_long = arrow_type.bit_width > 128 or precision > 38
    return pa.decimal256(precision, scale) if is_long else pa.decimal128(precision, scale)


def is_text(arrow_type: pa.DataType) -> bool:
    """Tell whether a column of this type holds text."""
    types = pa.types
    view = getattr(types, "is_string_view", lambda _: False)
    return bool(types.is_string(arrow_type) or types.is_large_string(arrow_type) or view(arrow_type))


def value_type(arrow_type: pa.DataType) -> pa.DataType:
    """Return the type of the values behind a dictionary or extension type; any other type as it is."""
    while True:
        if pa.types.is_dictionary(arrow_type):
            arrow_type = arrow_type.value_type
        elif isinstance(arrow_type, pa.BaseExtensionType):
            arrow_type = arrow_type.storage_type
        else:
            return arrow_type

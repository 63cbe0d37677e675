"""Find the type of a CSV column from all of its cells.

The first type whose spelling fits every cell that is not empty wins: bool, int64, decimal (whole numbers
beyond int64), float64, date32, timestamp; otherwise the column stays a string. A spelling that a number would
lose, such as the leading zeros of a postal code or a plus sign, keeps the column a string.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from kamino.io.normalise import in_calendar

# Decides for most columns that a type does not fit, before all cells are looked at.
GLANCE_ROWS = 256

_BOOL = r"^(?:true|false|True|False|TRUE|FALSE)$"
_INTEGER = r"^(?:0|-?[1-9][0-9]*)$"
_NUMBER = r"^-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
_NO_NUMBER = r"^(?i:nan|-?inf|-?infinity)$"
_NUMBER_OR_NOT = f"{_NUMBER}|{_NO_NUMBER}"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_TIME = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?"
_LOCAL = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(?:[T ]{_TIME})?$"
_ZONED = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{_TIME}(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})$"
_NANOSECONDS = r"\.[0-9]{7}"


def infer_column(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column of strings and nulls `text` as the first type that fits all of it.

    Guarantees:
        - The answer does not depend on the order of the rows.  [test_type_does_not_depend_on_row_order]
        - Leading zeros and plus signs are kept.  [test_csv_types]
    """
    if text.null_count == len(text):
        return text
    for kind in _fitting_types(text):
        # A spelling may fit while the value does not exist (the 30th of February) or is out of range.
        try:
            column = pc.cast(text, kind)
        except pa.ArrowInvalid:
            continue
        if (pa.types.is_date(kind) or pa.types.is_timestamp(kind)) and not in_calendar(column):
            continue
        return column
    return text


def _fitting_types(text: pa.ChunkedArray) -> Iterator[pa.DataType]:
    if _all_match(text, _BOOL):
        yield pa.bool_()
    if _all_match(text, _INTEGER):
        yield pa.int64()
        yield pa.decimal128(38, 0)
        yield pa.decimal256(76, 0)
    elif _all_match(text, _NUMBER_OR_NOT) and _any_match(text, _NUMBER):
        yield pa.float64()
    elif _all_match(text, _DATE):
        yield pa.date32()
    elif _all_match(text, _LOCAL):
        yield pa.timestamp(_unit(text))
    elif _all_match(text, _ZONED):
        yield pa.timestamp(_unit(text), "UTC")


def _all_match(text: pa.ChunkedArray, pattern: str) -> bool:
    glance = pc.match_substring_regex(text.slice(0, GLANCE_ROWS), pattern)
    if pc.any(pc.invert(glance)).as_py():
        return False
    return not pc.any(pc.invert(pc.match_substring_regex(text, pattern))).as_py()


def _any_match(text: pa.ChunkedArray, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, pattern)).as_py())


def _unit(text: pa.ChunkedArray) -> str:
    return "ns" if _any_match(text, _NANOSECONDS) else "us"

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
from kamino.schema import spelling

# Decides for most columns whether a type fits, before all cells are looked at.
GLANCE_ROWS = 256


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
    if _all_match(text, spelling.BOOLEAN):
        yield pa.bool_()
    if _all_match(text, spelling.INTEGER):
        yield pa.int64()
        yield pa.decimal128(38, 0)
        yield pa.decimal256(76, 0)
    elif _all_match(text, spelling.NUMBER_OR_NOT) and _any_match(text, spelling.NUMBER):
        yield pa.float64()
    elif _all_match(text, spelling.DATE):
        yield pa.date32()
    elif _all_match(text, spelling.LOCAL_TIME):
        yield pa.timestamp(_unit(text))
    elif _all_match(text, spelling.ZONED_TIME):
        yield pa.timestamp(_unit(text), "UTC")


def _all_match(text: pa.ChunkedArray, pattern: str) -> bool:
    glance = pc.match_substring_regex(text.slice(0, GLANCE_ROWS), pattern)
    if pc.any(pc.invert(glance)).as_py():
        return False
    return not pc.any(pc.invert(pc.match_substring_regex(text, pattern))).as_py()


def _any_match(text: pa.ChunkedArray, pattern: str) -> bool:
    parts = (text.slice(0, GLANCE_ROWS), text)
    return any(pc.any(pc.match_substring_regex(part, pattern)).as_py() for part in parts)


def _unit(text: pa.ChunkedArray) -> str:
    return "ns" if _any_match(text, spelling.NANOSECONDS) else "us"

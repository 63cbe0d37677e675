"""The text of a single cell: what stands for it where the type of its column depends on the other cells.

Values that are equal are spelled alike, whatever their type: 1, 1.0 and Decimal("1.00"), a moment with and without
nanoseconds. For libraries turn all cells of a column into the type that holds them all.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

_EPOCH = datetime.date(1970, 1, 1).toordinal()
_DAY = 86_400 * 10**9
# Nanoseconds in a unit; none for months and years, nor for what is finer.
_NANOSECONDS = {
    "D": _DAY, "h": 3_600 * 10**9, "m": 60 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1,
}  # fmt: skip
# Beyond so many digits before or behind the point, a decimal is spelled with its exponent.
_MOST_DIGITS = 400


def spell(value: object) -> str | None:
    """Return the text of a cell by itself; None where it has none.

    Guarantees:
        Nothing that a cell holds raises.  [test_a_cell_without_text_is_null]
        Equal values have one text.  [test_equal_cells_are_spelled_alike]
    """
    try:
        text = value if type(value) is str else _spelled(value)
        text.encode("utf-8")
    except Exception:  # a cell may hold any object, whose text may fail in any way
        return None
    return text


def texts_of(values: Iterable[object]) -> pa.Array:
    """Return the text of each value, null where it is missing or has none."""
    return pa.array([None if is_missing(value) else spell(value) for value in values], pa.string())


def is_missing(value: object) -> bool:
    """Whether a cell of a pandas column is none: None, NA, NaT, or NaN of any type, also one that does not compare.

    Guarantees:
        It follows from this cell alone, and nothing raises.  [test_what_is_missing_follows_from_the_cell]
    """
    try:
        if value is None or type(value) is str:
            return value is None
        if isinstance(value, Decimal):
            return Decimal.is_nan(value)
        if isinstance(value, float | np.floating):
            return math.isnan(value)
        if isinstance(value, np.datetime64 | np.timedelta64):
            return bool(np.isnat(value))
        if isinstance(value, complex | np.complexfloating):
            return math.isnan(value.real) or math.isnan(value.imag)
        return _is_of_pandas(value, "NAType", "NaTType")
    except Exception:  # what a cell says of itself may fail in any way
        return False


def spell_scalar(scalar: pa.Scalar) -> str | None:
    """Return the text of a cell of an Arrow array; None where it is null, NaN, or has none."""
    kind = scalar.type
    try:
        if not scalar.is_valid:
            return None
        if pa.types.is_timestamp(kind):
            return _moment(scalar.value * _NANOSECONDS[kind.unit], is_zoned=kind.tz is not None)
        if pa.types.is_duration(kind):
            return _span(scalar.value * _NANOSECONDS[kind.unit])
        if pa.types.is_time(kind):
            return _clock(scalar.value * _NANOSECONDS[kind.unit])
        if pa.types.is_date64(kind):
            days, rest = divmod(scalar.value, 86_400_000)
            return None if rest else datetime.date.fromordinal(_EPOCH + days).isoformat()
        if isinstance(kind, pa.BaseExtensionType) and kind.extension_name != "arrow.uuid":
            return spell_scalar(scalar.value)
        if pa.types.is_struct(kind):
            return _fields(scalar)
        value = scalar.as_py()
    except Exception:  # such as a date outside the calendar
        return None
    return None if is_missing(value) else spell(value)


def _fields(scalar: pa.StructScalar) -> str:
    """The fields that have a value: which others there are follows from other cells."""
    texts = {field.name: spell_scalar(scalar[place]) for place, field in enumerate(scalar.type)}
    return str({name: text for name, text in texts.items() if text is not None})


def _spelled(value: Any) -> str:
    if isinstance(value, complex | np.complexfloating) and value.imag == 0:
        value = float(value.real)
    if isinstance(value, float | np.floating):
        return _number(float(value))
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, datetime.timedelta):
        micro = ((value.days * 86_400) + value.seconds) * 10**6 + value.microseconds
        return _span(micro * 1_000 + getattr(value, "nanoseconds", 0))
    if isinstance(value, np.datetime64 | np.timedelta64):
        return _counted(value)
    if _is_of_pandas(value, "Interval"):
        return _interval(value)
    if isinstance(value, datetime.date):
        return _day_or_moment(value)
    return value.decode("utf-8") if isinstance(value, bytes | bytearray) else str(value)


def _is_of_pandas(value: object, *names: str) -> bool:
    """Whether a value is of a type of pandas with one of these names; pandas may not be installed."""
    return type(value).__name__ in names and type(value).__module__.partition(".")[0] == "pandas"


def _day_or_moment(value: Any) -> str:
    """A date; a moment, in UTC where it has a zone: the moments of a column may share one, whichever that is."""
    if not 1 <= value.year <= 9999:
        raise ValueError("a date outside the calendar")
    has_zone = isinstance(value, datetime.datetime) and value.tzinfo is not None
    return str(value.astimezone(datetime.UTC) if has_zone else value)


def _interval(value: Any) -> str:
    opening, closing = "[" if value.closed_left else "(", "]" if value.closed_right else ")"
    return f"{opening}{_spelled(value.left)}, {_spelled(value.right)}{closing}"


def _number(value: float) -> str:
    """A whole number is spelled as an integer, since one fraction makes floats of all integers."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else repr(value)


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        return str(float(value)) if value.is_infinite() else str(value)
    sign, digits, exponent = value.as_tuple()
    text = "".join(map(str, digits))
    kept = text.rstrip("0")
    if not kept:
        return "0"
    plain = Decimal((sign, tuple(map(int, kept)), int(exponent) + len(text) - len(kept)))
    return format(plain, "f") if abs(plain.adjusted()) <= _MOST_DIGITS else str(plain)


def _counted(value: np.datetime64 | np.timedelta64) -> str:
    unit, step = np.datetime_data(value.dtype)
    is_moment = isinstance(value, np.datetime64)
    if is_moment and unit in ("Y", "M", "W"):
        value, unit, step = value.astype("M8[D]"), "D", 1
    if unit not in _NANOSECONDS:
        return str(value)
    nanoseconds = int(value.astype(np.int64)) * step * _NANOSECONDS[unit]
    return _moment(nanoseconds, is_zoned=False) if is_moment else _span(nanoseconds)


def _moment(nanoseconds: int, *, is_zoned: bool) -> str:
    """A moment as `str` spells it in Python and in pandas."""
    days, rest = divmod(nanoseconds, _DAY)
    day = datetime.date.fromordinal(_EPOCH + days)
    return f"{day} {_clock(rest)}{'+00:00' if is_zoned else ''}"


def _clock(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 10**9)
    text = f"{seconds // 3_600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text if rest == 0 else f"{text}.{rest:09}" if rest % 1_000 else f"{text}.{rest // 1_000:06}"


def _span(nanoseconds: int) -> str:
    """A length of time as pandas spells it."""
    days, rest = divmod(nanoseconds, _DAY)
    return f"{days} days {'+' if days < 0 else ''}{_clock(rest)}"

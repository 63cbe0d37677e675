"""A first schema from a table: names and types only, or, if the user vouches for them, domains too.

The types of columns are metadata and public. Which values, how wide a range and whether there are nulls are data:
they go into the schema only with `trust_domain`, and are then marked `asserted`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from decimal import Decimal
from typing import Any, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kamino.advice import dropping, reading
from kamino.errors import SchemaError
from kamino.limits import MAX_ATTRIBUTES, MAX_VALUES
from kamino.schema.attribute import Source
from kamino.schema.attributes import Attribute, Boolean, Categorical, Date, Datetime, Integer, Key, Real
from kamino.schema.dtypes import dtype_name, is_text, value_type
from kamino.schema.files.messages import did_you_mean
from kamino.schema.files.names import EMAILS, key_pattern, looks_like_code
from kamino.schema.grid import MICROSECONDS_PER_DAY, date_of_tick, datetime_of_tick
from kamino.schema.numbers import DEFAULT_DECIMALS, finest_decimals
from kamino.schema.schema import Schema

_RESOLUTIONS = (MICROSECONDS_PER_DAY, 3_600_000_000, 60_000_000, 1_000_000, 1_000, 1)
# Codes of which there are more than so many for each row are no categories.
_CATEGORIES_A_ROW = 0.5
_PER_MICROSECOND = {"s": 1_000_000, "ms": 1_000, "us": 1}


def draft_schema(
    table: pa.Table,
    *,
    trust_domain: bool = False,
    keys: Collection[str] = (),
    codes: bool = False,
    num_rows: int | None = None,
    looks: bool = False,
) -> Schema:
    """Return a schema that fits `table`.

    Args:
        table: the private table.
        trust_domain: also take the domains from the table, because the user says they are public; marked `asserted`.
        keys: the columns that are opaque identifiers. Without being told, none is taken for one.
        codes: take whole numbers whose column has the name of a code for categories, with `trust_domain` where values
            repeat; and texts whose column has the name of uuids or email addresses for keys.
        looks: also take texts for keys that all look like uuids or email addresses; for the owner of the table only.
        num_rows: how many rows there are, if `table` has each value of its columns once.

    Raises:
        SchemaError: a column has a type that no attribute has, or a name that another has too.

    Guarantees:
        Without `trust_domain`, tables of the same names and types give the same schema.  [test_draft_reads_no_values]
        Codes are categories, and what only has a code's name is not.  [test_codes_are_categories]
        Uuids and email addresses are keys.  [test_uuids_and_emails_are_keys]

    >>> draft_schema(pa.table({"age": [31, 45]}))["age"].source.value
    'private'
    """
    _check_names(table, keys)
    attributes: dict[str, Attribute] = {}
    problems = []
    for name in table.column_names:
        attribute = _by_type(table.schema.field(name).type, is_key=name in keys)
        if attribute is not None and not table.schema.field(name).nullable:
            attribute = type(attribute)(**{**attribute.fields(), "nullable": False})
        if attribute is None:
            problems.append(
                f"column {name!r} has type {table.schema.field(name).type}, for which there is no attribute: "
                "cast it to text, a number or a timestamp, or drop it"
            )
            continue
        column = table.column(name)
        pattern = _key_pattern(name, attribute, column, by_name=codes, by_look=looks or (codes and trust_domain))
        if pattern is not None:
            attributes[name] = Key(pattern=pattern, dtype=attribute.dtype)
            continue
        is_code = codes and isinstance(attribute, Integer) and looks_like_code(name)
        if is_code and (not trust_domain or _repeats(column, table.num_rows if num_rows is None else num_rows)):
            attribute = Categorical(nullable=True, dtype=attribute.dtype or "int64")
        attributes[name] = with_asserted(attribute, column) if trust_domain else attribute
    if problems:
        raise SchemaError("\n".join(problems))
    return Schema(attributes=attributes)


_LOOKS = {
    "uuid": r"^(?i:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})$",
    EMAILS: r"^[^@\s]+@[^@\s]+\.[^@\s.]+$",
}


def _key_pattern(
    name: str, attribute: Attribute, column: pa.ChunkedArray, *, by_name: bool, by_look: bool
) -> str | None:
    """The pattern of a column of uuids or email addresses, which are nobody's categories; None for any other."""
    if not isinstance(attribute, Categorical) or not is_text(value_type(column.type)):
        return None
    named = key_pattern(name) if by_name else None
    if named is not None or not by_look:
        return named
    texts = pc.unique(pc.cast(column, value_type(column.type))).drop_null()
    fits = (p for p, look in _LOOKS.items() if len(texts) and pc.all(pc.match_substring_regex(texts, look)).as_py())
    return next(fits, None)


def _repeats(column: pa.ChunkedArray, num_rows: int) -> bool:
    """Whether values repeat as categories do: a column of nearly as many values as rows is one of keys."""
    distinct = int(pc.count_distinct(column, mode="only_valid").as_py())
    return distinct <= min(MAX_VALUES, _CATEGORIES_A_ROW * num_rows)


def refuse_too_wide(num_columns: int) -> None:
    """Refuse more columns than a schema may have, before anything else is done with them."""
    if num_columns > MAX_ATTRIBUTES:
        raise SchemaError(
            f"found a table of {num_columns:,} columns; expected at most {MAX_ATTRIBUTES:,}. Choose some "
            f"({reading('columns')}), or leave some out ({dropping()})."
        )


def _check_names(table: pa.Table, keys: Collection[str]) -> None:
    names = table.column_names
    if not names:
        raise SchemaError("found a table without columns, expected at least one")
    refuse_too_wide(len(names))
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise SchemaError(f"found columns with the same name: {', '.join(repeated)}. Rename all but one of each.")
    for key in keys:
        if key not in names:
            raise SchemaError(
                f"key {key!r} is not in the table.{did_you_mean(key, names)} Columns: {', '.join(names)}."
            )


def _by_type(arrow_type: pa.DataType, *, is_key: bool) -> Attribute | None:
    """Return an attribute without domain for a type of column, or `None` if there is none for it."""
    values, types = value_type(arrow_type), pa.types
    dtype = dtype_name(values)
    if is_key:
        return Key(dtype=dtype or "string") if types.is_integer(values) or is_text(values) else None
    if types.is_dictionary(arrow_type) and (is_text(values) or types.is_integer(values)):
        return Categorical(nullable=True, dtype="dictionary")
    if is_text(values) or types.is_null(values):
        return Categorical(nullable=True, dtype=dtype if dtype != "string" else None)
    if types.is_boolean(values):
        return Boolean(nullable=True)
    if types.is_integer(values):
        return Integer(nullable=True, dtype=dtype if dtype != "int64" else None)
    if types.is_floating(values):
        return Real(nullable=True, dtype=dtype if dtype != "float64" else None)
    if types.is_decimal(values):
        return Real(nullable=True, dtype=dtype, decimals=values.scale)
    if types.is_date(values):
        return Date(nullable=True, dtype=dtype if dtype != "date32" else None)
    if types.is_timestamp(values):
        return Datetime(nullable=True, timezone=values.tz, dtype=dtype if dtype != "timestamp[us]" else None)
    return None


def with_asserted(attribute: Attribute, column: pa.ChunkedArray) -> Attribute:
    """Return the attribute with the domain of `column`; as it is if that domain is too wide to be numbered."""
    values = value_type(column.type)
    plain = column.cast(pa.float32() if pa.types.is_float16(values) else values)
    known = plain.drop_null()
    if pa.types.is_floating(known.type):
        known = known.filter(pc.invert(pc.is_nan(known)))
    nullable = attribute.nullable and (len(known) < len(column) or len(column) == 0)
    try:
        return _asserted(attribute, known, nullable)
    except (SchemaError, OverflowError, pa.ArrowInvalid):
        return attribute


def _asserted(attribute: Attribute, known: pa.ChunkedArray, nullable: bool) -> Attribute:
    fields: dict[str, Any] = {**attribute.fields(), "nullable": nullable, "source": Source.ASSERTED}
    match attribute:
        case Categorical():
            values = known.cast(pa.int64() if pa.types.is_integer(known.type) else pa.string())
            return Categorical(**{**fields, "values": sorted(pc.unique(values).to_pylist())})
        case Integer():
            low, high = _ends(known, 0)
            return Integer(**{**fields, "min": low, "max": high})
        case Real():
            return _asserted_real(Real(**{**fields, "source": Source.PRIVATE}), known)
        case Date():
            days = known.cast(pa.date32()).cast(pa.int32())
            low, high = (date_of_tick(end) for end in _ends(days, 0))
            return Date(**{**fields, "min": low, "max": high})
        case Datetime():
            return _asserted_datetime(fields, known)
        case Boolean():
            return Boolean(**fields)
        case Key():
            return attribute
        case _:
            assert_never(attribute)


def _ends(known: pa.ChunkedArray, default: Any) -> tuple[Any, Any]:
    ends = pc.min_max(known)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    return (default, default) if low is None else (low, high)


def _asserted_real(attribute: Real, known: pa.ChunkedArray) -> Real:
    decimals = attribute.decimals
    if pa.types.is_floating(known.type):
        numbers = known.to_numpy()
        numbers = numbers[np.isfinite(numbers)]
        decimals = _needed_decimals(numbers)
        low, high = (Decimal(_shortest(end)) for end in (numbers.min(), numbers.max())) if len(numbers) else (0, 0)
    else:
        low, high = _ends(known, Decimal(0))
    finest = finest_decimals(Decimal(low), Decimal(high), attribute.arrow_type)
    if finest < decimals and pa.types.is_decimal(known.type) and not _has_decimals(known, finest):
        raise SchemaError("found more decimals than codes can keep over this range")
    decimals = min(decimals, finest)
    return attribute.with_domain(source=Source.ASSERTED, min=low, max=high, decimals=decimals)


def _has_decimals(known: pa.ChunkedArray, decimals: int) -> bool:
    """Whether all of these decimals are multiples of 10^-decimals."""
    return bool(pc.all(pc.equal(pc.round(known, ndigits=decimals), known), min_count=0).as_py())


def _shortest(number: np.floating[Any]) -> str:
    return np.format_float_scientific(number, unique=True)


def _needed_decimals(numbers: npt.NDArray[Any]) -> int:
    """Return the fewest decimals that show all numbers exactly, if 6 suffice; else 6, or more for a tiny range."""
    kind = numbers.dtype
    wide = numbers.astype(np.float64)
    largest = float(np.abs(wide).max(initial=0.0))
    for decimals in range(DEFAULT_DECIMALS + 1):
        scale = float(10**decimals)
        if largest * scale < 2**51 and np.array_equal((np.rint(wide * scale) / scale).astype(kind), numbers):
            return decimals
    spread = float(wide.max()) - float(wide.min())
    digits = 3 - int(np.floor(np.log10(spread))) if 0 < spread < np.inf else DEFAULT_DECIMALS
    return min(18, max(DEFAULT_DECIMALS, digits))


def _asserted_datetime(fields: dict[str, Any], known: pa.ChunkedArray) -> Datetime:
    numbers = known.cast(pa.int64()).to_numpy()
    unit = known.type.unit
    ticks = numbers // 1000 + (numbers % 1000 >= 500) if unit == "ns" else numbers * _PER_MICROSECOND[unit]
    low, high = (int(ticks.min()), int(ticks.max())) if len(ticks) else (0, 0)
    step = next(step for step in _RESOLUTIONS if not np.any((ticks - low) % step))
    aware = fields.get("timezone") is not None
    bounds = {"min": datetime_of_tick(low, aware=aware), "max": datetime_of_tick(high, aware=aware)}
    return Datetime(**{**fields, **bounds, "resolution": Decimal(step) / 1_000_000})

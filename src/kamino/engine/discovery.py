"""Domains that nobody declared, found within the budget."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kamino.errors import PrivacyError, SchemaError
from kamino.privacy import Gate, multiplier_for
from kamino.privacy.private import PrivateTable, open_table
from kamino.schema import Attribute, Categorical, Date, Datetime, GridCodec, Real, Schema, attribute_codec

OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class DiscoveryShare:
    """What finding domains may spend: a part of mu² and a part of delta, split evenly among those that need them.

    With `set_aside`, the delta was paid for before: types that were found decide who takes from it, not what is spent.
    """

    mu_squared: float
    delta: float
    set_aside: bool = False


SETTING_ASIDE = "delta of the categories to be found"


def set_delta_aside(gate: Gate, share: DiscoveryShare) -> DiscoveryShare:
    """Pay for all the delta of a share before anything is drawn, whatever types the columns turn out to have.

    Guarantees:
        The delta spent is the same for all types.  [test_delta_of_discovery_does_not_follow_the_types]
    """
    gate.ledger.set_aside(share.delta, what=SETTING_ASIDE)
    return replace(share, set_aside=True)


def discover_domains(private: PrivateTable, schema: Schema, gate: Gate, share: DiscoveryShare) -> Schema:
    """Return the schema with a domain for every attribute that lacked one.

    Categories that few rows have are not found: their rows count as "other". A range covers nearly all rows; what is
    outside is clamped to it. Each attribute is charged to the ledger.

    Guarantees:
        The result depends on the table through the gate only.  [test_replay_passes_for_discovery]
    """
    table = open_table(private)
    missing = schema.missing_domains
    num_categorical = sum(isinstance(schema[name], Categorical) for name in missing)
    for name in missing:
        part = replace(share, mu_squared=share.mu_squared / len(missing), delta=share.delta / max(1, num_categorical))
        attribute = schema[name]
        if isinstance(attribute, Categorical):
            schema = _find_categories(table.column(name), name, schema, gate, part)
        else:
            schema = _find_range(table.column(name), name, schema, gate, part)
    return schema


def _find_categories(column: pa.ChunkedArray, name: str, schema: Schema, gate: Gate, part: DiscoveryShare) -> Schema:
    found = gate.release_categories(
        _texts(column),
        attribute=name,
        noise_multiplier=multiplier_for(part.mu_squared),
        delta=part.delta,
        set_aside=part.set_aside,
    ).values
    if found and all(isinstance(value, int) for value in found):
        return schema.with_domain(name, values=list(found))
    values = [str(value) for value in found]
    other = next(text for text in _other_names() if text not in values)
    return schema.with_domain(name, values=[*values, other], other=other)


def _other_names() -> Iterable[str]:
    """Names for "anything else", the first of which that is no category is taken."""
    number = 1
    yield OTHER
    while True:
        number += 1
        yield f"{OTHER}{number}"


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column as categories are counted: text, or whole numbers of a dictionary column."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type)
    return column


def _find_range(column: pa.ChunkedArray, name: str, schema: Schema, gate: Gate, part: DiscoveryShare) -> Schema:
    attribute = schema[name]
    is_real = isinstance(attribute, Real)
    numbers = _real_numbers(column) if is_real else _steps(column, name, attribute)
    bounds = gate.release_bounds(
        numbers, attribute=name, noise_multiplier=multiplier_for(part.mu_squared), integer=not is_real
    )
    low, high = (bounds.lower, max(bounds.lower, bounds.upper)) if bounds.found else (0.0, 1.0)
    if isinstance(attribute, Real):
        limit = _largest_real(attribute)
        return schema.with_domain(name, min=max(low, -limit), max=min(high, limit))
    codec = _widest(name, attribute)
    first, last = (_value_at(codec, edge) for edge in (low, high))
    return schema.with_domain(name, min=first, max=last)


def _largest_real(attribute: Real) -> float:
    """The largest number that the attribute's type can hold: no bound need lie beyond it."""
    kind = attribute.arrow_type
    if pa.types.is_decimal(kind):
        return float(10 ** min(kind.precision - kind.scale, 15) - 1)
    return float(2.0**62)


def _real_numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Every value as a float, NaN where there is none; what is no number in a text column is none either."""
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        texts = column.to_pylist()
        return np.array([_float(text) for text in texts], dtype=np.float64)
    floats = pc.fill_null(column.cast(pa.float64(), safe=False), float("nan"))
    return np.asarray(floats, dtype=np.float64)


def _float(text: str | None) -> float:
    try:
        return float(text) if text is not None else float("nan")
    except ValueError:
        return float("nan")


def _steps(column: pa.ChunkedArray, name: str, attribute: Attribute) -> NDArray[np.int64]:
    """Every value that is not null as a whole number of steps of the attribute's grid, from a public origin."""
    codec = _widest(name, attribute)
    codes = codec.encode(column)
    present = codes if codec.null_code is None else codes[codes != codec.null_code]
    return present + codec.grid.start // codec.grid.step


def _value_at(codec: GridCodec, steps: float) -> object:
    code = int(steps) - codec.grid.start // codec.grid.step
    return codec.value_of(min(max(code, 0), codec.num_values - 1))


def _widest(name: str, attribute: Attribute) -> GridCodec:
    """A codec over the widest range that the attribute's type can hold: the same for every table."""
    for domain in _ranges(attribute):
        try:
            codec = attribute_codec(name, attribute.with_domain(**domain))
        except (SchemaError, OverflowError):
            continue
        assert isinstance(codec, GridCodec), "only grids have ranges"
        return codec
    raise PrivacyError(f"no range can be searched for {name!r}; declare its domain in the schema.")


def _ranges(attribute: Attribute) -> Iterator[dict[str, Any]]:
    """Ranges to try, widest first."""
    match attribute:
        case Date():
            yield {"min": dt.date(1, 1, 1), "max": dt.date(9999, 12, 31)}
            yield {"min": dt.date(1700, 1, 1), "max": dt.date(2250, 1, 1)}
        case Datetime():
            yield {"min": dt.datetime(1, 1, 2), "max": dt.datetime(9999, 12, 30)}
            yield {"min": dt.datetime(1700, 1, 1), "max": dt.datetime(2250, 1, 1)}
        case _:
            for exponent in (60, 52, 31, 24, 15, 7):
                yield {"min": -(2**exponent), "max": 2**exponent - 1}
                yield {"min": 0, "max": 2**exponent - 1}

"""Columns of two tables brought side by side: what kind they are, their numbers, and which types do not fit."""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kamino.advice import Advice, dropping
from kamino.errors import InputError

Numbers = npt.NDArray[np.float64]
_EPOCH = dt.datetime(1970, 1, 1)


class Kind(enum.StrEnum):
    """How a column is drawn and described."""

    NUMBER = "number"
    TIME = "time"
    CATEGORY = "category"


def kind_of(arrow_type: pa.DataType) -> Kind:
    """The kind of a column, from its type alone."""
    if pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type):
        return Kind.NUMBER
    if pa.types.is_date(arrow_type) or pa.types.is_timestamp(arrow_type):
        return Kind.TIME
    return Kind.CATEGORY


def require_columns(wanted: Iterable[str], found: Iterable[str], *, of: str = "the true one") -> None:
    """Raise an `InputError` that names the columns which a synthetic table lacks, and those it has instead."""
    expected, given = list(wanted), list(found)
    missing = [name for name in expected if name not in given]
    if not missing:
        return
    extra = [name for name in given if name not in expected]
    besides = f" and has others: {', '.join(extra)}" if extra else ""
    remedy = "Rename them" if extra else "Add them"
    raise Advice.of(
        "columns-lacking",
        f"the synthetic table lacks the columns {', '.join(missing)}{besides}; expected those of {of}. "
        f"{remedy} in the synthetic table, compare it with the table it was made from, or leave them out (",
        *(dropping(missing), ")"),
        about=missing,
    ).error(InputError)


def align(true: pa.Table, synthetic: pa.Table) -> pa.Table:
    """The synthetic columns in the true order, each in the true type where every value of it has one.

    A column whose values do not fit keeps its own type: `type_fits` then says so.

    >>> align(pa.table({"a": [1.5], "b": ["x"]}), pa.table({"b": ["y"], "a": [2]})).schema.types
    [DataType(double), DataType(string)]
    """
    require_columns(true.column_names, synthetic.column_names)
    return pa.table({name: _cast(synthetic.column(name), true.schema.field(name).type) for name in true.column_names})


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if kind_of(column.type) is not kind_of(wanted) and column.null_count < len(column):
        return column
    try:
        return column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return column


def type_fits(true: pa.DataType, synthetic: pa.DataType) -> bool:
    """Whether a column of one type can stand for a column of the other.

    >>> type_fits(pa.float64(), pa.int64()), type_fits(pa.int64(), pa.string())
    (True, False)
    """
    if kind_of(true) is Kind.CATEGORY:
        return pa.types.is_boolean(true) == pa.types.is_boolean(synthetic) and kind_of(synthetic) is Kind.CATEGORY
    return kind_of(true) is kind_of(synthetic)


def numbers(column: pa.ChunkedArray) -> Numbers:
    """The values as floats, times as seconds since 1970, null as NaN."""
    if pa.types.is_date(column.type) or pa.types.is_timestamp(column.type):
        instants = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None)), safe=False)
        return _floats(instants.cast(pa.int64())) / 1e6
    return _floats(column)


def _floats(column: pa.ChunkedArray) -> Numbers:
    filled = pc.fill_null(column.cast(pa.float64(), safe=False), float("nan"))
    return np.asarray(filled, dtype=np.float64)


def texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The values as text; null stays null."""
    return column.cast(pa.string())


def shown(value: float, kind: Kind, *, whole_days: bool = False) -> Any:
    """A number of `numbers` as it stands in a report: a float, or the text of a time; `None` where it is not finite."""
    if not np.isfinite(value):
        return None
    if kind is Kind.TIME:
        moment = _EPOCH + dt.timedelta(seconds=float(value))
        return moment.date().isoformat() if whole_days else moment.isoformat(sep=" ", timespec="seconds")
    return float(value)

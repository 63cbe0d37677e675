"""Read a data frame that is already in memory: pandas, polars, pyarrow, or anything that speaks Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from kamino.errors import InputError
from kamino.io.frame_types.pandas_types import has_spans, never_null
from kamino.io.normalise import Choose, check_names, chosen_columns, every_column, normalise_table
from kamino.io.odd_cells import as_declared
from kamino.io.spelling_cells import texts_of

WHERE = "data frame"


def read_frame(frame: object, *, private: bool = False, choose: Choose = every_column) -> pa.Table:
    """Turn a data frame into a table of plain types; a lazy frame is computed.

    Guarantees:
        - In a pandas frame NaN, NaT, None and NA all mean null, and the index is left out.
          [test_pandas_frame]
        - Durations, times of day and periods are whole numbers of their unit.  [test_spans_of_time_are_numbers]
        - In polars and pyarrow NaN is a number, and stays.  [test_nan_stays_a_number_outside_pandas]
        - Categories that are intervals or periods are text.  [test_intervals_come_back]
        - With `private`, columns of objects and of categories are text.  [test_object_columns_stay_text]
        - With `private`, no row decides how others are read.  [test_no_row_decides_how_others_are_read]
    """
    import narwhals as nw  # slow to import: only where there is a frame
    from narwhals.dependencies import is_dask_dataframe, is_pandas_dataframe
    from narwhals.exceptions import DuplicateError

    if isinstance(frame, pa.Table):
        return _read_arrow(frame, private=private, choose=choose)
    if is_pandas_dataframe(frame):
        return _read_pandas(frame, private=private, choose=choose)
    if is_dask_dataframe(frame):
        return _read_dask(frame, private=private, choose=choose)
    try:
        narwhal = nw.from_native(frame)  # type: ignore[call-overload]
    except TypeError:
        return _read_arrow_stream(frame, private=private, choose=choose)
    except DuplicateError:
        raise InputError(f"{WHERE}: a column name occurs more than once. Rename one of them.") from None
    return _read_narwhal(narwhal, private=private, choose=choose)


def _read_arrow(table: pa.Table, *, private: bool, choose: Choose) -> pa.Table:
    return normalise_table(chosen_columns(table, choose, where=WHERE), where=WHERE, private=private, ticks=True)


def _read_pandas(frame: Any, *, private: bool, choose: Choose) -> pa.Table:
    every = [str(name) for name in frame.columns]
    check_names(every, where=WHERE)
    names = choose(every)
    frame = frame.iloc[:, [every.index(name) for name in names]]
    # Column by column: a whole-frame conversion does not reliably name the column it failed on.
    columns = []
    for position, name in enumerate(names):
        series = frame.iloc[:, position]
        as_text = _texts_of_kind(series) if private or has_spans(series.dtype) else None
        if as_text is not None:
            columns.append(pa.chunked_array([as_text]))
            continue
        try:
            columns.append(_chunked(pa.array(series, from_pandas=True)))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise _mixed_column(name, str(series.dtype)) from None
    fields = [
        pa.field(name, column.type, nullable=not full)
        for name, column, full in zip(names, columns, never_null(frame), strict=True)
    ]
    whole = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    return normalise_table(whole, where=WHERE, nan_is_null=True, private=private, ticks=True)


def _read_narwhal(frame: Any, *, private: bool, choose: Choose) -> pa.Table:
    if hasattr(frame, "collect"):
        with _telling():
            frame = frame.collect()
    if frame.implementation.is_pandas_like():
        return _read_pandas(frame.to_pandas(), private=private, choose=choose)
    check_names(frame.columns, where=WHERE)
    names = choose(list(frame.columns))
    columns = []
    for name in names:
        try:
            columns.append(frame.select(name).to_arrow().column(0))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise _mixed_column(name, str(frame.schema[name])) from None
    whole = pa.Table.from_arrays(columns, names=names)
    return normalise_table(whole, where=WHERE, private=private, ticks=True)


@contextmanager
def _telling() -> Iterator[None]:
    """Say that a lazy frame could not be computed. What its library says may quote cells, and is not passed on."""
    try:
        yield
    except BaseException as problem:
        # A panic in the library of polars is no Exception.
        if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
            raise
        raise InputError(
            f"{WHERE}: a lazy frame could not be computed ({type(problem).__name__}); the details may quote values and "
            "are left out. Compute it yourself to see them; a cast can be told not to fail (in polars, strict=False)."
        ) from None


def _read_dask(frame: Any, *, private: bool, choose: Choose) -> pa.Table:
    """Read partition by partition, with the types that the frame declares: together, cells would decide on them."""
    import dask
    from narwhals.dependencies import is_pandas_dataframe

    if not is_pandas_dataframe(frame._meta):
        raise _no_frame(frame)
    with _telling():
        whole = _with_objects(frame)
        parts = dask.compute(*whole.to_delayed())
    declared = _read_pandas(whole._meta, private=private, choose=choose)
    tables = [_read_pandas(part, private=private, choose=choose) for part in parts]
    return pa.concat_tables([declared, *(as_declared(table, declared.schema) for table in tables)])


def _with_objects(frame: Any) -> Any:
    """The frame without turning objects into text, as dask does by default: a cell that is none would raise."""
    try:
        from dask.dataframe.dask_expr import new_collection
        from dask.dataframe.dask_expr._expr import ArrowStringConversion
        from dask.dataframe.dask_expr.io.io import FromPandas
    except ImportError:  # before version 2025
        return frame
    expression = frame.expr
    for read in expression.find_operations(FromPandas):
        expression = expression.substitute(read, read.substitute_parameters({"pyarrow_strings_enabled": False}))
    for conversion in expression.find_operations(ArrowStringConversion):
        expression = expression.substitute(conversion, conversion.frame)
    return new_collection(expression)


def _read_arrow_stream(frame: object, *, private: bool, choose: Choose) -> pa.Table:
    if not hasattr(frame, "__arrow_c_stream__"):
        raise _no_frame(frame)
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError):
        # A single column speaks Arrow too.
        raise _no_frame(frame) from None
    return _read_arrow(table, private=private, choose=choose)


def _no_frame(found: object) -> InputError:
    return InputError(
        f"found an object of type {type(found).__name__}, expected a path, a SQL URL or a data frame "
        "(pandas, polars, pyarrow). Build a data frame from it first."
    )


def _texts_of_kind(series: Any) -> pa.Array | None:
    """The cells as text where the type of the column, or whether it can be held, depends on them; None elsewhere."""
    if series.dtype.name == "category":
        codes = series.cat.codes.to_numpy()
        return texts_of(series.cat.categories).take(pa.array(codes, mask=codes < 0))
    is_any = getattr(series.dtype, "kind", "O") == "O" and not hasattr(series.array, "__arrow_array__")
    # Text that is held by Python may be what UTF-8 does not hold: half of a pair of surrogates.
    return texts_of(series) if is_any or getattr(series.dtype, "storage", "") == "python" else None


def _chunked(array: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _mixed_column(name: str, kind: str) -> InputError:
    return InputError(
        f"{WHERE}: column '{name}' of type {kind} cannot be held as one plain type. Cast it to a number, "
        "string, date or timestamp, or leave the column out."
    )

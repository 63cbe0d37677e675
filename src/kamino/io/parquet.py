"""Read a Parquet file."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kamino.errors import InputError
from kamino.io.normalise import Choose, chosen_columns, every_column, normalise_table

if TYPE_CHECKING:
    import pyarrow.parquet as pq


def read_parquet(path: Path, *, private: bool = False, choose: Choose = every_column) -> pa.Table:
    """Read one Parquet file, leaving out the unnamed row index pandas may have stored with it."""
    import pyarrow.parquet as pq  # slow to import: only when a file is read

    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
            listed = listed_types(file) if private else {}
    except PermissionError:
        raise
    # The library's own text may quote bytes of the file, so it is not passed on.
    except (pa.ArrowException, OSError):
        raise InputError(
            f"{path}: not a readable Parquet file: damaged, cut short, or of another format. Write it again."
        ) from None
    table = chosen_columns(table.drop_columns(unnamed_index(table)), choose, where=str(path))
    return normalise_table(as_listed(table, listed), where=str(path), private=private)


def listed_types(file: pq.ParquetFile) -> dict[str, pa.DataType]:
    """The columns that were written as dictionaries, which may come back plain, and the types of their values."""
    stored = (file.metadata.metadata or {}).get(b"ARROW:schema")
    if stored is None:
        return {}
    try:
        written = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(stored)))
    except Exception:  # types of other libraries are read by these, and fail in any way
        return {}
    return {field.name: field.type.value_type for field in written if pa.types.is_dictionary(field.type)}


def as_listed(table: pa.Table, listed: Mapping[str, pa.DataType]) -> pa.Table:
    """The table with these columns as dictionaries again, of durations too, which reading gives back as integers."""
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if name not in listed or pa.types.is_dictionary(column.type):
            continue
        if pa.types.is_integer(column.type) and pa.types.is_duration(listed[name]):
            column = column.cast(listed[name])
        table = table.set_column(place, name, column.dictionary_encode())
    return table


def unnamed_index(table: pa.Table) -> list[str]:
    """The columns in which pandas may have stored a row index without a name."""
    metadata = (table.schema.metadata or {}).get(b"pandas")
    if metadata is None:
        return []
    try:
        index = json.loads(metadata).get("index_columns", [])
    except (ValueError, AttributeError, RecursionError):
        return []
    names = [
        name
        for name in (index if isinstance(index, list) else [])
        if isinstance(name, str) and name.startswith("__index_level_")
    ]
    return [name for name in names if name in table.column_names]


def batches_of(file: Any, names: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Read the named columns of an open file, about so many rows at a time, without holding what was read before.

    The library holds what it has read until it is through with all row groups that it was asked for.
    """
    for groups in _runs_of_groups(file, rows):
        yield from file.iter_batches(batch_size=rows, row_groups=groups, columns=list(names), use_threads=False)


def _runs_of_groups(file: Any, rows: int) -> Iterator[list[int]]:
    """The row groups of a file, so many at a time as have about so many rows."""
    waiting: list[int] = []
    held = 0
    for place in range(file.num_row_groups):
        waiting.append(place)
        held += file.metadata.row_group(place).num_rows
        if held >= rows:
            yield waiting
            waiting, held = [], 0
    if waiting:
        yield waiting

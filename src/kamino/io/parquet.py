"""Read a Parquet file."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kamino.errors import InputError
from kamino.io.normalise import normalise_table


def read_parquet(path: Path, *, private: bool = False) -> pa.Table:
    """Read one Parquet file, leaving out the unnamed row index pandas may have stored with it."""
    try:
        with pq.ParquetFile(path) as file:
            table = file.read()
    except PermissionError:
        raise
    # The library's own text may quote bytes of the file, so it is not passed on.
    except (pa.ArrowException, OSError):
        raise InputError(
            f"{path}: not a readable Parquet file: damaged, cut short, or of another format. Write it again."
        ) from None
    table = table.drop_columns(_unnamed_index(table))
    return normalise_table(table, where=str(path), private=private)


def _unnamed_index(table: pa.Table) -> list[str]:
    metadata = (table.schema.metadata or {}).get(b"pandas")
    if metadata is None:
        return []
    index = json.loads(metadata).get("index_columns", [])
    names = [name for name in index if isinstance(name, str) and name.startswith("__index_level_")]
    return [name for name in names if name in table.column_names]

"""The edge where tables come in and go out.

`read_table` takes a CSV or Parquet file, a SQL query or a data frame and gives a `pyarrow.Table` of a few
plain types. `write_table` writes such a table to a CSV or Parquet file, whole or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports

if TYPE_CHECKING:
    from kamino.io.tables import read_table
    from kamino.io.write import write_table

__all__ = [
    "read_table",
    "write_table",
]

_HOMES = {
    "read_table": "tables",
    "write_table": "write",
}

__getattr__ = late_imports(__name__, _HOMES)

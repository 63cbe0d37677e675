"""The edge where tables come in and go out.

`read_table` takes a file, a SQL query or a data frame and gives a `pyarrow.Table` of a few plain types. `write_table`
writes such a table to a file, whole or not at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports

if TYPE_CHECKING:
    from kamino.io.tables import Reading, is_untyped, read_table
    from kamino.io.write import write_table

__all__ = [
    "Reading",
    "is_untyped",
    "read_table",
    "write_table",
]

_HOMES = {
    "Reading": "tables",
    "is_untyped": "tables",
    "read_table": "tables",
    "write_table": "write",
}

__getattr__ = late_imports(__name__, _HOMES)

"""Tables of a PostgreSQL server as a reader under trial. It needs a server, so that it is no part of `READERS`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.io.odd_reading import Cells, Column, OddReader, Seen
from tests.io.oddities import TEXTS

from kamino.io import read_table
from kamino.io.databases.sql import select_statement
from kamino.io.streams.postgres_parts import PostgresParts

_TEXTS = tuple(f"'{text.replace(chr(39), chr(39) * 2)}'" for text in TEXTS if "\x00" not in text)
_MOMENTS = ("'infinity'", "'-infinity'", "'0044-03-15 BC'", "'9999-12-31'", "'12000-01-01'", "'0001-01-01'", "NULL")
# Columns by their type, and cells as SQL spells them.
COLUMNS: Mapping[str, Column] = {
    "smallint": Column(plain=("1", "2", "NULL"), odd=("32767", "-32768")),
    "bigint": Column(plain=("1", "2", "NULL"), odd=("9223372036854775807", "-9223372036854775808")),
    "real": Column(plain=("1.5", "2"), odd=("'NaN'", "'Infinity'", "'-Infinity'", "1e-45", "3.4e38", "'-0'")),
    "double precision": Column(plain=("1.5", "2"), odd=("'NaN'", "'Infinity'", "5e-324", "1.7e308", "0.1", "'-0'")),
    "numeric": Column(
        plain=("1.5", "2.25", "NULL"),
        odd=("'NaN'", "'Infinity'", "1e400", "1e-400", "9" * 90, "0." + "9" * 90, "1.000", "-0"),
    ),
    "numeric(10, 2)": Column(plain=("1.5", "2.25", "NULL"), odd=("'NaN'", "99999999.99", "0", "-1")),
    "boolean": Column(plain=("true", "false"), odd=("NULL",)),
    "text": Column(plain=("'a'", "'é'"), odd=("NULL", *_TEXTS)),
    "varchar(9)": Column(plain=("'a'", "'b'"), odd=("''", "'         '", "NULL")),
    "char(3)": Column(plain=("'a'", "'b'"), odd=("''", "NULL")),
    "uuid": Column(plain=("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",), odd=("NULL", f"'{'0' * 32}'", f"'{'f' * 32}'")),
    "date": Column(plain=("'2024-01-02'", "NULL"), odd=_MOMENTS),
    "timestamp": Column(plain=("'2024-01-02 03:04:05.25'",), odd=(*_MOMENTS, "'2024-01-02 24:00'")),
    "timestamptz": Column(plain=("'2024-01-02 03:04:05+01'",), odd=(*_MOMENTS, "'9999-12-31 23:59:59-12'")),
}


def postgres_readers(url: str, connection: Any) -> tuple[OddReader, ...]:
    """A reader of a table on a server, as a whole and in parts; `connection` makes the table."""

    def make(cells: Cells, folder: Path) -> str:
        del folder
        named = ", ".join(f'"{name}" {name}' for name in cells)
        rows = [f"({', '.join(row)})" for row in zip(*cells.values(), strict=True)]
        try:
            with connection.cursor() as cursor:
                cursor.execute("SET LOCAL synchronous_commit = off")
                cursor.execute("DROP TABLE IF EXISTS odd_cells")
                cursor.execute(f"CREATE UNLOGGED TABLE odd_cells ({named})")
                if rows:
                    cursor.execute(f"INSERT INTO odd_cells VALUES {', '.join(rows)}")
            connection.commit()
        except Exception:
            connection.rollback()
            raise
        return "odd_cells"

    def whole(table: str) -> Seen:
        return Seen(read_table(url, query=table, private=True))

    def in_parts(table: str) -> Seen:
        parts = PostgresParts(url, select_statement(table), table=table, private=True, part_rows=2)
        read = pa.concat_tables(parts.parts())
        del parts
        return Seen(read)

    return (
        OddReader(name="postgres", columns=COLUMNS, make=make, read=whole),
        OddReader(name="postgres-parts", columns=COLUMNS, make=make, read=in_parts),
    )

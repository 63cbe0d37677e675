"""Put a table into a database: a new one that takes its name when all is done, or nothing at all.

One transaction does it, so that nobody ever sees half a table, and a failure leaves the database as it was. A table of
that name is replaced only if Kamino made it, which its comment says.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from kamino.errors import InputError
from kamino.io.databases.catalogue import Catalogue
from kamino.io.databases.credentials import shown_source
from kamino.io.databases.sql import duckdb_path, folded_parts, is_url, name_parts, split_table
from kamino.io.normalise import normalise_table
from kamino.io.registry import database_kind

MADE_BY = "Synthetic table made by Kamino"
_TYPES = {
    "duckdb": {
        "int8": "tinyint", "int16": "smallint", "int32": "integer", "int64": "bigint", "uint8": "utinyint",
        "uint16": "usmallint", "uint32": "uinteger", "uint64": "ubigint", "float": "float", "double": "double",
        "bool": "boolean", "string": "varchar", "date32[day]": "date",
    },
    "postgres": {
        "int8": "smallint", "int16": "smallint", "int32": "integer", "int64": "bigint", "uint8": "smallint",
        "uint16": "integer", "uint32": "bigint", "uint64": "numeric(20, 0)", "float": "real",
        "double": "double precision", "bool": "boolean", "string": "text", "date32[day]": "date",
    },
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DatabaseTable:
    """A table of a database, there already or not: `duckdb:///file.db#table` or `postgresql://…#schema.table`."""

    url: str
    name: str

    @staticmethod
    def of(given: object) -> DatabaseTable | None:
        """The table that an output names; None for the path of a file.

        Raises:
            InputError: the address of a database without the name of a table.
        """
        if not isinstance(given, str) or not is_url(given):
            return None
        url, name = split_table(given)
        if name is None:
            raise InputError(
                f"{shown_source(given)}: found a database without the name of a table; expected it behind a #, such as "
                "duckdb:///file.db#people or postgresql://user@host/database#people"
            )
        kind = database_kind(url)
        if kind is None or not kind.is_written:
            raise InputError(f"{shown_source(url)}: cannot write there; expected duckdb:/// or postgresql://")
        return DatabaseTable(url=url, name=name)

    def __str__(self) -> str:
        return f"{shown_source(self.url)}#{self.name}"

    @property
    def dialect(self) -> str:
        """The language of the database."""
        kind = database_kind(self.url)
        assert kind is not None, "it was looked at"
        return kind.name

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the name, without quotes, as the database knows them."""
        return folded_parts(self.name) if self.dialect == "postgres" else name_parts(self.name)

    @property
    def certificate(self) -> Path:
        """Where the certificate goes: beside a DuckDB file, or into the folder one is in."""
        # A name may hold what no file name can.
        name = "".join(letter if letter.isalnum() or letter in "._- " else "_" for letter in ".".join(self.parts))
        beside = f"{duckdb_path(self.url)}." if self.dialect == "duckdb" else ""
        return Path(f"{beside}{name}.certificate.json")


class StagedTable(Protocol):
    """A table that is being written, in a transaction of its own."""

    def write(self, parts: Iterator[pa.Table]) -> None:
        """Put rows into it, in the place of any that are there."""

    def read(self) -> pa.Table:
        """What stands in it now."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of its columns, as parts of it have them."""

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """What stands in the named columns now, part by part."""

    def settle(self, comment: str) -> None:
        """Give it its name and its comment, and see that whoever asks for that name finds it."""

    def place(self, comment: str) -> None:
        """Settle it, and make it last."""


def kinds_of(columns: pa.Schema, dialect: str, catalogue: Catalogue | None) -> dict[str, str]:
    """The SQL type of each column: as declared in a catalogue of the same language, else by the type of the column.

    Guarantees:
        Types are those of the table that was read.  [test_one_command_from_database_to_database]
    """
    same = catalogue if catalogue is not None and catalogue.dialect == dialect else None
    return {
        field.name: same[field.name].kind if same is not None and field.name in same else _kind(field.type, dialect)
        for field in columns
    }


def _kind(kind: pa.DataType, dialect: str) -> str:
    if pa.types.is_decimal(kind):
        return f"numeric({kind.precision}, {max(kind.scale, 0)})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    return _TYPES[dialect][str(kind)]


@contextmanager
def staged_table(
    target: DatabaseTable,
    columns: pa.Schema,
    *,
    catalogue: Catalogue | None,
    strict: Sequence[str],
    keys: Sequence[str],
) -> Iterator[StagedTable]:
    """Prepare a table that will take the name of `target`; unless it is placed, the database is as it was.

    `strict` are the columns without nulls and `keys` those of made-up keys: the first is the primary key. With the
    catalogue of a table, NOT NULL and keys are those that it declares, as far as rows are drawn to keep them.

    Guarantees:
        After a failure the database is as it was.  [test_a_failing_write_leaves_the_database]
        What Kamino did not make is not replaced.  [test_a_table_of_somebody_else_is_not_replaced]
    """
    primary: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...]
    if catalogue is None:
        primary, unique = tuple(keys[:1]), tuple((each,) for each in keys[1:])
    else:
        strict = [name for name in strict if name not in catalogue or catalogue[name].not_null]
        # A key of several columns holds if the values of one of them are all different.
        kept = [key for key in catalogue.keys if set(key) & set(keys) and set(key) <= set(columns.names)]
        primary = catalogue.primary if catalogue.primary in kept else ()
        unique = tuple(key for key in kept if key != primary)
    kinds = kinds_of(columns, target.dialect, catalogue)
    shape = _Shape(kinds=kinds, strict=tuple(strict), primary=primary, unique=unique)
    if target.dialect == "duckdb":
        with _staged_in_duckdb(target, shape) as staged:
            yield staged
    else:
        with _staged_in_postgres(target, shape) as staged:
            yield staged


@dataclass(frozen=True, kw_only=True)
class _Shape:
    kinds: dict[str, str]
    strict: tuple[str, ...]
    primary: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...]

    def columns(self) -> str:
        return ", ".join(
            f"{quoted(name)} {kind}{' NOT NULL' if name in self.strict else ''}" for name, kind in self.kinds.items()
        )

    def rules(self) -> list[str]:
        keys = [("PRIMARY KEY", self.primary)] if self.primary else []
        keys += [("UNIQUE", each) for each in self.unique]
        return [f"{kind} ({', '.join(map(quoted, names))})" for kind, names in keys]

    def cast(self) -> str:
        return ", ".join(f"CAST({quoted(name)} AS {kind})" for name, kind in self.kinds.items())


def quoted(name: str) -> str:
    """A name as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _not_ours(target: DatabaseTable) -> InputError:
    return InputError(
        f"{target}: found a table of this name that Kamino did not make; it is not replaced. Drop it, or choose "
        "another name. Nothing was changed"
    )


@dataclass(frozen=True, kw_only=True)
class _DuckdbTable:
    connection: Any
    target: DatabaseTable
    shape: _Shape

    @property
    def name(self) -> str:
        return ".".join(map(quoted, self.target.parts))

    def write(self, parts: Iterator[pa.Table]) -> None:
        self.connection.execute(f"DELETE FROM {self.name}")
        for part in parts:
            self.connection.register("kamino_part", part)
            self.connection.execute(f"INSERT INTO {self.name} SELECT {self.shape.cast()} FROM kamino_part")
            self.connection.unregister("kamino_part")

    def read(self) -> pa.Table:
        found = self.connection.sql(f"SELECT * FROM {self.name}").to_arrow_table()
        return normalise_table(found, where=str(self.target))

    @property
    def schema(self) -> pa.Schema:
        return next(iter(self._parts("*", "LIMIT 0"))).schema

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        yield from self._parts("*" if names is None else ", ".join(map(quoted, names)), "")

    def _parts(self, chosen: str, limit: str) -> Iterator[pa.Table]:
        relation = self.connection.sql(f"SELECT {chosen} FROM {self.name} {limit}")
        newer = getattr(relation, "to_arrow_reader", None)  # older versions have the other name
        reader = newer(PART_ROWS) if newer is not None else relation.fetch_arrow_reader(PART_ROWS)
        tables = (pa.Table.from_batches([batch]) for batch in reader)
        yield from _plain_parts(tables, reader.schema.empty_table(), str(self.target))

    def settle(self, comment: str) -> None:
        self.connection.execute(f"COMMENT ON TABLE {self.name} IS {_literal(comment)}")
        self.connection.execute(f"SELECT * FROM {self.target.name} LIMIT 0")

    def place(self, comment: str) -> None:
        self.settle(comment)
        self.connection.execute("COMMIT")


@contextmanager
def _staged_in_duckdb(target: DatabaseTable, shape: _Shape) -> Iterator[_DuckdbTable]:
    import duckdb  # slow to import

    path = Path(duckdb_path(target.url))
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}. Create it first.")
    was_there = path.exists()
    if was_there and not path.is_file():
        raise InputError(f"{path}: found no file, expected a DuckDB file or a new name. Write to another name.")
    staged = None
    try:
        with duckdb.connect(str(path)) as connection:
            staged = _DuckdbTable(connection=connection, target=target, shape=shape)
            connection.execute("BEGIN")
            _refuse_others_in_duckdb(connection, target)
            connection.execute(f"DROP TABLE IF EXISTS {staged.name}")
            body = ", ".join([shape.columns(), *shape.rules()])
            connection.execute(f"CREATE TABLE {staged.name} ({body})")
            yield staged
            # What was not placed is taken back when the connection is closed.
    except duckdb.Error as error:
        said = str(error).strip().splitlines()[0]
        raise InputError(f"{target}: the table cannot be written ({said}). Nothing was changed.") from None
    finally:
        if not was_there and path.exists() and not _has_tables(path):
            path.unlink()


def _has_tables(path: Path) -> bool:
    import duckdb

    with duckdb.connect(str(path), read_only=True) as connection:
        return bool(connection.execute("SELECT count(*) FROM duckdb_tables()").fetchall()[0][0])


def _refuse_others_in_duckdb(connection: Any, target: DatabaseTable) -> None:
    schema = target.parts[-2] if len(target.parts) > 1 else "main"
    found = connection.execute(
        "SELECT comment FROM duckdb_tables() WHERE lower(table_name) = lower(?) AND lower(schema_name) = lower(?) "
        "UNION ALL SELECT NULL FROM duckdb_views() WHERE lower(view_name) = lower(?) AND lower(schema_name) = lower(?)",
        [target.parts[-1], schema] * 2,
    ).fetchall()
    if any(not (comment or "").startswith(MADE_BY) for (comment,) in found):
        raise _not_ours(target)


@dataclass(frozen=True, kw_only=True)
class _PostgresTable:
    connection: Any
    cursor: Any
    target: DatabaseTable
    shape: _Shape
    token: str

    @property
    def inside(self) -> str:
        """The schema of the server that it is in, as names begin."""
        return f"{quoted(self.target.parts[-2])}." if len(self.target.parts) > 1 else ""

    @property
    def new(self) -> str:
        """The name it has until it is placed."""
        return f"{self.inside}{quoted(f'kamino_{self.token}')}"

    def write(self, parts: Iterator[pa.Table]) -> None:
        self.cursor.execute(f"DELETE FROM {self.new}")
        for place, part in enumerate(parts):
            # The driver writes the types of its own choice, which the server then casts.
            raw = f"kamino_part_{self.token}_{place}"
            self.cursor.adbc_ingest(raw, _ingestible(part), mode="create", temporary=True)
            self.cursor.execute(f"INSERT INTO {self.new} SELECT {self.shape.cast()} FROM {quoted(raw)}")
            self.cursor.execute(f"DROP TABLE {quoted(raw)}")

    def read(self) -> pa.Table:
        from kamino.io.databases.postgres import convert_types

        self.cursor.execute(f"SELECT * FROM {self.new}")
        found = self.cursor.fetch_arrow_table()
        return normalise_table(convert_types(found, private=False), where=str(self.target))

    @property
    def schema(self) -> pa.Schema:
        return next(iter(self._parts("*", "LIMIT 0"))).schema

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        yield from self._parts("*" if names is None else ", ".join(map(quoted, names)), "")

    def _parts(self, chosen: str, limit: str) -> Iterator[pa.Table]:
        from kamino.io.databases.postgres import convert_types

        scales = self._scales()
        self.cursor.execute(f"SELECT {chosen} FROM {self.new} {limit}")
        with self.cursor.fetch_record_batch() as reader:
            tables = (pa.Table.from_batches([batch]) for batch in reader)
            typed = (convert_types(table, private=False, scales=scales) for table in tables)
            empty = convert_types(reader.schema.empty_table(), private=False, scales=scales)
            yield from _plain_parts(typed, empty, str(self.target))

    def _scales(self) -> dict[str, int]:
        """How many places the decimals of a column have in all rows: as declared, or else as they are written there."""
        kinds = self.shape.kinds
        scales = {name: scale for name, kind in kinds.items() if (scale := scale_of(kind)) is not None}
        for name in (name for name, kind in kinds.items() if kind.lower() == "numeric"):
            self.cursor.execute(f"SELECT coalesce(max(scale({quoted(name)})), 0) FROM {self.new}")
            (scales[name],) = self.cursor.fetchone()
        return scales

    def settle(self, comment: str) -> None:
        name = quoted(self.target.parts[-1])
        self.cursor.execute(f"DROP TABLE IF EXISTS {self.inside}{name}")
        self.cursor.execute(f"ALTER TABLE {self.new} RENAME TO {name}")
        for rule in self.shape.rules():
            self.cursor.execute(f"ALTER TABLE {self.inside}{name} ADD {rule}")
        self.cursor.execute(f"COMMENT ON TABLE {self.inside}{name} IS {_literal(comment)}")
        self.cursor.execute(f"SELECT * FROM {self.target.name} LIMIT 0")

    def place(self, comment: str) -> None:
        self.settle(comment)
        self.connection.commit()


#: Rows of a part that is read back.
PART_ROWS = 1 << 19
_SCALED = re.compile(r"(?:numeric|decimal)\(\d+(?:,\s*(\d+))?\)", re.IGNORECASE)


def scale_of(kind: str) -> int | None:
    """How many places a type of decimals has; None for other types, and for decimals of any number of places.

    >>> scale_of("numeric(8, 2)"), scale_of("numeric(8)"), scale_of("numeric"), scale_of("text")
    (2, 0, None, None)
    """
    found = _SCALED.fullmatch(kind)
    return None if found is None else int(found.group(1) or 0)


def _plain_parts(tables: Iterable[pa.Table], empty: pa.Table, where: str) -> Iterator[pa.Table]:
    """The parts of an answer, at least one."""
    given = False
    for table in tables:
        given = True
        yield normalise_table(table, where=where)
    if not given:
        yield normalise_table(empty, where=where)


def _ingestible(part: pa.Table) -> pa.Table:
    """Unsigned numbers, which the server has none of, as wider ones."""
    wider = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
    }
    fields = [pa.field(field.name, wider.get(field.type, field.type)) for field in part.schema]
    return part.cast(pa.schema(fields))


@contextmanager
def _staged_in_postgres(target: DatabaseTable, shape: _Shape) -> Iterator[_PostgresTable]:
    from kamino.io.databases.postgres import writing_session

    with writing_session(target.url) as (connection, cursor):
        staged = _PostgresTable(
            connection=connection, cursor=cursor, target=target, shape=shape, token=secrets.token_hex(6)
        )
        name = _literal(f"{staged.inside}{quoted(target.parts[-1])}")
        cursor.execute(f"SELECT to_regclass({name}) IS NOT NULL, obj_description(to_regclass({name}), 'pg_class')")
        exists, comment = cursor.fetchone()
        _refuse_cut_names(cursor, target, [*target.parts, *shape.kinds])
        if exists and not (comment or "").startswith(MADE_BY):
            raise _not_ours(target)
        known = {kind: _knows(cursor, kind) for kind in set(shape.kinds.values())}
        there = {each: kind if known[kind] else "text" for each, kind in shape.kinds.items()}
        shape = _Shape(kinds=there, strict=shape.strict, primary=shape.primary, unique=shape.unique)
        staged = _PostgresTable(connection=connection, cursor=cursor, target=target, shape=shape, token=staged.token)
        cursor.execute(f"CREATE TABLE {staged.new} ({shape.columns()})")
        cursor.execute(f"SELECT relpersistence = 't' FROM pg_class WHERE oid = to_regclass({_literal(staged.new)})")
        if cursor.fetchone()[0]:
            raise InputError(
                f"{target}: found the name of a temporary table, which is gone when the connection is closed; expected "
                "one that lasts. Nothing was changed"
            )
        yield staged


def _refuse_cut_names(cursor: Any, target: DatabaseTable, names: Sequence[str]) -> None:
    """Refuse names that the server would cut, after which nobody finds a table or a column by its name."""
    cursor.execute("SELECT current_setting('max_identifier_length')::int")
    (most,) = cursor.fetchone()
    cut = [name for name in names if len(name.encode()) > most]
    if cut:
        raise InputError(
            f"{target}: found {'names' if len(cut) > 1 else 'the name'} {', '.join(map(quoted, cut))} of more than "
            f"{most} bytes, which PostgreSQL would cut; expected shorter ones. Rename them, or write to a file. "
            "Nothing was changed"
        )


def _knows(cursor: Any, kind: str) -> bool:
    """Whether the server has a type: an enum of another database it may not have."""
    cursor.execute(f"SELECT to_regtype({_literal(kind)}) IS NOT NULL")
    return bool(cursor.fetchone()[0])


def refuse_unwritable_database(target: DatabaseTable) -> None:
    """Raise an `InputError` if no table can be put at `target`; what is tried is taken back."""
    columns = pa.schema([pa.field("a", pa.int64())])
    with staged_table(target, columns, catalogue=None, strict=(), keys=()) as table:
        table.settle(MADE_BY)

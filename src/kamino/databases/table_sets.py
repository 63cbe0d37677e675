"""Where the tables of a database come from and go to: a set of tables by name, read and written behind one protocol."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.frame_types import FrameKind, frame_from, kind_of
from kamino.io.registry import WRITTEN
from kamino.io.write import read_written, write_table
from kamino.privacy.private import PrivateTable
from kamino.schema import Schema

_ENDINGS = (*WRITTEN, ".tsv.gz", ".tab", ".arrow", ".ndjson")


class TableSet(Protocol):
    """Tables by name, of which some are private."""

    def check(self, names: tuple[str, ...]) -> None:
        """Raise an `InputError` if one of these is not there."""
        ...

    def private(self, name: str) -> PrivateTable:
        """Read and seal one: no name, type or error depends on what its rows hold."""
        ...

    def public(self, name: str) -> pa.Table:
        """Read one that everybody may see."""
        ...

    def comes_back(self, name: str, table: pa.Table, schema: Schema | None) -> Any:
        """A drawn table as what these tables are."""
        ...


class FolderTables:
    """The files of a folder, each named as its table: `orders.csv`, `lines.parquet`."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise InputError(
                f"found no folder {self.folder}; expected one with a file for each table, such as orders.csv"
            )

    def file(self, name: str) -> Path:
        """The file of a table.

        Raises:
            InputError: there is none, or more than one.
        """
        found = [self.folder / f"{name}{end}" for end in dict.fromkeys(_ENDINGS)]
        found = [path for path in found if path.is_file()]
        if len(found) != 1:
            told = " and ".join(path.name for path in found) or f"no file for the table {name}"
            raise InputError(f"{self.folder}: found {told}; expected one, such as {name}.csv or {name}.parquet")
        return found[0]

    def check(self, names: tuple[str, ...]) -> None:
        """See that each has its file."""
        for name in names:
            self.file(name)

    def private(self, name: str) -> PrivateTable:
        """Read and seal one."""
        return PrivateTable(read_table(self.file(name), private=True))

    def public(self, name: str) -> pa.Table:
        """Read one that everybody may see."""
        return read_table(self.file(name))

    def comes_back(self, name: str, table: pa.Table, schema: Schema | None) -> Any:
        """Files come back as Arrow tables."""
        del name, schema
        return table


class FrameTables:
    """Data frames by name."""

    def __init__(self, frames: Mapping[str, Any]) -> None:
        self.frames = dict(frames)
        self._kinds: dict[str, FrameKind | None] = {}

    def check(self, names: tuple[str, ...]) -> None:
        """See that each is there."""
        missing = [name for name in names if name not in self.frames]
        if missing:
            known = ", ".join(self.frames) or "none"
            raise InputError(f"found no table {', '.join(missing)}; expected a frame for each. Tables given: {known}")

    def private(self, name: str) -> PrivateTable:
        """Read and seal one."""
        found = PrivateTable(read_table(self.frames[name], private=True))
        self._kinds[name] = kind_of(self.frames[name], found.without_rows().schema)
        return found

    def public(self, name: str) -> pa.Table:
        """Read one that everybody may see."""
        return read_table(self.frames[name])

    def comes_back(self, name: str, table: pa.Table, schema: Schema | None) -> Any:
        """A frame of the kind that the table came as."""
        kind = self._kinds.get(name)
        return table if kind is None or schema is None else frame_from(table, kind, schema)

    def without_rows(self) -> FrameTables:
        """What is kept of them once they are fitted: their kinds."""
        kept = FrameTables({})
        kept._kinds = self._kinds
        return kept


def table_set(tables: object) -> TableSet:
    """The tables that are given: a folder, or frames by name."""
    if isinstance(tables, str | os.PathLike):
        return FolderTables(tables)
    if isinstance(tables, Mapping):
        return FrameTables(tables)
    raise InputError(
        f"found {type(tables).__name__} for the tables of a database; expected a folder, or frames by name"
    )


@dataclass(frozen=True, kw_only=True)
class StagedFolder:
    """A folder that is being written beside the place where it will be."""

    temporary: Path
    ending: str

    def write(self, name: str, table: pa.Table) -> pa.Table:
        """Write a table and return it as it reads back."""
        path = self.temporary / f"{name}{self.ending}"
        write_table(table, path)
        return read_written(path, path.name, types=table.schema)

    def file(self, name: str) -> Path:
        """The file of a table."""
        return self.temporary / f"{name}{self.ending}"


def check_folder(folder: str | os.PathLike[str], ending: str) -> Path:
    """The folder that tables will be written to.

    Raises:
        InputError: something is there, or tables cannot be written so.
    """
    path = Path(folder)
    if ending not in WRITTEN:
        raise InputError(f"found files of kind {ending!r}; expected one of {', '.join(WRITTEN)}")
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path}: found something there; expected the name of a new folder, or an empty one")
    if not path.absolute().parent.is_dir():
        raise InputError(f"{path}: found no folder {path.absolute().parent} to put it into; make it first")
    return path


@contextmanager
def staged_folder(folder: Path, ending: str) -> Iterator[StagedFolder]:
    """A folder to write into, which gets its name when the block ends well, and is gone otherwise.

    Guarantees:
        No part of a database is ever seen.  [test_a_database_is_written_whole_or_not_at_all]
    """
    temporary = folder.absolute().with_name(f".{folder.name}.{secrets.token_hex(8)}.part")
    temporary.mkdir()
    try:
        yield StagedFolder(temporary=temporary, ending=ending)
        if folder.is_dir():
            folder.rmdir()
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)

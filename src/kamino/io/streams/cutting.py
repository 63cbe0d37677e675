"""Batches of any size, cut into parts of equal size: the same rows are in the same part in every pass."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from kamino.errors import InputError

#: Rows of a part: a few hundred MiB as Arrow columns and codes.
PART_ROWS = 1 << 19


def cut_evenly(batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int = PART_ROWS) -> Iterator[pa.Table]:
    """Cut batches into tables of `rows` rows, but for the last; one empty table if there are none.

    Guarantees:
        All rows come, in their order, and every part but the last has so many.  [test_parts_are_cut_evenly]
    """
    waiting: list[pa.RecordBatch] = []
    held, given = 0, False
    for batch in batches:
        waiting.append(batch)
        held += batch.num_rows
        while held >= rows:
            table = pa.Table.from_batches(waiting, schema)
            yield table.slice(0, rows).combine_chunks()
            waiting, held, given = table.slice(rows).to_batches(), held - rows, True
    if held or not given:
        yield pa.Table.from_batches(waiting, schema).combine_chunks()


@dataclass(frozen=True, kw_only=True)
class FileState:
    """What a file was when it was first looked at: it must not change between passes."""

    path: Path
    size: int
    changed: int

    @staticmethod
    def of(path: Path) -> FileState:
        """Look at a file."""
        found = os.stat(path)
        return FileState(path=path, size=found.st_size, changed=found.st_mtime_ns)

    def check(self) -> None:
        """Refuse to go on with other rows than those that were measured before."""
        try:
            now = FileState.of(self.path)
        except OSError:
            raise InputError(f"{self.path}: the file is gone since the run began. Start the run again.") from None
        if now != self:
            raise InputError(
                f"{self.path}: the file has changed since the run began, so that its counts would not belong together. "
                "Start the run again on a file that nobody writes to."
            )

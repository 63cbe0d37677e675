"""A number for the rows of a table of a database, whose rows have no order: SHA-256 of its sorted lines."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kamino.schema.table_parts import Parts

#: Lines that are sorted at a time.
LINES_AT_ONCE = 1 << 22
# Lines that are looked at to divide all of them evenly.
_LOOKED_AT = 1 << 16


def digest_of_rows(table: pa.Table) -> str:
    """SHA-256 of the rows of a table, in whatever order a database gives them: of their names and sorted lines."""
    found = _digest_of_names(table.column_names)
    _add_lines(found, pc.sort_indices(lines := _lines(table)), lines)
    return str(found.hexdigest())


def digest_of_parts(table: Parts) -> str:
    """The same of a table that is read part by part: each pass sorts the lines that lie between two others.

    Guarantees:
        It is that of the table as a whole.  [test_rows_in_parts_have_the_digest_of_the_table]
    """
    found = _digest_of_names(table.schema.names)
    ends = _even_ends(table)
    for low, high in zip([None, *ends], [*ends, None], strict=True):
        kept = [_between(_lines(part), low, high) for part in table.parts()]
        lines = pa.chunked_array(kept, pa.string())
        _add_lines(found, pc.sort_indices(lines), lines)
    return str(found.hexdigest())


def _digest_of_names(names: Sequence[str]) -> Any:
    return hashlib.sha256("\x1f".join(names).encode())


def _lines(table: pa.Table) -> pa.Array:
    """Each row as one text."""
    if table.num_rows == 0:
        return pa.array([], pa.string())
    texts = [pc.fill_null(pc.cast(column, pa.string()).combine_chunks(), "\x00") for column in table.columns]
    lines = pc.binary_join_element_wise(*texts, pa.scalar("\x1f"))
    return lines.combine_chunks() if isinstance(lines, pa.ChunkedArray) else lines


def _even_ends(table: Parts) -> list[str]:
    """Lines that divide all of them into about equal numbers, few enough to be sorted at once."""
    num_rows, seen = 0, []
    for part in table.parts():
        num_rows += part.num_rows
        step = max(1, part.num_rows // max(1, _LOOKED_AT // 64))
        seen.append(_lines(part.take(pa.array(range(0, part.num_rows, step), pa.int64()))))
    turns = -(-num_rows // LINES_AT_ONCE)
    if turns < 2:
        return []
    looked_at = pa.chunked_array(seen, pa.string())
    order = pc.sort_indices(looked_at)
    places = [len(order) * turn // turns for turn in range(1, turns)]
    return sorted({looked_at[order[place].as_py()].as_py() for place in places})


def _between(lines: pa.Array, low: str | None, high: str | None) -> pa.Array:
    """The lines from `low` on and below `high`."""
    if low is not None:
        lines = lines.filter(pc.greater_equal(lines, low))
    return lines if high is None else lines.filter(pc.less(lines, high))


def _add_lines(found: Any, order: pa.Array, lines: pa.Array | pa.ChunkedArray) -> None:
    """Add lines to a digest in this order, some at a time."""
    for start in range(0, len(order), _LOOKED_AT):
        for line in lines.take(order.slice(start, _LOOKED_AT)).to_pylist():
            found.update(b"\x1e" + line.encode())

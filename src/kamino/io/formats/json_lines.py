"""Read JSON lines: one object a line, as text first, like a CSV file whose header is the keys of the first object.

A text stays a text, but for dates and times, which JSON has no other spelling for. What stands in a later object under
a key that the first does not have is an error, or, in a private table, left out: which keys rows have is private.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kamino.errors import InputError
from kamino.io.csv import with_types
from kamino.io.formats.compressed import open_text, telling_damage
from kamino.io.infer import infer_column
from kamino.io.normalise import check_names, normalise_table

_MARK = b"\xef\xbb\xbf"


def read_json_lines(
    path: Path, *, types: pa.Schema | None = None, as_text: bool = False, encoding: str | None = None
) -> pa.Table:
    """Read a `.jsonl` or `.ndjson` file, plain or compressed by gzip or zstd.

    With `types`, columns get these; with `as_text`, all are strings, and what no cell can hold is null.

    Guarantees:
        With `as_text`, names and types are those of the first line alone.  [test_only_the_header_line_is_looked_at]
        No message holds a cell.  [test_faulty_json_lines_are_told_by_line]
    """
    with telling_damage(path):
        names, columns, quoted = _read(path, private=as_text, encoding=encoding or "utf-8")
    text = pa.table({name: pa.array(columns[name], pa.string()) for name in names})
    if as_text:
        return text
    if types is not None:
        return with_types(text, types, where=str(path))
    found = [_inferred(text.column(name), quoted=name in quoted) for name in names]
    return normalise_table(pa.Table.from_arrays(found, names=names), where=str(path))


def _inferred(column: pa.ChunkedArray, *, quoted: bool) -> pa.ChunkedArray:
    kind = infer_column(column)
    return kind if not quoted or pa.types.is_temporal(kind.type) else column


def _read(path: Path, *, private: bool, encoding: str) -> tuple[list[str], dict[str, list[str | None]], set[str]]:
    """The names, the texts of cells, and the columns in which some cell is a quoted text."""
    names: list[str] = []
    columns: dict[str, list[str | None]] = {}
    quoted: set[str] = set()
    for number, row in _objects(path, encoding):
        if not names:
            names = list(row)
            check_names(names, where=f"{path}:{number}")
            columns = {name: [] for name in names}
        for key in row:
            if key not in columns and not private:
                raise InputError(
                    f"{path}:{number}: found a key that the first line does not have, which names the columns. "
                    "Give the first line all keys, with null where it has no value."
                )
        for name, cells in columns.items():
            value = row.get(name)
            cells.append(_spelled(value, f"{path}:{number}: column {name!r}", private=private))
            if type(value) is str:
                quoted.add(name)
    if not names:
        raise InputError(f"{path}: the file is empty. Expected one JSON object a line.")
    return names, columns, quoted


class _Number(str):
    """The spelling of a number, so that it is kept as it stands in the file."""


def _objects(path: Path, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    with open_text(path) as handle:
        for number, line in enumerate(handle, start=1):
            try:
                text = line.removeprefix(_MARK).decode(encoding)
                found = json.loads(text, parse_float=_Number, parse_int=_Number) if text.strip() else None
            except UnicodeDecodeError:
                raise InputError(f"{path}:{number}: found bytes that are not {encoding}. Save it as UTF-8.") from None
            except (ValueError, RecursionError):
                raise InputError(f"{path}:{number}: found no JSON, expected one object a line.") from None
            if found is None and not text.strip():
                continue
            if not isinstance(found, dict):
                raise InputError(f"{path}:{number}: found JSON that is no object, expected one object a line.")
            yield number, found


def _spelled(value: Any, place: str, *, private: bool) -> str | None:
    if value is None or isinstance(value, str):
        return value if value is None else str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):  # NaN and Infinity, which Python reads although they are no JSON
        return str(value)
    if private:
        return None
    raise InputError(f"{place}: found a list or an object, expected one value. Take it apart, or drop the column.")


def json_line_cells(column: pa.Array) -> pa.Array:
    """The cells of a column as JSON spells them."""
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        # JSON has no NaN; a decimal is spelled in full.
        texts = [None if v is None or v != v else format(v, "f") if pa.types.is_decimal(kind) else repr(v)
                 for v in column.to_pylist()]  # fmt: skip
        return pc.fill_null(pa.array(texts, pa.string()), "null")
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pc.fill_null(pc.cast(column, pa.string()), "null")
    texts = [json.dumps(value, ensure_ascii=False) for value in column.to_pylist()]
    return pa.array(texts, pa.string())

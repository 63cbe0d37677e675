"""Read JSON lines: one object a line, as text first, like a CSV file.

A text stays a text, but for dates and times, which JSON has no other spelling for. The format declares no columns:
which keys a row has is as private as what they hold. So the columns of a private table are told by its schema or by the
user, and what a line holds beside them, or what no cell can hold, is left out. For the owner of the table, the keys of
the first object name the columns, and a later object with another key is an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kamino.advice import reading, words
from kamino.errors import InputError
from kamino.io.csv import with_types
from kamino.io.formats.compressed import open_text, telling_damage
from kamino.io.formats.dialect import Opener, as_utf8
from kamino.io.infer import infer_column
from kamino.io.normalise import check_names, normalise_table
from kamino.io.odd_cells import is_text
from kamino.io.written_cells import PLAIN, WrittenCells
from kamino.schema.files.messages import did_you_mean

_MARK = b"\xef\xbb\xbf"


def read_json_lines(
    path: Path,
    *,
    types: pa.Schema | None = None,
    names: Sequence[str] = (),
    encoding: str | None = None,
    written: WrittenCells = PLAIN,
) -> pa.Table:
    """Read a `.jsonl` or `.ndjson` file, plain or compressed by gzip or zstd.

    Its columns are those of the first line, or `names`. With `types`, they get these.

    Guarantees:
        No message holds a cell.  [test_faulty_json_lines_are_told_by_line]
    """
    with telling_damage(path):
        found, columns, quoted = _read(path, names, as_utf8(open_text, encoding or "utf-8"))
    text = pa.table({name: pa.array(columns[name], pa.string()) for name in found})
    if types is not None:
        return with_types(text, types, where=str(path))
    text, quoted = written.read(text), quoted - {name for name, _ in written.numbers}
    inferred = [_inferred(text.column(name), quoted=name in quoted) for name in found]
    return normalise_table(pa.Table.from_arrays(inferred, names=found), where=str(path))


def read_private_json_lines(path: Path, *, names: Sequence[str], encoding: str | None = None) -> pa.Table:
    """Read the named columns of a file as text; null where a line has none, or what no cell can hold.

    Guarantees:
        No name, no type and no error follows from a line.  [test_json_lines_of_a_private_table_name_nothing]
        A line changes no other row.  [test_one_odd_row_changes_no_other]
    """
    if not names:
        raise InputError(
            f"{path}: JSON lines declare no columns: keys stand in the rows, which are private. Expected the names "
            f"from you: a schema{words(' (-s schema.yaml)', '')}, or {reading('columns', 'name', 'age', 'city')}"
        )
    check_names(names, where=str(path))
    columns: dict[str, list[str | None]] = {name: [] for name in names}
    with telling_damage(path), as_utf8(open_text, encoding or "utf-8")(path) as handle:
        for line in handle:
            if not line.removeprefix(_MARK).strip():
                continue
            row = _object_or_nothing(line)
            for name, cells in columns.items():
                cells.append(_cell(row.get(name)))
    return pa.table({name: pa.array(cells, pa.string()) for name, cells in columns.items()})


def _object_or_nothing(line: bytes) -> dict[str, Any]:
    """The object of a line; an empty one for whatever else stands there."""
    try:
        found = _parsed(line.removeprefix(_MARK).decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _cell(value: Any) -> str | None:
    """A cell of a private table: null for a list, an object, or text that is none."""
    text = _spelled(value)
    return text if text is not None and is_text(text) else None


def _inferred(column: pa.ChunkedArray, *, quoted: bool) -> pa.ChunkedArray:
    kind = infer_column(column)
    return kind if not quoted or pa.types.is_temporal(kind.type) else column


def _read(path: Path, wanted: Sequence[str], opener: Opener) -> tuple[list[str], dict[str, list[str | None]], set[str]]:
    """The names, the texts of cells, and the columns in which some cell is a quoted text."""
    names = list(wanted)
    columns: dict[str, list[str | None]] = {name: [] for name in names}
    quoted: set[str] = set()
    seen: set[str] = set()
    for number, row in _objects(path, opener):
        if not names:
            names = list(row)
            check_names(names, where=f"{path}:{number}")
            columns = {name: [] for name in names}
        if not wanted and any(key not in columns for key in row):
            raise InputError(
                f"{path}:{number}: found a key that the first line does not have, which names the columns. "
                "Give the first line all keys, with null where it has no value; or name the columns "
                f"({reading('columns')})."
            )
        seen.update(row)
        for name, cells in columns.items():
            value = row.get(name)
            cells.append(_told(value, f"{path}:{number}: column {name!r}"))
            if type(value) is str:
                quoted.add(name)
    if not names:
        raise InputError(f"{path}: the file is empty. Expected one JSON object a line.")
    for name in wanted:
        if name not in seen:
            raise InputError(f"{path}: found no key {name!r} in any line.{did_you_mean(name, sorted(seen))}")
    return names, columns, quoted


class _Number(str):
    """The spelling of a number, so that it is kept as it stands in the file."""


def _parsed(text: str) -> Any:
    return json.loads(text, parse_float=_Number, parse_int=_Number)


def _objects(path: Path, opener: Opener) -> Iterator[tuple[int, dict[str, Any]]]:
    with opener(path) as handle:
        for number, line in enumerate(handle, start=1):
            try:
                text = line.removeprefix(_MARK).decode("utf-8")
                found = _parsed(text) if text.strip() else None
            except UnicodeDecodeError:
                raise InputError(f"{path}:{number}: found bytes that are not UTF-8. Save it as UTF-8.") from None
            except (ValueError, RecursionError):
                raise InputError(f"{path}:{number}: found no JSON, expected one object a line.") from None
            if found is None and not text.strip():
                continue
            if not isinstance(found, dict):
                raise InputError(f"{path}:{number}: found JSON that is no object, expected one object a line.")
            yield number, found


def _told(value: Any, place: str) -> str | None:
    """A cell of the owner's table, who is told of what no cell can hold."""
    if isinstance(value, dict | list):
        raise InputError(f"{place}: found a list or an object, expected one value. Take it apart, or drop the column.")
    text = _spelled(value)
    if text is not None and not is_text(text):
        raise InputError(f"{place}: found half of a pair of surrogates, which is no text. Write the letter whole.")
    return text


def _spelled(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value if value is None else str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    # NaN and Infinity, which Python reads although they are no JSON; a list or an object has no text.
    return str(value) if isinstance(value, float) else None


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

"""Whether one odd row decides how a private table is read: its other rows, the names, the types, or an error.

A small table is written in every format and as every kind of frame, then once more with an odd row before or behind its
rows: lines that cannot be parsed, bytes that are no text, numbers at the end of their type, objects of another kind.
What is read must be the same table with one row more, in its place, and its other rows those that were written.
"""

from __future__ import annotations

import datetime as dt
import gzip
import importlib.util
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kamino.audit.probes.probe import Probe
from kamino.io import Reading, read_table
from kamino.io.streams.sources import open_stream

_NAMES = ("name", "n", "x")
_LINES = (("Ann", "1", "0.5"), ("Zoë", "22", "1.25"), ("a, b", "-3", ""), ("007", "4", "1e3"))
_ODD_LINES = (
    b"?!,nobody,nothing",
    b"1,2",
    b"1,2,3,4,5",
    b"\xff\xfe,1,1",
    b'"never closed,1,1',
    b'"two\nlines",1,1',
    b'a"b,1,1',
    b"x,99999999999999999999999999,nan",
    b";".join([b"a"] * 40) + b",1,2",
    b"\x00,1,1",
    b"1985-02-30,true,-0",
)
_ODD_OBJECTS = (
    b'{"other": 1, "n": 5}',
    b"[1, 2]",
    b"{broken",
    b'{"name": "\\ud800"}',
    b'{"name": {"a": 1}, "n": [2]}',
    b'{"n": 99999999999999999999999999, "x": 1e999}',
    b'{"name": true, "n": NaN}',
    b'\xff\xfe{"n": 1}',
)
_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us")),
        ("cost", pa.decimal128(20, 2)),
        ("kind", pa.dictionary(pa.int32(), pa.string())),
        ("size", pa.dictionary(pa.int32(), pa.float64())),
    ]
)
_DAY = dt.date(2024, 2, 29)
_AT = dt.datetime(2024, 2, 29, 12, 30, 1, 500)
_ROWS = (
    ("Ann", 2**60 + 1, 0.1, _DAY, _AT, Decimal("12345678901234567.89"), "b", 1.0),
    ("Zoë", -5, 1e300, dt.date(1, 1, 1), _AT.replace(year=4), Decimal("0.10"), "a", 2.0),
    ("", 0, -0.5, dt.date(9999, 12, 31), _AT, None, "b", None),
    (None, None, None, None, None, Decimal("-1.00"), None, 1.0),
)
_SPELLED: dict[str, dict[Any, Any]] = {
    "kind": {"a": "a", "b": "b", None: None},
    "size": {1.0: "1", 2.0: "2", None: None},
}


@dataclass(frozen=True, kw_only=True)
class _Way:
    """One way to read: `write` makes a source of the rows and those before and behind; `expected` are the rows."""

    name: str
    write: Callable[[Path, Sequence[Any], Sequence[Any]], Any]
    odd: Sequence[Any]
    expected: Sequence[tuple[Any, ...]]
    read: Callable[[Any], pa.Table]
    needs: str = "pyarrow"


def reading_problems() -> Iterator[str]:
    """Tell which readers let a row decide on others, or read other rows than were written."""
    with tempfile.TemporaryDirectory() as folder:
        for way in _ways():
            if importlib.util.find_spec(way.needs) is not None:
                yield from _of_a_way(way, Path(folder))


def _of_a_way(way: _Way, folder: Path) -> Iterator[str]:
    try:
        plain = way.read(way.write(folder, (), ()))
    except Exception as error:
        yield f"{way.name}: plain rows end in a {type(error).__name__}"
        return
    if _rows_of(plain) != list(way.expected):
        yield f"{way.name}: other rows are read than were written"
    for number, odd in enumerate(way.odd, start=1):
        for before, behind in (((), (odd,)), ((odd,), ())):
            try:
                found = way.read(way.write(folder, before, behind))
            except Exception as error:  # whatever it is, a row decided it
                yield f"{way.name}: odd row {number} ends in a {type(error).__name__}"
                continue
            if found.schema != plain.schema:
                yield f"{way.name}: odd row {number} decides a name or a type"
            elif _rows_of(found)[len(before) :][: plain.num_rows] != list(way.expected):
                yield f"{way.name}: odd row {number} decides how other rows are read"
            elif found.num_rows != plain.num_rows + 1:
                yield f"{way.name}: odd row {number} is no row of its own"


def _rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _ways() -> Iterator[_Way]:
    cells = [tuple(cell or None for cell in line) for line in _LINES]
    for name, ending, separator, packed in (
        ("CSV", "csv", ",", False),
        ("separated by tabs", "tsv", "\t", False),
        ("packed CSV", "csv.gz", ",", True),
    ):
        write = _separated(ending, separator, packed=packed)
        yield _Way(name=name, write=write, odd=_ODD_LINES, expected=cells, read=_whole)
    write = _separated("csv", ",", packed=False)
    yield _Way(name="CSV in parts", write=write, odd=_ODD_LINES, expected=cells, read=_streamed)
    yield _Way(name="JSON lines", write=_json_lines, odd=_ODD_OBJECTS, expected=cells, read=_whole)
    yield _Way(name="a workbook", write=_workbook, odd=_ODD_CELLS, expected=cells, read=_whole, needs="openpyxl")
    typed = [tuple(_spelled(n, cell) for n, cell in zip(_SCHEMA.names, row, strict=True)) for row in _ROWS]
    odd = [_odd_row(place) for place in range(3)]
    for name, write, read in (
        ("Parquet", _parquet, _whole),
        ("Parquet in parts", _parquet, _streamed),
        ("Feather", _feather, _whole),
        ("an Arrow table", _arrow, _whole),
    ):
        yield _Way(name=name, write=write, odd=odd, expected=typed, read=read)
    valid = odd[1:]
    yield _Way(
        name="polars", write=_polars, odd=valid, expected=[row[:7] for row in typed], read=_whole, needs="polars"
    )
    plain = [row[:6] for row in _ROWS]
    for name, read in (("DuckDB", _whole), ("DuckDB in parts", _streamed)):
        yield _Way(name=name, write=_duckdb, odd=valid, expected=plain, read=read)
    objects = [("a", "1"), ("b", "2"), (None, "1"), ("c", None)]
    yield _Way(name="pandas", write=_pandas, odd=_ODD_THINGS, expected=objects, read=_whole, needs="pandas")


def _whole(source: Any) -> pa.Table:
    named = isinstance(source, str) and source.endswith(".jsonl")
    return read_table(source, private=True, reading=Reading(columns=_NAMES) if named else Reading())


def _streamed(source: Any) -> pa.Table:
    stream = open_stream(source, private=True)
    vars(stream)["_part_rows"] = 3  # so that there are several parts
    parts = [part.cast(stream.schema) for part in stream.parts()]
    one_by_one = [pa.concat_tables(stream.parts([name])).column(0) for name in stream.schema.names]
    whole = pa.concat_tables(parts)
    if repr([column.to_pylist() for column in one_by_one]) != repr([column.to_pylist() for column in whole.columns]):
        raise ValueError("columns that are read by themselves are others")
    return whole


def _separated(ending: str, separator: str, *, packed: bool) -> Callable[[Path, Sequence[Any], Sequence[Any]], str]:
    def write(folder: Path, before: Sequence[Any], behind: Sequence[Any]) -> str:
        lines = [separator.join(_NAMES).encode()]
        own = [separator.join(f'"{cell}"' if "," in cell else cell for cell in line).encode() for line in _LINES]
        odd = [[each.replace(b",", separator.encode()) for each in rows] for rows in (before, behind)]
        text = b"\n".join([*lines, *odd[0], *own, *odd[1]]) + b"\n"
        path = folder / f"table.{ending}"
        path.write_bytes(gzip.compress(text) if packed else text)
        return str(path)

    return write


def _json_lines(folder: Path, before: Sequence[Any], behind: Sequence[Any]) -> str:
    # Numbers are spelled as in the other files: they are kept as they stand.
    own = [f'{{"name": {json.dumps(name)}, "n": {n}, "x": {x or "null"}}}'.encode() for name, n, x in _LINES]
    path = folder / "table.jsonl"
    path.write_bytes(b"\n".join([*before, *own, *behind]) + b"\n")
    return str(path)


_ODD_CELLS = (
    (dt.datetime(2024, 1, 1), True, "#N/A"),
    ("x", 1e300, "=1/0"),
    (None, dt.time(1, 2), dt.timedelta(days=-3)),
    ("date", 1e12, "a"),
    (Decimal("1.5"), "text", 3, "one cell more"),
)


def _workbook(folder: Path, before: Sequence[Any], behind: Sequence[Any]) -> str:
    import openpyxl

    book = openpyxl.Workbook()
    page = book.active
    for row in (_NAMES, *before, *(tuple(cell or None for cell in line) for line in _LINES), *behind):
        page.append(row)
        if page.cell(page.max_row, 1).value == "date":  # a number that is no date, in a cell of dates
            page.cell(page.max_row, 2).number_format = "yyyy-mm-dd"
    saved = io.BytesIO()
    book.save(saved)
    path = folder / "table.xlsx"
    with zipfile.ZipFile(saved) as plain, zipfile.ZipFile(path, "w") as damaged:
        for member in plain.namelist():  # a number that is none
            damaged.writestr(member, plain.read(member).replace(b"1e+300", b"12x"))
    return str(path)


def _spelled(name: str, cell: Any) -> Any:
    return _SPELLED[name][cell] if name in _SPELLED else cell


def _table(rows: Sequence[Sequence[Any]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in _SCHEMA]
    return pa.table(
        {field.name: pa.array(cells, field.type) for field, cells in zip(_SCHEMA, columns, strict=True)}, schema=_SCHEMA
    )


def _odd_row(kind: int) -> pa.Table:
    """A row of odd cells: no text and strange days; ends of types; other values of the dictionaries."""
    raw = pa.array([b"\xff\xfe"])
    no_text = pa.Array.from_buffers(pa.string(), 1, raw.buffers())
    cells: dict[str, Any] = {
        "name": no_text if kind == 0 else pa.array(["\x00\ufffd"]),
        "n": pa.array([-(2**63) if kind else 2**63 - 1]),
        "x": pa.array([(np.nan, np.inf, -0.0)[kind]]),
        "day": pa.array([(2**31 - 1, -719_162, 2_932_897)[kind]], pa.int32()).view(pa.date32()),
        "at": pa.array([2**63 - 2 if kind == 0 else 0]).view(pa.timestamp("us")),
        "cost": pa.array(
            [Decimal("999999999999999999.99"), None, Decimal("0.01")][kind : kind + 1], pa.decimal128(20, 2)
        ),
        "kind": pa.array(["", "odd", None][kind : kind + 1], pa.string()).dictionary_encode(),
        "size": pa.array([np.nan, 2.5, 1e-9][kind : kind + 1], pa.float64()).dictionary_encode(),
    }
    return pa.table(cells).cast(_SCHEMA) if kind else pa.table(cells, schema=_SCHEMA)


def _together(before: Sequence[Any], behind: Sequence[Any]) -> pa.Table:
    return pa.concat_tables([*before, _table(_ROWS), *behind]).unify_dictionaries().combine_chunks()


def _arrow(folder: Path, before: Sequence[Any], behind: Sequence[Any]) -> pa.Table:
    del folder
    return _together(before, behind)


def _parquet(folder: Path, before: Sequence[Any], behind: Sequence[Any]) -> str:
    import pyarrow.parquet

    path = folder / "table.parquet"
    pyarrow.parquet.write_table(_together(before, behind), path, row_group_size=2)
    return str(path)


def _feather(folder: Path, before: Sequence[Any], behind: Sequence[Any]) -> str:
    path = folder / "table.feather"
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, _SCHEMA) as writer:
        writer.write_table(_together(before, behind))
    return str(path)


def _polars(folder: Path, before: Sequence[Any], behind: Sequence[Any]) -> Any:
    import polars as pl

    del folder
    return pl.from_arrow(_together(before, behind).drop_columns(["size"]))  # its categories are texts


def _duckdb(folder: Path, before: Sequence[Any], behind: Sequence[Any]) -> str:
    import duckdb

    path = folder / "table.db"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.register("given", _together(before, behind).select(_SCHEMA.names[:6]))
        connection.execute("create table people as select * from given")
    return f"duckdb:///{path}#people"


class _Unequal:
    """A thing that cannot be compared, and has no text."""

    def __eq__(self, other: object) -> bool:
        raise ValueError

    __hash__ = object.__hash__

    def __str__(self) -> str:
        raise ValueError


_ODD_THINGS = (
    (Decimal("sNaN"), 2.5),
    (_Unequal(), Decimal("1.50")),
    (b"\xff", -1),
    (dt.date(1, 1, 1), 10**30),
    (None, None),
)


def _pandas(folder: Path, before: Sequence[Any], behind: Sequence[Any]) -> Any:
    """A column of objects, and one of categories, whose type follows from what it holds."""
    import pandas as pd

    del folder
    rows = [*before, ("a", 1), ("b", 2), (None, 1), ("c", None), *behind]
    things, kinds = zip(*rows, strict=True)
    found = list(dict.fromkeys(kind for kind in kinds if kind is not None))
    kind = pd.Categorical.from_codes([-1 if each is None else found.index(each) for each in kinds], categories=found)
    return pd.DataFrame({"thing": pd.Series(list(things), dtype=object), "kind": kind})


READING = Probe(
    name="reading",
    does="A table is read in every format, with and without an odd row: no name, type, error or other row may change.",
    cannot="PostgreSQL, Spark and dask, which tests read; odd rows of kinds that nobody thought of.",
    search=reading_problems,
)

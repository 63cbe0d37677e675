"""Rows of files as text, JSON, XML and typed cells: ordinary ones, and odd ones, written well or badly."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa


@dataclass(frozen=True, kw_only=True)
class FileColumn:
    """A column: what a schema says of it, and its ordinary cells, as text and as what a typed file holds."""

    declared: str
    texts: Sequence[str]
    kind: pa.DataType
    cells: Sequence[Any]
    odd: Sequence[Any]


DAY, MOMENT = dt.date(2020, 2, 3), dt.datetime(2020, 2, 3, 4, 5, 6)
COLUMNS: Mapping[str, FileColumn] = {
    "city": FileColumn(
        declared="{type: categorical, values: [Rome, Oslo], nullable: true}",
        texts=("Rome", "Oslo", ""), kind=pa.string(), cells=("Rome", "Oslo", None),
        odd=("", " ", "rome", "x" * 70_000, "\x00", "\ufeff", "\U0001f600", "Ro\nme", '"', b"\xff"),
    ),
    "prénom": FileColumn(
        declared="{type: categorical, values: [Ann, Béla], nullable: true}",
        texts=("Ann", "Béla"), kind=pa.large_string(), cells=("Ann", "Béla"),
        odd=("", "Be\u0301la", b"B\xe9la", b"\xed\xa0\x80", "=1+1"),
    ),
    "n": FileColumn(
        declared="{type: integer, min: 0, max: 9, nullable: true}",
        texts=("1", "2", "7", ""), kind=pa.int64(), cells=(1, 2, 7, None), odd=(-1, 2**63 - 1, -(2**63), 10),
    ),
    "pay": FileColumn(
        declared="{type: real, min: 0, max: 5, decimals: 1, nullable: true}",
        texts=("1.5", "2", "0.1"), kind=pa.float64(), cells=(1.5, 2.0, 0.1, None),
        odd=(math.nan, math.inf, -math.inf, 5e-324, 1.7e308, -0.0, 0.30000000000000004),
    ),
    "cost": FileColumn(
        declared="{type: real, min: 0, max: 5, decimals: 2, nullable: true}",
        texts=("1.25", "2.00"), kind=pa.decimal128(38, 4), cells=(Decimal("1.25"), Decimal("2"), None),
        odd=(Decimal("9" * 34), Decimal("-0.0001"), Decimal("0.3333")),
    ),
    "day": FileColumn(
        declared="{type: date, min: 2020-01-01, max: 2020-12-31, nullable: true}",
        texts=("2020-02-03", "2020-12-31"), kind=pa.date32(), cells=(DAY, dt.date(2020, 12, 31), None),
        odd=(-(2**31), 2**31 - 1, -719_163, 2_932_897),
    ),
    "at": FileColumn(
        declared="{type: datetime, min: 2020-01-01, max: 2020-12-31, nullable: true}",
        texts=("2020-02-03 04:05:06", "2020-03-04 00:00:00"), kind=pa.timestamp("us"), cells=(MOMENT, None),
        odd=(-(2**63), 2**63 - 1, 253_402_300_800 * 10**6, 1),
    ),
    "vip": FileColumn(
        declared="{type: boolean, nullable: true}",
        texts=("true", "false"), kind=pa.bool_(), cells=(True, False, None), odd=(None,),
    ),
    "who": FileColumn(
        declared="{type: key}", texts=("p1", "p2", "p3", "p4"), kind=pa.string(), cells=("p1", "p2", "p3", "p4"),
        odd=("", None, "p1 ", b"\xff\xfe", "9" * 40),
    ),
}  # fmt: skip

# Cells that a column does not expect, as text: each has made some reader or some step read other cells otherwise.
ODD_TEXTS: tuple[str, ...] = (
    *("", " ", "?!", "rome", "Rome ", "NaN", "nan", "inf", "-Infinity", "1e308", "1e999", "9" * 30, "9" * 5_000, "-0"),
    *("+1", "007", "0x10", "1_000", "1,5", "\u0661", "2020-02-30", "0000-01-01", "9999-12-31", "10000-01-01"),
    *("2020-01-01T25:00", "2020-01-01 00:00:00+99:99", "2020-01-01T00:00:00Z", "true", "TRUE", "yes", "null", "None"),
    *("\x00", "a\x00b", "\ufeff", "\u2028", "\x85", "é", "e\u0301", "\U0001f600", "\u202e", "x" * 70_000, "=1+1", "'"),
    *('"', '""', "a,b", "a;b", "a\tb", "a|b", "a\nb", "a\r\nb", "a\rb", "\\", '\\"', "%s", "{}", "[bold]x[/bold]"),
    *("\x1b[31m", "<b>&", "9223372036854775808", "-9223372036854775809", "1.0000000000000001", "5e-324", "1e-400"),
    *("2020-02-03 04:05:06.123456789", "03.02.2020", "2020", "1.5e0", "--", "\x1a", "\x0c", "#N/A", "ß" * 300),
)
PIECES: tuple[bytes, ...] = (
    *(b'"', b'""', b'"""', b",", b";", b"\t", b"|", b"\r", b"\n", b"\r\n", b"a", b"7", b" ", b"\x00", b"\xff", b"\xe9"),
    *(b"\xef\xbb\xbf", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\xf0\x9f", b"\x1a", b"x" * 300, b"{", b"}", b"[", b"]"),
    *(b":", b"null", b"\\u", b"\\ud800", b"'", b"#", b"\\", b"--", b"\x80\x81", b"<", b"&", b"\x0c", b"\xc2\x85"),
)


@dataclass(frozen=True, kw_only=True)
class OddRow:
    """A row as bytes of a file. `is_one`: whether it is one row and touches no other, however it is read."""

    data: bytes
    is_one: bool = True


def plain_texts(names: Sequence[str], rng: random.Random) -> list[str]:
    """An ordinary row of texts."""
    return [rng.choice(COLUMNS[name].texts) for name in names]


def odd_texts(names: Sequence[str], rng: random.Random) -> list[str]:
    """A row of texts, some of which are odd."""
    return [rng.choice(ODD_TEXTS) if rng.random() < 0.6 else rng.choice(COLUMNS[name].texts) for name in names]


def separated(texts: Sequence[str], separator: str, quoting: int, end: str = "\n") -> str:
    """A line of a CSV file as its usual writer makes it."""
    line = io.StringIO()
    # A row of one empty cell would be a blank line; a carriage return is quoted by newer versions of Python alone.
    kind = csv.QUOTE_ALL if list(texts) == [""] or any("\r" in text for text in texts) else quoting
    csv.writer(line, delimiter=separator, quoting=kind, lineterminator=end).writerow(texts)  # type: ignore[arg-type]
    return line.getvalue()


def odd_line(names: Sequence[str], separator: str, encoding: str, rng: random.Random) -> OddRow:
    """A line of a CSV file: well written with odd cells, badly written, of too few or too many cells, or anything."""
    texts = odd_texts(names, rng)
    way = rng.randrange(6)
    single = not encoding.startswith(("utf-16", "utf-32", "gb", "shift"))
    if way == 0:
        line = separated(texts, separator, rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL)), rng.choice(("\n", "\r\n")))
        return OddRow(data=line.encode(encoding, "replace"))
    if way == 1:
        return _as_it_is(separator.join(texts), encoding, single=single)
    if way == 2:
        few = texts[: rng.randrange(len(texts))] if rng.random() < 0.5 else texts + odd_texts(names, rng)[:2]
        quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
        return OddRow(data=separated(few, separator, quoting).encode(encoding, "replace") if few else b"")
    if way == 3:
        place = rng.randrange(len(texts))
        texts[place] = rng.choice(('"', '"x', 'x"', '"x"y', '"x""', '""x', '"x"y"', '"\x00'))
        return _as_it_is(separator.join(texts), encoding, single=single)
    data = b"".join(rng.choices(PIECES, k=rng.choice((1, 1, 2, 3, 6, 12))))
    if way == 4:
        data = separator.encode().join([data, *(text.encode("utf-8", "replace") for text in texts[1:])])
    lines = b"\r" in data.rstrip(b"\n") or b"\n" in data
    return OddRow(data=data + "\n".encode(_bare(encoding)), is_one=single and not lines)


def _as_it_is(line: str, encoding: str, *, single: bool) -> OddRow:
    lines = "\n" in line or "\r" in line
    return OddRow(data=(line + "\n").encode(_bare(encoding), "replace"), is_one=single and not lines)


def _bare(encoding: str) -> str:
    return {"utf-8-sig": "utf-8", "utf-16": "utf-16-le"}.get(encoding, encoding)


ODD_JSON: tuple[str, ...] = (
    *("null", "true", "NaN", "-Infinity", "1e999", "-0", "1.0", "9" * 30, "9" * 5_000, "1e-400", "[]", "{}", "[1]"),
    *('{"a": 1}', '"\\ud800"', '"\\u0000"', '"\\ud83d\\ude00"', '""', '"x"', '"' + "x" * 70_000 + '"', '"2020-02-30"'),
    *('"NaN"', '"1"', '"true"', "[" * 200 + "]" * 200, "0x10", "01", "'x'", "Infinity", "-", '"\\q"', '"a\tb"'),
)


def json_line(names: Sequence[str], rng: random.Random) -> bytes:
    """An ordinary object."""
    texts = dict(zip(names, plain_texts(names, rng), strict=True))
    return (json.dumps(texts, ensure_ascii=rng.random() < 0.5) + "\n").encode()


def odd_json_line(names: Sequence[str], rng: random.Random) -> OddRow:
    """An object with odd values, other, missing or doubled keys; a line that is no object; or anything."""
    way = rng.randrange(5)
    keys = [*names, *rng.choices((*names, "S3CRET", "", "\ud800", "a" * 300), k=rng.randrange(3))]
    pairs = [f"{json.dumps(key)}: {rng.choice(ODD_JSON)}" for key in keys if rng.random() < 0.8]
    rng.shuffle(pairs)
    line = "{" + ", ".join(pairs) + "}"
    if way == 0:
        return OddRow(data=(line + "\n").encode())
    if way == 1:
        return OddRow(
            data=(rng.choice(("[1]", "7", "null", '"x"', "[" * 100_000, "{" * 50, line[:-1])) + "\n").encode()
        )
    if way == 2:
        return OddRow(data=b"\xef\xbb\xbf" + line.encode() + rng.choice((b"\r\n", b"\n", b" \t\n", b"x\n")))
    data = bytearray(line.encode())
    for _ in range(rng.choice((1, 2, 4)) if way == 3 else 30):
        place = rng.randrange(len(data) + 1)
        data[place:place] = rng.choice(PIECES)
    return OddRow(data=bytes(data) + b"\n", is_one=b"\n" not in data)


def sheet_row(texts: Sequence[str]) -> bytes:
    """An ordinary row of a workbook."""
    cells = "".join(f'<c t="inlineStr"><is><t>{escape(text)}</t></is></c>' if text else "<c/>" for text in texts)
    return f"<row>{cells}</row>".encode()


def odd_sheet_row(names: Sequence[str], rng: random.Random) -> OddRow:
    """A row of a workbook whose cells are of any type, at any place."""
    cells = []
    for place in range(rng.randrange(len(names) + 3)):
        text = (
            rng.choice(ODD_TEXTS) if rng.random() < 0.7 else rng.choice(("1", "0", "43831.5", "99999999", "2020-01-01"))
        )
        # What XML does not allow is no row of a workbook, but a file that cannot be read.
        text = "".join(letter for letter in text if letter >= " " or letter in "\t\n\r")
        letter = rng.choice(("A", "B", "C", "XFD", "??", "a", "AAAAA"))
        where = f" r={quoteattr(f'{letter}{rng.choice((2, 7, -1, 10**9))}')}" if rng.random() < 0.3 else ""
        style = f" s={quoteattr(rng.choice(('0', '1', '14', '99', 'x')))}" if rng.random() < 0.3 else ""
        kind = rng.choice(("", ' t="n"', ' t="s"', ' t="b"', ' t="e"', ' t="d"', ' t="str"', ' t="zz"'))
        value = f"<v>{escape(text)}</v>" if rng.random() < 0.9 else "<f>1/0</f>"
        if place % 2 and rng.random() < 0.5:
            kind, value = ' t="inlineStr"', f"<is><t>{escape(text)}</t></is>"
        cells.append(f"<c{where}{style}{kind}>{value}</c>")
    number = f" r={quoteattr(str(rng.choice((1, 2, -1, 10**9, 'x', 2.5))))}" if rng.random() < 0.3 else ""
    return OddRow(data=f"<row{number}>{''.join(cells)}</row>".encode())


def typed_rows(names: Sequence[str], rows: int, oddness: float, rng: random.Random, *, texts: bool = False) -> pa.Table:
    """Rows of typed cells; an odd one is one that its type can just hold. With `texts`, each text is UTF-8."""
    return pa.table({name: _typed(COLUMNS[name], rows, oddness, rng, texts=texts) for name in names})


def _typed(column: FileColumn, rows: int, oddness: float, rng: random.Random, *, texts: bool) -> pa.Array:
    odd = [cell for cell in column.odd if not (texts and isinstance(cell, bytes))]
    cells = [rng.choice(odd if rng.random() < oddness else column.cells) for _ in range(rows)]
    kind = column.kind
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # Bytes pass for text where nobody looks.
        raw = [cell.encode() if isinstance(cell, str) else cell for cell in cells]
        large = pa.types.is_large_string(kind)
        held = pa.array(raw, pa.large_binary() if large else pa.binary())
        return pa.Array.from_buffers(kind, rows, held.buffers(), held.null_count, held.offset)
    if pa.types.is_temporal(kind):
        width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
        return pa.array([_ticks(cell, kind) for cell in cells], width).view(kind)
    return pa.array(cells, kind)


def _ticks(cell: Any, kind: pa.DataType) -> int | None:
    return cell if cell is None or isinstance(cell, int) else pa.scalar(cell, kind).value

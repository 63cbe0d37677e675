from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import pyarrow as pa
import pytest

from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.streams.csv_parts import CsvParts

MARKER = "S3CRET"
M = MARKER.encode()
FAULTS = {
    "too few cells": (b"a,b\n1,2\n" + M + b"\n", r"t\.csv:3: the row has 1 cells, expected 2"),
    "too many cells": (b"a,b\n1,2\n\n" + M + b",2,3\n", r"t\.csv:4: the row has 3 cells, expected 2"),
    "after a cell of two lines": (b'a,b\n1,"x\ny"\n' + M + b"\n", r"t\.csv:4: the row has 1 cells"),
    "open quote": (b'a,b\n1,2\n3,"' + M + b"\n4,5\n", r"t\.csv:3: a quoted cell is not closed"),
    "text after a quote": (b'a,b\n1,"x"' + M + b'"\n3,4\n', r"t\.csv:2: a quoted cell is not closed, or text follows"),
    "not UTF-8": (b"a,b\n1,2\n" + M + b"\xff,2\n", r"t\.csv:3: found bytes that are not UTF-8"),
    "not UTF-8 with an odd quote": (b'a,b\n1,2"\n' + M + b"\xff,2\n", r"t\.csv:3: found bytes that are not UTF-8"),
    "empty": (b"", r"t\.csv: the file is empty"),
    "blank": (b"\n\n", r"t\.csv: the file is empty"),
    "name twice": (b"a,b,a\n" + M + b",2,3\n", r"t\.csv: column names must differ, but 'a' occurs more than once"),
    "no name": (b"a,,b\n" + M + b",2,3\n", r"t\.csv: column 2 has no name"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_no_cell_in_any_message(tmp_path: Path, fault: str) -> None:
    content, message = FAULTS[fault]
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert MARKER not in str(caught.value)
    assert "\n" not in str(caught.value)
    # A traceback prints the whole chain, so the parser's own error must be cut off as well.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("how", ["gzip", "zstd"])
def test_faults_of_a_compressed_file(tmp_path: Path, how: str) -> None:
    path = tmp_path / f"t.csv.{'gz' if how == 'gzip' else 'zst'}"
    whole = _compressed(b"a,b\n1,2\n3\n", how)
    path.write_bytes(whole)
    with pytest.raises(InputError, match=r"t\.csv\.(gz|zst):3: the row has 1 cells"):
        read_table(path)
    for damaged in (whole[:-9], b"a,b\n1,2\n"):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=f"{how} data is damaged"):
            read_table(path)
    large = _compressed(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(400_000)), how)
    # Without a checksum, zstd may take damage for data, which is then a row of another length, or no text.
    inside = [large[:5_000] + b"\xff" * 200 + large[5_200:]] if how == "gzip" else []
    for damaged in (large[: len(large) // 2], *inside):
        path.write_bytes(damaged)
        for read in (read_table, CsvParts):
            with pytest.raises(InputError, match=f"{how} data is damaged"):
                read(path)


def _compressed(text: bytes, how: str) -> bytes:
    made: bytes = gzip.compress(text) if how == "gzip" else pa.Codec("zstd").compress(text, asbytes=True)
    return made


def test_a_row_too_long_for_the_parser(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n1,2\n1," + M * 6_000_000 + b"\n3,4\n")
    with pytest.raises(InputError, match="16 MiB") as caught:
        read_table(path)
    assert MARKER not in str(caught.value)


def test_a_long_cell_does_not_hide_the_fault(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,b\n" + b"x" * 200_000 + b",2\n1\n")
    with pytest.raises(InputError, match=r":3: the row has 1 cells"):
        read_table(path)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_missing_file_and_directory(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    with pytest.raises(InputError, match=re.escape(f"{path}: no such file")):
        read_table(path)
    path.mkdir()
    with pytest.raises(InputError, match="found a directory, expected a file"):
        read_table(path)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_no_permission(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / name
    path.write_bytes(b"a\n1\n")
    path.chmod(0)
    if os.geteuid() == 0:  # root may read everything: play the refusal
        reader = "kamino.io.parquet.read_parquet" if name.endswith("parquet") else "kamino.io.csv.read_csv"

        def refuse(path: Path, **options: object) -> None:
            raise PermissionError

        monkeypatch.setattr(reader, refuse)
    with pytest.raises(InputError, match="no permission to read"):
        read_table(path)

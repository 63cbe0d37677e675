"""Files of other kinds, which somebody names by mistake where a ledger is expected; run it to see that none changes.

python -m tests.durable.other_files: prints how many files there are, and how many each command changed.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import pickle
import sqlite3
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
from typer.testing import CliRunner

from kamino.cli.app import app
from kamino.privacy.durable.ledger_lines import header_body

_TABLE = pa.table({"a": [1, 2], "b": ["x", "y"]})
_KEY = base64.b64encode(bytes(range(96))).decode()
_HASH = "0123456789abcdef" * 4


def _written(write: Callable[[io.BytesIO], object]) -> bytes:
    handle = io.BytesIO()
    write(handle)
    return handle.getvalue()


def _zipped(handle: io.BytesIO) -> None:
    with zipfile.ZipFile(handle, "w") as archive:
        archive.writestr("a.txt", "a")


def _tarred(handle: io.BytesIO) -> None:
    with tarfile.open(fileobj=handle, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))


def _sqlite() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("create table t (a integer)")
    return connection.serialize()


def _png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0\0")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def _texts() -> Mapping[str, str]:
    """Texts that end without a newline, as editors and programs leave them."""
    header = json.dumps(header_body("0" * 16, "1"), sort_keys=True, separators=(",", ":"))
    return {
        "PEM key, one line": f"-----BEGIN PRIVATE KEY-----{_KEY}-----END PRIVATE KEY-----",
        "PEM key, lines": f"-----BEGIN PRIVATE KEY-----\n{_KEY}\n-----END PRIVATE KEY-----\n",
        "SSH key": f"ssh-ed25519 {_KEY} me@host",
        "JSON object": '{"a": 1}',
        "JSON list": "[1, 2, 3]",
        "JSON text": '"a"',
        "JSON number": "1",
        "JSON lines": '{"a": 1}\n{"a": 2}\n',
        "JSON lines, cut": '{"a": 1}\n{"a": 2',
        "notebook": json.dumps({"cells": [], "metadata": {}, "nbformat": 4}),
        "certificate": json.dumps({"format": 3, "sha256": _HASH}),
        "TOML": '[tool]\nname = "a"',
        "YAML": "a: 1",
        "INI": "[a]\nb=1",
        "CSV": "a,b\n1,2\n",
        "CSV header": "a,b",
        "TSV": "a\tb",
        "Markdown": "# Title",
        "HTML": "<html></html>",
        "XML": '<?xml version="1.0"?><a/>',
        "Python": "print(1)",
        "shell": "#!/bin/sh",
        "SQL": "select 1",
        "rules": "city -> zone",
        "one letter": "a",
        "a newline": "\n",
        "newlines": "\n\n\n",
        "a space": " ",
        "carriage return": "\r",
        "words": "do not touch",
        "UTF-8": "äöü",
        "a password": "correct horse battery staple",
        "a token": "ghp_" + "a" * 36,
        "hex key": _HASH,
        "hex key, cut": _HASH[:40],
        "checksum": f"{_HASH}  file.tar.gz",
        "checksum with newline": f"{_HASH}  file.tar.gz\n",
        "checksum and JSON": f'{_HASH} {{"a": 1}}',
        "hash and a brace": f"{_HASH} {{",
        "header without a hash": header,
        "header with a wrong hash": f"{_HASH} {header}",
        "header with a wrong hash and a newline": f"{_HASH} {header}\n",
        "base64": _KEY,
        "long line": "x" * 3_000_000,
        "many lines": "x\n" * 100_000,
    }


def other_files() -> dict[str, bytes]:
    """More than 60 files that are no ledgers, by what they are."""
    rng = np.random.default_rng(1)
    return {
        "empty": b"",
        **{name: text.encode() for name, text in _texts().items()},
        "UTF-16": "a,b".encode("utf-16"),
        "Latin-1": "äöü".encode("latin-1"),
        "UTF-8 with a mark": b"\xef\xbb\xbfa,b",
        "one zero byte": b"\0",
        "a block of zeros": bytes(4096),
        "zeros and a newline": bytes(64) + b"\n",
        "random": rng.bytes(200),
        "random, long": rng.bytes(100_000),
        "DER": b"\x30\x82" + rng.bytes(100),
        "gzip": gzip.compress(b"a", mtime=0),
        "zip": _written(_zipped),
        "tar": _written(_tarred),
        "pickle": pickle.dumps({"a": 1}),
        "numpy": _written(lambda handle: np.save(handle, np.arange(3))),
        "Parquet": _written(lambda handle: pa.parquet.write_table(_TABLE, handle)),
        "Feather": _written(lambda handle: pa.feather.write_feather(_TABLE, handle)),
        "SQLite": _sqlite(),
        "PNG": _png(),
        "PDF": b"%PDF-1.4\n%%EOF",
        "ELF": b"\x7fELF" + rng.bytes(60),
    }


def make_folder(folder: Path) -> dict[Path, bytes]:
    """All of them in a folder, named as ledgers."""
    made = {}
    for number, content in enumerate(other_files().values()):
        path = folder / f"f{number}.ledger"
        path.write_bytes(content)
        made[path] = content
    return made


COMMANDS: Mapping[str, Callable[[Path], list[str]]] = {
    "ledger policy": lambda path: ["ledger", "policy", str(path), "--dataset", "d", "-e", "1"],
    "ledger close": lambda path: ["ledger", "close", str(path), "0123456789ab"],
    "ledger show": lambda path: ["ledger", "show", str(path)],
    "ledger verify": lambda path: ["ledger", "verify", str(path)],
    "synth --ledger": lambda path: [
        *("synth", str(path.with_name("t.csv")), "-s", str(path.with_name("schema.yaml"))),
        *("-o", str(path.with_name("o.csv")), "-n", "5", "--ledger", str(path)),
    ],
    "suggest --ledger": lambda path: ["suggest", str(path.with_name("t.csv")), "--ledger", str(path)],
}


def count_changed(folder: Path, command: str) -> tuple[int, int]:
    """How many files a command was given as a ledger, and how many of them changed, or came to be beside them."""
    (folder / "t.csv").write_text("a\n1\n2\n3\n")
    (folder / "schema.yaml").write_text("attributes:\n  a: {type: integer, min: 1, max: 3}\n")
    made = make_folder(folder)
    before = {*folder.iterdir()}
    changed = 0
    for path, content in made.items():
        result = CliRunner().invoke(app, COMMANDS[command](path))
        assert result.exit_code != 0 or path.read_bytes() != content, f"{path.name}: accepted"
        changed += path.read_bytes() != content
    return len(made), changed + len({*folder.iterdir()} - before)


def main() -> None:
    """Print how many of the files each command changes."""
    for command in COMMANDS:
        with tempfile.TemporaryDirectory() as folder:
            files, changed = count_changed(Path(folder), command)
        print(f"kamino {command}: {files} files of other kinds, {changed} changed")


if __name__ == "__main__":
    main()

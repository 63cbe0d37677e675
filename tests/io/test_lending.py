"""What the threads of a library are lent, they have given back when a reader is done."""

from __future__ import annotations

import io
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from kamino.io import lending, private_csv
from kamino.io.csv import read_csv, read_csv_parts
from kamino.io.formats.dialect import Dialect
from kamino.io.lending import lent
from kamino.io.private_csv import PrivateCsv

CONTENT = b"a,b\n1,x\n2,y\n"
LATE_SECONDS = 0.1


class _File(io.BytesIO):
    """A file that tells by a weak reference whether somebody holds it."""


class _Opener:
    def __init__(self) -> None:
        self.opened: list[weakref.ref[_File]] = []

    def __call__(self, path: Path, name: str | None = None) -> _File:
        file = _File(CONTENT)
        self.opened.append(weakref.ref(file))
        return file

    @property
    def num_held(self) -> int:
        return sum(each() is not None for each in self.opened)


def _held_for_a_while(*objects: Any) -> None:
    """Hold objects in a thread, as those of a library do on a busy machine."""
    held = list(objects)
    del objects

    def let_go() -> None:
        time.sleep(LATE_SECONDS)
        held.clear()

    threading.Thread(target=let_go).start()


@pytest.fixture
def slow_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads of the parser that hold on to their file, and to what they tell of rows, when they are done."""

    def late(real: Callable[..., Any]) -> Callable[..., Any]:
        def read(handle: Any, **options: Any) -> Any:
            _held_for_a_while(handle, options["parse_options"].invalid_row_handler)
            return real(handle, **options)

        return read

    for name in ("read_csv", "open_csv"):
        monkeypatch.setattr(pa.csv, name, late(getattr(pa.csv, name)))


def _whole(path: Path, opener: _Opener) -> object:
    return read_csv(path, opener=opener)


def _in_parts(path: Path, opener: _Opener) -> object:
    types = pa.schema([("a", pa.int64()), ("b", pa.string())])
    return list(read_csv_parts(path, types=types, dialect=Dialect(), opener=opener))


def _left_early(path: Path, opener: _Opener) -> object:
    types = pa.schema([("a", pa.int64()), ("b", pa.string())])
    parts = read_csv_parts(path, types=types, dialect=Dialect(), opener=opener)
    assert isinstance(parts, Iterator)
    first = next(parts)
    parts.close()  # type: ignore[attr-defined]
    return first


def _private(path: Path, opener: _Opener) -> object:
    return PrivateCsv.of(path).read()


def _private_in_parts(path: Path, opener: _Opener) -> object:
    return list(PrivateCsv.of(path).in_batches().batches(["a"]))


@pytest.mark.usefixtures("slow_threads")
@pytest.mark.parametrize("read", [_whole, _in_parts, _left_early, _private, _private_in_parts])
def test_no_thread_holds_a_file_that_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[Path, _Opener], object]
) -> None:
    """One that lets go while Python ends takes the process down: exit code 134 after the table was written."""
    opener = _Opener()
    monkeypatch.setattr(private_csv, "open_text", opener)
    path = tmp_path / "t.csv"
    path.write_bytes(CONTENT)
    read(path, opener)
    assert opener.opened
    assert opener.num_held == 0


def test_what_is_never_given_back_is_waited_for_no_longer_than_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lending, "MOST_SECONDS", 0.02)
    held = []
    began = time.monotonic()
    with lent(lending):
        held.append(lending)
    assert 0.02 <= time.monotonic() - began < 30


def test_nothing_is_waited_for_where_nobody_holds_more() -> None:
    with lent(_Opener(), _skip) as nothing:
        assert nothing is None


def _skip() -> None:
    pass

"""Lines of a private CSV file whose quotes do not close, kept to themselves.

A quote that is never closed would take in the rows behind it, up to the next quote or to the end of the file. So each
line at which a row begins is read strictly: a quoted cell ends with a quote and then a separator or the end of the
line, and there are as many cells as columns. A line from which no such row begins is lost; the next one is looked at by
itself.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

from kamino.io.csv_faults import unlimited_cells
from kamino.io.formats.dialect import Opener, Settled

# So many lines a row may have: as many are looked at for a quote that closes.
MOST_LINES = 1_000
_COUNT_BYTES = 1 << 24


def count_quotes(path: Path, how: Settled) -> int:
    """How many quotes there are in a file."""
    with how.opener(path) as handle:
        return sum(part.count(b'"') for part in iter(lambda: handle.read(_COUNT_BYTES), b""))


def sound(path: Path, how: Settled, *, columns: int) -> Settled:
    """The same, with an opener that leaves out the lines whose quotes do not close, and how many these are.

    Guarantees:
        A line takes in no other.  [test_an_open_quote_takes_in_no_other_row]
        A file in which each quote closes is read as it is.  [test_rows_of_many_lines_are_rows]
    """
    # The parser cannot tell of a row that it leaves out if that is no text.
    if _is_text(path, how) and (count_quotes(path, how) == 0 or _is_sound(path, how, columns)):
        return replace(how, opener=_ended(how.opener))
    with unlimited_cells(), _opened(path, how) as lines:
        lost = sum(line is None for line in _sound_lines(lines, how.separator, columns))
    return replace(how, opener=_ended(_without_lost(how, columns)), lost=lost)


def _is_text(path: Path, how: Settled) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with how.opener(path) as handle:
        try:
            for part in iter(lambda: handle.read(_COUNT_BYTES), b""):
                decoder.decode(part)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _is_sound(path: Path, how: Settled, columns: int) -> bool:
    with unlimited_cells(), _opened(path, how) as lines:
        few = _FewLines(lines)
        before = 0
        try:
            reader = csv.reader(few, delimiter=how.separator, strict=True)
            for row in reader:
                if reader.line_num - before > 1 and len(row) != columns:
                    return False
                before, few.read = reader.line_num, 0
        except csv.Error:
            return False
    return True


class _FewLines:
    """The lines of a file, which end once so many were read at a stretch as no row may have."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self.read = lines, 0

    def __iter__(self) -> _FewLines:
        return self

    def __next__(self) -> str:
        self.read += 1
        if self.read > MOST_LINES:
            raise csv.Error
        return next(self._lines)


def _sound_lines(lines: Iterator[str], separator: str, columns: int) -> Iterator[str | None]:
    """The lines of a file as they are, and None for each that is lost."""
    ahead: deque[str] = deque()
    for line in lines:
        ahead.append(line)
        while ahead:
            size = _lines_of_row(ahead, lines, separator, columns) if _is_doubtful(ahead[0]) else 1
            if size == 0:
                ahead.popleft()
                yield None
            for _ in range(size):
                yield ahead.popleft()


def _is_doubtful(line: str) -> bool:
    """Whether a line has a quote, or is no text."""
    if '"' in line:
        return True
    if line.isascii():
        return False
    try:
        line.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return True
    return False


def _lines_of_row(ahead: deque[str], lines: Iterator[str], separator: str, columns: int) -> int:
    """How many lines the row has that begins here; 0 if none does. What had to be read for it is added to `ahead`."""

    def following() -> Iterator[str]:
        for place in range(MOST_LINES):
            if place == len(ahead):
                more = next(lines, None)
                if more is None:
                    return
                ahead.append(more)
            yield ahead[place]

    reader = csv.reader(following(), delimiter=separator, strict=True)
    try:
        row = next(reader)
    except csv.Error:
        return 0
    return reader.line_num if len(row) == columns else 0


def _opened(path: Path, how: Settled) -> io.TextIOWrapper:
    # Each byte is one letter, so that whatever stands in a line comes out as it was.
    return io.TextIOWrapper(how.opener(path), encoding="latin-1", newline="")


def _without_lost(how: Settled, columns: int) -> Opener:
    def opened(path: Path) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_Joined(_opened(path, how), how.separator, columns)))

    return opened


def _ended(opener: Opener) -> Opener:
    """An opener whose bytes end with a line break: the parser refuses a header that does not."""

    def opened(path: Path) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_Ended(opener(path))))

    return opened


class _Ended(io.RawIOBase):
    """The bytes of a file, and a line break behind them."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        found = self._source.read(len(buffer))
        if not found and not self._ended:
            self._ended, found = True, b"\n"
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


class _Joined(io.RawIOBase):
    """The bytes of the lines that are not lost."""

    def __init__(self, lines: io.TextIOWrapper, separator: str, columns: int) -> None:
        self._file = lines
        self._lines = _sound_lines(lines, separator, columns)
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._left:
            with unlimited_cells():
                line = next(self._lines, "")
            if line == "":
                return 0
            self._left = b"" if line is None else line.encode("latin-1")
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()

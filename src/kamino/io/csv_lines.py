"""Lines of a private CSV file that are no rows, and rows of nulls in their places.

A quote that is never closed would take in the rows behind it, up to the next quote or to the end of the file. So each
line at which a row begins is read strictly: a quoted cell ends with a quote and then a separator or the end of the
line. A line from which no such row begins is lost, and the next one is looked at by itself. A row with more or fewer
cells than there are columns is lost too, with all of its lines.
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
from kamino.io.formats.dialect import Settled

# So many letters a row of several lines may have: as many are looked at for a quote that closes.
MOST_LETTERS = 1 << 26
_COUNT_BYTES = 1 << 24
# The byte order mark of UTF-8, read byte by byte.
_MARK = codecs.BOM_UTF8.decode("latin-1")


def count_quotes(path: Path, how: Settled) -> int:
    """How many quotes there are in a file."""
    with how.opener(path) as handle:
        return sum(part.count(b'"') for part in iter(lambda: handle.read(_COUNT_BYTES), b""))


def ended(how: Settled) -> Settled:
    """The same, with an opener whose bytes end with a line break: the parser refuses a header that does not."""

    def opened(path: Path) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_Ended(how.opener(path))))

    return replace(how, opener=opened)


def has_sound_quotes(path: Path, how: Settled) -> bool:
    """Whether all of a file is text, and each quote that opens a cell closes it."""
    # The parser cannot tell of a row that it leaves out if that is no text.
    return _is_text(path, how) and (count_quotes(path, how) == 0 or _closes_quotes(path, how))


def with_nulls_for_lost(how: Settled, *, columns: int) -> Settled:
    """The same, with an opener that puts a row of nulls in the place of each line that is lost.

    Guarantees:
        A line takes in no other.  [test_an_open_quote_takes_in_no_other_row]
        A row is read as it is, however many lines it has.  [test_rows_of_many_lines_are_rows]
    """

    def opened(path: Path) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_Joined(_opened(path, how), how.separator, columns)))

    return replace(how, opener=opened)


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


def _closes_quotes(path: Path, how: Settled) -> bool:
    with unlimited_cells(), _opened(path, how) as lines:
        few = _FewLetters(lines)
        try:
            for _ in csv.reader(few, delimiter=how.separator, strict=True):
                few.read = 0
        except csv.Error:
            return False
    return True


class _FewLetters:
    """The lines of a file, which end once more was read at a stretch than a row may have: the first always comes."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines, self.read = lines, 0

    def __iter__(self) -> _FewLetters:
        return self

    def __next__(self) -> str:
        if self.read > MOST_LETTERS:
            raise csv.Error
        line = next(self._lines)
        self.read += len(line)
        return line


def _sound_lines(lines: Iterator[str], separator: str, columns: int) -> Iterator[str]:
    """The lines of a file as they are, and a row of nulls for each that is lost."""
    # The line of one empty cell is blank unless the cell is quoted.
    nulls = (separator * (columns - 1) or '""') + "\n"
    ahead: deque[str] = deque()
    for line in lines:
        ahead.append(line)
        while ahead:
            if _is_plain(ahead[0], separator, columns):
                yield ahead.popleft()
                continue
            size, cells = _row_of(ahead, lines, separator)
            found = [ahead.popleft() for _ in range(size)]
            if cells == columns:
                yield from found
            else:
                yield nulls


def _is_plain(line: str, separator: str, columns: int) -> bool:
    """Whether a line is blank, or a row by itself without any quote."""
    return '"' not in line and (line.count(separator) == columns - 1 or not line.strip("\r\n"))


def _row_of(ahead: deque[str], lines: Iterator[str], separator: str) -> tuple[int, int]:
    """How many lines and cells the row has that begins here; one line and no cell if none does.

    What had to be read to know is added to `ahead`.
    """

    def following() -> Iterator[str]:
        yield from tuple(ahead)
        for line in lines:
            ahead.append(line)
            yield line

    reader = csv.reader(_FewLetters(following()), delimiter=separator, strict=True)
    try:
        row = next(reader)
    except csv.Error:
        return 1, 0
    return reader.line_num, len(row)


def _opened(path: Path, how: Settled) -> io.TextIOWrapper:
    # Each byte is one letter, so that whatever stands in a line comes out as it was.
    return io.TextIOWrapper(how.opener(path), encoding="latin-1", newline="")


def _without_mark(lines: Iterator[str]) -> Iterator[str]:
    first = next(lines, None)
    if first is not None:
        yield first.removeprefix(_MARK)
    yield from lines


class _Joined(io.RawIOBase):
    """The bytes of the lines of a file, with a row of nulls for each that is lost."""

    def __init__(self, lines: io.TextIOWrapper, separator: str, columns: int) -> None:
        self._file = lines
        self._lines = _sound_lines(_without_mark(lines), separator, columns)
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        if not self._left:
            with unlimited_cells():
                self._left = next(self._lines, "").encode("latin-1")
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


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

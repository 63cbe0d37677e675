"""How a text file separates its cells and spells its letters: as it is told, or as its header line shows.

Only the header line is looked at, which holds the public names of columns: what cells hold has no say.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from kamino.errors import InputError

COMMA = ","
UTF_8 = "utf-8"
# Of the header line so many bytes are looked at.
_HEADER_BYTES = 1 << 20
_SEPARATORS = (COMMA, ";", "\t", "|")
_NAMED = {"comma": COMMA, "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|", "space": " "}
_MARKS = (
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
WESTERN = "cp1252"
_CHUNK = 1 << 16

Opener = Callable[[Path], BinaryIO]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The separator and the encoding of a text file; None for what its header line shows."""

    separator: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.separator is not None:
            object.__setattr__(self, "separator", _checked_separator(self.separator))
        if self.encoding is not None:
            object.__setattr__(self, "encoding", _checked_encoding(self.encoding))


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What a file is read with: a separator, and an opener whose bytes are UTF-8 whatever those on the disk are.

    is_told: whether the encoding is certain, by a byte order mark or because it was given.
    """

    separator: str
    encoding: str
    opener: Opener
    is_told: bool = True


def settle(path: Path, opener: Opener, dialect: Dialect) -> Settled:
    r"""Find what `dialect` leaves open in the header line of the file.

    The separator is that of `, ; \t |` which occurs most often outside of quotes, a comma where none does, and a tab in
    a file named `.tsv`. The encoding is what a byte order mark says; UTF-8 where the line is that; else Windows-1252.

    Guarantees:
        No cell has a say.  [test_only_the_header_line_is_looked_at]
    """
    with opener(path) as handle:
        start = handle.read(_HEADER_BYTES)
    encoding = dialect.encoding or _encoding_of(start)
    if dialect.separator is not None:
        separator = dialect.separator
    elif ".tsv" in path.suffixes or ".tab" in path.suffixes:
        separator = "\t"
    else:
        separator = _separator_of(_header(start.decode(encoding, "replace")))
    is_told = dialect.encoding is not None or any(start.startswith(mark) for mark, _ in _MARKS)
    return Settled(separator=separator, encoding=encoding, opener=as_utf8(opener, encoding), is_told=is_told)


def _encoding_of(start: bytes) -> str:
    for mark, name in _MARKS:
        if start.startswith(mark):
            return name
    line = start.lstrip(b"\r\n").partition(b"\n")[0].partition(b"\r")[0]
    try:
        line.decode(UTF_8)
    except UnicodeDecodeError as error:
        cut_short = len(line) == _HEADER_BYTES and error.start >= _HEADER_BYTES - 4
        return UTF_8 if cut_short else WESTERN
    return UTF_8


def _header(text: str) -> str:
    """The first line that is not blank; a line break within quotes does not end it."""
    quoted, text = False, text.removeprefix("\ufeff").lstrip("\r\n")
    for place, letter in enumerate(text):
        quoted ^= letter == '"'
        if letter in "\r\n" and not quoted:
            return text[:place]
    return text


def _separator_of(header: str) -> str:
    bare = "".join(header.split('"')[::2])
    return max(_SEPARATORS, key=bare.count)


def _checked_separator(given: str) -> str:
    found = _NAMED.get(given.lower(), given)
    if len(found) != 1 or not found.isascii() or found in '"\r\n' or found.isalnum():
        raise InputError(
            f"found the separator {given!r}; expected one character that is no letter, digit, quote or line break, or "
            f"one of {', '.join(_NAMED)}"
        )
    return found


def _checked_encoding(given: str) -> str:
    try:
        if not codecs.lookup(given)._is_text_encoding:
            raise LookupError
        # Whatever a file holds can be read: bytes that are no text are marked as such.
        bytes(range(256)).decode(given, "replace")
    except (LookupError, ValueError):
        raise InputError(
            f"found the encoding {given!r}, which is not known, or not for tables; expected a name such as utf-8, "
            "latin-1, cp1252, utf-16"
        ) from None
    return given


class _Reader(Protocol):
    def read(self, size: int) -> bytes: ...

    def close(self) -> None: ...


class _Transcoded(io.RawIOBase):
    """The bytes of a text in UTF-8, from a file in another encoding; what cannot be decoded is marked as such."""

    def __init__(self, source: _Reader, encoding: str) -> None:
        self._source = source
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._left = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while not self._left and not self._ended:
            part = self._source.read(_CHUNK)
            self._ended = not part
            self._left = self._decoder.decode(part, final=self._ended).encode(UTF_8)
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


def as_utf8(opener: Opener, encoding: str) -> Opener:
    """An opener whose bytes are UTF-8, of files in an encoding."""
    if codecs.lookup(encoding).name == UTF_8:
        return opener

    def opened(path: Path) -> BinaryIO:
        return cast(BinaryIO, io.BufferedReader(_Transcoded(opener(path), encoding)))

    return opened

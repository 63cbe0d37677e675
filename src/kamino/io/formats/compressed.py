"""Text files that are compressed by gzip or zstd, as their names say: `.gz` and `.zst`."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from kamino.errors import InputError

_ENDINGS = {".gz": "gzip", ".zst": "zstd"}
# The level at which both take about as long as spelling the cells.
_LEVEL = 3


def compression_of(name: str) -> str | None:
    """How a file of this name is compressed, if it is."""
    return _ENDINGS.get(Path(name).suffix.lower())


def kind_of(path: Path) -> str:
    """How the name of a file ends, without what says that it is compressed.

    >>> kind_of(Path("people.csv.gz")), kind_of(Path("people.parquet"))
    ('.csv', '.parquet')
    """
    plain = path.with_suffix("") if compression_of(path.name) else path
    return plain.suffix.lower()


def open_text(path: Path, name: str | None = None) -> BinaryIO:
    """Open the bytes of a text file, decompressed as `name` says, which is the file's own unless one is given.

    Guarantees:
        A file that is damaged or cut short is told by what `telling_damage` raises.  [test_faults_of_a_compressed_file]
    """
    how = compression_of(path.name if name is None else name)
    if how == "gzip":
        return cast(BinaryIO, gzip.open(path, "rb"))
    return cast(BinaryIO, io.BufferedReader(_Unpacked(path))) if how == "zstd" else open(path, "rb")


class _DamagedError(Exception):
    """Data that zstd cannot read."""


class _Unpacked(io.RawIOBase):
    """The bytes of a file that zstd has compressed."""

    def __init__(self, path: Path) -> None:
        self._source = pa.input_stream(str(path), compression="zstd")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        try:
            found = self._source.read(len(buffer))
        except (OSError, pa.ArrowException):
            raise _DamagedError from None
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


@contextmanager
def telling_damage(path: Path) -> Iterator[None]:
    """Say that compressed data is damaged, and no more: the library's own text may quote it."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InputError(f"{path}: the gzip data is damaged or cut short. Compress the file again.") from None
    except _DamagedError:
        raise InputError(f"{path}: the zstd data is damaged or cut short. Compress the file again.") from None


@contextmanager
def compressing(handle: BinaryIO, name: str) -> Iterator[BinaryIO]:
    """What is written here reaches `handle` compressed as `name` says; the bytes depend on nothing but what is written.

    Guarantees:
        The same table gives the same bytes, whenever it is written.  [test_compressed_files_read_back]
    """
    match compression_of(name):
        case None:
            yield handle
        case "gzip":
            with gzip.GzipFile(filename="", mode="wb", fileobj=handle, compresslevel=_LEVEL, mtime=0) as packed:
                yield cast(BinaryIO, packed)
        case _:
            with _Packing(handle) as packing:
                yield cast(BinaryIO, packing)


class _Packing:
    """Compresses by zstd what is written to it; the file below stays open."""

    def __init__(self, handle: BinaryIO) -> None:
        self._below = pa.PythonFile(_KeptOpen(handle), mode="w")
        self._packed = pa.CompressedOutputStream(self._below, "zstd")

    def __enter__(self) -> _Packing:
        return self

    def write(self, data: bytes | memoryview) -> int:
        self._packed.write(data)
        return len(data)

    def __exit__(self, *_: object) -> None:
        self._packed.close()


class _KeptOpen:
    """A file that is not closed with what writes to it."""

    def __init__(self, handle: BinaryIO) -> None:
        self._handle = handle
        self.closed = False

    def write(self, data: bytes) -> int:
        return self._handle.write(data)

    def flush(self) -> None:
        self._handle.flush()

    def tell(self) -> int:
        return self._handle.tell()

    def close(self) -> None:
        self.closed = True

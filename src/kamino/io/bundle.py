"""One file of several texts and arrays: what a fitted model is saved as.

A zip archive of UTF-8 texts and `.npy` arrays, readable with any unzip tool. Reading never runs code: arrays that would
need pickle are refused.
"""

from __future__ import annotations

import errno
import io
import math
import os
import stat
import struct
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from kamino.errors import InputError, KaminoError, ModelError
from kamino.io.atomic import atomic_file

# More than any model has: a file that asks for more is refused before it is unpacked.
MOST_ENTRIES = 60_000
MOST_ARRAY_BYTES = 512 << 20
MOST_TEXT_BYTES = 64 << 20
_DIRECTORY_BYTES = 8 << 20
_ARRAYS = "arrays/"
_NPY = ".npy"
_EXPECTED = "expected one that a run saved"
# The record at the end of a zip archive, without a comment.
_END, _END_BYTES = b"PK\x05\x06", 22
_ENCRYPTED = 1
# What reading bytes that are no archive, or no array, raises. The header of an array is a Python literal.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    EOFError,
    SyntaxError,
    RecursionError,
    NotImplementedError,
    RuntimeError,
    OverflowError,
    MemoryError,
)
# A fixed date, so that the same model gives the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Bundle:
    """Named texts and named arrays."""

    texts: Mapping[str, str]
    arrays: Mapping[str, NDArray[np.generic]]


def write_bundle(bundle: Bundle, path: str | Path) -> None:
    """Write a bundle whole or not at all; one that `read_bundle` would refuse for its size raises a `ModelError`."""
    contents = {name: text.encode("utf-8") for name, text in bundle.texts.items()}
    for name, array in bundle.arrays.items():
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
        contents[f"{_ARRAYS}{name}{_NPY}"] = buffer.getvalue()
    fault = _too_large({name: len(content) for name, content in contents.items()})
    if fault:
        raise ModelError(f"{path}: the model has {fault}; it is not saved. Use smaller domains or reference tables")
    with atomic_file(Path(path)) as handle, zipfile.ZipFile(handle, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            archive.writestr(_entry(name), content)


def read_bundle(path: str | Path) -> Bundle:
    """Read a bundle.

    Raises:
        InputError: there is no such file, or it cannot be opened.
        ModelError: the file is no bundle, is damaged, or has more in it than any model.

    Guarantees:
        Nothing is unpacked before its size is known, and no more than that.  [test_bombs_are_not_unpacked]
        Whatever the bytes are, one of these errors is raised or a bundle returned.  [test_damaged_files_are_refused]
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(f"{path}: found a folder or a device, expected a model file")
        with open(path, "rb") as handle:
            fault = _wrong_directory(handle)
            if fault:
                raise ModelError(f"{path}: found {fault}, {_EXPECTED}")
            with zipfile.ZipFile(handle) as archive:
                return _read(archive, str(path))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such model file; check the path") from None
    except KaminoError:
        raise
    except (OSError, *_DAMAGE) as problem:
        # A place in the file that is none, such as one before its beginning, is an invalid argument to the system.
        if isinstance(problem, OSError) and problem.errno != errno.EINVAL:
            raise InputError(f"{path}: the model file cannot be read: {problem.strerror}") from None
        raise ModelError(f"{path}: found something that is not a model file, {_EXPECTED}") from None


def _wrong_directory(handle: BinaryIO) -> str | None:
    """What is wrong with the end of a zip archive, which says how long the list of its entries is; None if nothing.

    The library would read a list of any length into memory.
    """
    size = handle.seek(0, os.SEEK_END)
    handle.seek(max(0, size - _END_BYTES - 0xFFFF))
    tail = handle.read()
    place = len(tail) - _END_BYTES
    if place < 0 or not (tail[place:].startswith(_END) and tail.endswith(b"\0\0")):
        place = tail.rfind(_END)
    if place < 0 or len(tail) - place < _END_BYTES:
        return "something that is not a model file"
    _, _, _, _, entries, length, _, _ = struct.unpack("<4s4H2LH", tail[place : place + _END_BYTES])
    if b"PK\x06\x07" in tail[max(0, place - 20) : place] or entries > MOST_ENTRIES or length > _DIRECTORY_BYTES:
        return "a list of more entries than any model has"
    return None


def _read(archive: zipfile.ZipFile, source: str) -> Bundle:
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names):
        raise ModelError(f"{source}: found two entries of one name, {_EXPECTED}")
    fault = _too_large({entry.filename: entry.file_size for entry in entries})
    if fault:
        raise ModelError(f"{source}: found {fault}, {_EXPECTED}")
    texts: dict[str, str] = {}
    arrays: dict[str, NDArray[np.generic]] = {}
    for entry in entries:
        content = _content(archive, entry)
        if entry.filename.startswith(_ARRAYS) and entry.filename.endswith(_NPY):
            arrays[entry.filename.removeprefix(_ARRAYS).removesuffix(_NPY)] = _array(content)
        else:
            texts[entry.filename] = content.decode("utf-8")
    return Bundle(texts=texts, arrays=arrays)


def _too_large(sizes: Mapping[str, int]) -> str | None:
    """What of the entries of these sizes is more than any model has; None if nothing."""
    arrays = sum(size for name, size in sizes.items() if name.startswith(_ARRAYS))
    texts = [size for name, size in sizes.items() if not name.startswith(_ARRAYS)]
    for what, found, most in (
        ("entries", len(sizes), MOST_ENTRIES),
        ("bytes in arrays", arrays, MOST_ARRAY_BYTES),
        ("bytes in texts", sum(texts), MOST_TEXT_BYTES),
    ):
        if found > most:
            return f"{found:,} {what}, of which {most:,} are allowed"
    return None


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Unpack one entry, of as many bytes as it says and not one more."""
    if entry.flag_bits & _ENCRYPTED or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise zipfile.BadZipFile("encrypted, or packed in another way")
    with archive.open(entry) as handle:
        content = handle.read(entry.file_size + 1)
    if len(content) != entry.file_size:
        raise zipfile.BadZipFile("an entry has another size than it says")
    return content


def _array(content: bytes) -> NDArray[np.generic]:
    """The array in the bytes of an `.npy` file: whole, of plain numbers, and of the shape that its header says."""
    buffer = io.BytesIO(content)
    version = np.lib.format.read_magic(buffer)
    reader = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shape, is_fortran, dtype = reader(buffer)
    if dtype.kind not in "iuf" or dtype.hasobject or is_fortran or any(length < 0 for length in shape):
        raise ValueError("no plain array of numbers")
    start = buffer.tell()
    if math.prod(shape) * dtype.itemsize != len(content) - start:
        raise ValueError("an array has another size than it says")
    return np.frombuffer(content, dtype=dtype, offset=start).reshape(shape)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, date_time=_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry

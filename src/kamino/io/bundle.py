"""One file of several texts and arrays: what a fitted model is saved as.

A zip archive of UTF-8 texts and `.npy` arrays, readable with any unzip tool. Reading never runs code: arrays that would
need pickle are refused.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kamino.errors import InputError
from kamino.io.atomic import atomic_file

_ARRAYS = "arrays/"
# A fixed date, so that the same model gives the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Bundle:
    """Named texts and named arrays."""

    texts: Mapping[str, str]
    arrays: Mapping[str, NDArray[np.generic]]


def write_bundle(bundle: Bundle, path: str | Path) -> None:
    """Write a bundle whole or not at all."""
    with atomic_file(Path(path)) as handle, zipfile.ZipFile(handle, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in bundle.texts.items():
            archive.writestr(_entry(name), text.encode("utf-8"))
        for name, array in bundle.arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(_entry(f"{_ARRAYS}{name}.npy"), buffer.getvalue())


def read_bundle(path: str | Path) -> Bundle:
    """Read a bundle; anything that is none raises an `InputError`."""
    texts: dict[str, str] = {}
    arrays: dict[str, NDArray[np.generic]] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                content = archive.read(name)
                if name.startswith(_ARRAYS):
                    key = name.removeprefix(_ARRAYS).removesuffix(".npy")
                    arrays[key] = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
                else:
                    texts[name] = content.decode("utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such model file; check the path") from None
    except OSError as problem:
        raise InputError(f"{path}: the model file cannot be read: {problem.strerror}") from None
    except (zipfile.BadZipFile, ValueError, EOFError):
        raise InputError(
            f"{path}: found something that is not a model file, expected one made by `kamino synth --save-model`"
        ) from None
    return Bundle(texts=texts, arrays=arrays)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, date_time=_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from kamino.errors import InputError, ModelError
from kamino.io.bundle import Bundle, read_bundle, write_bundle

BUNDLE = Bundle(texts={"a.json": '{"é": 1}'}, arrays={"x/y": np.arange(6.0).reshape(2, 3), "n": np.array([], np.int64)})


def test_round_trip(tmp_path: Path) -> None:
    write_bundle(BUNDLE, tmp_path / "m.kamino")
    again = read_bundle(tmp_path / "m.kamino")
    assert dict(again.texts) == dict(BUNDLE.texts)
    assert list(again.arrays) == list(BUNDLE.arrays)
    for name, array in BUNDLE.arrays.items():
        assert again.arrays[name].dtype == array.dtype
        assert np.array_equal(again.arrays[name], array)


def test_same_bundle_same_bytes(tmp_path: Path) -> None:
    write_bundle(BUNDLE, tmp_path / "a")
    write_bundle(BUNDLE, tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_pickles_are_refused_both_ways(tmp_path: Path) -> None:
    objects = np.array([{"a": 1}], dtype=object)
    with pytest.raises((InputError, ValueError)):
        write_bundle(Bundle(texts={}, arrays={"x": objects}), tmp_path / "m")
    assert not (tmp_path / "m").exists()
    with zipfile.ZipFile(tmp_path / "p", "w") as archive, archive.open("arrays/x.npy", "w") as handle:
        np.lib.format.write_array(handle, objects, allow_pickle=True)
    with pytest.raises(ModelError, match="not a model file"):
        read_bundle(tmp_path / "p")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"a,b\n1,2\n"])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelError, match="not a model file"):
        read_bundle(tmp_path / "m")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such model file"):
        read_bundle(tmp_path / "m")

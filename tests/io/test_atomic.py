from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest

from kamino.errors import InputError
from kamino.io import read_table, write_table
from kamino.io.atomic import atomic_file

TABLE = pa.table({"a": ["S3CRET", "y"]})


def fail(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("old", [b"the old file", None], ids=["old file", "new file"])
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("point", ["fsync", "replace", "write"])
def test_a_failing_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, name: str, old: bytes | None
) -> None:
    path = tmp_path / name
    if old is not None:
        path.write_bytes(old)
    if point == "write":
        monkeypatch.setattr("kamino.io.write._row_bytes", fail)
        monkeypatch.setattr("pyarrow.parquet.ParquetWriter.write_table", fail)
    else:
        monkeypatch.setattr(f"kamino.io.atomic.os.{point}", fail)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device") as caught:
        write_table(TABLE, path)
    assert "S3CRET" not in str(caught.value)
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == ({name: old} if old else {})


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with atomic_file(tmp_path / "t.csv") as handle:
            handle.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_the_old_file_is_there_until_the_end(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"old")
    with atomic_file(path) as handle:
        handle.write(b"new")
        handle.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.csv"]


def test_the_bytes_are_forced_to_disk_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr("kamino.io.atomic.os.fsync", lambda fd: (calls.append("fsync"), fsync(fd)))
    monkeypatch.setattr("kamino.io.atomic.os.replace", lambda a, b: (calls.append("replace"), replace(a, b)))
    write_table(TABLE, tmp_path / "t.csv")
    assert calls == ["fsync", "replace", "fsync"]


def test_a_file_that_another_writer_is_moving_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old\n")
    real = os.chmod

    def chmod(file: Path, mode: int) -> None:
        path.unlink(missing_ok=True)
        real(file, path.stat().st_mode & mode)

    monkeypatch.setattr("kamino.io.atomic.os.chmod", chmod)
    with atomic_file(path) as handle:
        handle.write(b"new\n")
    assert path.read_text() == "new\n"


def test_a_link_and_the_mode_of_the_file_are_kept(tmp_path: Path) -> None:
    real = tmp_path / "real.csv"
    real.write_bytes(b"old")
    real.chmod(0o640)
    (tmp_path / "link.csv").symlink_to(real)
    write_table(TABLE, tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert read_table(real).equals(TABLE)
    assert real.stat().st_mode & 0o777 == 0o640

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest
from tests.killed import is_killed

from kamino.errors import InputError
from kamino.io import read_table, write_table
from kamino.io.atomic import atomic_file, place_together, staged

TABLE = pa.table({"a": ["S3CRET", "y"]})
WRITE = """
import pathlib
from kamino.io.atomic import atomic_file
arm()
with atomic_file(pathlib.Path("t.csv")) as handle:
    handle.write(b"the new file")
"""


def fail(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("old", [b"the old file", None], ids=["old file", "new file"])
@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
@pytest.mark.parametrize("point", ["fsync", "name", "write"])
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
        for call in ("link", "replace") if point == "name" else (point,):
            monkeypatch.setattr(os, call, fail)
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


@pytest.fixture(params=[True, False], ids=["nameless", "named"])
def nameless(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Systems with files that have no name, and systems without."""
    if not request.param:
        monkeypatch.setattr("kamino.io.atomic.open_nameless", lambda folder: None)
    return bool(request.param)


@pytest.mark.parametrize("old", [True, False], ids=["old file", "new file"])
def test_the_bytes_are_forced_to_disk_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nameless: bool, old: bool
) -> None:
    calls: list[str] = []

    def told(name: str) -> None:
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, **options: (real(*given, **options), calls.append(name)))

    if old:
        write_table(TABLE, tmp_path / "t.csv")
    for name in ("fsync", "link", "replace"):
        told(name)
    write_table(TABLE, tmp_path / "t.csv")
    names = {(True, True): ["link", "replace"], (True, False): ["link"]}.get((nameless, old), ["replace"])
    assert calls == ["fsync", *names, "fsync"]


@pytest.mark.parametrize("old", [b"the old file", None], ids=["old file", "new file"])
def test_a_kill_at_any_call_leaves_no_temporary(tmp_path: Path, old: bytes | None) -> None:
    """A kill between two names leaves one that the next write of the same file removes; any other one leaves none."""
    step, left, killed = 2, [], True
    while killed:
        folder = tmp_path / str(step)
        folder.mkdir()
        path = folder / "t.csv"
        if old is not None:
            path.write_bytes(old)
        killed = is_killed(WRITE, folder, call=step // 2, before=step % 2 == 0)
        left.append({each.name for each in folder.iterdir()} - {"t.csv"})
        if old is not None:
            assert path.exists()
        write_table(TABLE, path)
        assert [each.name for each in folder.iterdir()] == ["t.csv"]
        step += 1
    assert step > 12
    assert sum(map(len, left)) <= (2 if old else 0), left


def test_where_the_system_gives_no_name_the_bytes_are_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "t.csv"
    path.write_text("old")
    path.chmod(0o640)
    write_table(TABLE, path)
    assert read_table(path).equals(TABLE)
    assert path.stat().st_mode & 0o777 == 0o640
    with staged(tmp_path / "main") as main, staged(tmp_path / "voucher") as voucher:
        for file in (main, voucher):
            with file.open() as handle:
                handle.write(b"1")
        assert not main.is_placed
        place_together(main, [voucher])
        assert main.is_placed
    assert sorted(each.name for each in tmp_path.iterdir()) == ["main", "t.csv", "voucher"]


def test_what_another_write_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    left = [f".t.csv.{'0' * 12}.old", f".t.csv.{'a' * 12}.new"]
    kept = [
        ".t.csv.old",
        f".u.csv.{'0' * 12}.old",
        f".t.csv.{'0' * 11}.old",
        f"t.csv.{'0' * 12}.old",
        ".t.csv.mine.new",
    ]
    for name in (*left, *kept):
        (tmp_path / name).touch()
    write_table(TABLE, tmp_path / "t.csv")
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([*kept, "t.csv"])


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

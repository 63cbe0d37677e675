"""No command writes over what it reads, or spends on what it cannot write."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kamino.cli.app import app
from kamino.cli.outputs import refuse_overwriting, refuse_unwritable, refuse_unwritable_table
from kamino.errors import InputError
from kamino.io.atomic import atomic_file
from kamino.pipeline import Synthesizer

SCHEMA = "attributes:\n  a: {type: categorical, values: [x, y]}\n  b: {type: categorical, values: [u, v]}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of a run, the table also under another name; fitting anything fails the test."""
    (tmp_path / "t.csv").write_text("a,b\nx,u\ny,v\n")
    (tmp_path / "s.yaml").write_text(SCHEMA)
    (tmp_path / "map.csv").write_text("a,b\nx,u\ny,v\n")
    (tmp_path / "r.dc").write_text("a -> b using map.csv\n")
    (tmp_path / "t.csv.certificate.json").write_text("{}")
    (tmp_path / "m.kamino").write_text("not read")
    os.symlink("t.csv", tmp_path / "link.csv")
    os.link(tmp_path / "s.yaml", tmp_path / "hard.kamino")
    monkeypatch.chdir(tmp_path)

    def read_anything(*_: Any, **__: Any) -> None:
        raise AssertionError("the table was read before its outputs were looked at")

    monkeypatch.setattr(Synthesizer, "fit", read_anything)
    monkeypatch.setattr(Synthesizer, "load", read_anything)
    return tmp_path


SYNTH = ("synth", "t.csv", "-s", "s.yaml", "-c", "r.dc")
OVER = {
    "the table": (*SYNTH, "-o", "t.csv"),
    "the table by another path": (*SYNTH, "-o", "../{folder}/t.csv"),
    "the table through a link": (*SYNTH, "-o", "link.csv"),
    "a map": (*SYNTH, "-o", "map.csv"),
    "the schema by the model": (*SYNTH, "-o", "o.csv", "--save-model", "s.yaml"),
    "the schema under another name": (*SYNTH, "-o", "o.csv", "--save-model", "hard.kamino"),
    "the constraints by the model": (*SYNTH, "-o", "o.csv", "--save-model", "r.dc"),
    "the table by the model": (*SYNTH, "-o", "o.csv", "--save-model", "o.csv"),
    "the certificate by the model": (*SYNTH, "-o", "o.csv", "--save-model", "o.csv.certificate.json"),
    "an input by the certificate": ("synth", "t.csv", "-s", "t.csv.certificate.json", "-o", "t.csv"),
    "the model": ("sample", "m.kamino", "-o", "m.kamino"),
    "the table by its schema": ("init", "t.csv", "-o", "t.csv"),
    "the metadata": ("init", "--sdv", "s.yaml", "-o", "s.yaml"),
}


@pytest.mark.parametrize("case", OVER)
def test_no_command_overwrites_what_it_reads(folder: Path, case: str) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    if case == "an input by the certificate":
        (folder / "t.csv.certificate.json").write_text(SCHEMA)
        before["t.csv.certificate.json"] = SCHEMA.encode()
    ran = CliRunner().invoke(app, [each.format(folder=folder.name) for each in OVER[case]])
    assert isinstance(ran.exception, InputError), ran.output
    assert "found an output that is also an input" in str(ran.exception) or "two outputs" in str(ran.exception)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("given", [None, "postgresql://me@host/t.csv", "other.csv", "duckdb:///other.db"])
def test_other_inputs_are_no_reason_to_refuse(folder: Path, given: str | None) -> None:
    refuse_overwriting(Path("t.csv"), given)
    with pytest.raises(InputError, match=r"t\.csv"):
        refuse_overwriting(Path("t.csv"), given, "duckdb:///t.csv")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("-o", "o.csv", "--save-model", "nodir/m.kamino"), "nodir/m.kamino: there is no folder nodir"),
        (("-o", "o.csv", "--save-model", "."), "found a directory"),
        (("-o", "nodir/z.csv"), "nodir/z.csv: there is no folder nodir"),
        (("-o", "z.xls"), "z.xls: cannot write this kind of file"),
    ],
)
def test_outputs_are_tried_before_anything_is_spent(folder: Path, options: tuple[str, ...], message: str) -> None:
    before = sorted(folder.iterdir())
    ran = CliRunner().invoke(app, [*SYNTH, *options])
    assert isinstance(ran.exception, InputError), ran.output
    assert message in str(ran.exception)
    assert ".try" not in str(ran.exception)
    assert sorted(folder.iterdir()) == before


def test_a_place_that_can_be_written_is_left_as_it_was(folder: Path) -> None:
    before = sorted(folder.iterdir())
    refuse_unwritable(Path("m2.kamino"))
    refuse_unwritable_table(Path("o.parquet"))
    assert sorted(folder.iterdir()) == before


def test_what_is_no_regular_file_is_refused(folder: Path) -> None:
    """A device, a pipe or a directory is left as it is, by itself and behind a link, for every output."""
    os.mkfifo("pipe.csv")
    (folder / "dir.csv").mkdir()
    os.symlink("/dev/null", "null.csv")
    os.symlink("null.csv", "twice.csv")
    os.symlink("/dev/stdout", "out.csv")
    os.symlink("pipe.csv", "piped.csv")
    os.symlink("/dev/null", "z.csv.certificate.json")
    os.symlink("loop.csv", "loop.csv")
    before = {path.name: path.lstat().st_mode for path in folder.iterdir()}
    found = {
        "pipe.csv": "found a pipe",
        "dir.csv": "found a directory",
        "null.csv": "found a device",
        "twice.csv": "found a device",
        "out.csv": "found an open file of a process",
        "piped.csv": "found a pipe",
        "z.csv": "z.csv.certificate.json: found a device",
        "loop.csv": "Too many levels of symbolic links",
    }
    for name, message in found.items():
        for command in ((*SYNTH, "-o", name), ("sample", "m.kamino", "-o", name)):
            ran = CliRunner().invoke(app, command)
            assert isinstance(ran.exception, InputError), (name, ran.output)
            assert message in str(ran.exception)
            assert len(str(ran.exception).splitlines()) == 1
        if name not in ("z.csv", "dir.csv"):
            for command in ((*SYNTH, "-o", "o.csv", "--save-model", name), ("init", "t.csv", "-o", name)):
                assert message in str(CliRunner().invoke(app, command).exception)
            with pytest.raises(InputError, match=message), atomic_file(Path(name)):
                pass
    assert {path.name: path.lstat().st_mode for path in folder.iterdir()} == before

"""A run that is told to end leaves no temporary file, and says what is spent."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from tests.forked import forks

from kamino.cli.signals import ToldToEndError, ending_in_order
from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.io import write_table
from kamino.io.atomic import staged

# Runs the command, which at a place of the run is told to end, and would wait there.
TOLD = """
import os, signal, time
import kamino.cli.app, {module}
signal.signal({number}, signal.SIG_DFL)  # ignored where the tests run under nohup
def told(*arguments, **options):
    os.kill(os.getpid(), {number})
    time.sleep(60)
{module}.{name} = told
kamino.cli.app.main()
"""
PLACES = {
    "while drawing": ("kamino.pipeline.output.writing", "draw_columns"),
    "while the table is counted": ("kamino.pipeline.output.writing", "count_table"),
    "while names change": ("kamino.io.atomic", "_move_aside"),
    "while a model is saved": ("kamino.io.bundle", "_entry"),
}


@pytest.mark.parametrize(
    ("place", "number"), [("while drawing", signal.SIGHUP), *((place, signal.SIGTERM) for place in PLACES)]
)
def test_a_run_told_to_end_cleans_up_and_tells_the_cost(tmp_path: Path, place: str, number: signal.Signals) -> None:
    write_table(tax(200), tmp_path / "t.csv")
    (tmp_path / "r.dc").write_text(TAX_CONSTRAINTS)
    (tmp_path / "o.csv").write_text("old")
    (tmp_path / "o.csv.certificate.json").write_text("{}")
    before = {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()}
    module, name = PLACES[place]
    options = ["synth", "t.csv", "-c", "r.dc", "--trust-domain", "-o", "o.csv"]
    if place == "while a model is saved":
        options += ["--save-model", "m.kamino"]
    ran = forks().run(TOLD.format(module=module, name=name, number=int(number)), *options, folder=tmp_path)
    told = ran.stderr
    assert ran.returncode == 128 + number
    assert ran.stdout == ""
    assert told.startswith(f"kamino: stopped by {number.name}\n")
    assert "epsilon 1 of 1 is spent" in told.replace("\n", " ")
    assert "Traceback" not in told
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == before


def test_a_run_stopped_early_tells_that_nothing_is_spent(tmp_path: Path) -> None:
    write_table(tax(200), tmp_path / "t.csv")
    place = {"module": "kamino.model.marginal.fit_marginal", "name": "_measure_histograms"}
    options = ["synth", "t.csv", "--trust-domain", "-o", "o.csv"]
    ran = forks().run(TOLD.format(**place, number=int(signal.SIGTERM)), *options, folder=tmp_path)
    assert ran.returncode == 143
    assert ran.stderr.split("\n")[:2] == [
        "kamino: stopped by SIGTERM",
        "kamino: No release was made: nothing is spent.",
    ]
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.csv"]


def test_the_first_signal_counts() -> None:
    def twice() -> None:
        with ending_in_order():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(ToldToEndError, match="SIGTERM") as told:
        twice()
    assert told.value.code == 143
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def test_a_signal_that_a_library_renames_ends_the_run() -> None:
    def renamed() -> None:
        with ending_in_order():
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            except BaseException as problem:
                raise RuntimeError("a library's own") from problem

    with pytest.raises(ToldToEndError, match="SIGTERM"):
        renamed()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with ending_in_order():
        os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_signal_while_a_file_is_removed_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error that the signal raises ends the removing too. Here files have names, as on systems that ask for one."""
    monkeypatch.setattr("kamino.io.atomic.open_nameless", lambda folder: None)
    unlink = Path.unlink

    def told(self: Path, **options: bool) -> None:
        monkeypatch.setattr(Path, "unlink", unlink)
        os.kill(os.getpid(), signal.SIGTERM)

    def write() -> None:
        with ending_in_order(), staged(tmp_path / "o.csv") as file, file.open() as handle:
            handle.write(b"1")
            monkeypatch.setattr(Path, "unlink", told)

    with pytest.raises(ToldToEndError):
        write()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    assert list(tmp_path.iterdir()) == []

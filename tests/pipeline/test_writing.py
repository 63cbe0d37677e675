"""One way out: what is certified is in the file, counted once, and never apart from its certificate."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.pipeline.test_privacy_of_synth import RULES, SCHEMA, private_table
from typer.testing import CliRunner

from kamino.cli.app import app
from kamino.constraints import Constraints, count_violations
from kamino.constraints.counting import count as counting
from kamino.errors import InputError, SamplingError
from kamino.io import read_table, write_table
from kamino.pipeline import Synthesizer, WrittenTable
from kamino.pipeline.output.writing import certificate_path
from kamino.pipeline.stages import Stage

# A process that imports once and forks: each fork places a pair, and kills itself before its n-th call that changes a
# name, removes one, or forces one to the disk. Prints for each n how the fork ended.
DYING = """
import hashlib, json, os, pathlib, signal, sys
from kamino.io.atomic import place_together, staged

def place(folder, step, text):
    calls = iter(range(1000))
    def dying(call):
        def wrapped(*arguments, **options):
            if next(calls) == step:
                os.kill(os.getpid(), signal.SIGKILL)
            return call(*arguments, **options)
        return wrapped
    os.replace, os.link, os.fsync = map(dying, (os.replace, os.link, os.fsync))
    pathlib.Path.unlink = dying(pathlib.Path.unlink)
    with staged(folder / "out.csv") as table, staged(folder / "out.csv.certificate.json") as voucher:
        proof = json.dumps({"sha256": hashlib.sha256(text.encode()).hexdigest()})
        for file, content in ((table, text), (voucher, proof)):
            with file.open() as handle:
                handle.write(content.encode())
        place_together(table, [voucher])

for folder in sys.argv[1:]:
    child = os.fork()
    if not child:
        place(pathlib.Path(folder), int(pathlib.Path(folder).name), "the new table")
        os._exit(0)
    print(os.WTERMSIG(os.waitpid(child, 0)[1]), flush=True)
"""
# The same for whole writes of two tables, again and again, which end at a random moment by the signal that is asked
# for. The rows are drawn before, so that most of the time is spent where a kill could do harm.
WRITING = """
import os, random, sys, time
import numpy as np
from kamino.pipeline.output import drawn_table as drawing
from kamino.pipeline.output import writing
from kamino.pipeline import Synthesizer
made = Synthesizer.load(sys.argv[1])
drawn = {rows: drawing.draw_columns(made.fitted, rows, np.random.default_rng([1, 0])) for rows in (5, 7)}
writing.draw_columns = lambda fitted, rows, *_, **__: drawn[rows]
made.write(sys.argv[2], 5)
begin = time.monotonic()
made.write(sys.argv[2], 5)
# Long enough for several writes, also where the machine is busy.
longest = max(0.2, 6 * (time.monotonic() - begin))
rng = random.Random(3)
for _ in range(int(sys.argv[4])):
    child = os.fork()
    if not child:
        for number in range(10_000):
            made.write(sys.argv[2], 5 + 2 * (number % 2))
    time.sleep(rng.uniform(0.0, longest))
    os.kill(child, int(sys.argv[3]))
    os.waitpid(child, 0)
    print("killed", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(scope="module")
def fitted() -> Synthesizer:
    return Synthesizer(SCHEMA, RULES, seed=1).fit(private_table())


def assert_own_certificate(table: Path) -> None:
    """A table is beside the certificate that was made for it; there may be no table."""
    if table.exists():
        stated = json.loads(certificate_path(table).read_text())["sha256"]
        assert stated == hashlib.sha256(table.read_bytes()).hexdigest()


def write_pair(folder: Path, text: str) -> None:
    (folder / "out.csv").write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    (folder / "out.csv.certificate.json").write_text(json.dumps({"sha256": digest}))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_what_is_certified_is_what_is_in_the_file(fitted: Synthesizer, tmp_path: Path, suffix: str) -> None:
    told: list[Stage] = []
    path = tmp_path / f"out{suffix}"
    written = fitted.write(path, 50, progress=lambda stage, *_: told.append(stage))
    assert isinstance(written, WrittenTable)
    assert written.path == path
    assert written.rows == written.certificate["rows"] == read_table(path).num_rows == 50
    assert written.certificate == json.loads(written.certificate_path.read_text())
    assert written.sha256 == written.certificate["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert set(written.violations.values()) == {0}
    assert list(written.violations) == [each["text"] for each in written.certificate["constraints"]]
    assert list(dict.fromkeys(told)) == [Stage.SAMPLE, Stage.WRITE, Stage.CHECK]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [path.name, f"{path.name}.certificate.json"]
    assert "50 rows in" in str(written)


def test_it_takes_the_options_of_sample(fitted: Synthesizer, tmp_path: Path) -> None:
    written = fitted.write(tmp_path / "a.parquet", 20, given={"city": "Rome"}, seed=4, draw_number=2)
    assert written.certificate["given"] == {"city": ["Rome"]}
    assert read_table(written.path).equals(fitted.sample(20, given={"city": "Rome"}, seed=4, draw_number=2))
    plain = fitted.write(tmp_path / "b.parquet", 20, seed=4)
    assert read_table(plain.path).equals(fitted.sample(20, seed=4))
    assert fitted.write(tmp_path / "c.csv").rows == fitted.fitted.num_rows


def count_calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Note every constraint that is counted in a table, wherever the counting function is used."""
    found: list[Any] = []
    real: Callable[..., int] = counting.count_violations

    def counted(table: Any, constraint: Any) -> int:
        found.append(constraint)
        return real(table, constraint)

    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("kamino") and vars(module).get("count_violations") is real:
            monkeypatch.setattr(module, "count_violations", counted)
    return found


def test_violations_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a whole run of the command: not while drawing, not for the certificate, but in what was read back."""
    monkeypatch.chdir(tmp_path)
    write_table(private_table(), tmp_path / "t.csv")
    (tmp_path / "s.yaml").write_text(SCHEMA.to_yaml())
    (tmp_path / "r.dc").write_text(str(RULES))
    calls = count_calls(monkeypatch)
    ran = CliRunner().invoke(app, ["synth", "t.csv", "-s", "s.yaml", "-c", "r.dc", "-o", "o.csv", "-n", "80"])
    assert ran.exit_code == 0, ran.output
    certificate = json.loads((tmp_path / "o.csv.certificate.json").read_text())
    assert len(calls) == len(set(calls)) == len(certificate["constraints"]) > 1


def test_violations_are_counted_once_under_a_condition(
    fitted: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count_calls(monkeypatch)
    written = fitted.write(tmp_path / "o.parquet", 50, given={"city": "Rome"}, seed=3)
    assert len(calls) == len(set(calls)) == len(written.certificate["constraints"]) > 1
    assert set(read_table(written.path).column("city").to_pylist()) == {"Rome"}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tables_are_written_in_parts(
    fitted: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """Keys run on from part to part, and the file is that of a table written as a whole."""
    whole = fitted.write(tmp_path / f"a.{suffix}", 50, seed=3)
    monkeypatch.setattr("kamino.pipeline.output.writing._ROWS_AT_ONCE", 7)
    parts = fitted.write(tmp_path / f"b.{suffix}", 50, seed=3)
    assert read_table(parts.path).equals(read_table(whole.path))
    assert parts.violations == whole.violations


def test_rows_that_do_not_meet_the_condition_are_mended(
    fitted: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codec = fitted.fitted.codec
    anything = private_table(200).drop_columns(["id"])
    codes = {name: codec[name].encode(anything.column(name)) for name in codec.attributes}
    monkeypatch.setattr("kamino.pipeline.output.writing.draw_columns", lambda *_, **__: codes)
    written = fitted.write(tmp_path / "o.parquet", 200, given={"city": "Rome"})
    assert set(read_table(written.path).column("city").to_pylist()) == {"Rome"}
    assert sum(written.violations.values()) == 0


def test_rows_that_break_a_constraint_are_mended(
    fitted: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawing leaves its check to the count of what was written, and so do the rows that are to be replaced."""
    broken = private_table(200).drop_columns(["id"])
    zone = pa.array(["N", "S"] * 100)
    broken = broken.set_column(broken.column_names.index("zone"), "zone", zone)
    codec = fitted.fitted.codec
    codes = {name: codec[name].encode(broken.column(name)) for name in codec.attributes}
    monkeypatch.setattr("kamino.pipeline.output.writing.draw_columns", lambda *_, **__: codes)
    written = fitted.write(tmp_path / "o.parquet", 200)
    assert set(written.violations.values()) == {0}
    made = read_table(tmp_path / "o.parquet")
    assert made.num_rows == 200
    assert sum(count_violations(made, rule) for rule in Constraints.parse(str(RULES)) if rule.is_hard) == 0


def test_a_refused_table_leaves_the_old_pair(
    fitted: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted.write(tmp_path / "o.csv", 20)
    before = {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()}
    monkeypatch.setattr("kamino.pipeline.output.counted.Counted.broken", property(lambda self: tuple(self.violations)))
    with pytest.raises(SamplingError, match="nothing was written"):
        fitted.write(tmp_path / "o.csv", 30)
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == before


@pytest.mark.parametrize("old", ["the old table", None], ids=["old pair", "nothing"])
def test_a_kill_at_any_step_leaves_no_table_beside_another_certificate(tmp_path: Path, old: str | None) -> None:
    """SIGKILL before each call that changes a name, or forces one to the disk."""
    folders = [tmp_path / str(step) for step in range(20)]
    for folder in folders:
        folder.mkdir()
        if old is not None:
            write_pair(folder, old)
    ran = subprocess.run([sys.executable, "-c", DYING, *map(str, folders)], capture_output=True, text=True)
    ends = [int(line) for line in ran.stdout.split()]
    killed = ends.index(0)
    assert ends == [signal.SIGKILL] * killed + [0] * (len(folders) - killed), ran.stderr
    assert killed >= 9
    left = []
    for folder in folders[: killed + 1]:
        assert_own_certificate(folder / "out.csv")
        left.append((folder / "out.csv").read_text() if (folder / "out.csv").exists() else None)
    assert list(dict.fromkeys(left)) == ([old] if old else []) + [None, "the new table"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_random_kills_leave_no_table_beside_another_certificate(
    fitted: Synthesizer, tmp_path: Path, number: signal.Signals
) -> None:
    fitted.save(tmp_path / "m.kamino")
    table, times = tmp_path / "out.csv", 50
    command = [sys.executable, "-c", WRITING, str(tmp_path / "m.kamino"), str(table), str(int(number)), str(times)]
    left = set()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        for _ in range(times):
            assert child.stdout.readline() == "killed\n"
            assert_own_certificate(table)
            left.add(len(table.read_text().splitlines()) if table.exists() else None)
            child.stdin.write("\n")
            child.stdin.flush()
    assert {6, 8} <= left


@pytest.mark.parametrize("old", [True, False], ids=["old pair", "nothing"])
@pytest.mark.parametrize("failing", range(4))
@pytest.mark.parametrize("problem", [OSError(5, "Input/output error"), KeyboardInterrupt()], ids=["error", "interrupt"])
def test_a_failing_step_leaves_the_old_pair(
    fitted: Synthesizer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    old: bool,
    failing: int,
    problem: BaseException,
) -> None:
    if old:
        write_pair(tmp_path, "the old table\n")
    before = {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()}
    calls = 0

    def failing_at(real: Callable[..., None]) -> Callable[..., None]:
        def call(*given: Any, **options: Any) -> None:
            nonlocal calls
            calls += 1
            if calls == failing + 1:
                raise problem
            real(*given, **options)

        return call

    for name in ("replace", "link"):
        monkeypatch.setattr(os, name, failing_at(getattr(os, name)))
    with pytest.raises((InputError, KeyboardInterrupt)) as told:
        fitted.write(tmp_path / "out.csv", 5)
    assert {entry.name: entry.read_bytes() for entry in tmp_path.iterdir()} == before
    if isinstance(problem, OSError):
        assert "out.csv: cannot be written (Input/output error)" in str(told.value)


def test_old_files_that_cannot_be_put_back_are_named(
    fitted: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pair(tmp_path, "the old table\n")
    real, calls = os.replace, 0

    def replace(source: Any, target: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(30, "Read-only file system")
        real(source, target)

    monkeypatch.setattr("kamino.io.atomic.os.replace", replace)
    with pytest.raises(InputError, match="Read-only file system") as told:
        fitted.write(tmp_path / "out.csv", 5)
    (kept,) = tmp_path.glob(".out.csv.*.old")
    assert kept.read_text() == "the old table\n"
    assert str(kept) in told.value.__notes__[0]
    assert not (tmp_path / "out.csv").exists()


def _write_often(model: str, path: str) -> None:
    made = Synthesizer.load(model)
    for number in range(15):
        made.write(path, 3 + number, seed=os.getpid() + number)


def test_two_writers_leave_one_pair(fitted: Synthesizer, tmp_path: Path) -> None:
    fitted.save(tmp_path / "m.kamino")
    spawn = multiprocessing.get_context("spawn")
    both = [
        spawn.Process(target=_write_often, args=(str(tmp_path / "m.kamino"), str(tmp_path / "o.csv"))) for _ in "ab"
    ]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert [each.exitcode for each in both] == [0, 0]
    assert_own_certificate(tmp_path / "o.csv")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["m.kamino", "o.csv", "o.csv.certificate.json"]


def test_a_link_is_followed_and_certified_under_both_names(fitted: Synthesizer, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    fitted.write(tmp_path / "there" / "real.csv", 5)
    (tmp_path / "link.csv").symlink_to(tmp_path / "there" / "real.csv")
    fitted.write(tmp_path / "link.csv", 9)
    assert (tmp_path / "link.csv").is_symlink()
    assert read_table(tmp_path / "there" / "real.csv").num_rows == 9
    for name in ("link.csv", "there/real.csv"):
        assert_own_certificate(tmp_path / name)
        assert certificate_path(tmp_path / name).is_file()

"""Readers under random inputs: no error but Kamino's own, no hang, no more memory than 1 GiB."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fuzz.__main__ import fuzz, input_of
from tests.fuzz.readers import READERS, Reader

from kamino.errors import InputError

ROOT = Path(__file__).parents[2]
SEED = 2026
# `make test` reads so many inputs, `make test-slow` so many; `make fuzz` reads a million.
FEW, MANY = 4_000, 250_000


def run_fuzzer(*options: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-m", "tests.fuzz", *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
def test_fuzzed_inputs_end_in_order(count: int) -> None:
    ran = run_fuzzer("--count", str(count), "--seed", str(SEED))
    outcomes = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [each["faults"] for each in outcomes if each["faults"]] == [], ran.stderr
    assert ran.returncode == 0, ran.stderr
    assert len(outcomes) == len(READERS)
    assert sum(each["inputs"] for each in outcomes) >= count - len(READERS)
    # An input that is never accepted, or always, would say little about a reader.
    assert all(0.01 < each["accepted"] / each["inputs"] < 0.9 for each in outcomes)


def test_shares_add_up(tmp_path: Path) -> None:
    assert sum(make(tmp_path).share for make in READERS) == pytest.approx(1.0)


def test_an_input_follows_from_its_number_alone(tmp_path: Path) -> None:
    for make in READERS:
        folders = [tmp_path / f"{make.__name__}{number}" for number in (1, 2)]
        for folder in folders:
            folder.mkdir()
        one, two = (make(folder) for folder in folders)
        forth = {number: input_of(one, 3, number) for number in range(300)}
        assert {number: input_of(two, 3, number) for number in reversed(range(300))} == forth


def broken(data: bytes, scratch: Path) -> object:
    if data == b"7":
        raise KeyError("not foreseen")
    raise InputError("one line" if data != b"9" else "two\nlines")


def test_faults_are_seen(tmp_path: Path) -> None:
    reader = Reader(name="broken", share=1, make=lambda rng: b"%d" % rng.randrange(10), read=broken, one_line=True)
    outcome = fuzz(reader, seed=1, first=0, count=200, folder=tmp_path)
    assert outcome.inputs == 200
    kinds = {fault.split(": ", 1)[1] for fault in outcome.faults}
    assert kinds == {"KeyError: 'not foreseen'", "a message of 2 lines and 9 characters"}


HANGING = """
import sys
from pathlib import Path
from tests.fuzz import __main__ as fuzzing
from tests.fuzz.readers import Reader
fuzzing.SECONDS = 0.3
def read(data, scratch):
    while data == b"x": pass
reader = Reader(name="slow", share=1, make=lambda rng: b"x", read=read)
fuzzing.fuzz(reader, seed=1, first=5, count=3, folder=Path(sys.argv[1]))
"""


def test_a_hang_ends_the_process_and_tells_which_input(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-c", HANGING, str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment)
    assert ran.returncode == -signal.SIGPROF
    assert "in read" in ran.stderr
    assert (tmp_path / "slow.number").read_text().strip() == "5"

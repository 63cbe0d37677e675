"""Runs that are killed at random moments go on: nothing paid twice, nothing unpaid, and the same table in the end.

python -m tests.durable.test_resume: two hundred kills, and what was left behind.
"""

from __future__ import annotations

import hashlib
import json
import random
import signal
import tempfile
import time
from collections.abc import Container
from pathlib import Path

import numpy as np
import pytest
from tests.durable.killing import Kill, run_command
from tests.durable.planning import releases_in

from kamino.privacy.durable.journal import journals_of
from kamino.privacy.durable.store import DurableLedger

SCHEMA = """\
attributes:
  city: {type: categorical, values: [Rome, Oslo, Bern]}
  zone: {type: categorical, values: [N, S]}
  age: {type: integer, min: 15, max: 90}
"""
RULES = "city -> zone\nsoft: not (t1.city = t2.city and t1.age > t2.age and t1.zone < t2.zone)\n"
SYNTH = ("synth", "t.csv", "-c", "rules.dc", "-o", "o.csv", "--save-model", "m.kamino", "-n", "40", "--seed", "5")
DECLARED = (*SYNTH, "-s", "schema.yaml", "--ledger", "l.ledger")
# Types and domains are found within the budget: more kinds of releases, and delta that is set aside.
FOUND = (*SYNTH, "--anyway", "--ledger", "l.ledger")
GIVEN = {"t.csv", "rules.dc", "schema.yaml", "log"}
OUTPUTS = ("o.csv", "o.csv.certificate.json", "m.kamino")


def prepare(folder: Path) -> None:
    folder.mkdir()
    rng = np.random.default_rng(5)
    city = rng.choice(3, 60)
    rows = zip(
        np.array(["Rome", "Oslo", "Bern"])[city], np.array(["S", "N", "N"])[city], rng.integers(18, 80, 60), strict=True
    )
    (folder / "t.csv").write_text("city,zone,age\n" + "".join(f"{c},{z},{a}\n" for c, z, a in rows))
    (folder / "schema.yaml").write_text(SCHEMA)
    (folder / "rules.dc").write_text(RULES)


def outputs(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in OUTPUTS}


def charges(folder: Path) -> list[list[str]]:
    """The releases that each run was charged for; runs that were charged for none are left out."""
    with DurableLedger.read(folder / "l.ledger") as ledger:
        return [run.charged for run in ledger.runs.values() if run.charged]


def charged_draws(folder: Path) -> int:
    """How many charges are for something that is drawn: to set delta aside draws nothing."""
    lines = (folder / "l.ledger").read_bytes().split(b"\n")[:-1]
    bodies = [json.loads(line[65:]) for line in lines]
    return sum(body["kind"] == "charge" and body["entry"]["kind"] != "aside" for body in bodies)


def stored(folder: Path) -> int:
    """How many releases are stored."""
    (path,) = journals_of(folder / "l.ledger").values()
    return releases_in(path)


def is_finished(folder: Path) -> bool:
    return (folder / "o.csv").exists() and not journals_of(folder / "l.ledger")


def left_behind(folder: Path) -> set[str]:
    """Files that nobody asked for."""
    journals = {path.name for path in journals_of(folder / "l.ledger").values()}
    return {path.name for path in folder.iterdir()} - {*GIVEN, *OUTPUTS, "l.ledger", *journals}


def check_state(folder: Path, code: int, before: Container[str] = ()) -> None:
    """What must hold whenever a run has ended, however."""
    names = {path.name for path in folder.iterdir()}
    if "o.csv" in names:
        certificate = json.loads((folder / "o.csv.certificate.json").read_bytes())
        assert certificate["sha256"] == hashlib.sha256((folder / "o.csv").read_bytes()).hexdigest()
    if code == 128 + signal.SIGTERM:
        assert [name for name in left_behind(folder) if name not in before] == []
    if "l.ledger" in names and (folder / "l.ledger").stat().st_size:
        assert len(charges(folder)) <= 1
        if len(journals_of(folder / "l.ledger")) == 1:
            # Every stored release was charged; at most one that was charged was not stored.
            assert stored(folder) <= charged_draws(folder) <= stored(folder) + 1


def kill_and_go_on(folder: Path, arguments: tuple[str, ...], rng: random.Random, top: float) -> tuple[int, int]:
    """Kill a run, and whoever goes on, until one is left alone: how many were killed, and how many left a file."""
    prepare(folder)
    kills = left = 0
    while True:
        kill = None
        if kills == 0 or rng.random() < 0.3:
            number = rng.choice([signal.SIGKILL, signal.SIGTERM])
            if rng.random() < 0.5:
                kill = Kill(number=number, after=rng.uniform(0.01, top))
            else:
                kill = Kill(number=number, calls=rng.randint(1, 90), before=rng.random() < 0.5)
        # What cannot be caught may leave a file, where names change; what can, leaves none of its own.
        before = {path.name for path in folder.iterdir()}
        code = run_command(folder, *arguments, kill=kill)
        text = (folder / "log").read_text()
        # Told to end before it listens, a run has done nothing yet; and after, it has done everything.
        untouched = {path.name for path in folder.iterdir()} <= before | {"log"}
        unheard = code == -signal.SIGTERM and (untouched or is_finished(folder))
        assert unheard or code in (0, -signal.SIGKILL, 128 + signal.SIGTERM), text
        assert "Traceback" not in text
        check_state(folder, code, before)
        if code != 0:
            kills += 1
            left += bool(left_behind(folder))
        if code == 0 or is_finished(folder):
            return kills, left


def series(folder: Path, arguments: tuple[str, ...], num_kills: int, seed: int) -> dict[str, int]:
    prepare(folder / "undisturbed")
    run_command(folder / "undisturbed", *arguments)
    began = time.monotonic()
    prepare(folder / "again")
    assert run_command(folder / "again", *arguments) == 0, (folder / "again" / "log").read_text()
    top = 1.1 * (time.monotonic() - began)
    expected, paid = outputs(folder / "undisturbed"), charges(folder / "undisturbed")
    assert outputs(folder / "again") == expected
    rng, kills, rounds, left, ends = random.Random(seed), 0, 0, 0, 0
    while kills < num_kills:
        place = folder / f"round{rounds}"
        counts = kill_and_go_on(place, arguments, rng, top)
        kills, left, rounds, ends = kills + counts[0], left + counts[1], rounds + 1, ends + len(left_behind(place))
        assert outputs(place) == expected
        assert charges(place) == paid
        assert journals_of(place / "l.ledger") == {}
        with DurableLedger.read(place / "l.ledger") as ledger:
            assert not any(run.is_open for run in ledger.runs.values())
            assert not ledger.half_line
    return {
        "kills": kills,
        "kills that left a file": left,
        "runs": rounds,
        "files left by them": ends,
        "charges of each": len(paid[0]),
    }


def test_random_kills_then_resume(tmp_path: Path) -> None:
    counts = series(tmp_path, FOUND, 10, seed=1)
    assert counts["kills"] >= 10
    assert counts["files left by them"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "seed"), [(DECLARED, 11), (FOUND, 12)], ids=["declared", "found"])
def test_two_hundred_random_kills_then_resume(tmp_path: Path, arguments: tuple[str, ...], seed: int) -> None:
    counts = series(tmp_path, arguments, 100, seed)
    print(counts)
    assert counts["kills"] >= 100
    assert counts["files left by them"] == 0
    assert counts["kills that left a file"] <= 5


def test_a_ledger_on_a_full_disk_ends_in_one_line_and_goes_on_later(tmp_path: Path) -> None:
    """The system refuses to write more in the middle of the run, once with half a line of the ledger written."""
    prepare(tmp_path / "plain")
    assert run_command(tmp_path / "plain", *FOUND) == 0
    folder = tmp_path / "full"
    prepare(folder)
    assert run_command(folder, *FOUND, file_bytes=6_000) == 2
    text = (folder / "log").read_text()
    assert "l.ledger: a ledger cannot be written (File too large). Nothing was entered" in text
    assert "is spent (not for release: " in text
    assert "). The releases are stored: the same command goes on from there" in text
    assert "Traceback" not in text
    (paid,) = charges(folder)
    assert 5 < len(paid) < 20
    check_state(folder, 128 + signal.SIGTERM)
    assert run_command(folder, *FOUND) == 0
    assert "going on with run" in (folder / "log").read_text()
    assert outputs(folder) == outputs(tmp_path / "plain")
    assert charges(folder) == charges(tmp_path / "plain")
    assert charges(folder)[0][: len(paid)] == paid


def test_a_table_that_cannot_be_written_is_made_later_from_the_stored_releases(tmp_path: Path) -> None:
    folder = tmp_path / "full"
    prepare(folder)
    # Large enough for the ledger, not for the table.
    many = tuple("5000" if each == "40" else each for each in FOUND)
    assert run_command(folder, *many, file_bytes=30_000) == 2
    text = (folder / "log").read_text()
    assert "o.csv: cannot be written (File too large)" in text
    assert not (folder / "o.csv").exists()
    paid = charges(folder)
    assert run_command(folder, *many) == 0
    assert charges(folder) == paid
    check_state(folder, 0)


def main() -> None:
    """Print what two hundred kills came to: domains that are declared, and domains that are found."""
    for name, arguments, seed in (("declared", DECLARED, 11), ("found", FOUND, 12)):
        with tempfile.TemporaryDirectory() as folder:
            print(f"domains {name}: {series(Path(folder), arguments, 100, seed)}", flush=True)


if __name__ == "__main__":
    main()

"""Runs that go on elsewhere: on a processor where sums, powers and matrix products end in other digits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.durable.killing import ARMED, Kill
from tests.durable.test_resume import FOUND, prepare
from tests.durable.test_runs import stopped
from tests.model.memory import MemoryMeasurer
from tests.processors import environment

from kamino.errors import LedgerError, ModelError
from kamino.model.marginal import fit_marginal
from kamino.model.marginal.columns.binning import choose_bins
from kamino.model.marginal.pairs import rounds, scoring
from kamino.model.protocol import ModelAttribute
from kamino.pipeline import Synthesizer
from kamino.pipeline.ledgering import LedgerUse
from kamino.privacy.durable.store import DurableLedger
from kamino.privacy.tape import StoredTape
from kamino.schema import Boolean, Categorical, Integer, Schema

BITS = tuple(f"bit{i}" for i in range(5))
KNOWN = Schema(
    attributes={
        "regular": Integer(min=0, max=99),
        "gross": Integer(min=0, max=99),
        "city": Categorical(values=list("abcdefgh")),
        **{name: Boolean() for name in BITS},
    }
)
#: Pairs are read by differences, and there are parities to measure: all kinds of choices.
RULES = "check (regular <= gross)"


def people(rows: int = 600) -> pa.Table:
    rng = np.random.default_rng(3)
    regular = rng.integers(0, 80, rows)
    gross = regular + rng.integers(0, 20, rows)
    bits = rng.integers(0, 2, (len(BITS), rows))
    bits[1] ^= (gross > 60) & (rng.random(rows) < 0.7)
    bits[4] = bits[2] ^ bits[3]
    city = np.array(list("abcdefgh"))[(gross - regular) * 8 // 20]
    columns = {name: bits[i].astype(bool) for i, name in enumerate(BITS)}
    return pa.table({"regular": regular, "gross": gross, "city": city, **columns})


def made(path: Path, epsilon: float) -> Synthesizer:
    return Synthesizer(KNOWN, RULES, epsilon=epsilon, seed=4, ledger=LedgerUse(path=path, dataset="people"))


def charges(path: Path) -> list[str]:
    with DurableLedger.read(path) as ledger:
        return [charge for run in ledger.runs.values() for charge in run.charged]


def other_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a model says of pairs, and of scores, is off by half: more than any processor does."""
    rng = np.random.default_rng(1)

    def off(real: Callable[..., Any]) -> Callable[..., Any]:
        def changed(*given: Any, **options: Any) -> Any:
            found = real(*given, **options)
            if isinstance(found, dict):
                return {key: value * np.exp(rng.normal(0, 0.5, value.shape)) for key, value in found.items()}
            return found * np.exp(rng.normal(0, 0.5, found.shape))

        return changed

    for module, name in ((rounds, "pair_answers"), (scoring, "shrink_scores")):
        monkeypatch.setattr(module, name, off(getattr(module, name)))


def numbers_of_releases(run: Synthesizer, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the releases of a run; those of its choices lie between them."""
    seen: list[int] = []
    play = StoredTape.play

    def look(self: StoredTape, *given: Any) -> Any:
        seen.append(self._number + 1)
        return play(self, *given)

    with monkeypatch.context() as patched:
        patched.setattr(StoredTape, "play", look)
        run.fit(people())
    return seen


def goes_on(path: Path, monkeypatch: pytest.MonkeyPatch, number: int, epsilon: float) -> list[str]:
    """End a run at a number, and go on with it where all comes out otherwise; what was settled on the way."""
    seen: list[str] = []
    settle = StoredTape.settle

    def look(self: StoredTape, what: str, choice: list[Any]) -> list[Any]:
        seen.append(what)
        return settle(self, what, choice)

    stopped(monkeypatch, made(path, epsilon), number, people())
    before = charges(path)
    with monkeypatch.context() as patched:
        other_digits(patched)
        patched.setattr(StoredTape, "settle", look)
        made(path, epsilon).fit(people())
    assert charges(path)[: len(before)] == before
    return seen


@pytest.mark.parametrize(
    ("epsilon", "kinds"), [(1.0, {"differences", "strong pairs"}), (6.0, {"parities", "strong pairs"})]
)
def test_a_run_goes_on_where_all_sums_come_out_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epsilon: float, kinds: set[str]
) -> None:
    """Choices are stored: whatever the model says when the run goes on, it asks for the releases that are there."""
    numbers = numbers_of_releases(made(tmp_path / "whole", epsilon), monkeypatch)
    seen: list[str] = []
    for number in (numbers[len(numbers) * 2 // 3], numbers[-1]):
        seen += goes_on(tmp_path / str(number), monkeypatch, number, epsilon)
    assert {what for what in seen if not what.startswith("round")} == {"bins", *kinds}
    with monkeypatch.context() as patched:
        # The table shows it: without stored choices the run asks for something else.
        patched.setattr(StoredTape, "settle", lambda self, what, choice: choice)
        with pytest.raises(LedgerError, match="is another one than was stored"):
            goes_on(tmp_path / "without", patched, numbers[-10], epsilon)


@pytest.mark.parametrize("told", [[[[0, 77], 0]], [[[0, 1], 9]], [7], ["round"], [[[[]], 0]]])
def test_a_stored_choice_of_another_table_is_refused(told: list[Any]) -> None:
    class Told(MemoryMeasurer):
        def settle(self, what: str, choice: list[Any]) -> list[Any]:
            return choice if what == "bins" else told

    table = {name: np.arange(600) % size for name, size in (("a", 3), ("b", 4), ("c", 5))}
    attributes = [ModelAttribute(name=name, size=int(column.max()) + 1) for name, column in table.items()]
    with pytest.raises(ModelError, match=r"found a stored choice \(round 1\) that is none of this table's"):
        fit_marginal.fit_marginal(Told(table), attributes, noise_multiplier=0.5)


def test_other_bins_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stored answer is not taken for one of other bins, though it has as many."""
    numbers = numbers_of_releases(made(tmp_path / "whole", 1.0), monkeypatch)
    stopped(monkeypatch, made(tmp_path / "l", 1.0), numbers[-1], people())

    def moved(*given: Any) -> Any:
        cells = choose_bins(*given)
        if cells.map.size == 100:
            cells = replace(cells, map=replace(cells.map, labels=cells.map.labels[::-1].copy()))
        return cells

    monkeypatch.setattr(fit_marginal, "choose_bins", moved)
    with pytest.raises(ModelError, match="the bins of the columns come out otherwise than when the run began"):
        made(tmp_path / "l", 1.0).fit(people())


#: A run that prints what it asked for, and one whose table and rules are looked at.
_ASKED = """
import json, sys
from tests.durable.test_other_processors import KNOWN, RULES, people
from kamino import Synthesizer
from kamino.privacy.schedule import divide_by_cells
made = Synthesizer(KNOWN, RULES + "\\ncity -> bit0", epsilon=1.0, seed=4).fit(people())
drawn = made.sample(600)
counted = [each["violations"] for each in made.certificate(drawn)["constraints"]]
told = ("what", "attributes", "shape", "sigma", "events")
entries = [[each[name] for name in told] for each in made.ledger["entries"]]
shares = divide_by_cells(range(1, 2_000)).tolist()
print(json.dumps({"entries": entries, "violations": counted, "rows": drawn.num_rows, "shares": shares}))
"""


def test_what_is_asked_for_follows_from_no_kernel() -> None:
    """On two kinds of processors a run with a seed asks for the same, to the last digit, and keeps its rules."""
    runs = [
        subprocess.Popen([sys.executable, "-c", _ASKED], env=env, stdout=subprocess.PIPE, text=True)
        for env in (dict(os.environ), environment("Nehalem"))
    ]
    here, there = (json.loads(run.communicate(timeout=120)[0]) for run in runs)
    assert here["entries"] == there["entries"]
    assert here["shares"] == there["shares"]
    assert here["violations"] == there["violations"] == [0, 0]
    assert here["rows"] == there["rows"] == 600


def test_a_run_that_is_killed_on_one_processor_goes_on_on_another(tmp_path: Path) -> None:
    """Killed after most of its releases; then it goes on, and what was charged stays as it was."""
    folder = tmp_path / "l"
    prepare(folder)
    told = asdict(Kill(number=signal.SIGKILL, calls=50)) | {"file_bytes": 0}
    command = [sys.executable, "-c", ARMED, json.dumps(told), *FOUND]
    assert subprocess.run(command, cwd=folder, env=environment("Nehalem")).returncode == -signal.SIGKILL
    before = charges(folder / "l.ledger")
    assert len(before) > 10
    assert not (folder / "o.csv").exists()
    command[3] = json.dumps({**told, "calls": 0})
    assert subprocess.run(command, cwd=folder).returncode == 0, (folder / "log").read_text()
    assert "going on with run" in (folder / "log").read_text()
    assert (folder / "o.csv").exists()
    assert charges(folder / "l.ledger")[: len(before)] == before

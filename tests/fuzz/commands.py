"""Replay whole commands over pairs of files: `python -m tests.fuzz.commands --count 20000 --seed 1`.

A command runs on a file and every release is recorded; then it runs on the same file with one odd row more, and gets
the recorded releases. Given these, it may know nothing of the file: the bytes that it writes (table, certificate,
model, note), what it prints on either stream, how it ends and the error that ends it must be the same. Of neighbours,
the true inputs of each mechanism may move no further than its declared sensitivity.

A pair follows from the seed and its number alone, so that `--from NUMBER --count 1` makes one again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.fuzz.file_pairs import Base, Pair, Source, Write, base_of, pair_of
from tests.fuzz.file_rows import COLUMNS
from typer.testing import CliRunner

from kamino.cli.app import app
from kamino.pipeline import fitting as fitting_module
from kamino.privacy import Budget, Gate, Neighbours, PrivacyUnit
from kamino.testing.replay import Recording, record

# So many pairs share a file, so that it is recorded once; of one in so many, the file with the odd row is recorded.
PAIRS_PER_FILE, FORTH_AND_BACK = 20, 10
EPSILONS = (1.0, 1.0, 30.0, 200.0)
SAFE: tuple[tuple[str, ...], ...] = ((), (), ("--spreadsheet-safe",))
RULES = {
    ("n", "pay"): "soft: not (t1.n > t2.n and t1.pay < t2.pay)",
    ("city", "n"): "soft: city -> n",
    ("city",): "check (city in ('Rome', 'Oslo'))",
    ("day", "at"): "soft: check (day <= at)",
}
COMMANDS: dict[str, tuple[str, ...]] = {
    "declared": ("synth", "-s", "s.yaml", "-o", "o.csv", "--save-model", "m.kamino", "--seed", "3"),
    "declared-rows": ("synth", "-s", "s.yaml", "-o", "o.parquet", "-n", "7", "--release-note", "n.md", "--seed", "3"),
    "ruled": ("synth", "-s", "s.yaml", "-c", "r.dc", "-o", "o.jsonl", "--save-model", "m.kamino", "--seed", "3"),
    "found": ("synth", "-o", "o.csv", "--anyway", "--save-model", "m.kamino", "--seed", "3"),
    "refused": ("synth", "-o", "o.csv", "--seed", "3"),
    "streamed": ("synth", "-s", "s.yaml", "-o", "o.csv", "--engine", "streamed", "--seed", "3"),
    "streamed-found": ("synth", "-o", "o.csv", "--engine", "streamed", "--anyway", "--seed", "3"),
    "unit": ("synth", "-s", "s.yaml", "-o", "o.csv", "--unit", "who", "--max-rows", "2", "--seed", "3"),
    "replaced": ("synth", "-s", "s.yaml", "-o", "o.csv", "--neighbours", "replace", "--seed", "3"),
    "dry": ("synth", "-s", "s.yaml", "-o", "o.csv", "--dry-run"),
    "suggest": ("suggest", "-s", "s.yaml", "--seed", "1"),
    "suggest-untyped": ("suggest", "--seed", "1"),
}
SHARES = {"declared": 6, "declared-rows": 3, "ruled": 3, "found": 6, "refused": 1, "streamed": 4, "streamed-found": 2,
          "unit": 3, "replaced": 2, "dry": 1, "suggest": 2, "suggest-untyped": 1}  # fmt: skip


@dataclass
class Outcome:
    """What became of the pairs."""

    seed: int
    pairs: int = 0
    neighbours: int = 0
    cpu: float = 0.0
    faults: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    commands: Counter[str] = field(default_factory=Counter)
    ends: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """A command on a source."""

    source: Source
    command: str
    rules: str
    epsilon: float
    more: tuple[str, ...] = ()

    @property
    def budget(self) -> Budget:
        """What the command may spend, and which files are neighbours."""
        relation = Neighbours.REPLACE if self.command == "replaced" else Neighbours.ADD_REMOVE
        return Budget(epsilon=self.epsilon, delta=1e-6, neighbours=relation)

    @property
    def unit(self) -> PrivacyUnit | None:
        """Whose privacy is replayed."""
        return PrivacyUnit(column="who", max_rows=2) if self.command == "unit" else None

    def arguments(self) -> list[str]:
        """What is said on the command line."""
        name, *rest = COMMANDS[self.command]
        told = [] if self.source.names_itself or "-s" in rest else ["--columns", ",".join(self.source.names)]
        one = ["--unit", "row"] if "who" in self.source.names and self.command != "unit" and name == "synth" else []
        budget = ["-e", str(self.epsilon), *([] if self.epsilon <= 10 else ["--accept"])]
        return [name, self.source.address, *self.source.options, *told, *one, *budget, *rest, *self.more]

    def run(self, write: Write, gate: Gate) -> Any:
        """All that the command leaves behind on a file, with the gate of the replay, in the current folder."""
        folder = Path.cwd()
        for path in folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        write(folder / self.source.file)
        declared = "".join(f"  {name}: {COLUMNS[name].declared}\n" for name in self.source.names)
        (folder / "s.yaml").write_text("attributes:\n" + declared)
        (folder / "r.dc").write_text(self.rules)
        given = {path.name for path in folder.iterdir()}
        with _opening(gate):
            ended = CliRunner().invoke(app, self.arguments())
        left = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.name not in given}
        problem = ended.exception
        notes = tuple(getattr(problem, "__notes__", ()))
        return ended.exit_code, ended.stdout, ended.stderr, left, type(problem).__name__, str(problem), notes


@contextmanager
def _opening(gate: Gate) -> Iterator[None]:
    """Let commands release through a gate; the clock stands still, since what a run takes is told."""

    def opened(settings: object) -> Gate:
        return gate

    with (
        patch.object(fitting_module, "open_gate", opened),
        patch.object(time, "perf_counter", lambda: 0.0),
    ):
        yield


def trial_of(base: Base, rng: random.Random) -> Trial:
    """A command that a file may be given."""
    source = base.source
    fitting = [
        name
        for name in COMMANDS
        if (source.in_parts or not name.startswith("streamed")) and (name != "unit" or "who" in source.names)
    ]
    rules = [rule for names, rule in RULES.items() if set(names) <= set(source.names)]
    command = rng.choices(fitting, [SHARES[name] for name in fitting])[0]
    # With more to spend, more is found of a small table, and more is drawn from what was found.
    epsilon = rng.choice(EPSILONS)
    more = rng.choice(SAFE) if "o.csv" in COMMANDS[command] else ()
    return Trial(source=source, command=command, rules="\n".join(rules) + "\n", epsilon=epsilon, more=more)


def replay_pairs(*, seed: int, first: int, count: int, folder: Path, told: Callable[[str], None] = print) -> Outcome:
    """Replay so many pairs."""
    outcome, begin = Outcome(seed=seed), time.process_time()
    before = Path.cwd()
    os.chdir(folder)
    try:
        recorded: Recording | None = None
        for number in range(first, first + count):
            rng = random.Random(f"{seed}:{number // PAIRS_PER_FILE}")
            base = base_of(rng)
            trial = trial_of(base, rng)
            replaced = trial.command == "replaced"
            pair = pair_of(base, random.Random(f"{seed}:{number}:pair"), replaced=replaced)
            if recorded is None or number % PAIRS_PER_FILE == 0:
                recorded = _recorded(trial, base.write)
            for problem in _problems(trial, pair, recorded, back=number % FORTH_AND_BACK == 0):
                outcome.faults.append(f"number {number}: {base.kind.name}, {trial.command}: {problem} [{pair.told}]")
                told(outcome.faults[-1])
            outcome.pairs += 1
            outcome.neighbours += pair.is_neighbour
            outcome.kinds[base.kind.name] += 1
            outcome.commands[trial.command] += 1
            outcome.ends[recorded.output[0]] += 1  # type: ignore[index]
    finally:
        os.chdir(before)
    outcome.cpu = time.process_time() - begin
    return outcome


def _recorded(trial: Trial, write: Write) -> Recording:
    return record(trial.run, write, budget=trial.budget, unit=trial.unit)


def _problems(trial: Trial, pair: Pair, recorded: Recording, *, back: bool) -> Sequence[str]:
    problems = recorded.play(pair.other, neighbour=pair.is_neighbour).problems
    if back:
        problems += _recorded(trial, pair.other).play(pair.plain, neighbour=pair.is_neighbour).problems
    return problems


def main() -> int:
    """Replay pairs, and print a line of JSON."""
    options = argparse.ArgumentParser()
    options.add_argument("--count", type=int, default=1_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--from", type=int, default=0, dest="first")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="kamino-pairs-", dir=memory if memory.is_dir() else None) as name:
        outcome = replay_pairs(
            seed=chosen.seed,
            first=chosen.first,
            count=chosen.count,
            folder=Path(name),
            told=lambda line: print(line, file=sys.stderr, flush=True),
        )
    print(json.dumps({**vars(outcome), "faults": len(outcome.faults)}))
    return 1 if outcome.faults else 0


if __name__ == "__main__":
    sys.exit(main())

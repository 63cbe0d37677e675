"""Synthesize each case once, in a process of its own, and keep the model, the table and the times by stage.

    python -m bench.paper.runs --data FOLDER --runs 3 --tables adult --presets default paper

What is in the store already is not made again, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import json
import math
import resource
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.paper.cases import NO_CONSTRAINTS, OWN, Case
from bench.paper.repair import clean, percent_changed
from bench.tables import read
from kamino.constraints import Constraints
from kamino.constraints.tree import SOFT
from kamino.io import read_table, write_table
from kamino.pipeline import Synthesizer
from kamino.pipeline.output.drawn_table import Ways, draw
from kamino.pipeline.stages import Stage
from kamino.sampling import Sampling


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where true tables come from and where synthetic ones are kept.

    stored_only: make nothing; what is not in the store was not run.
    rows: of the built-in table, which stands in where there is no folder.
    limit: CPU seconds after which one synthesis is stopped.
    """

    data: Path | None
    store: Path
    stored_only: bool = False
    rows: int = 30_000
    limit: float = 7_200.0

    def true(self, case: Case) -> tuple[pa.Table, Constraints]:
        """The true table of a case and its own constraints, whether or not the case heeds them."""
        table, rules = read(self.data, case.table, rows=self.rows)
        return pa.concat_tables([table] * case.copies), rules

    def constraints(self, case: Case, own: Constraints) -> Constraints:
        """The constraints that the synthesizer is told of."""
        if case.constraints == OWN:
            return own
        if case.constraints == NO_CONSTRAINTS:
            return Constraints()
        assert self.data is not None, "sets of approximate constraints lie beside the table"
        path = self.data / case.table / "approximate-dcs" / f"{case.constraints}.ic"
        rules = Constraints.parse(path.read_text(), source=path.name)
        return Constraints(tuple(replace(c, strength=SOFT) for c in rules))


@dataclass(frozen=True, kw_only=True)
class Made:
    """One synthetic table with the facts of its making: CPU and wall seconds by stage, memory in GiB."""

    case: Case
    run: int
    folder: Path
    facts: dict[str, Any]

    @property
    def table(self) -> pa.Table:
        """The synthetic table."""
        return read_table(self.folder / "table.parquet")

    @property
    def fit_seconds(self) -> float:
        """CPU seconds of reading, measuring, fitting and weighing."""
        return float(sum(self.facts["fit"]["cpu"].values()))

    @property
    def draw_seconds(self) -> float:
        """CPU seconds of drawing the rows."""
        return float(self.facts["draw"]["cpu"])


def made_run(source: Source, case: Case, run: int) -> Made | None:
    """The table of one run; None if it is not in the store and may not be made."""
    fit_folder, folder = case.fit_folder(source.store, run), case.draw_folder(source.store, run)
    wanted = [path for path in (fit_folder / "fit.json", folder / "draw.json") if not path.exists()]
    if wanted and (source.stored_only or failure(source, case, run)):
        return None
    make = _clean if case.cleaned else _in_own_process
    if wanted and not make(source, case, run):
        return None
    facts = {
        name: json.loads((at / f"{name}.json").read_text()) for name, at in (("fit", fit_folder), ("draw", folder))
    }
    return Made(case=case, run=run, folder=folder, facts=facts)


def failure(source: Source, case: Case, run: int) -> str | None:
    """How a run failed; None if it did not, or was not tried. Delete the file to try again."""
    path = case.draw_folder(source.store, run) / "failed.txt"
    return path.read_text() if path.exists() else None


def _in_own_process(source: Source, case: Case, run: int) -> bool:
    """CPU and memory are then those of one run, and its failure stops no other."""
    asked: dict[str, Any] = {"data": str(source.data) if source.data else None, "store": str(source.store)}
    asked |= {"rows": source.rows, "limit": source.limit}
    document = json.dumps({"source": asked, "case": {**asdict(case), "epsilon": str(case.epsilon)}, "run": run})
    print(f"making {case.table} {case.fit_name} {case.draw_name} run {run}", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "bench.paper.runs", "--one", document]
    ran = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    if ran.returncode == 0:
        return True
    stopped = ran.returncode == -signal.SIGXCPU
    reason = f"stopped after {source.limit:,.0f} CPU s" if stopped else (ran.stderr.splitlines() or ["no word"])[-1]
    print(f"failed: {reason}", file=sys.stderr, flush=True)
    case.draw_folder(source.store, run).mkdir(parents=True, exist_ok=True)
    (case.draw_folder(source.store, run) / "failed.txt").write_text(reason)
    return False


def _make(document: dict[str, Any]) -> None:
    asked, given = document["source"], document["case"]
    limit = int(asked["limit"])
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    source = Source(data=Path(asked["data"]) if asked["data"] else None, store=Path(asked["store"]), rows=asked["rows"])
    case = Case(**{**given, "epsilon": float(given["epsilon"])})
    fit_folder, folder = case.fit_folder(source.store, document["run"]), case.draw_folder(source.store, document["run"])
    folder.mkdir(parents=True, exist_ok=True)
    table, own = source.true(case)
    if not (fit_folder / "fit.json").exists():
        _fit(case, table, source.constraints(case, own), fit_folder)
    _draw(case, table.num_rows, fit_folder, folder)


def _clean(source: Source, case: Case, run: int) -> bool:
    """Repair the table that was drawn, which is made first where there is none."""
    drawn = made_run(source, replace(case, cleaned=False), run)
    if drawn is None:
        return False
    before, cpu = drawn.table, time.process_time()
    after = clean(before, source.true(case)[1], np.random.default_rng())
    seconds = time.process_time() - cpu
    folder = case.draw_folder(source.store, run)
    folder.mkdir(parents=True, exist_ok=True)
    write_table(after, folder / "table.parquet")
    _write(folder / "draw.json", {"cpu": seconds, "memory": _memory(), "changed": percent_changed(before, after)})
    return True


def _fit(case: Case, table: pa.Table, rules: Constraints, folder: Path) -> None:
    clock = StageClock()
    synthesizer = Synthesizer(None, rules, preset=case.preset, trust_domain=True, **case.fit_settings)
    synthesizer.fit(table, progress=clock)
    cpu, wall = clock.seconds()
    synthesizer.save(folder / "model.kamino")
    spent = synthesizer.ledger["spent_epsilon"]
    facts = {"cpu": cpu, "wall": wall, "memory": _memory(), "spent": {k: _finite(v) for k, v in spent.items()}}
    _write(folder / "fit.json", facts)


def _draw(case: Case, num_rows: int, fit_folder: Path, folder: Path) -> None:
    fitted = Synthesizer.load(fit_folder / "model.kamino").fitted
    ways = Ways(mode=Sampling(case.sampling) if case.sampling else None, sweeps=case.sweeps)
    begin, cpu = time.perf_counter(), time.process_time()
    made = draw(fitted, num_rows, np.random.default_rng(), ways=ways)
    facts = {"wall": time.perf_counter() - begin, "cpu": time.process_time() - cpu, "memory": _memory()}
    write_table(made, folder / "table.parquet")
    _write(folder / "draw.json", facts)


class StageClock:
    """Listens to the stages of a fit and tells the seconds of each."""

    def __init__(self) -> None:
        self._marks: list[tuple[str, float, float]] = []

    def __call__(self, stage: Stage, done: int = 0, total: int = 1) -> None:
        """Note when a stage begins; news from within a stage changes nothing."""
        del done, total
        if not self._marks or self._marks[-1][0] != stage.name:
            self._marks.append((stage.name, time.process_time(), time.perf_counter()))

    def seconds(self) -> tuple[dict[str, float], dict[str, float]]:
        """CPU and wall seconds by stage, the last one until now."""
        ends = [*self._marks[1:], ("", time.process_time(), time.perf_counter())]
        cpu: dict[str, float] = {}
        wall: dict[str, float] = {}
        for (name, cpu_begin, wall_begin), (_, cpu_end, wall_end) in zip(self._marks, ends, strict=True):
            cpu[name] = cpu.get(name, 0.0) + cpu_end - cpu_begin
            wall[name] = wall.get(name, 0.0) + wall_end - wall_begin
        return cpu, wall


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _write(path: Path, facts: dict[str, Any]) -> None:
    """The file appears complete or not at all: it says that its stage is done."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(facts, indent=1))
    part.rename(path)


def main() -> int:
    """Make what was asked for, and nothing else."""
    if sys.argv[1:2] == ["--one"]:
        _make(json.loads(sys.argv[2]))
        return 0
    from bench.paper.asking import ask

    asked = ask("runs", __doc__)
    for run in range(asked.runs):
        for preset in asked.presets:
            for table in asked.tables:
                made_run(asked.source, Case(table=table, preset=preset), run)
    return 0


if __name__ == "__main__":
    sys.exit(main())

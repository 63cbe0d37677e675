"""Steps of a measurement at several sizes: each in a process of its own, with one thread for linear algebra.

Processor seconds are of all threads, memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one step took."""

    step: str
    rows: int
    cpu: float
    wall: float
    mebibytes: float
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Steps by their names, each a function of a folder and a number of rows that returns a note.

    `module` is what `python -m` runs, and `mark` names the place of the figures in a page.
    """

    module: str
    about: str
    mark: str
    steps: Mapping[str, Callable[[Path, int], str]]

    def measure(self, step: str, folder: Path, rows: int) -> Cost:
        """Run one step in a process of its own."""
        command = [sys.executable, "-m", self.module, "--step", step, str(rows), "--folder", str(folder)]
        env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{HERE / 'src'}:{HERE}"}
        begin = time.perf_counter()
        ran = subprocess.run(command, cwd=HERE, env=env, capture_output=True, text=True, check=False)
        wall = time.perf_counter() - begin
        if ran.returncode:
            raise SystemExit(f"{step} at {rows:,} rows failed:\n{ran.stderr}")
        return Cost(step=step, rows=rows, wall=wall, **json.loads(ran.stdout.splitlines()[-1]))

    def run_step(self, step: str, folder: Path, rows: int) -> None:
        """Do one step, and say what it took."""
        note = self.steps[step](folder, rows)
        used = resource.getrusage(resource.RUSAGE_SELF)
        print(json.dumps({"cpu": used.ru_utime + used.ru_stime, "mebibytes": used.ru_maxrss / 1024, "note": note}))

    def as_table(self, costs: Sequence[Cost]) -> str:
        """The figures in Markdown."""
        lines = ["| step | rows | CPU s | wall s | peak MiB | |", "| --- | ---: | ---: | ---: | ---: | --- |"]
        order = list(self.steps)
        for each in sorted(costs, key=lambda cost: (order.index(cost.step), cost.rows)):
            figures = f"{each.cpu:,.1f} | {each.wall:,.1f} | {each.mebibytes:,.0f} | {each.note}"
            lines.append(f"| {each.step} | {each.rows:,} | {figures} |")
        return "\n".join(lines)

    def main(self, given: Sequence[str] | None = None) -> None:
        """Measure the sizes that are asked for."""
        parser = argparse.ArgumentParser(description=self.about, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("rows", nargs="+", type=int)
        parser.add_argument("--folder", type=Path, required=True, help="where tables and models go; they are kept")
        parser.add_argument("--write", type=Path, help="put the figures into this page")
        parser.add_argument("--step", choices=self.steps, help=argparse.SUPPRESS)
        asked = parser.parse_args(given)
        asked.folder.mkdir(parents=True, exist_ok=True)
        if asked.step:
            self.run_step(asked.step, asked.folder, asked.rows[0])
            return
        costs = []
        for rows in asked.rows:
            for step in self.steps:
                costs.append(self.measure(step, asked.folder, rows))
                print(self.as_table(costs[-1:]).splitlines()[-1], flush=True)
        if asked.write:
            start, end = f"<!-- {self.mark} -->", f"<!-- end of {self.mark} -->"
            page = asked.write.read_text(encoding="utf-8")
            new = f"{start}\n{self.as_table(costs)}\n{end}"
            asked.write.write_text(re.sub(f"{start}.*{end}", new, page, flags=re.DOTALL), encoding="utf-8")

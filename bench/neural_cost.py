"""What `--preset paper` costs beside an earlier commit: processor seconds of both, one after the other in one run.

    python -m bench.neural_cost --data FOLDER --tables adult --runs 3 --work FOLDER

The earlier commit is cloned from this repository and installed with its extra `neural` into an environment in `--work`;
this version is run by the Python that runs this. Every fit is a process of its own with one thread for linear algebra:
`fit` is from the table in memory to the model, `all` the whole process, with imports, compilers and drawing as many
rows as the table has. Prints Markdown, as docs/neural.md has it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.speed import BEFORE, HERE, install, run

HEADER = ("table", "run", "fit, s", "fit before, s", "ratio", "all, s", "all before, s", "ratio")
# What both versions understand.
_CODE = """
import json, sys, time
from pathlib import Path
from kamino.io import read_table
from kamino.pipeline import Synthesizer
table, rules = read_table(Path(sys.argv[1])), Path(sys.argv[2]).read_text()
synthesizer = Synthesizer(None, rules, preset="paper", trust_domain=True, epsilon=1.0, delta=1e-6)
begin = time.process_time()
synthesizer.fit(table)
print(json.dumps(time.process_time() - begin))
synthesizer.sample(table.num_rows)
"""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """CPU seconds of this version and of the earlier one."""

    now: float
    before: float

    def cells(self) -> list[str]:
        """Both, and their ratio."""
        return [f"{self.now:.1f}", f"{self.before:.1f}", f"{self.now / self.before:.2f}"]


def earlier_python(work: Path, commit: str) -> str:
    """Install the earlier commit with its extra, where it is not there yet; return its Python."""
    earlier = work / "earlier"
    if not earlier.exists():
        subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(HERE), str(earlier)], check=True)
        subprocess.run(["git", "-C", str(earlier), "checkout", "--quiet", commit], check=True)
    return install(Path(f"{earlier}[neural]"), work / "earlier-env")


def one_run(pythons: tuple[str, str], table: Path) -> tuple[Pair, Pair]:
    """Fit and draw by both versions; seconds of the fit, and of the whole process."""
    fits, wholes = [], []
    for python in pythons:
        cost, text = run(python, _CODE, [str(table), str(table.with_suffix(".ic"))])
        fits.append(float(json.loads(text.splitlines()[-1])))
        wholes.append(cost.seconds)
    return Pair(now=fits[0], before=fits[1]), Pair(now=wholes[0], before=wholes[1])


def main() -> int:
    """Read the arguments, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=["adult"])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--work", type=Path, required=True, help="where the earlier commit is kept")
    parser.add_argument("--commit", default=BEFORE)
    asked = parser.parse_args()
    pythons = (sys.executable, earlier_python(asked.work, asked.commit))
    print(f"| {' | '.join(HEADER)} |\n| {' | '.join('---' for _ in HEADER)} |", flush=True)
    for name in asked.tables:
        found = []
        for place in range(asked.runs):
            found.append(one_run(pythons, asked.data / name / f"{name}.csv"))
            print(_line(name, str(place + 1), *found[-1]), flush=True)
        if asked.runs > 1:
            fit, whole = (_mean([pairs[which] for pairs in found]) for which in (0, 1))
            print(_line(name, "mean", fit, whole), flush=True)
    return 0


def _line(table: str, place: str, fit: Pair, whole: Pair) -> str:
    return f"| {' | '.join([table, place, *fit.cells(), *whole.cells()])} |"


def _mean(pairs: list[Pair]) -> Pair:
    return Pair(now=float(np.mean([p.now for p in pairs])), before=float(np.mean([p.before for p in pairs])))


if __name__ == "__main__":
    sys.exit(main())

"""Measure drawing: processor seconds and peak memory of the command, for this tree or another one.

    python -m bench.speed_draw                                  # every case, with this tree
    python -m bench.speed_draw groups soft --tree OTHER_CLONE   # two cases, with the source of another clone

Each case makes a table and its constraints, fits a model by `kamino synth`, and then draws by `kamino sample`. Each
command is a process of its own with one thread for linear algebra.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kamino.datasets import TAX_CONSTRAINTS, tax

HERE = Path(__file__).resolve().parent.parent
_COMMAND = "import sys; from kamino.cli import main; sys.exit(main())"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table to fit, its constraints, and how many rows to draw: those of the table, or others."""

    table: Callable[[int], pa.Table]
    rows: int
    rules: str = ""
    drawn: int | None = None


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one command took."""

    seconds: float
    gibibytes: float


def small_groups(rows: int) -> pa.Table:
    """Groups of ten rows, in which `a` never falls with `x`."""
    rng = np.random.default_rng(0)
    group, x = np.repeat(np.arange(rows // 10), 10), rng.integers(0, 400, rows)
    return pa.table({"g": group, "x": x, "a": x // 4 + group % 7})


def departures(rows: int) -> pa.Table:
    """Times of departure as hours and minutes in one number, beside the hour."""
    rng = np.random.default_rng(0)
    hour = np.clip(rng.normal(13, 5, rows), 5, 23).astype(np.int64)
    minute = rng.integers(0, 12, rows) * 5
    late = np.clip(rng.exponential(20 + hour, rows), 0, 300).astype(np.int64)
    carrier = np.array(["AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN"])[(rng.integers(0, 8, rows) + hour // 6) % 8]
    return pa.table({"sched_dep_time": hour * 100 + minute, "hour": hour, "dep_delay": late, "carrier": carrier})


def three_numbers(rows: int) -> pa.Table:
    """Three numbers, of which the last grows with the first two."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 1000, rows), rng.integers(0, 1000, rows)
    return pa.table({"a": a, "b": b, "c": a + b, "d": rng.integers(0, 5, rows)})


def with_strays(rows: int) -> pa.Table:
    """Five attributes, each with two that follow it but for strays."""
    rng = np.random.default_rng(0)
    columns: dict[str, np.ndarray] = {}
    for number, size in enumerate((10, 16, 24, 40, 60)):
        key = rng.integers(0, size, rows)
        stray = rng.random((2, rows)) < 0.02 * (number + 1)
        columns[f"k{number}"] = key
        columns[f"v{number}"] = np.where(stray[0], rng.integers(0, 8, rows), key % 8)
        columns[f"w{number}"] = np.where(stray[1], rng.integers(0, 30, rows), key * 30 // size)
    return pa.table(columns)


SOFT = "\n".join(f"soft: k{i} -> v{i}\nsoft: not (t1.k{i} > t2.k{i} and t1.w{i} < t2.w{i})" for i in range(5))
MONOTONE = "not (t1.sched_dep_time < t2.sched_dep_time and t1.hour > t2.hour)"
THREE = "not (t1.a < t2.a and t1.b < t2.b and t1.c > t2.c)"

CASES: Mapping[str, Case] = {
    "groups": Case(table=small_groups, rows=100_000, rules="not (t1.g = t2.g and t1.x < t2.x and t1.a > t2.a)"),
    "dependency": Case(table=departures, rows=37_000, rules="sched_dep_time -> hour"),
    "dependency and order": Case(table=departures, rows=37_000, rules=f"sched_dep_time -> hour\n{MONOTONE}"),
    "three inequalities, 25k": Case(table=three_numbers, rows=25_000, rules=THREE),
    "three inequalities, 50k": Case(table=three_numbers, rows=50_000, rules=THREE),
    "three inequalities, 100k": Case(table=three_numbers, rows=100_000, rules=THREE),
    "soft": Case(table=with_strays, rows=100_000, rules=SOFT),
    "built-in": Case(table=tax, rows=30_000, rules=TAX_CONSTRAINTS, drawn=1_000_000),
}


def run_command(tree: Path | None, arguments: Sequence[str], *, python: str = sys.executable) -> Cost:
    """Run `kamino` with these arguments from the source of a tree, or as it is installed beside `python`."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if tree is not None:
        environment["PYTHONPATH"] = str(tree / "src")
    quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    process = os.posix_spawn(python, [python, "-c", _COMMAND, *arguments], environment, file_actions=quiet)
    _, status, usage = os.wait4(process, 0)
    if os.waitstatus_to_exitcode(status):
        raise RuntimeError(f"found that kamino {' '.join(arguments)} failed; expected that it ends well")
    return Cost(seconds=usage.ru_utime + usage.ru_stime, gibibytes=usage.ru_maxrss / 2**20)


def measure(case: Case, tree: Path | None, *, suffix: str = "parquet", python: str = sys.executable) -> dict[str, Cost]:
    """What fitting takes, weights of soft constraints included, and what drawing takes.

    The fit also draws one row, so that there is a model to draw from.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(case.table(case.rows), folder / "table.parquet")
        (folder / "rules.dc").write_text(case.rules + "\n")
        model = folder / "model.kamino"
        fit = ["synth", str(folder / "table.parquet"), "-c", str(folder / "rules.dc"), "--trust-domain", "-n", "1"]
        fit += ["--save-model", str(model), "-o", str(folder / "one.parquet"), "--seed", "1"]
        drawn = case.rows if case.drawn is None else case.drawn
        draw = ["sample", str(model), "-n", str(drawn), "-o", str(folder / f"out.{suffix}"), "--seed", "1"]
        costs = {part: run_command(tree, c, python=python) for part, c in {"fit": fit, "draw": draw}.items()}
        certificate = json.loads((folder / f"out.{suffix}.certificate.json").read_text())
        broken = [each["text"] for each in certificate["constraints"] if each["hard"] and each["violations"]]
        if broken:
            raise RuntimeError(f"found hard constraints that are broken: {broken}; expected none")
    return costs


def main() -> int:
    """Measure the cases asked for, one line each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("cases", nargs="*", help=f"some of: {', '.join(CASES)}")
    parser.add_argument("--tree", type=Path, default=HERE, help="the clone whose source is measured")
    parser.add_argument("--format", default="parquet", choices=["parquet", "csv"])
    arguments = parser.parse_args()
    print(f"{'case':26} {'fit s':>8} {'GiB':>6} {'draw s':>8} {'GiB':>6}")
    for name in arguments.cases or CASES:
        costs = measure(CASES[name], arguments.tree.resolve(), suffix=arguments.format)
        fit, draw = costs["fit"], costs["draw"]
        print(
            f"{name:26} {fit.seconds:8.1f} {fit.gibibytes:6.2f} {draw.seconds:8.1f} {draw.gibibytes:6.2f}", flush=True
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

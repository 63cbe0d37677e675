"""Measure synthesis: distances, violations, CPU and memory, each run in a process of its own.

    python -m bench.synth --data FOLDER                       # the tables of FOLDER, T/T.csv with T/T.ic
    python -m bench.synth --data FOLDER --tables adult --epsilons 0.1 0.2 0.4 0.8 1.6 inf
    python -m bench.synth --data FOLDER --tables adult --ablation
    python -m bench.synth --scale                             # the built-in table, growing

Without --data, the built-in table is used.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.tables import load, measure, table_names
from kamino.constraints import count_violations
from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.io import read_table, write_table
from kamino.pipeline import SequenceMode, Synthesizer
from kamino.pipeline.output.drawn_table import Ways, draw
from kamino.sampling import Sampling


def one_run(arguments: argparse.Namespace) -> None:
    """Fit once, draw in each way asked for, print one JSON line for each."""
    table, rules = load(arguments.data, arguments.tables[0])
    begin = time.process_time()
    synthesizer = Synthesizer(
        None, rules, epsilon=arguments.epsilons[0], trust_domain=True, sequence=SequenceMode(arguments.sequence)
    ).fit(table)
    fitted = time.process_time() - begin
    for mode in arguments.samplings:
        begin = time.process_time()
        made = draw(synthesizer.fitted, table.num_rows, np.random.default_rng(), ways=Ways(mode=Sampling(mode)))
        drawn = time.process_time() - begin
        with tempfile.TemporaryDirectory() as folder:
            write_table(made, Path(folder) / "made.parquet")
            row = measure(table, read_table(Path(folder) / "made.parquet"), rules)
        budget = synthesizer.ledger["spent_epsilon"]["add_remove"]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        row |= {"table": arguments.tables[0], "epsilon": arguments.epsilons[0], "sampling": mode, "fit": fitted}
        row |= {"draw": drawn, "memory": memory, "spent": budget, "sequence": arguments.sequence}
        print(json.dumps(row), flush=True)


def runs(arguments: argparse.Namespace, table: str, epsilon: float, sequence: str, modes: list[str]) -> list[Any]:
    """Several runs, each in a process of its own, so that CPU and memory are those of one run."""
    command = [sys.executable, "-m", "bench.synth", "--one", "--tables", table, "--epsilons", str(epsilon)]
    command += ["--sequence", sequence, "--samplings", *modes]
    command += ["--data", str(arguments.data)] if arguments.data else []
    rows = []
    for _ in range(arguments.runs):
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        rows += [json.loads(line) for line in ran.stdout.splitlines()]
    return rows


HEADER = (
    f"{'table':9} {'epsilon':>7} {'sequence':8} {'sampling':16} {'1-way':>15} {'2-way':>15} {'3-way':>6} "
    f"{'mass 1':>6} {'mass 2':>6} {'rank':>6} {'narrow 1':>8} {'narrow 2':>8} "
    f"{'violations':>10} {'fit s':>6} {'draw s':>6} {'GiB':>5} {'spent':>8}"
)


def show(rows: list[Any]) -> None:
    """Mean and deviation over runs, one line for each way of drawing."""
    for mode in dict.fromkeys(row["sampling"] for row in rows):
        group = [row for row in rows if row["sampling"] == mode]

        def mean(key: str, group: list[Any] = group) -> float:
            return float(np.mean([row[key] or 0.0 for row in group]))

        def spread(key: str, group: list[Any] = group) -> str:
            values = [row[key] for row in group]
            return f"{np.mean(values):.4f} ± {np.std(values):.4f}"

        first = group[0]
        print(
            f"{first['table']:9} {first['epsilon']:7} {first['sequence']:8} {mode:16} {spread('one'):>15} "
            f"{spread('two'):>15} {mean('three'):6.4f} {mean('mass_one'):6.4f} {mean('mass_two'):6.4f} "
            f"{mean('rank'):6.4f} {mean('narrow_one'):8.4f} {mean('narrow_two'):8.4f} {mean('violations'):10.0f} "
            f"{mean('fit'):6.1f} {mean('draw'):6.1f} {mean('memory'):5.2f} {mean('spent'):8.5f}",
            flush=True,
        )


def scale() -> None:
    """Draw from one fitted model of the built-in table at growing sizes."""
    synthesizer = Synthesizer(None, TAX_CONSTRAINTS, trust_domain=True).fit(tax(30_000))
    rules = synthesizer.fitted.constraints
    for size in (100_000, 200_000, 400_000, 800_000, 1_000_000):
        begin, cpu = time.perf_counter(), time.process_time()
        made = draw(synthesizer.fitted, size, np.random.default_rng(), ways=Ways(mode=Sampling.CONSTRAINT_AWARE))
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
        broken = sum(count_violations(made, c) for c in rules)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{size:>9,} rows  {wall:6.1f} s wall  {cpu:6.1f} s CPU  {broken} violations  peak {memory:.2f} GiB",
            flush=True,
        )


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with T/T.csv and T/T.ic")
    parser.add_argument("--tables", nargs="+", default=None)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--samplings", nargs="+", default=["constraint-aware", "independent"])
    parser.add_argument("--sequence", default="planned")
    parser.add_argument("--ablation", action="store_true", help="sequence and sampling, planned and not")
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.scale:
        scale()
        return 0
    arguments.tables = arguments.tables or table_names(arguments.data)
    if arguments.one:
        one_run(arguments)
        return 0
    print(HEADER, flush=True)
    for table in arguments.tables:
        for epsilon in arguments.epsilons:
            if arguments.ablation:
                modes = ["constraint-aware", "independent", "accept-reject"]
                show(runs(arguments, table, epsilon, "planned", modes))
                show(runs(arguments, table, epsilon, "random", modes[:2]))
            else:
                show(runs(arguments, table, epsilon, arguments.sequence, arguments.samplings))
    return 0


if __name__ == "__main__":
    sys.exit(main())

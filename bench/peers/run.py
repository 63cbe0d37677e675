"""Compare with other synthesizers: same table, budget and rows, each in a process and an environment of its own.

    python -m bench.peers.run --data FOLDER                # the tables of FOLDER, T/T.csv with T/T.ic
    python -m bench.peers.run --data FOLDER --tables adult --methods kamino "dpmm MST" --limit 3600
    python -m bench.peers.run --data FOLDER --page-only    # the page from what was measured before

What was measured is kept under --store; a comparison that was stopped goes on where it was. --again METHOD forgets.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from bench.peers.domain import domain_text
from bench.peers.environments import python_of
from bench.peers.judge import TRUTH, judge, learn
from bench.peers.methods import METHODS, OURS, Method, method_named
from bench.peers.page import write_page
from bench.peers.process import Limits, run_limited
from bench.peers.records import Record, Store
from bench.tables import read, table_names
from kamino.constraints import Constraints, print_constraint
from kamino.io import write_table
from kamino.schema import draft_schema

ROOT = Path(__file__).parents[2]
LEARNING_TABLE = "adult"


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """A table as all methods are given it: files with the rows, the public domain, and, for ours, the constraints."""

    name: str
    table: pa.Table
    rules: Constraints
    folder: Path

    @property
    def csv(self) -> Path:
        """The rows."""
        return self.folder / f"{self.name}.csv"

    @property
    def domain(self) -> Path:
        """The public domain."""
        return self.folder / f"{self.name}.json"

    @property
    def constraints(self) -> Path:
        """The constraints."""
        return self.folder / f"{self.name}.dc"


def prepare(data: Path | None, name: str, store: Path) -> Inputs:
    """Read a table and write what the methods are given."""
    table, rules = read(data, name)
    inputs = Inputs(name=name, table=table, rules=rules, folder=store / "tables")
    inputs.folder.mkdir(parents=True, exist_ok=True)
    write_table(table, inputs.csv)
    inputs.domain.write_text(domain_text(draft_schema(table, trust_domain=True)), encoding="utf-8")
    inputs.constraints.write_text("".join(f"{print_constraint(rule)}\n" for rule in rules), encoding="utf-8")
    return inputs


def command_of(method: Method, python: Path, inputs: Inputs, record: Record, output: Path) -> list[str]:
    """How a method's process is started."""
    budget = ["--epsilon", str(record.epsilon), "--delta", str(record.delta), "--rows", str(inputs.table.num_rows)]
    if method.peer == OURS:
        files = [str(inputs.csv), "--output", str(output), "--constraints", str(inputs.constraints)]
        return [str(python.parent / "kamino"), "synth", *files, *budget, "--trust-domain", "--preset", method.key]
    files = ["--table", str(inputs.csv), "--domain", str(inputs.domain), "--output", str(output)]
    return [str(python), str(method.script), "--method", method.key, *files, *budget, "--seed", str(record.run)]


def one_thread() -> dict[str, str]:
    """The environment of every method's process: one thread, so that CPU seconds are comparable."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "MKL", "OPENBLAS")}
    xla = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return {**os.environ, **threads, "XLA_FLAGS": xla, "PYTHONPATH": str(ROOT)}


def measure(method: Method, inputs: Inputs, record: Record, store: Path, limits: Limits) -> Record:
    """Run a method once and judge what it made; a method that fails gives a record that says how."""
    output = output_of(record, store)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)
    try:
        python = python_of(method, store)
    except RuntimeError as problem:
        return replace(record, problem=str(problem))
    command = command_of(method, python, inputs, record, output)
    ended = run_limited(command, one_thread(), limits, output.with_suffix(".log"))
    limit = limits.cpu if ended.passed_limit else 0.0
    record = replace(record, cpu=ended.cpu, memory=ended.memory, problem=ended.problem, limit=limit)
    return record if record.problem else judge(record, inputs.table, inputs.rules, output)


def output_of(record: Record, store: Path) -> Path:
    """Where a run's table goes."""
    name = "".join(c if c.isalnum() else "-" for c in record.method)
    return store / "made" / record.table / f"{name}-{record.run}.csv"


def wanted(arguments: argparse.Namespace, table: str) -> Iterator[Record]:
    """The runs that were asked for, without their measures."""
    for name in arguments.methods:
        for run in range(min(arguments.runs, method_named(name).runs)):
            yield Record(table=table, method=name, run=run, epsilon=arguments.epsilon, delta=arguments.delta)


def run_tables(arguments: argparse.Namespace, store: Store) -> None:
    """Run and judge everything that is not in the store."""
    limits = Limits(cpu=arguments.limit, memory=arguments.memory)
    prepared: dict[str, Inputs] = {}
    todo = [record for table in arguments.tables for record in wanted(arguments, table)]
    # one method after the other, so that all tables have the quick ones early
    todo.sort(key=lambda record: arguments.methods.index(record.method))
    for record in todo:
        if store.is_done(record, limit=limits.cpu, again=arguments.again):
            continue
        if record.table not in prepared:
            prepared[record.table] = prepare(arguments.data, record.table, arguments.store)
            add_truth(record, prepared[record.table], store)
        made = measure(method_named(record.method), prepared[record.table], record, arguments.store, limits)
        store.add(made)
        two = f"2-way {made.two:.4f}" if made.two is not None else made.problem
        print(f"{made.table:8} {made.method:24} {made.cpu:8.1f} CPU s {made.memory or 0.0:6.2f} GiB  {two}", flush=True)


def add_truth(record: Record, inputs: Inputs, store: Store) -> None:
    """Judge the true table as if it were an output: how often it breaks its own constraints."""
    blank = replace(record, method=TRUTH, run=0)
    if blank.key not in store.records():
        store.add(judge(blank, inputs.table, inputs.rules, inputs.csv))


def run_learning(arguments: argparse.Namespace, store: Store) -> None:
    """Train models on the first output of each method, and on the true table."""
    if LEARNING_TABLE not in arguments.tables:
        return
    table, _ = read(arguments.data, LEARNING_TABLE)
    for name in (TRUTH, *arguments.methods):
        blank = Record(table=LEARNING_TABLE, method=name, run=0, epsilon=arguments.epsilon, delta=arguments.delta)
        found = store.records().get(blank.key, blank)
        if found.accuracy is not None or (name != TRUTH and found.two is None):
            continue
        scored = learn(found, table, None if name == TRUTH else output_of(found, arguments.store))
        store.add(scored)
        print(f"{LEARNING_TABLE:8} {name:24} accuracy {scored.accuracy:.4f}  F1 {scored.f1:.4f}", flush=True)


def parse(given: list[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    names = [method.name for method in METHODS]
    parser.add_argument("--data", type=Path, help="folder with T/T.csv and T/T.ic; the built-in table without it")
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--methods", nargs="+", choices=names, default=names, metavar="METHOD")
    parser.add_argument("--again", nargs="+", choices=names, default=[], metavar="METHOD")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--runs", type=int, default=3, help="at most so many runs of each method")
    parser.add_argument("--limit", type=float, default=1800.0, help="CPU seconds that one run may take")
    parser.add_argument("--memory", type=float, default=12.0, help="gibibytes that one run may take")
    parser.add_argument("--no-learning", action="store_true", help="train no models")
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    parser.add_argument("--store", type=Path, default=ROOT / "build" / "peers")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "experiments")
    arguments = parser.parse_args(given)
    arguments.tables = arguments.tables or table_names(arguments.data)
    return arguments


def main(given: list[str]) -> int:
    """Measure what is missing and write the page."""
    arguments = parse(given)
    store = Store(arguments.store / "runs.jsonl")
    if not arguments.page_only:
        run_tables(arguments, store)
        if not arguments.no_learning:
            run_learning(arguments, store)
    limits = [record.limit for record in store.records().values() if record.limit]
    write_page(list(store.records().values()), arguments.docs, limit=max(limits, default=arguments.limit))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

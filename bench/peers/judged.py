"""Run peers on the tables of an outside judge, and keep its figures where the page of useful tables finds them.

    python -m bench.peers.judged FOLDER... --judge JUDGE                        # dpmm's MST, then its AIM
    python -m bench.peers.judged FOLDER... --judge JUDGE --methods "dpmm MST" --limit 3600

A FOLDER is one that `python -m bench.useful` takes. A run that is in the store is judged again but not repeated, unless
a limit stopped it that is higher now. The figures are merged into a file that is part of the sources.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from bench.peers.domain import domain_text
from bench.peers.environments import python_of
from bench.peers.methods import METHODS, Method, method_named
from bench.peers.process import Limits, run_limited
from bench.peers.records import Record, Store
from bench.peers.run import ROOT, Inputs, command_of, one_thread, output_of
from bench.peers.times import numbers_of_times, times_of_numbers
from bench.useful import cases
from bench.useful.folders import Source, find_source
from bench.useful.judging import judge
from bench.useful.peers import COMPARED, FIGURES, merge_peers
from kamino.io import write_table
from kamino.io.csv import read_csv
from kamino.schema import draft_schema


def main(argv: Sequence[str] | None = None) -> int:
    """Make the tables that are not in the store, and judge all."""
    asked = _parser().parse_args(argv)
    store = Store(asked.store / "runs.jsonl")
    sources = [find_source(folder, rows=None, work=asked.store) for folder in asked.folders]
    for name in asked.methods:
        for source in sources:
            blank = Record(table=source.name, method=name, run=0, epsilon=cases.MAIN_EPSILON, delta=cases.DELTA)
            if not store.is_done(blank, limit=asked.limit):
                store.add(make(method_named(name), source, blank, asked))
            record = store.records()[blank.key]
            merge_peers([judged(record, source, asked)], asked.figures)
            print(f"{record.table:8} {name:10} {record.cpu:8.1f} CPU s  {record.problem}", flush=True)
    return 0


def judged(record: Record, source: Source, asked: argparse.Namespace) -> cases.Record:
    """The figures of a run, or the problem it ended with, as the page of useful tables keeps them."""
    case = cases.Case(table=source.name, epsilon=record.epsilon, mode=cases.Mode.OTHER, part=record.method)
    blank = cases.Record(case=case, cpu=record.cpu, problem=record.problem)
    found = blank if record.problem else judge(blank, source, output_of(record, asked.store), asked.judge)
    return replace(found, kamino="")


def make(method: Method, source: Source, record: Record, asked: argparse.Namespace) -> Record:
    """Run a method once; its table is kept with dates and times as the true table has them."""
    inputs, made = prepare(source, asked.store), output_of(record, asked.store)
    raw = made.with_suffix(".raw.csv")
    made.parent.mkdir(parents=True, exist_ok=True)
    command = command_of(method, python_of(method, asked.store), inputs, record, raw)
    limits = Limits(cpu=asked.limit, memory=asked.memory)
    ended = run_limited(command, one_thread(), limits, made.with_suffix(".log"))
    record = replace(record, cpu=ended.cpu, memory=ended.memory, problem=ended.problem)
    if ended.problem:
        return replace(record, limit=limits.cpu if ended.passed_limit else 0.0)
    write_table(times_of_numbers(read_csv(raw, types=inputs.table.schema), source.table.schema), made)
    return record


def prepare(source: Source, store: Path) -> Inputs:
    """Write what a peer is given: the rows with times as numbers, and their domain."""
    table = numbers_of_times(source.table)
    inputs = Inputs(name=source.name, table=table, rules=source.rules, folder=store / "tables")
    inputs.folder.mkdir(parents=True, exist_ok=True)
    write_table(table, inputs.csv)
    inputs.domain.write_text(domain_text(draft_schema(table, trust_domain=True)), encoding="utf-8")
    return inputs


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("folders", nargs="+", type=Path)
    names = [method.name for method in METHODS if not method.is_ours]
    add("--methods", nargs="+", choices=names, default=list(COMPARED), metavar="METHOD")
    add("--judge", type=Path, help="the outside judge; without it all tables are judged by our functions")
    add("--limit", type=float, default=900.0, help="CPU seconds that one run may take")
    add("--memory", type=float, default=12.0, help="gibibytes that one run may take")
    add("--store", type=Path, default=ROOT / "build" / "peers" / "judged")
    add("--figures", type=Path, default=FIGURES)
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""Measure how useful synthetic tables are, by an outside judge.

    python -m bench.useful FOLDER... --judge JUDGE             # three runs each, constraints kept and ignored
    python -m bench.useful FOLDER... --judge JUDGE --epsilons 0.1,0.3,1,3,10,inf
    python -m bench.useful FOLDER... --judge JUDGE --ablation  # parts of the model switched off, one at a time
    python -m bench.useful FOLDER... --change parts=32         # settings of your own
    python -m bench.useful --parity                            # bits of which the last is the parity of the others
    python -m bench.useful FOLDER... --others MADE             # also judge MADE/METHOD/TABLE.csv, which others made

A FOLDER holds train.csv, test.csv, judge.json and NAME.dc, or NAME.csv and NAME.ic. JUDGE is a program that is called
with a FOLDER and a table, and writes its figures with --json. Records and tables are kept in the store, and a case that
is there is not run again: use another store, or --again, after a change of the model.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.useful.cases import DEFAULT, MAIN_EPSILON, Case, Mode, Record, Store
from bench.useful.folders import Source, find_source, parity_source
from bench.useful.judging import METRICS, judge, learn
from bench.useful.page import write_page
from bench.useful.switches import ABLATION, Switch, change, parse_changes
from bench.useful.synthesis import synthesize
from kamino.model.marginal.marginal_schedule import MarginalSettings

PARITY_INPUTS = (2, 3)
TRUTH = "true rows"


@dataclass(frozen=True, kw_only=True)
class Work:
    """A case and all that it needs; `given` is the table of somebody else."""

    case: Case
    source: Source
    given: Path | None = None


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what was asked for and is not in the store; write the page if asked."""
    words = list(sys.argv[1:] if argv is None else argv)
    asked = _parser().parse_args(words)
    store = Store(asked.store)
    works = plan(asked)
    print(f"{len(works)} cases", file=sys.stderr)
    for number, work in enumerate(works, start=1):
        record = None if asked.again else _stored(work.case, store, asked)
        stored = "" if record is None else " (stored)"
        print(f"[{number}/{len(works)}] {work.case.key}{stored}", file=sys.stderr, flush=True)
        if record is None:
            record = measure(work, store, asked)
            store.add(record)
        print(line_of(record), flush=True)
    if asked.write is not None:
        records = store.of([work.case for work in works])
        write_page(records, asked.write, command=command_of(words, asked.folders))
    return 0


def plan(asked: argparse.Namespace) -> list[Work]:
    """All cases in the order in which they are run."""
    parts = [Switch(name=DEFAULT, changes=()), *(ABLATION if asked.ablation else ())]
    parts += [Switch(name="changed", changes=tuple(asked.change))] if asked.change else []
    for part in parts:
        # a misspelt setting is to be told now, not after an hour
        change(MarginalSettings(), parse_changes(part.changes))
    place = asked.store / "inputs"
    sources = [find_source(folder, rows=asked.rows, work=place) for folder in asked.folders]
    works = [work for source in sources for work in _of_table(source, parts, asked)]
    if asked.parity:
        for inputs in PARITY_INPUTS:
            source = parity_source(inputs, rows=asked.rows, work=place)
            works += _runs(source, Case(table=source.name, rows=asked.rows), asked)
    return works


def _of_table(source: Source, parts: Sequence[Switch], asked: argparse.Namespace) -> list[Work]:
    works: list[Work] = []
    for part in parts:
        first = Case(table=source.name, part=part.name, changes=part.changes, rows=asked.rows)
        for epsilon in asked.epsilons if part.name == DEFAULT else [MAIN_EPSILON]:
            works += _runs(source, replace(first, epsilon=epsilon), asked)
        if part.name == DEFAULT and MAIN_EPSILON in asked.epsilons:
            for mode in asked.modes:
                works += _runs(source, replace(first, mode=mode), asked) if mode is not Mode.KEPT else []
    if source.name in asked.learning:
        truth = Case(table=source.name, mode=Mode.OTHER, part=TRUTH, rows=asked.rows)
        works.append(Work(case=truth, source=source, given=source.path))
    given = sorted(asked.others.glob(f"*/{source.name}.csv")) if asked.others else []
    other = Case(table=source.name, mode=Mode.OTHER, rows=asked.rows)
    return works + [Work(case=replace(other, part=path.parent.name), source=source, given=path) for path in given]


def _runs(source: Source, case: Case, asked: argparse.Namespace) -> list[Work]:
    return [Work(case=replace(case, run=run), source=source) for run in range(1, asked.runs + 1)]


def measure(work: Work, store: Store, asked: argparse.Namespace) -> Record:
    """Make the table of a case and judge it; what goes wrong is told in the record, and other cases go on."""
    output = work.given or store.output_of(work.case)
    record = Record(case=work.case)
    try:
        if work.given is None:
            record = replace(record, cpu=synthesize(work.case, work.source, output)["cpu"])
        if work.case.part != TRUTH:
            record = judge(record, work.source, output, asked.judge)
        if work.case.table in asked.learning and _is_learned(work.case):
            record = learn(record, work.source, output, asked.training_rows or None)
        return record
    except (RuntimeError, ValueError, OSError) as problem:
        return replace(record, problem=f"{type(problem).__name__}: {problem}")


def _stored(case: Case, store: Store, asked: argparse.Namespace) -> Record | None:
    """The record of the store, unless classifiers are asked for that it says nothing about."""
    record = store.find(case)
    learned = case.table in asked.learning and _is_learned(case)
    return None if record is not None and learned and "accuracy" not in record.metrics else record


def _is_learned(case: Case) -> bool:
    """Whether classifiers are trained on the table of a case: it takes minutes, so only for the main figures."""
    return case.epsilon == MAIN_EPSILON and (case.is_plain or case.mode is Mode.OTHER)


def line_of(record: Record) -> str:
    """One line for a terminal."""
    if record.problem:
        return f"{record.case.key}: failed: {record.problem}"
    figures = [f"{name} {value:.4f}" for name in METRICS if (value := record.metrics.get(name)) is not None]
    right = [f"{text} right {share:.1%}" for text, share in record.right.items()]
    seconds = [] if record.cpu is None else [f"{record.cpu:.1f} CPU s"]
    broken = [] if record.violations is None else [f"{record.violations:,} violations"]
    return "; ".join([record.case.key, *figures, *right, *broken, *seconds])


def command_of(words: Sequence[str], folders: Sequence[Path]) -> str:
    """The command as a reader would type it, without the folders of this machine.

    >>> command_of(["a/b", "a/c", "--judge", "x.py", "--runs", "1", "--write", "page.md"], [Path("a/b"), Path("a/c")])
    'python -m bench.useful FOLDER... --judge JUDGE --runs 1'
    """
    names = {"--judge": "JUDGE", "--others": "MADE"}
    kept: list[str] = ["FOLDER..."] if folders else []
    rest = iter(words)
    for word in rest:
        if word in ("--store", "--write"):
            next(rest, None)
        elif word in names:
            next(rest, None)
            kept += [word, names[word]]
        elif Path(word) not in folders and word != "--again":
            kept.append(word)
    return " ".join(["python -m bench.useful", *kept])


def _separated(kind: Callable[[str], object]) -> Callable[[str], list[object]]:
    return lambda text: [kind(part) for part in text.split(",")]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("folders", nargs="*", type=Path)
    add("--judge", type=Path, help="the outside judge; without it all tables are judged by our functions")
    add("--runs", type=int, default=3)
    add("--rows", type=int, help="so many rows of each table, for a quick look")
    add("--epsilons", type=_separated(float), default=[MAIN_EPSILON], help="such as 0.1,0.3,1,3,10,inf")
    add("--modes", type=_separated(Mode), default=[Mode.IGNORED], help="beside constraints kept: independent,none")
    add("--ablation", action="store_true", help="switch parts of the model off, one at a time")
    add("--change", nargs="+", default=[], help="settings to try, such as parts=32 effort.prior=0.05")
    add("--parity", action="store_true", help="tables of 20,000 rows with the parity of two and of three bits")
    add("--others", type=Path, help="folder with METHOD/TABLE.csv: tables that others made")
    add("--learning", nargs="+", default=[], help="names of tables for which nine classifiers are trained (long)")
    add("--training-rows", type=int, default=0, help="rows they are trained on; 0 for all")
    add("--store", type=Path, default=Path("build/useful"), help="where records and tables are kept")
    add("--again", action="store_true", help="run also what is in the store")
    add("--write", type=Path, help="write the page, such as docs/useful.md")
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""What a person asks of an experiment, and the command that says it again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.paper.cases import DEFAULT
from bench.paper.runs import Source
from bench.tables import BUILT_IN_ROWS, table_names

TRAINING_ROWS = 5_000


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The arguments that all experiments share.

    training_rows: rows that each classifier is trained on; None for all of them.
    training_runs: of the runs, those whose tables classifiers are trained on.
    full_tables: tables judged by models trained on all rows, whatever `training_rows` says; not the printed preset.
    counts: numbers of constraints, where these vary; none for the usual ones.
    """

    source: Source
    tables: tuple[str, ...]
    presets: tuple[str, ...]
    runs: int
    training_rows: int | None
    training_runs: int
    full_tables: tuple[str, ...]
    docs: Path
    command: str
    counts: tuple[int, ...] = ()


def ask(name: str, doc: str | None, *, tables: Sequence[str] | None = None, argv: Sequence[str] | None = None) -> Asked:
    """Read the command line of the module `name`. `tables` are its usual ones, where the data have them."""
    given = list(sys.argv[1:] if argv is None else argv)
    found = _parser(doc).parse_args(given)
    known = table_names(found.data)
    usual = [name for name in tables or known if name in known] or known
    runs = int(found.runs)
    return Asked(
        source=Source(
            data=found.data, store=found.store, stored_only=found.stored_only, rows=found.rows, limit=found.limit
        ),
        tables=tuple(found.tables or usual),
        presets=tuple(found.presets),
        runs=runs,
        training_rows=found.training_rows or None,
        training_runs=runs if found.training_runs is None else min(runs, found.training_runs),
        full_tables=tuple(found.full_tables),
        docs=found.docs,
        command=_command(name, given),
        counts=tuple(found.counts),
    )


def _parser(doc: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=doc.splitlines()[0] if doc else None)
    parser.add_argument("--data", type=Path, help="folder with T/T.csv and T/T.ic; the built-in table without it")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--presets", nargs="+", default=[DEFAULT])
    parser.add_argument("--training-rows", type=int, default=TRAINING_ROWS, help="0 for all rows")
    parser.add_argument("--training-runs", type=int, help="runs whose tables models are trained on; all by default")
    parser.add_argument("--full-tables", nargs="*", default=[], help="tables judged on all rows; not as printed")
    parser.add_argument("--counts", type=int, nargs="+", default=[], help="numbers of constraints, where these vary")
    parser.add_argument("--store", type=Path, default=Path("build/experiments"), help="where made tables are kept")
    parser.add_argument("--docs", type=Path, default=Path("docs/experiments"), help="where pages are written")
    parser.add_argument("--rows", type=int, default=BUILT_IN_ROWS, help="rows of the built-in table")
    parser.add_argument("--limit", type=float, default=7_200.0, help="CPU seconds after which a synthesis is stopped")
    parser.add_argument("--stored-only", action="store_true", help="make nothing; write pages of what is there")
    return parser


def _command(name: str, given: Sequence[str]) -> str:
    """The command as a reader would type it: without the folders of this machine, and making what is not there."""
    words: list[str] = []
    rest = iter(given)
    for word in rest:
        if word in ("--store", "--docs"):
            next(rest, None)
        elif word == "--data":
            next(rest, None)
            words += ["--data", "FOLDER"]
        elif word != "--stored-only":
            words.append(word)
    return " ".join(["python -m", f"bench.paper.{name}", *words])

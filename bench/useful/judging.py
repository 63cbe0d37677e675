"""What a synthetic table is worth: by an outside judge where the folder has a description for one, else by ours."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import kamino
from bench.paper.scores import trained
from bench.tables import measure
from bench.useful.cases import Record
from bench.useful.folders import Source
from kamino.constraints import Constraints, print_constraint
from kamino.constraints.analysis.classify import dependency_of
from kamino.evaluate.measure.rank_correlation import ordered_columns
from kamino.io.csv import read_csv

Figures = dict[str, float | None]
#: Metrics in the order of the page. All are better when smaller, but for those of `LARGER_IS_BETTER`.
METRICS = (
    *("width 1", "width 2", "width 3", "mass 1", "mass 2", "query", "rank", "gap", "nulls"),
    *("auc trees", "auc linear", "accuracy", "parity"),
)
LARGER_IS_BETTER = frozenset({"auc trees", "auc linear", "accuracy", "parity"})
_OURS = {"width 1": "one", "width 2": "two", "width 3": "three", "mass 1": "mass_one", "mass 2": "mass_two"}


def judge(record: Record, source: Source, output: Path, script: Path | None) -> Record:
    """The record with its figures."""
    true, made = source.table, read_csv(output, types=source.table.schema)
    ours = measure(true, made, source.rules)
    metrics: Figures = {name: ours[key] for name, key in _OURS.items()} | {"rank": ours["rank"]}
    if source.judged is not None and script is not None:
        metrics = by_judge(script, source.judged, output)
    metrics = {name: value for name, value in metrics.items() if _says_something(name, source)}
    if source.parity:
        metrics["parity"] = right_parity(made, source.parity)
    return replace(
        record,
        metrics=metrics,
        right=right_values(true, made, source.rules),
        violations=ours["violations"],
        kamino=kamino.__version__,
        problem="",
    )


def by_judge(script: Path, folder: Path, output: Path) -> Figures:
    """The figures of the outside judge, run as a program of its own."""
    with tempfile.TemporaryDirectory() as place:
        target = Path(place) / "judged.json"
        command = [sys.executable, str(script), str(folder), str(output), "--json", str(target)]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            raise RuntimeError((ran.stderr.strip().splitlines() or ["no message"])[-1])
        (found,) = json.loads(target.read_text(encoding="utf-8")).values()
    return figures_of(found)


def figures_of(found: Mapping[str, Any]) -> Figures:
    """The judge's document as our metrics; what is not a finite number is None."""
    width, mass, auc = found["width"], found["mass"], found["auc"]
    given = {
        **{f"width {order}": width[order] for order in "123"},
        **{f"mass {order}": mass[order] for order in "12"},
        **{name: found[name] for name in ("query", "rank", "gap", "nulls")},
        **{f"auc {kind}": auc[kind] for kind in ("trees", "linear")},
    }
    return {name: float(value) if np.isfinite(value) else None for name, value in given.items()}


def _says_something(metric: str, source: Source) -> bool:
    """Whether a metric can be other than 0: ranks need two ordered columns, nulls two columns that have some."""
    match metric:
        case "rank":
            return len(ordered_columns(source.table)) > 1
        case "nulls":
            return len([name for name in source.table.column_names if source.table.column(name).null_count]) > 1
        case "gap" if source.judged is not None:
            return bool(json.loads((source.judged / "judge.json").read_text(encoding="utf-8")).get("gaps"))
        case _:
            return True


def right_values(true: pa.Table, made: pa.Table, rules: Constraints) -> dict[str, float]:
    """For each functional dependency, the share of rows whose value is the one that the true table gives.

    Rows without a determinant do not count; a determinant that the true table does not have has no right value.

    >>> true, made = pa.table({"x": [1, 2], "y": ["a", "b"]}), pa.table({"x": [1, 2, 3, None], "y": list("aaab")})
    >>> right_values(true, made, Constraints.parse("x -> y"))
    {'x -> y': 0.3333333333333333}
    """
    found = {}
    for constraint in rules:
        dependency = dependency_of(constraint)
        if dependency is not None:
            names = [*sorted(dependency.left), dependency.right]
            known = set(_rows(true, names))
            rows = [row for row in _rows(made, names) if None not in row[:-1]]
            found[print_constraint(constraint)] = sum(row in known for row in rows) / max(1, len(rows))
    return found


def _rows(table: pa.Table, names: list[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def right_parity(made: pa.Table, names: tuple[str, ...]) -> float:
    """The share of rows whose last bit is the parity of the others.

    >>> right_parity(pa.table({"a": [0, 1, 1], "b": [1, 1, 0], "c": [1, 0, 0]}), ("a", "b", "c"))
    0.6666666666666666
    """
    bits = [np.asarray(made.column(name), dtype=np.int64) for name in names]
    return float((np.sum(bits[:-1], axis=0) % 2 == bits[-1]).mean())


def learn(record: Record, source: Source, output: Path, training_rows: int | None) -> Record:
    """The record with the mean accuracy of nine classifiers for each column, trained on the table (or on true rows)."""
    side = "true" if output == source.path else "synthetic"
    made = source.table if side == "true" else read_csv(output, types=source.table.schema)
    accuracy = trained(source.table, made, training_rows, side=side)["accuracy"]
    return replace(record, metrics={**record.metrics, "accuracy": accuracy})

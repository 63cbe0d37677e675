"""Domains found within the budget: what they lose, and what that costs beside domains that were called public.

    python -m bench.domains --data FOLDER                  # writes docs/domains.md
    python -m bench.domains --data FOLDER --tables diamonds --rows 500 2000 --runs 1 --no-page

FOLDER holds NAME/train.csv or NAME/NAME.csv. Without --data only a small table that is made up here is measured. Every
run reads a CSV file without schema or constraints, at epsilon 1 and delta 1e-6. Shares are exact, so they are for the
owner.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from kamino.engine.lost_cells import count_lost
from kamino.errors import InputError
from kamino.evaluate.measure.metrics import bin_tables, distances_of
from kamino.io import read_table
from kamino.pipeline import Synthesizer
from kamino.schema import Categorical, Real, draft_schema

PAGE = Path(__file__).parent.parent / "docs" / "domains.md"
PENGUINS = "penguins-like"
SIZES = {"diamonds": (500, 2_000, 8_000, 40_000), "compas": (None,), "adult": (None,), PENGUINS: (344,)}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table, and how many of its rows; None for all."""

    table: str
    rows: int | None


def penguins_like(rows: int = 344, seed: int = 1) -> pa.Table:
    """A table like the one of penguins: three species on three islands, four measures, nulls, a year."""
    rng = np.random.default_rng(seed)
    species = rng.choice(3, rows, p=[0.44, 0.36, 0.2])
    gone = rng.random(rows) < 0.03

    def column(values: Any) -> pa.Array:
        return pa.array(values, mask=gone)

    return pa.table(
        {
            "species": np.array(["Adelie", "Gentoo", "Chinstrap"])[species],
            "island": np.array(["Torgersen", "Biscoe", "Dream"])[np.where(rng.random(rows) < 0.7, species, 1)],
            "bill_length_mm": column(np.round(np.array([38.8, 47.5, 48.8])[species] + rng.normal(0, 3, rows), 1)),
            "bill_depth_mm": column(np.round(np.array([18.3, 15.0, 18.4])[species] + rng.normal(0, 1.1, rows), 1)),
            "flipper_length_mm": column(
                np.rint(np.array([190, 217, 196])[species] + rng.normal(0, 7, rows)).astype(int)
            ),
            "body_mass_g": column(
                (np.rint(np.array([74, 101, 75])[species] + rng.normal(0, 9, rows)) * 50).astype(int)
            ),
            "sex": column(np.where(rng.random(rows) < 0.5, "male", "female")),
            "year": rng.choice([2007, 2008, 2009], rows),
        }
    )


def source(case: Case, folder: Path | None, seed: int, where: Path) -> Path:
    """A CSV file with the rows of a case, drawn without replacement."""
    path = where / f"{case.table}.csv"
    if case.table == PENGUINS:
        pa.csv.write_csv(penguins_like(case.rows or 344, seed), path)
        return path
    assert folder is not None, "a table is read from a folder"
    given = next(
        p for p in (folder / case.table / "train.csv", folder / case.table / f"{case.table}.csv") if p.exists()
    )
    header, *lines = given.read_text().splitlines()
    if case.rows is not None:
        lines = [lines[place] for place in np.random.default_rng(seed).permutation(len(lines))[: case.rows]]
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def one_run(case: Case, folder: Path | None, seed: int) -> dict[str, Any]:
    """One table with its domains found and with its domains trusted."""
    with tempfile.TemporaryDirectory() as where:
        path = source(case, folder, seed, Path(where))
        true = read_table(path)
        text = read_table(path, private=True)
        refused = False
        try:
            found = Synthesizer().fit(path)
        except InputError:
            refused, found = True, Synthesizer(anyway=True).fit(path)
        trusted = Synthesizer(trust_domain=True).fit(path)
        tables = {"found": found.sample(true.num_rows), "trusted": trusted.sample(true.num_rows)}
    distances = {who: distances_of(bin_tables(true, made), order=1) for who, made in tables.items()}
    exact = draft_schema(true, trust_domain=True)
    columns = {}
    for name in true.column_names:
        attribute, truth = found.fitted.schema[name], exact[name]
        lost = count_lost(text.column(name), name, attribute)
        told = found.fitted.found.lost[name] if found.fitted.found and name in found.fitted.found.lost else None
        columns[name] = {
            "taken_for": attribute.type,
            "truth": truth.type,
            "decimals": attribute.decimals if isinstance(attribute, Real) else None,
            "true_decimals": truth.decimals if isinstance(truth, Real) else None,
            "found": _domain(attribute),
            "true": _domain(truth),
            "rounded": _rounded(true.column(name), attribute),
            "lost": sum(lost.values()) / max(1, true.num_rows),
            "told": None if told is None else told.share,
            "within": None if told is None else told.within,
            "distance": {who: each.by_attributes[(name,)] for who, each in distances.items()},
        }
    return {
        "table": case.table,
        "rows": true.num_rows,
        "refused": refused,
        "share": found.certificate(tables["found"])["finding_domains"]["share"],
        "one": {who: each.mean for who, each in distances.items()},
        "columns": columns,
    }


def _rounded(column: pa.ChunkedArray, attribute: Any) -> float:
    """The share of a column's cells that the decimals found do not show exactly."""
    if not isinstance(attribute, Real) or not pa.types.is_floating(column.type):
        fractions = pa.types.is_floating(column.type) and attribute.type == "integer"
        return _share_beyond(column, 0) if fractions else 0.0
    return _share_beyond(column, attribute.decimals)


def _share_beyond(column: pa.ChunkedArray, decimals: int) -> float:
    numbers = column.drop_null().to_numpy()
    return float(np.mean(np.abs(np.round(numbers, decimals) - numbers) > 1e-9)) if len(numbers) else 0.0


def _domain(attribute: Any) -> str:
    if isinstance(attribute, Categorical):
        return f"{sum(value != attribute.other for value in attribute.categories)} values"
    return f"{attribute.min} to {attribute.max}" if hasattr(attribute, "min") else attribute.type


def runs(case: Case, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Several runs of a case, each in a process of its own."""
    found = []
    for seed in range(arguments.runs):
        command = [sys.executable, "-m", "bench.domains", "--one", str(seed), "--tables", case.table]
        command += ["--rows", str(case.rows)] if case.rows else []
        command += ["--data", str(arguments.data)] if arguments.data else []
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        found.append(json.loads(ran.stdout))
        print(_line(found[-1]), flush=True)
    return found


def _line(run: dict[str, Any]) -> str:
    numeric = [c for c in run["columns"].values() if c["truth"] in ("integer", "real", "date", "datetime")]
    inside = 1 - float(np.mean([c["lost"] for c in numeric])) if numeric else 1.0
    wrong = [f"{n} {c['rounded']:.1%}" for n, c in run["columns"].items() if not _right(c)]
    one = run["one"]
    return (
        f"{run['table']:14} {run['rows']:6} share {run['share']:.2f} numbers inside {inside:.4f} 1-way found "
        f"{one['found']:.4f} trusted {one['trusted']:.4f} ratio {one['found'] / one['trusted']:.2f} "
        f"{'refused ' if run['refused'] else ''}{'wrong: ' + ', '.join(wrong) if wrong else ''}"
    )


def _right(column: dict[str, Any]) -> bool:
    """Whether the type is right, and the decimals are: none that no cell has, and at most one cell in fifty rounded."""
    finest = column["true_decimals"] or 0
    return column["taken_for"] == column["truth"] and (column["decimals"] or 0) <= finest and column["rounded"] <= 0.02


HEAD = """# Domains found within the budget

Made by `python -m bench.domains --data FOLDER`: a CSV file without schema, epsilon 1, delta 1e-6, nothing called
public. *lost* is the exact share of a column's cells that lie outside the range found, are `other`, or cannot be read
as the type found; *told* is the noisy share that the run itself tells. *1-way* is the mean total variation distance of
columns (numbers in 16 bins of equal width), beside that with `--trust-domain`. Figures are means over {runs} runs, each
on rows of its own.

| table | rows | of budget | numbers inside | types, decimals right | 1-way found | 1-way trusted | ratio | refused |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""


def page(groups: list[list[dict[str, Any]]], num_runs: int) -> str:
    """The page of all cases."""
    lines, parts = [], []
    for group in groups:
        columns = [c for run in group for c in run["columns"].values()]
        numeric = [c["lost"] for c in columns if c["truth"] in ("integer", "real", "date", "datetime")]
        right = np.mean([_right(c) for c in columns])
        found, trusted = (float(np.mean([run["one"][who] for run in group])) for who in ("found", "trusted"))
        first = group[0]
        lines.append(
            f"| {first['table']} | {first['rows']:,} | {np.mean([r['share'] for r in group]):.0%} | "
            f"{1 - np.mean(numeric):.2%} | {right:.0%} | {found:.4f} | {trusted:.4f} | {found / trusted:.2f} | "
            f"{sum(r['refused'] for r in group)} of {len(group)} |"
        )
        parts.append(_columns(group))
    return HEAD.format(runs=num_runs) + "\n".join(lines) + "\n\n" + "\n".join(parts)


def _columns(group: list[dict[str, Any]]) -> str:
    first = group[0]
    text = f"## {first['table']}, {first['rows']:,} rows\n\n"
    text += "| column | true | found (first run) | lost | told (first run) | 1-way found | 1-way trusted |\n"
    text += "| --- | --- | --- | ---: | ---: | ---: | ---: |\n"
    for name, one in first["columns"].items():
        every = [run["columns"][name] for run in group]
        told = "–" if one["told"] is None else f"{one['told']:.1%} ± {one['within']:.1%}"
        distance = [float(np.mean([c["distance"][who] for c in every])) for who in ("found", "trusted")]
        text += (
            f"| {name} | {_said(one, 'truth', 'true_decimals', 'true')} | "
            f"{_said(one, 'taken_for', 'decimals', 'found')} | "
            f"{np.mean([c['lost'] for c in every]):.2%} | {told} | {distance[0]:.4f} | {distance[1]:.4f} |\n"
        )
    return text


def _said(column: dict[str, Any], kind: str, decimals: str, domain: str) -> str:
    finer = "" if column[decimals] is None else f" ({column[decimals]} decimals)"
    return f"{column[kind]}{finer}, {column[domain]}"


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--rows", nargs="+", type=int)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--no-page", action="store_true")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    tables = arguments.tables or (list(SIZES) if arguments.data else [PENGUINS])
    cases = [Case(table=t, rows=r) for t in tables for r in (arguments.rows or SIZES.get(t, (None,)))]
    if arguments.one is not None:
        print(json.dumps(one_run(cases[0], arguments.data, arguments.one)))
        return
    groups = [runs(case, arguments) for case in cases]
    if not arguments.no_page:
        PAGE.write_text(page(groups, arguments.runs))


if __name__ == "__main__":
    main()

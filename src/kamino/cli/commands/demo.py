"""`kamino demo`: the main job on built-in data."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table

from kamino.cli.console import output_console, safe
from kamino.cli.render_run import print_run
from kamino.cli.stage_bar import show_stages
from kamino.constraints import Constraints, count_violations, print_constraint, value_types
from kamino.datasets import VISITS_CONSTRAINTS, VISITS_SCHEMA, visits
from kamino.evaluate.measure.metrics import bin_tables, distances_of
from kamino.io import write_table
from kamino.pipeline import Stage, Synthesizer
from kamino.sampling import Sampling

# Of each table so many rows are shown, and bars of so many letters.
_SHOWN, _BARS, _WIDE = 4, 12, 24


def demo(
    rows: Annotated[int, typer.Option("--rows", "-n", min=1, help="How many rows the built-in table has.")] = 20_000,
    epsilon: Annotated[float, typer.Option("-e", "--epsilon", help="Privacy loss allowed.")] = 1.0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The folder for the files; by default a new temporary one.")
    ] = None,
) -> None:
    """Make a private synthetic copy of a built-in table of hospital visits, and compare the two.

    The built-in table is made up and no secret, so the comparison may be shown.
    """
    folder = Path(tempfile.mkdtemp(prefix="kamino-demo-")) if output is None else output
    folder.mkdir(parents=True, exist_ok=True)
    if not run_demo(output_console(), rows, epsilon, folder):
        raise typer.Exit(1)


def run_demo(console: Console, rows: int, epsilon: float, folder: Path) -> bool:
    """Run the demo and print it; tells whether no hard constraint is broken."""
    private = visits(rows)
    write_table(private, folder / "visits.csv")
    (folder / "schema.yaml").write_text(VISITS_SCHEMA, encoding="utf-8")
    (folder / "rules.dc").write_text(VISITS_CONSTRAINTS, encoding="utf-8")
    rules = Constraints.parse(VISITS_CONSTRAINTS, source="built-in", types=value_types(private))
    console.print(
        f"A made-up table of hospital visits: {rows:,} rows, {private.num_columns} columns, {len(rules)} hard rules."
    )
    begin = time.perf_counter()
    synthesizer = Synthesizer(VISITS_SCHEMA, rules, epsilon=epsilon)
    with show_stages(Stage.READ, Stage.FIT, Stage.SAMPLE, Stage.CHECK) as progress:
        synthesizer.fit(private, progress=progress)
        progress(Stage.SAMPLE)
        written = synthesizer.write(folder / "synthetic.csv", rows)
        progress(Stage.CHECK)
        ignoring = _ignoring_constraints(synthesizer, rows)
    from kamino.io import read_table

    synthetic = read_table(folder / "synthetic.csv").cast(private.schema)
    print_run(console, written.certificate, output=written.place, seconds=time.perf_counter() - begin)
    for title, table in (("Original, first rows", private), ("Synthetic, first rows", synthetic)):
        console.print(_first_rows(title, table))
    console.print(_violations(rules, private, ignoring, synthetic))
    _print_distances(console, private, synthetic)
    console.print(_bars("cost", private, synthetic))
    _print_next(console, folder)
    return not any(check["violations"] for check in written.certificate["constraints"])


def _ignoring_constraints(synthesizer: Synthesizer, rows: int) -> pa.Table:
    """What the same model draws if nobody minds the constraints."""
    from kamino.pipeline.output.drawn_table import Ways, draw

    return draw(synthesizer.fitted, rows, np.random.default_rng(), ways=Ways(mode=Sampling.INDEPENDENT))


def _first_rows(title: str, table: pa.Table) -> Table:
    grid = Table(title=title, title_justify="left")
    for name in table.column_names:
        grid.add_column(name, overflow="fold")
    for row in table.slice(0, _SHOWN).to_pylist():
        grid.add_row(*(safe(str(value)) for value in row.values()))
    return grid


def _violations(rules: Constraints, private: pa.Table, ignoring: pa.Table, synthetic: pa.Table) -> Table:
    grid = Table(title="Rows, or pairs of rows, that violate", title_justify="left")
    grid.add_column("rule", overflow="fold")
    for title in ("original", "ignoring rules", "Kamino"):
        grid.add_column(title, justify="right")
    for rule in rules:
        counts: list[Any] = [f"{count_violations(table, rule):,}" for table in (private, ignoring, synthetic)]
        grid.add_row(safe(print_constraint(rule)), *counts)
    return grid


def _print_distances(console: Console, private: pa.Table, synthetic: pa.Table) -> None:
    pair = bin_tables(private, synthetic)
    one, two = (distances_of(pair, order=order, names=list(pair.sizes)) for order in (1, 2))
    console.print(
        f"Distance to the original (total variation, 0 is best): {one.mean:.3f} on average over single columns, "
        f"{two.mean:.3f} over pairs of columns.",
        soft_wrap=True,
    )


def _bars(name: str, private: pa.Table, synthetic: pa.Table) -> Table:
    """The share of rows in each part of a range, as bars of both tables side by side."""
    tables = [np.asarray(table.column(name)) for table in (private, synthetic)]
    edges = np.histogram_bin_edges(np.concatenate(tables), _BARS)
    shares = [np.histogram(values, edges)[0] / max(1, len(values)) for values in tables]
    most = max(float(each.max()) for each in shares) or 1.0
    grid = Table(title=f"Share of rows by {name}", title_justify="left")
    for title in (name, "original", "synthetic"):
        grid.add_column(title)
    for place, both in enumerate(zip(*shares, strict=True)):
        bars = (f"{'█' * round(_WIDE * share / most):<{_WIDE}} {share:5.1%}" for share in both)
        grid.add_row(f"{edges[place]:,.0f} to {edges[place + 1]:,.0f}", *bars)
    return grid


def _print_next(console: Console, folder: Path) -> None:
    names = "visits.csv, schema.yaml, rules.dc, synthetic.csv, synthetic.csv.certificate.json"
    console.print(safe(f"The files are in {folder}: {names}."), soft_wrap=True)
    console.print("Next:")
    for line in (
        f"kamino report {folder}/visits.csv {folder}/synthetic.csv -c {folder}/rules.dc -o report.html",
        f"kamino verify {folder}/synthetic.csv -c {folder}/rules.dc",
        "kamino init YOUR.csv -o schema.yaml        # then: kamino synth YOUR.csv -s schema.yaml -o synthetic.csv",
    ):
        console.print(safe(f"  {line}"), soft_wrap=True)

"""`kamino demo`: the main job on built-in data."""

from __future__ import annotations

import time
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table

from kamino.cli.console import output_console, safe
from kamino.cli.render_run import print_run
from kamino.cli.stage_bar import show_stages
from kamino.constraints import Constraints, count_violations, print_constraint, value_types
from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.evaluate.measure.metrics import bin_tables, distances_of
from kamino.pipeline import Stage, Synthesizer
from kamino.sampling import Sampling


def demo(
    rows: Annotated[int, typer.Option("--rows", "-n", min=1, help="How many rows the built-in table has.")] = 20_000,
    epsilon: Annotated[float, typer.Option("-e", "--epsilon", help="Privacy loss allowed.")] = 1.0,
) -> None:
    """Make a private synthetic copy of a built-in tax table, and compare the two.

    The built-in table is made up and no secret, so the comparison may be shown.
    """
    if not run_demo(output_console(), rows, epsilon):
        raise typer.Exit(1)


def run_demo(console: Console, rows: int, epsilon: float) -> bool:
    """Run the demo and print it; tells whether no hard constraint is broken."""
    private = tax(rows)
    rules = Constraints.parse(TAX_CONSTRAINTS, source="built-in", types=value_types(private))
    console.print(f"A made-up tax table: {rows:,} rows, {private.num_columns} columns, {len(rules)} hard constraints.")
    begin = time.perf_counter()
    synthesizer = Synthesizer(constraints=rules, epsilon=epsilon, trust_domain=True)
    with show_stages(Stage.READ, Stage.FIT, Stage.SAMPLE, Stage.CHECK) as progress:
        synthesizer.fit(private, progress=progress)
        progress(Stage.SAMPLE)
        synthetic = synthesizer.sample(rows)
        ignoring = _ignoring_constraints(synthesizer, rows)
        progress(Stage.CHECK)
        certificate = synthesizer.certificate(synthetic)
    print_run(console, certificate, output=None, seconds=time.perf_counter() - begin)
    console.print(_violations(rules, private, ignoring, synthetic))
    _print_distances(console, private, synthetic)
    return not any(check["violations"] for check in certificate["constraints"])


def _ignoring_constraints(synthesizer: Synthesizer, rows: int) -> pa.Table:
    """What the same model draws if nobody minds the constraints."""
    import numpy as np

    from kamino.pipeline.output.drawn_table import Ways, draw

    return draw(synthesizer.fitted, rows, np.random.default_rng(), ways=Ways(mode=Sampling.INDEPENDENT))


def _violations(rules: Constraints, private: pa.Table, ignoring: pa.Table, synthetic: pa.Table) -> Table:
    grid = Table(title="Pairs of rows that violate", title_justify="left")
    grid.add_column("constraint", overflow="fold")
    for title in ("original", "ignoring constraints", "Kamino"):
        grid.add_column(title, justify="right")
    for rule in rules:
        counts: list[Any] = [f"{count_violations(table, rule):,}" for table in (private, ignoring, synthetic)]
        grid.add_row(safe(print_constraint(rule)), *counts)
    return grid


def _print_distances(console: Console, private: pa.Table, synthetic: pa.Table) -> None:
    pair = bin_tables(private, synthetic)
    narrow = [name for name in pair.sizes if pair.sizes[name] <= 400]
    one, two = (distances_of(pair, order=order, names=narrow) for order in (1, 2))
    console.print(
        f"Distance to the original (total variation, 0 is best): {one.mean:.3f} on average over single columns, "
        f"{two.mean:.3f} over pairs, of the {len(narrow)} columns with at most 400 values."
    )

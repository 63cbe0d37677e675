"""`kamino plan`: what a run would do."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kamino.cli.console import output_console
from kamino.cli.options import (
    BackendOption,
    ConstraintsOption,
    DeltaOption,
    EpsilonOption,
    NeighboursOption,
    PresetOption,
    SamplingOption,
    SchemaOption,
    SequenceOption,
    WeightsOption,
    read_constraints,
)
from kamino.errors import InputError
from kamino.io.text import read_text
from kamino.pipeline import Backend, Preset, Settings
from kamino.pipeline.run_plan import RunPlan, plan_run
from kamino.sampling import Sampling, StepKind
from kamino.schema import Schema

PlanRowsOption = Annotated[
    int | None,
    typer.Option("-n", "--rows", min=0, help="Rows to plan for; without it, no expected errors are shown."),
]


def plan(
    schema: SchemaOption = None,
    constraints: ConstraintsOption = None,
    epsilon: EpsilonOption = 1.0,
    delta: DeltaOption = 1e-6,
    rows: PlanRowsOption = None,
    preset: PresetOption = Preset.DEFAULT,
    backend: BackendOption = None,
    sequence: SequenceOption = None,
    sampling: SamplingOption = None,
    weights: WeightsOption = None,
    neighbours: NeighboursOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Show the order of attributes, how each is drawn and why, the noise and the errors to expect. Reads no data.

    With -n, expected errors are for that many rows, and keys that cannot hold for so many are refused.
    """
    if schema is None:
        raise InputError("found no schema; expected -s schema.yaml. Draft one with: kamino init DATA -o schema.yaml")
    known = Schema.from_yaml(read_text(schema, what="schema file"), source=str(schema))
    settings = Settings.of(
        preset,
        epsilon=epsilon,
        delta=delta,
        backend=backend,
        sequence=sequence,
        sampling=sampling,
        weights=weights,
        neighbours=neighbours,
    )
    result = plan_run(known, read_constraints(constraints), settings, num_rows=rows)
    if as_json:
        typer.echo(json.dumps(result.to_json(), indent=2, ensure_ascii=False))
    else:
        print_plan(output_console(), result)


def print_plan(console: Console, plan: RunPlan) -> None:
    """The plan as two tables."""
    budget = plan.settings.budget
    console.print(
        f"Budget: epsilon {budget.epsilon:g}, delta {budget.delta:g}; as one Gaussian release, noise of "
        f"{plan.noise_multiplier:.4f} times the sensitivity."
    )
    if plan.sampling is None:
        console.print(
            f"{len(plan.missing)} domains will be found within the budget ({plan.settings.discovery_share:.0%} of it): "
            f"{', '.join(plan.missing)}. Declare them in the schema to see the whole plan.",
            markup=False,
        )
        return
    console.print("How rows are drawn, one attribute after the other:")
    console.print(_steps(plan))
    for note in plan.notes:
        console.print(Text(f"Note: {note}.", style="yellow"))
    if plan.settings.backend is Backend.NEURAL:
        _print_neural(console, plan)
        return
    console.print("How the budget is split:")
    console.print(Text("  " + plan.shares.describe().replace("\n", "\n  ")))
    console.print("First measurements, one histogram for each attribute:")
    console.print(_measurements(plan))


def _print_neural(console: Console, plan: RunPlan) -> None:
    if plan.neural is None:
        console.print("Parameters of the neural model depend on the number of rows: give -n to see them.")
        return
    console.print(f"The neural model, for {plan.num_rows:,} rows (a run takes their noisy number):")
    console.print(Text("  " + plan.neural.describe().replace("\n", "\n  ")))


def _steps(plan: RunPlan) -> Table:
    assert plan.sampling is not None, "printed only where there is a plan"
    grid = Table()
    for title in ("attribute", "step", "constraints", "why"):
        grid.add_column(title, overflow="fold")
    one_by_one = plan.settings.sampling is Sampling.ROW_BY_ROW
    for step, row in zip(plan.sampling.steps, plan.sampling.rows(), strict=True):
        if one_by_one and step.kind not in (StepKind.FREE, StepKind.MASK):
            row = (row[0], "row by row", row[2], "each row is weighed against the rows before it")
        grid.add_row(*(Text(cell) for cell in row))
    return grid


def _measurements(plan: RunPlan) -> Table:
    grid = Table()
    grid.add_column("attribute")
    for title in ("cells", "noise (sigma)", "distance, at most about"):
        grid.add_column(title, justify="right")
    for each in plan.expected:
        shown = "give -n" if each.distance is None else f"{each.distance:.4f}"
        grid.add_row(Text(each.attribute), f"{each.cells:,}", f"{each.sigma:.1f}", shown)
    return grid

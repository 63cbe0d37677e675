"""`kamino plan`: what a run would do."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from kamino.cli.asking import Asked, options
from kamino.cli.console import json_text, output_console, safe
from kamino.constraints import print_constraint
from kamino.engine.finding_policy import FINDING
from kamino.errors import InputError
from kamino.pipeline import Backend
from kamino.pipeline.output.in_blocks import why_plan_whole
from kamino.pipeline.plan.expectations import Accuracy, accuracy_of
from kamino.pipeline.plan.mostly_noise import noise_note
from kamino.pipeline.plan.run_plan import RunPlan
from kamino.privacy.schedule import PlannedRelease, Rule
from kamino.sampling import Sampling, SamplingPlan, StepKind
from kamino.sampling.plan.sampling_plan import OF_GROUPS

PlanRowsOption = Annotated[
    int | None,
    typer.Option("-n", "--rows", min=0, help="Rows to plan for; without it, no expected errors are shown."),
]


@options(
    *("schema", "constraints", "epsilon", "delta", "rows", "value_lists", "unit", "max_rows", "preset", "backend"),
    *("sequence", "sampling", "weights", "training", "neighbours", "seed", "accuracy", "as_json"),
)
def plan(
    *,
    asked: Asked,
    rows: PlanRowsOption = None,
    accuracy: Annotated[
        float | None,
        typer.Option(
            "--accuracy", help="Also say which epsilon puts at most this share of rows out of place (0.05); needs -n."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Show the order of attributes, how each is drawn and why, what is released, the noise and the errors to expect.

    Reads no private data: only the schema, the constraints and the public tables that they name. With -n, expected
    errors are for that many rows, in words and at several epsilons, and keys that cannot hold for so many are refused.
    """
    if asked.schema is None:
        raise InputError("found no schema; expected -s schema.yaml. Draft one with: kamino init DATA -o schema.yaml")
    result = asked.synthesizer().plan(rows)
    errors = accuracy_of(result)
    needed = _needed_epsilon(errors, accuracy, result)
    if as_json:
        document = result.to_json()
        document["accuracy"] = None if errors is None else errors.to_json(result.settings.budget)
        document["epsilon_needed"] = needed
        typer.echo(json_text(document))
        return
    print_plan(output_console(), result)
    if errors is not None:
        _print_accuracy(output_console(), errors, result)
    if needed is not None:
        output_console().print(
            f"At most {accuracy:.1%} of the rows out of place in a typical pair takes epsilon {needed:.3g}.",
            soft_wrap=True,
        )


def _needed_epsilon(errors: Accuracy | None, accuracy: float | None, plan: RunPlan) -> float | None:
    if accuracy is None:
        return None
    if errors is None:
        raise InputError(
            "found --accuracy without -n, or with a budget or model that it is not told for; expected -n ROWS"
        )
    return errors.epsilon_for(accuracy, delta=plan.settings.delta)


def _print_accuracy(console: Console, errors: Accuracy, plan: RunPlan) -> None:
    """The errors to expect, in words and at several epsilons side by side."""
    console.print(
        safe(f"What to expect for {errors.rows:,} rows, of more than 9 in 10 counts that noise does not hide:")
    )
    said = errors.sentences()
    for line in (*said[:8], *said[8:][-1:]):
        console.print(safe(f"  {line}."), soft_wrap=True)
    if errors.assumed:
        names = ", ".join(errors.assumed)
        console.print(safe(f"  Domains that are missing are taken for ones of 20 values or 100 numbers: {names}."))
    grid = _grid("counts come out within")
    budgets = errors.at_epsilons(plan.settings.budget)
    for epsilon, _ in budgets:
        grid.add_column(f"epsilon {epsilon:g}", justify="right")
    for name in errors.columns:
        grid.add_row(safe(name), *(f"±{errors.column_bound(name, noise=noise):,.0f}" for _, noise in budgets))
    grid.add_row("a typical pair", *(f"±{errors.pair_bound(noise=noise):,.0f}" for _, noise in budgets))
    out = (f"{errors.pair_distance(noise=noise):.1%}" for _, noise in budgets)
    grid.add_row("rows out of place in such a pair", *out)
    console.print(grid)


def print_plan(console: Console, plan: RunPlan) -> None:
    """The plan as tables."""
    budget = plan.settings.budget
    console.print(
        f"Budget: epsilon {budget.epsilon:g}, delta {budget.delta:g}; as one Gaussian release, noise of "
        f"{plan.noise_multiplier:.4f} times the sensitivity."
    )
    console.print(f"Privacy unit: {plan.settings.privacy_unit.describe()}.", markup=False)
    console.print(safe(f"What it means: {plan.meaning_text}."), soft_wrap=True)
    if not plan.mark.is_for_release:
        console.print(safe(f"Mark: {plan.mark.told}.", style="bold red"), soft_wrap=True)
    for warning in (*plan.warnings, *_noise_warning(plan)):
        console.print(safe(f"Warning: {warning}.", style="bold red"), soft_wrap=True)
    if not plan.is_complete:
        console.print(
            f"{len(plan.missing)} domains will be found within the budget ({_finding(plan)}): "
            f"{', '.join(plan.missing)}. Declare them in the schema to see the whole plan.",
            markup=False,
        )
    else:
        _print_steps(console, plan)
    whole = why_plan_whole(plan)
    for note in (*plan.notes, *((whole,) if whole else ())):
        console.print(safe(f"Note: {note}.", style="yellow"))
    console.print(f"Stages: {plan.program_text}.", markup=False, soft_wrap=True)
    console.print("What is released, in this order (a run is refused anything else):")
    console.print(_releases(plan))
    if plan.settings.backend is Backend.NEURAL and plan.is_complete:
        _print_neural(console, plan)
    if plan.expected:
        console.print("First measurements, one histogram for each attribute:")
        console.print(_measurements(plan))


def _noise_warning(plan: RunPlan) -> tuple[str, ...]:
    """Whether a table of as many rows as were asked for would be mostly noise."""
    note = noise_note(accuracy_of(plan), plan.settings)
    return () if note is None else (note,)


def _finding(plan: RunPlan) -> str:
    """What finding domains takes, or the most that it can take: that follows from the noisy number of rows."""
    if plan.discovery is None:
        return "what they need of it"
    share = plan.discovery.share(plan.settings)
    exact = plan.settings.discovery_share is not None
    return (
        f"{share:.0%} of it"
        if exact
        else f"{FINDING.least:.0%} to {share:.0%} of it, the more the fewer rows there are"
    )


def _print_neural(console: Console, plan: RunPlan) -> None:
    if plan.neural is None:
        console.print("Parameters of the neural model depend on the number of rows: give -n to see them.")
        return
    console.print(f"The neural model, for {plan.num_rows:,} rows (a run takes their noisy number):")
    console.print(safe("  " + plan.neural.describe().replace("\n", "\n  "), keep="\n"))


def _print_steps(console: Console, plan: RunPlan) -> None:
    if plan.sampling is None:
        console.print(f"Order of attributes: {plan.order}.", markup=False)
        console.print("How rows are drawn:")
        console.print(_open_steps(plan))
        return
    console.print("How rows are drawn, one attribute after the other:")
    console.print(_steps(plan, plan.sampling))


def _steps(plan: RunPlan, sampling: SamplingPlan) -> Table:
    grid = _grid("attribute", "step", "constraints", "why")
    jointly = (*(StepKind.FREE, StepKind.MASK), *(OF_GROUPS if plan.settings.sampling is Sampling.ROW_BY_ROW else ()))
    one_by_one = plan.settings.sampling in (Sampling.ROW_BY_ROW, Sampling.PRINTED)
    for step, row in zip(sampling.steps, sampling.rows(), strict=True):
        if one_by_one and step.kind not in jointly:
            row = (row[0], "row by row", row[2], "each row is weighed against the rows before it")
        grid.add_row(*(safe(cell) for cell in row))
    return grid


def _open_steps(plan: RunPlan) -> Table:
    """The steps before the order is known: a constraint on several attributes is kept by the last of them."""
    assert plan.requirements is not None, "printed only where the plan is complete"
    grid = _grid("attribute", "step", "constraints")
    for step in plan.requirements.open_steps():
        names = ", ".join(step.among)
        shown = "; ".join(map(print_constraint, step.constraints))
        grid.add_row(safe(names if len(step.among) == 1 else f"the last of {names}"), step.kind.value, safe(shown))
    return grid


def _releases(plan: RunPlan) -> Table:
    grid = _grid("part", "release", "attributes")
    for title in ("releases", "cells, at most", "noise (sigma)", "of the budget"):
        grid.add_column(title, justify="right")
    for each in plan.schedule:
        grid.add_row(
            each.part,
            safe(each.what),
            safe(_among(each)),
            *_figures(each, plan.noise_multiplier),
        )
    return grid


def _figures(planned: PlannedRelease, whole: float) -> tuple[str, str, str, str]:
    """How many releases, their cells, noise and part of the budget; delta that is set aside is no release."""
    if planned.kind == "aside":
        return "", "", "", f"{planned.delta:.2g} of delta"
    most = f"{planned.most:,}" if planned.rule is Rule.EACH and planned.most == 1 else f"at most {planned.most:,}"
    cells = "by rows" if planned.most_cells is None else f"{planned.most_cells:,}"
    return most, cells, _noise(planned), _share(planned, whole)


def _among(planned: PlannedRelease) -> str:
    names = ", ".join(planned.attributes)
    if planned.choose is None or planned.choose >= len(planned.attributes):
        return names
    return f"{planned.choose} of {names}"


def _noise(planned: PlannedRelease) -> str:
    """The scale of the noise; where the sensitivity is not known yet, as many times that."""
    if planned.noise_multiplier is None:
        return "by rows"
    noise = f"{planned.noise_multiplier:.2f} x" if planned.sigma is None else f"{planned.sigma:.2f}"
    exact = planned.rule is Rule.EACH and not planned.gives_way
    return noise if exact or not planned.noise_multiplier else f"{noise} or more"


def _share(planned: PlannedRelease, whole: float) -> str:
    if planned.rule is Rule.REST:
        return "what is left"
    if not planned.noise_multiplier or planned.sampling_rate is not None:
        return ""
    share = f"{planned.most * (whole / planned.noise_multiplier) ** 2:.1%}"
    if planned.rule is Rule.EACH:
        return share
    share = f"{(whole / planned.noise_multiplier) ** 2:.1%}"
    return f"at most {share}" if planned.rule is Rule.AT_MOST or planned.gives_way else share


def _grid(*titles: str) -> Table:
    grid = Table()
    for title in titles:
        grid.add_column(title, overflow="fold")
    return grid


def _measurements(plan: RunPlan) -> Table:
    grid = Table()
    grid.add_column("attribute")
    for title in ("cells", "noise (sigma)", "distance, at most about"):
        grid.add_column(title, justify="right")
    for each in plan.expected:
        shown = "give -n" if each.distance is None else f"{each.distance:.4f}"
        grid.add_row(safe(each.attribute), f"{each.cells:,}", f"{each.sigma:.1f}", shown)
    return grid

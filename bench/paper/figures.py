"""The figures of one case over its runs, each as mean and deviation; None where nothing was run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bench.paper.asking import Asked
from bench.paper.cases import DEFAULT, PRINTED, Case
from bench.paper.runs import Made, failure, made_run
from bench.paper.scores import Facts, ceiling, learning, marginals, percent_violating, violations
from bench.paper.spread import Spread

Cell = Spread | None


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Violations in percent of pairs, distances, accuracy and F1, CPU seconds."""

    violations: tuple[Cell, ...]
    one: Cell
    two: Cell
    accuracy: Cell = None
    f1: Cell = None
    fit: Cell = None
    draw: Cell = None
    memory: Cell = None


def runs_of(asked: Asked, case: Case) -> list[Made]:
    """The runs of a case that could be made."""
    found = (made_run(asked.source, case, run) for run in range(asked.runs))
    return [made for made in found if made is not None]


def failures(asked: Asked, cases: Iterable[Case]) -> list[str]:
    """A line for each case of which a run failed."""
    found = []
    for case in cases:
        reasons = [reason for run in range(asked.runs) if (reason := failure(asked.source, case, run))]
        if reasons:
            found.append(f"{case.table}, {case.fit_name}, {case.draw_name}: {len(reasons)} runs failed: {reasons[0]}")
    return found


def figures_of(asked: Asked, case: Case, *, train: bool = True) -> Figures:
    """Make what is missing, judge it, and sum up over the runs."""
    runs = runs_of(asked, case)
    broken = [violations(asked.source, made) for made in runs]
    apart = [marginals(asked.source, made) for made in runs]
    taught = learned(asked, case, runs) if train else []
    return Figures(
        violations=tuple(map(Spread.of, zip(*broken, strict=True))) or (None,) * num_constraints(asked, case.table),
        one=Spread.of(each["1"]["mean"] for each in apart),
        two=Spread.of(each["2"]["mean"] for each in apart),
        accuracy=Spread.of(each["accuracy"] for each in taught),
        f1=Spread.of(each["f1"] for each in taught),
        fit=Spread.of(made.fit_seconds for made in runs),
        draw=Spread.of(made.draw_seconds for made in runs),
        memory=Spread.of(max(made.facts["fit"]["memory"], made.facts["draw"]["memory"]) for made in runs),
    )


def learned(asked: Asked, case: Case, runs: list[Made]) -> list[Facts]:
    """What models trained on the tables of the first runs can do."""
    rows = training_rows(asked, case)
    found = (learning(asked.source, made, rows) for made in runs if made.run < asked.training_runs)
    return [each for each in found if each is not None]


def training_rows(asked: Asked, case: Case) -> int | None:
    """How many rows train a model: all of them for the tables that are to be judged in full, but as printed."""
    return None if case.table in asked.full_tables and case.preset != PRINTED else asked.training_rows


def truth_learned(asked: Asked, case: Case) -> Facts | None:
    """What models trained on the true table can do, with as many rows; None where none are to be trained."""
    if not asked.training_runs:
        return None
    return ceiling(asked.source, case.table, training_rows(asked, case))


def true_violations(asked: Asked, table: str) -> list[float]:
    """Percent of pairs of the true table, by constraint."""
    true, rules = asked.source.true(Case(table=table))
    return percent_violating(true, rules)


def num_constraints(asked: Asked, table: str) -> int:
    """How many constraints a table comes with."""
    return len(asked.source.true(Case(table=table))[1])


def preset_name(preset: str) -> str:
    """A preset in a heading."""
    return "default" if preset == DEFAULT else f"{preset} preset"

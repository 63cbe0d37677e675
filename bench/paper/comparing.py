"""Ways to synthesize one table, set side by side: violations, distances, trained models and time of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.paper.asking import Asked
from bench.paper.cases import Case
from bench.paper.figures import Cell, Figures, failures, figures_of, true_violations, truth_learned
from bench.paper.pages import Grid
from bench.paper.plots import bars, lines
from bench.paper.spread import Spread, percent, written

QUALITY = ("1-way", "2-way", "accuracy", "F1")
TIMES = ("fit, CPU s", "draw, CPU s")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The figures of each way, by its name."""

    cases: Mapping[str, Case]
    figures: Mapping[str, Figures]
    notes: tuple[str, ...]

    def cells(self, measure: str) -> list[Cell]:
        """One measure of all ways, in order."""
        return [getattr(each, measure) for each in self.figures.values()]

    def grid(self, asked: Asked, first: str, printed: Mapping[str, Sequence[str]], heads: Sequence[str]) -> Grid:
        """One row for the truth and one for each way, with the paper's figures in columns of their own."""
        table = next(iter(self.cases.values())).table
        truth = true_violations(asked, table)
        rows = [("truth", *(f"{v:.3f}" if v else "0" for v in truth), "0", "0", *_ceiling(asked, self.cases), "", "")]
        rows[0] += tuple("" for _ in heads)
        for name, each in self.figures.items():
            cells = [*map(percent, each.violations), *(written(c, 4) for c in (each.one, each.two))]
            cells += [written(c) for c in (each.accuracy, each.f1)] + [written(c, 1) for c in (each.fit, each.draw)]
            rows.append((name, *cells, *(printed.get(name) or [""] * len(heads))))
        broken = tuple(f"violations {place + 1}, %" for place in range(len(truth)))
        return Grid(header=(first, *broken, *QUALITY, *TIMES, *heads), rows=tuple(rows), caption=table)


def compare(asked: Asked, cases: Mapping[str, Case], *, train: bool = True) -> Comparison:
    """Make and judge each way."""
    figures = {name: figures_of(asked, case, train=train) for name, case in cases.items()}
    return Comparison(cases=cases, figures=figures, notes=tuple(failures(asked, cases.values())))


def _ceiling(asked: Asked, cases: Mapping[str, Case]) -> tuple[str, str]:
    found = truth_learned(asked, next(iter(cases.values())))
    return (f"{found['accuracy']:.3f}", f"{found['f1']:.3f}") if found else ("", "")


def quality_plots(
    title: str, x_label: str | None, xs: Sequence[str], found: Mapping[str, Comparison]
) -> dict[str, str]:
    """Plots of accuracy and F1, where models were trained, and of distances: lines over `xs`, bars without a label.

    Names of `found` tell its lines apart.
    """

    def series(measures: Mapping[str, str]) -> dict[str, list[Spread | None]]:
        return {
            f"{label}{', ' if name else ''}{name}": comparison.cells(measure)
            for name, comparison in found.items()
            for measure, label in measures.items()
        }

    def plot(heading: str, unit: str, values: dict[str, list[Spread | None]], low: float | None) -> str:
        if x_label is None:
            return bars(f"{title}: {heading}", unit, xs, values)
        return lines(f"{title}: {heading}", unit, x_label, xs, values, low=low)

    taught = series({"accuracy": "accuracy", "f1": "F1"})
    apart = series({"one": "1-way", "two": "2-way"})
    plots = {"marginals": plot("marginals", "mean total variation", apart, 0.0)}
    if any(cell is not None for cells in taught.values() for cell in cells):
        plots["training"] = plot("trained classifiers", "accuracy, F1", taught, None)
    return plots


def notes_of(asked: Asked, found: Sequence[Comparison]) -> list[str]:
    """How many runs, and what failed."""
    rows = f"{asked.training_rows:,}" if asked.training_rows else "all (70%)"
    taught = f"classifiers as in Experiment 2, trained on {rows} rows of the tables of {asked.training_runs} run(s)"
    told = f"Mean ± deviation of {asked.runs} run(s); distances are mean total variation; "
    told += f"{taught}." if asked.training_runs else "no classifiers were trained."
    fewer = [f"{name}, {case.fit_name}, {case.draw_name}: {made}" for name, case, made in _other_counts(asked, found)]
    others = [f"Other numbers of runs: {'; '.join(fewer)}."] if fewer else []
    return [told, *others, *(note for each in found for note in each.notes)]


def _other_counts(asked: Asked, found: Sequence[Comparison]) -> list[tuple[str, Case, int]]:
    """The cases of which there are more or fewer runs than were asked for, but some."""
    return [
        (case.table, case, cell.count)
        for each in found
        for case, cell in zip(each.cases.values(), each.cells("fit"), strict=True)
        if cell is not None and cell.count != asked.runs
    ]

"""Experiment 8: the number of constraints.

python -m bench.paper.constraints_count --data FOLDER --runs 3 --presets default paper
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.paper.asking import Asked, ask
from bench.paper.cases import Case
from bench.paper.comparing import Comparison, compare, notes_of, quality_plots
from bench.paper.figures import Cell, preset_name, runs_of
from bench.paper.pages import Grid, Page
from bench.paper.plots import lines
from bench.paper.scores import rate_errors
from bench.paper.spread import Spread, written

COUNTS = (2, 4, 8, 16, 32, 64, 128)
WORDS = """\
Sets of 2 to 128 approximate constraints of adult, all of them soft: their violation rates are measured within the
budget, weights are found that reproduce them, and rows are drawn so that they hold. *Rates off* is the mean over the
set of how far the rate of the synthetic table is from that of the true one, in percent of pairs; *rates, mean* is the
mean rate in the true table."""


def main(argv: Sequence[str] | None = None) -> int:
    """Make the page."""
    asked = ask("constraints_count", __doc__, tables=["adult"], argv=argv)
    table = asked.tables[0]
    folder = asked.source.data / table / "approximate-dcs" if asked.source.data else None
    counts = [count for count in asked.counts or COUNTS if folder and (folder / f"{table}{count}.ic").exists()]
    found: dict[str, Comparison] = {}
    grids, seconds = [], {}
    for preset in asked.presets:
        cases = {str(count): Case(table=table, preset=preset, constraints=f"{table}{count}") for count in counts}
        label = preset_name(preset) if len(asked.presets) > 1 else ""
        found[label] = compare(asked, cases)
        grids.append(_grid(asked, found[label], f"{table}, {preset_name(preset)}"))
        for stage in ("fit", "draw"):
            seconds[f"{stage}, {preset_name(preset)}"] = found[label].cells(stage)
    names = [str(count) for count in counts]
    plots = quality_plots("Quality by number of constraints", "constraints", names, found)
    plots["time"] = lines("Time by number of constraints", "CPU seconds", "constraints", names, seconds, low=0.0)
    Page(
        name="constraints_count",
        title="Experiment 8: number of constraints",
        words=WORDS,
        grids=grids,
        plots=plots,
        notes=[
            *notes_of(asked, list(found.values())),
            "The paper: from 2 to 128 constraints, quality drops by 0.04, the time grows 3 times; the rest is plots.",
        ],
    ).write(asked)
    return 0


def _grid(asked: Asked, found: Comparison, caption: str) -> Grid:
    rows = []
    for name, case in found.cases.items():
        errors = [rate_errors(asked.source, made) for made in runs_of(asked, case)]
        each = found.figures[name]
        off, mean = (Spread.of(error[key] for error in errors) for key in ("off", "mean"))
        cells: list[tuple[Cell, int]] = [(off, 3), (each.one, 4), (each.two, 4), (each.accuracy, 3), (each.f1, 3)]
        cells += [(each.fit, 1), (each.draw, 1)]
        rows.append((name, f"{mean.mean:.2f}" if mean else "", *(written(cell, digits) for cell, digits in cells)))
    header = (
        *("constraints", "rates, mean, %", "rates off, %", "1-way", "2-way", "accuracy", "F1"),
        *("fit, CPU s", "draw, CPU s"),
    )
    return Grid(header=header, rows=tuple(rows), caption=caption)


if __name__ == "__main__":
    sys.exit(main())

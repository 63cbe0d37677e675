"""Experiment 3: distances of 1-way and 2-way marginals.

python -m bench.paper.marginals --data FOLDER --runs 3 --presets default paper
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.paper.asking import ask
from bench.paper.cases import Case
from bench.paper.figures import preset_name, runs_of
from bench.paper.pages import Grid, Page
from bench.paper.plots import bars
from bench.paper.printed import ONE_WAY_MAX, ONE_WAY_MEAN
from bench.paper.scores import marginals
from bench.paper.spread import PLOT_ONLY, Spread, written

WORDS = """\
All 1-way and 2-way marginals of the synthetic and the true table, numbers in 16 bins of equal width, at (1, 1e-6).
*Total variation* is half of the sum of all cells' differences. The paper calls by that name the difference of the one
cell that is furthest off, which is smaller; it is given here as *largest cell*, and the paper's figures belong to it.
The mean and the maximum are over all attributes, or pairs of attributes. How the paper bins numbers it does not say."""
MEASURES = ("mean", "max", "mean_max_cell", "max_max_cell")


def main(argv: Sequence[str] | None = None) -> int:
    """Make the page."""
    asked = ask("marginals", __doc__, argv=argv)
    rows: list[tuple[str, ...]] = []
    series: dict[str, list[Spread | None]] = {}
    for table in asked.tables:
        for preset in asked.presets:
            found = [marginals(asked.source, made) for made in runs_of(asked, Case(table=table, preset=preset))]
            for order in ("1", "2"):
                cells = [Spread.of(each[order][measure] for each in found) for measure in MEASURES]
                rows.append(
                    (table, preset_name(preset), str(len(found)), f"{order}-way", *(written(c, 4) for c in cells))
                )
                rows[-1] += _printed(table, order)
                series.setdefault(f"{preset_name(preset)}, {order}-way", []).append(cells[0])
    Page(
        name="marginals",
        title="Experiment 3: marginals",
        words=WORDS,
        grids=[
            Grid(
                header=(
                    *("table", "preset", "runs", "marginals", "total variation, mean", "total variation, max"),
                    *("largest cell, mean", "largest cell, max", "paper's Kamino: largest cell, mean / max"),
                ),
                rows=tuple(rows),
            )
        ],
        plots={"": bars("Mean total variation of marginals", "total variation", asked.tables, series)},
        notes=[
            f"The paper's other figures for adult, 1-way, largest cell: mean {_list(ONE_WAY_MEAN)}; max "
            f"{_list(ONE_WAY_MAX)}. All else it shows as plots only.",
            "Mean ± deviation of so many runs as the table says.",
        ],
    ).write(asked)
    return 0


def _printed(table: str, order: str) -> tuple[str]:
    known = table == "adult" and order == "1"
    return (f"{ONE_WAY_MEAN['Kamino']} / {ONE_WAY_MAX['Kamino']}" if known else PLOT_ONLY,)


def _list(values: dict[str, float]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items() if name != "Kamino")


if __name__ == "__main__":
    sys.exit(main())

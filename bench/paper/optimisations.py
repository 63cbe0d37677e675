"""Experiment 10: training in parallel, and a million rows.

python -m bench.paper.optimisations --data FOLDER --runs 3 --presets default printed
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.paper.asking import Asked, ask
from bench.paper.cases import DEFAULT, PRINTED, Case
from bench.paper.comparing import Comparison, compare, notes_of
from bench.paper.figures import figures_of, runs_of
from bench.paper.pages import Grid, Page
from bench.paper.plots import bars
from bench.paper.spread import NOT_RUN, Spread, percent, written

# tpch has 19,951 rows; fifty of it are 997,550.
COPIES = (1, 5, 50)
JOBS = 2
WORDS = """\
Two optimisations. *Parallel training*: the sub-models of the neural backend, as printed, are trained at a time in
processes of their own, from random embeddings instead of those of the sub-model before. *Special constraints*: where
all hard constraints are functional dependencies, the value is looked up rather than tried. For the second, the table
is repeated until it has a million rows, and as many are drawn."""


def main(argv: Sequence[str] | None = None) -> int:
    """Make the page."""
    asked = ask("optimisations", __doc__, tables=["adult", "tpch"], argv=argv)
    small, large = asked.tables[0], asked.tables[-1]
    parallel = _parallel(asked, small) if PRINTED in asked.presets else None
    grids = [_training_grid(asked, parallel, small), _growth_grid(asked, large)]
    growing = {"fit and draw": [_whole(asked, Case(table=large, copies=copies)) for copies in COPIES]}
    names = [f"{copies} × {large}" for copies in COPIES]
    Page(
        name="optimisations",
        title="Experiment 10: optimisations",
        words=WORDS,
        grids=grids,
        plots={"": bars("Synthesis of a growing table", "CPU seconds", names, growing)},
        notes=[
            *notes_of(asked, [parallel] if parallel else []),
            "The paper: trained in parallel, on adult, training is 3.5 times as fast and quality drops by 0.01; a "
            "TPC-H table of a million rows takes 10 hours.",
        ],
    ).write(asked)
    return 0


def _parallel(asked: Asked, table: str) -> Comparison:
    cases = {
        "one after another": Case(table=table, preset=PRINTED),
        f"{JOBS} at a time": Case(table=table, preset=PRINTED, jobs=JOBS),
    }
    return compare(asked, cases)


def _training_grid(asked: Asked, found: Comparison | None, table: str) -> Grid:
    header = ("training", "wall s of fitting", "1-way", "2-way", "accuracy", "F1")
    if found is None:
        return Grid(header=header, rows=(("printed preset", *[NOT_RUN] * 5),), caption=f"{table}, parallel training")
    rows = []
    for name, case in found.cases.items():
        wall = Spread.of(sum(made.facts["fit"]["wall"].values()) for made in runs_of(asked, case))
        each = found.figures[name]
        rows.append((name, written(wall, 0), *(written(c, 4) for c in (each.one, each.two, each.accuracy, each.f1))))
    return Grid(header=header, rows=tuple(rows), caption=f"{table}, printed preset, parallel training")


def _growth_grid(asked: Asked, table: str) -> Grid:
    rows = []
    for copies in COPIES:
        case = Case(table=table, preset=DEFAULT, copies=copies)
        each = figures_of(asked, case, train=False)
        cells = [written(cell, 1) for cell in (each.fit, each.draw)] + [written(each.memory, 2)]
        broken = [percent(cell) for cell in each.violations]
        size = asked.source.true(case)[0].num_rows
        rows.append((f"{size:,}", *cells, ", ".join(dict.fromkeys(broken)), written(each.one, 4), written(each.two, 4)))
    return Grid(
        header=("rows", "fit, CPU s", "draw, CPU s", "memory, GiB", "violations, %", "1-way", "2-way"),
        rows=tuple(rows),
        caption=f"{table}, default, growing",
    )


def _whole(asked: Asked, case: Case) -> Spread | None:
    return Spread.of(made.fit_seconds + made.draw_seconds for made in runs_of(asked, case))


if __name__ == "__main__":
    sys.exit(main())

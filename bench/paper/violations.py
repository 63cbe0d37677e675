"""Experiment 1: violations of constraints, in percent of pairs.

python -m bench.paper.violations --data FOLDER --runs 3 --presets default paper
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.paper.asking import Asked, ask
from bench.paper.cases import Case
from bench.paper.figures import figures_of, preset_name, runs_of, true_violations
from bench.paper.pages import Grid, Page
from bench.paper.plots import bars
from bench.paper.printed import OTHERS, VIOLATIONS
from bench.paper.spread import NOT_GIVEN, Spread, percent
from kamino.constraints import print_constraint

WORDS = """\
Percent of unordered pairs of rows that violate each constraint in either direction, at (1, 1e-6), domains public.
Constraints that the true table breaks itself (br2000) are soft: there the aim is the rate of the true table, not zero.
The paper counts an asymmetric constraint in one direction of a pair, so its figures for br2000, truth included, are
about half of ours."""


def main(argv: Sequence[str] | None = None) -> int:
    """Make the page."""
    asked = ask("violations", __doc__, argv=argv)
    rows: list[tuple[str, ...]] = []
    series: dict[str, list[Spread | None]] = {name: [] for name in ("truth", *map(preset_name, asked.presets))}
    groups: list[str] = []
    for table in asked.tables:
        truth = true_violations(asked, table)
        ours = [figures_of(asked, Case(table=table, preset=preset), train=False) for preset in asked.presets]
        rules = list(asked.source.true(Case(table=table))[1])
        for place, constraint in enumerate(rules):
            cells = [each.violations[place] for each in ours]
            rows.append(
                (
                    table,
                    f"`{print_constraint(constraint)}`",
                    f"{truth[place]:.3f}" if truth[place] else "0",
                    *map(percent, cells),
                    *_printed(table, place),
                )
            )
            groups.append(f"{table} {place + 1}")
            for name, cell in zip(series, [Spread(mean=truth[place], deviation=0, count=1), *cells], strict=True):
                series[name].append(cell)
    _write(asked, rows, bars("Pairs that violate a constraint", "percent of pairs", groups, series))
    return 0


def _printed(table: str, place: int) -> list[str]:
    paper = VIOLATIONS.get(table)
    names = ("truth", "Kamino", *OTHERS)
    return [paper[name][place] for name in names] if paper else [NOT_GIVEN] * len(names)


def _counts(asked: Asked) -> str:
    """How many runs there were of each preset."""
    found = {
        preset: [len(runs_of(asked, Case(table=t, preset=preset))) for t in asked.tables] for preset in asked.presets
    }
    least = {
        preset: f"{min(counts)}" if len(set(counts)) == 1 else f"{min(counts)} to {max(counts)}"
        for preset, counts in found.items()
    }
    return ", ".join(f"{count} runs of the {preset_name(preset)}" for preset, count in least.items())


def _write(asked: Asked, rows: list[tuple[str, ...]], plot: str) -> None:
    header = ("table", "constraint", "truth", *map(preset_name, asked.presets))
    printed = tuple(f"paper: {name}" for name in ("truth", "Kamino", *OTHERS))
    Page(
        name="violations",
        title="Experiment 1: violations of constraints",
        words=WORDS,
        grids=[Grid(header=header + printed, rows=tuple(rows))],
        plots={"": plot},
        notes=[f"Mean ± deviation of {_counts(asked)}; `0` is exact: no pair in any run."],
    ).write(asked)


if __name__ == "__main__":
    sys.exit(main())

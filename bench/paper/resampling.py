"""Experiment 9: drawing rows again.

python -m bench.paper.resampling --data FOLDER --runs 3 --presets default paper
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.paper.asking import Asked, ask
from bench.paper.cases import Case
from bench.paper.comparing import compare, notes_of, quality_plots
from bench.paper.figures import figures_of, preset_name, runs_of
from bench.paper.pages import Grid, Page
from bench.paper.plots import lines
from bench.paper.scores import rate_errors
from bench.paper.spread import Spread, written
from kamino.pipeline import Synthesizer

SWEEPS = (0, 1, 2, 3)
WORDS = """\
After a column is drawn, its cells are drawn again given all the others: one sweep draws each cell once more, which is
the paper's m = n. The paper varies m for every constraint; here hard constraints are met by exact joint draws, so
sweeps serve soft constraints alone, and the table is br2000. All draws of a run come from one fit. Where no constraint
got a weight, because the model keeps the rates by itself, there is nothing to draw again; the second table is adult
with 8 approximate constraints, all soft, of which some do get one."""
# A set of approximate constraints beside its table.
WEIGHED = ("adult", "adult8")


def main(argv: Sequence[str] | None = None) -> int:
    """Make the page."""
    asked = ask("resampling", __doc__, tables=["br2000"], argv=argv)
    found, grids, seconds = {}, [], {}
    for table in asked.tables:
        for preset in asked.presets:
            cases = {str(count): Case(table=table, preset=preset, sweeps=count) for count in SWEEPS}
            label = preset_name(preset) if len(asked.presets) > 1 else ""
            found[label] = compare(asked, cases)
            grids.append(found[label].grid(asked, f"sweeps (m / n), {preset_name(preset)}", {}, ()))
            seconds[f"draw, {preset_name(preset)}"] = found[label].cells("draw")
    grids += [grid for preset in asked.presets for grid in _weighed_grid(asked, preset)]
    names = [str(count) for count in SWEEPS]
    plots = quality_plots("Quality by sweeps", "sweeps (m / n)", names, found)
    plots["time"] = lines("Drawing time by sweeps", "CPU seconds", "sweeps (m / n)", names, seconds, low=0.0)
    Page(
        name="resampling",
        title="Experiment 9: resampling",
        words=WORDS,
        grids=grids,
        plots=plots,
        notes=[
            *notes_of(asked, list(found.values())),
            *(_weights_note(asked, table, preset) for table in asked.tables for preset in asked.presets),
            "The paper, m = 3n against m = 0: accuracy up by up to 0.03, F1 by up to 0.02, 1-way and 2-way distances "
            "down by 0.01 and 0.02, up to 4 times the time; the rest is plots.",
        ],
    ).write(asked)
    return 0


def _weights_note(asked: Asked, table: str, preset: str) -> str:
    """How many of the fits gave a weight to some constraint."""
    runs = runs_of(asked, Case(table=table, preset=preset))
    models = [Synthesizer.load(made.case.fit_folder(asked.source.store, made.run) / "model.kamino") for made in runs]
    weighed = sum(any(each.weight > 0 for each in model.fitted.soft.items) for model in models)
    return f"{table}, {preset_name(preset)}: {weighed} of {len(models)} fits gave a constraint a weight."


def _weighed_grid(asked: Asked, preset: str) -> list[Grid]:
    """Sweeps where constraints have weights: how far rates are off, distances, seconds; nothing without the data."""
    table, rules = WEIGHED
    data = asked.source.data
    if data is None or not (data / table / "approximate-dcs" / f"{rules}.ic").exists():
        return []
    rows = []
    for count in SWEEPS:
        case = Case(table=table, preset=preset, constraints=rules, sweeps=count)
        runs = runs_of(asked, case)
        off = Spread.of(rate_errors(asked.source, made)["off"] for made in runs)
        each = figures_of(asked, case, train=False)
        cells = ((off, 3), (each.one, 4), (each.two, 4), (each.draw, 1))
        rows.append((str(count), *(written(cell, digits) for cell, digits in cells)))
    header = (f"sweeps (m / n), {preset_name(preset)}", "rates off, %", "1-way", "2-way", "draw, CPU s")
    return [Grid(header=header, rows=tuple(rows), caption=f"{table} with 8 soft constraints")]


if __name__ == "__main__":
    sys.exit(main())

"""Experiment 4: execution time by stage.

python -m bench.paper.times --data FOLDER --runs 3 --presets default paper
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.paper.asking import ask
from bench.paper.cases import Case
from bench.paper.figures import preset_name, runs_of
from bench.paper.pages import Grid, Page
from bench.paper.plots import bars
from bench.paper.printed import SECONDS
from bench.paper.runs import Made
from bench.paper.spread import NOT_GIVEN, Spread, written

WORDS = """\
CPU seconds of each stage, one process on one core, at (1, 1e-6): *read* takes the table in and finds out what its
schema allows, *fit* plans the sequence, measures and fits the tuple model, *weigh* finds the weights of soft
constraints, *draw* draws as many rows as the true table has, with its constraints. Memory is the peak of the process.
The paper's seconds are those of a machine with 12 cores."""
STAGES = {"read": ("READ", "DOMAINS"), "fit": ("FIT",), "weigh": ("WEIGHTS",)}


def main(argv: Sequence[str] | None = None) -> int:
    """Make the page."""
    asked = ask("times", __doc__, argv=argv)
    rows: list[tuple[str, ...]] = []
    series: dict[str, list[Spread | None]] = {f"{preset_name(p)}, all stages": [] for p in asked.presets}
    for table in asked.tables:
        for preset in asked.presets:
            runs = runs_of(asked, Case(table=table, preset=preset))
            stages = [Spread.of(_seconds(made, names) for made in runs) for names in STAGES.values()]
            draw = Spread.of(made.draw_seconds for made in runs)
            whole = Spread.of(made.fit_seconds + made.draw_seconds for made in runs)
            memory = Spread.of(max(made.facts["fit"]["memory"], made.facts["draw"]["memory"]) for made in runs)
            cells = [written(each, 1) for each in (*stages, draw, whole)]
            printed = SECONDS.get(table, {}).get("Kamino", NOT_GIVEN)
            rows.append((table, preset_name(preset), str(len(runs)), *cells, written(memory, 2), printed))
            series[f"{preset_name(preset)}, all stages"].append(whole)
    paper = {"the paper's": [_parsed(SECONDS.get(table, {}).get("Kamino")) for table in asked.tables]}
    Page(
        name="times",
        title="Experiment 4: execution time",
        words=WORDS,
        grids=[
            Grid(
                header=("table", "preset", "runs", *STAGES, "draw", "all", "memory, GiB", "paper's Kamino, seconds"),
                rows=tuple(rows),
            ),
            Grid(
                caption="The paper's other synthesizers, seconds",
                header=("table", "PrivBayes", "DP-VAE", "PATE-GAN"),
                rows=tuple(
                    (table, *(SECONDS[table][name] for name in ("PrivBayes", "DP-VAE", "PATE-GAN")))
                    for table in asked.tables
                    if table in SECONDS
                ),
            ),
        ],
        plots={"": bars("Time of one synthesis (powers of ten)", "seconds", asked.tables, series | paper, log=True)},
        notes=[
            "Mean ± deviation of so many runs as the table says; other work ran on the machine, "
            "which makes CPU seconds some tens of percent longer.",
            "The paper's text: training and sampling together take more than 99% of its time; NIST took at most "
            "217 ± 13 seconds, and Kamino 5 to 16 hours; its time by stage is a plot only. The seconds above stand in "
            "the paper's source, in a table that its print leaves out.",
        ],
    ).write(asked)
    return 0


def _seconds(made: Made, names: Sequence[str]) -> float:
    return float(sum(made.facts["fit"]["cpu"].get(name, 0.0) for name in names))


def _parsed(text: str | None) -> Spread | None:
    if text is None:
        return None
    mean, deviation = (float(part.replace(",", "")) for part in text.split("±"))
    return Spread(mean=mean, deviation=deviation, count=3)


if __name__ == "__main__":
    sys.exit(main())

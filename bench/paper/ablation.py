"""Experiment 5: what the constraint-aware parts are worth.

python -m bench.paper.ablation --data FOLDER --runs 3 --presets default paper
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bench.paper.asking import ask
from bench.paper.cases import Case
from bench.paper.comparing import compare, notes_of, quality_plots
from bench.paper.figures import preset_name
from bench.paper.pages import Page
from bench.paper.printed import ABLATION

WORDS = """\
The whole against itself without a part: *RandSampling* draws rows independently, as if there were no constraints,
*RandSequence* orders attributes at random, *RandBoth* does both. The model is fitted in the same way each time; rows
drawn independently come from the same fits as the others."""


def ways(table: str, preset: str) -> dict[str, Case]:
    """The paper's four."""
    return {
        "Kamino": Case(table=table, preset=preset),
        "RandSequence": Case(table=table, preset=preset, sequence="random"),
        "RandSampling": Case(table=table, preset=preset, sampling="independent"),
        "RandBoth": Case(table=table, preset=preset, sequence="random", sampling="independent"),
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Make the page."""
    asked = ask("ablation", __doc__, tables=["adult"], argv=argv)
    found, grids = {}, []
    for table in asked.tables:
        for preset in asked.presets:
            name = f"{table}, {preset_name(preset)}" if len(asked.tables) * len(asked.presets) > 1 else ""
            found[name] = compare(asked, ways(table, preset))
            printed = ABLATION if table == "adult" else {}
            heads = ("paper: violations 1, %", "paper: violations 2, %") if printed else ()
            grids.append(found[name].grid(asked, f"way, {preset_name(preset)}", printed, heads))
    notes = notes_of(asked, list(found.values()))
    Page(
        name="ablation",
        title="Experiment 5: constraint-aware parts",
        words=WORDS,
        grids=grids,
        plots=quality_plots("With and without the parts", None, list(ABLATION), found),
        notes=[*notes, "The paper shows accuracy, F1 and distances of these four as plots only."],
    ).write(asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())

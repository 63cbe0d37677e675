"""Experiment 7: varying the privacy budget.

python -m bench.paper.epsilons --data FOLDER --runs 3 --presets default paper
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from bench.paper.asking import ask
from bench.paper.cases import Case
from bench.paper.comparing import compare, notes_of, quality_plots
from bench.paper.figures import preset_name
from bench.paper.pages import Page

EPSILONS = (0.1, 0.2, 0.4, 0.8, 1.6, math.inf)
WORDS = """\
The same table at growing epsilon, delta 1e-6, constraints on. At an infinite epsilon nothing is private: what is left
is what the model cannot say."""


def main(argv: Sequence[str] | None = None) -> int:
    """Make the page."""
    asked = ask("epsilons", __doc__, tables=["adult"], argv=argv)
    found, grids = {}, []
    names = ["∞" if math.isinf(epsilon) else f"{epsilon:g}" for epsilon in EPSILONS]
    for table in asked.tables:
        for preset in asked.presets:
            cases = {n: Case(table=table, preset=preset, epsilon=e) for n, e in zip(names, EPSILONS, strict=True)}
            label = f"{table}, {preset_name(preset)}" if len(asked.tables) * len(asked.presets) > 1 else ""
            found[label] = compare(asked, cases)
            printed = {"0.2": ["0.8"]} if table == "adult" else {}
            heads = ("paper: accuracy",) if printed else ()
            grids.append(found[label].grid(asked, f"epsilon, {preset_name(preset)}", printed, heads))
    Page(
        name="epsilons",
        title="Experiment 7: varying epsilon",
        words=WORDS,
        grids=grids,
        plots=quality_plots("Quality by epsilon", "epsilon", names, found),
        notes=[
            *notes_of(asked, list(found.values())),
            "The paper gives one figure, accuracy 0.8 on adult at epsilon 0.2; all else is a plot only.",
        ],
    ).write(asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())

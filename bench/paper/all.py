"""All experiments of the paper, in order, from one store.

python -m bench.paper.all --data FOLDER --runs 3 --presets default paper --full-tables adult

Takes hours with all four tables and both presets; stopped, it goes on where it was. Experiments that vary one part
have tables of their own, whatever is named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from bench.paper import (
    ablation,
    accept_reject,
    cleaning,
    constraints_count,
    epsilons,
    marginals,
    mends,
    optimisations,
    preset,
    resampling,
    times,
    training,
    violations,
)

Experiment = Callable[[Sequence[str]], int]
# The tables of these are their own; the others take those that are named.
END_TO_END: tuple[Experiment, ...] = (violations.main, marginals.main, times.main, training.main)
COMPONENTS: tuple[Experiment, ...] = (
    ablation.main,
    accept_reject.main,
    epsilons.main,
    constraints_count.main,
    resampling.main,
    cleaning.main,
)
# These have presets of their own.
PAPERS_WAY: tuple[Experiment, ...] = (preset.main, mends.main)


def main(argv: Sequence[str] | None = None) -> int:
    """Run them one after another; the cheapest to judge come first."""
    given = list(sys.argv[1:] if argv is None else argv)
    for experiment in END_TO_END:
        experiment(given)
    for experiment in COMPONENTS:
        experiment(without(without(given, "--tables"), "--full-tables"))
    for experiment in PAPERS_WAY:
        experiment(without(given, "--presets"))
    optimisations.main(without(given, "--tables"))
    return 0


def without(given: Sequence[str], option: str) -> list[str]:
    """The arguments but for an option and its values.

    >>> without(["--runs", "1", "--tables", "a", "b", "--rows", "9"], "--tables")
    ['--runs', '1', '--rows', '9']
    """
    kept, skipping = [], False
    for word in given:
        skipping = word == option or (skipping and not word.startswith("--"))
        kept += [] if skipping else [word]
    return kept


if __name__ == "__main__":
    sys.exit(main())

"""What constraints cost, from the same fits: each is drawn with constraints and with constraints ignored.

    python -m bench.useful.paired FOLDER... --judge JUDGE --runs 3

Two runs differ by the noise of their fits, more than constraints cost. So both draws here have the same seed: the same
releases, the same model. Prints, for each table and metric, the mean with constraints over the mean without; for areas
under the curve, the other way round.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.useful.cases import DELTA, MAIN_EPSILON, Case, Mode, Record
from bench.useful.folders import Source, find_source
from bench.useful.judging import LARGER_IS_BETTER, METRICS, judge
from kamino.io import write_table
from kamino.pipeline import Synthesizer


def main(argv: Sequence[str] | None = None) -> int:
    """Print a Markdown table of ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--judge", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args(argv)
    print("| table | " + " | ".join(METRICS) + " |")
    print("| --- |" + " --- |" * len(METRICS))
    with tempfile.TemporaryDirectory() as work:
        for folder in asked.folders:
            source = find_source(folder, rows=None, work=Path(work))
            found = ratios(source, asked.runs, asked.judge, Path(work))
            cells = [f"{found[name]:.2f}" if name in found else "" for name in METRICS]
            print(f"| {source.name} | " + " | ".join(cells) + " |", flush=True)
    return 0


def ratios(source: Source, runs: int, outside: Path | None, work: Path) -> dict[str, float]:
    """Return the mean of each metric with constraints over that without; above 1, constraints cost something."""
    means = {}
    for mode in (Mode.KEPT, Mode.IGNORED):
        records = [measure(source, mode, run, outside, work) for run in range(1, runs + 1)]
        names = [name for name in METRICS if all(record.metrics.get(name) is not None for record in records)]
        means[mode] = {name: float(np.mean([record.metrics[name] for record in records])) for name in names}
    kept, ignored = means[Mode.KEPT], means[Mode.IGNORED]
    both = [name for name in kept if kept[name] > 0 and ignored.get(name, 0.0) > 0]
    return {
        name: ignored[name] / kept[name] if name in LARGER_IS_BETTER else kept[name] / ignored[name] for name in both
    }


def measure(source: Source, mode: Mode, seed: int, outside: Path | None, work: Path) -> Record:
    """Fit with a seed, draw in one way, and judge."""
    made = Synthesizer(
        None, source.rules, epsilon=MAIN_EPSILON, delta=DELTA, trust_domain=True, sampling=mode.value, seed=seed
    ).fit(source.path)
    output = work / f"{source.name}-{mode.value}-{seed}.csv"
    write_table(made.sample(source.table.num_rows), output)
    return judge(Record(case=Case(table=source.name, mode=mode, run=seed)), source, output, outside)


if __name__ == "__main__":
    sys.exit(main())

"""Databases made and judged: `python -m bench.databases FOLDER [NAME ...] --judge JUDGE.py`.

FOLDER holds a folder for each database, with `database.json` for the judge and `train/` for the synthesizer. Schema and
rules are in this folder, or beside `database.json` as `database.yaml` and `rules.dc`. Each database is made with the
command that users have, at (1, 1e-6); the judge's figures are set against a bootstrap of families (`--floor`) and
against what is wanted. The exit code is 1 where one falls short.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
#: What is wanted of the known ones, and of any other, in times the floor; a distance below the second number is one.
WANTED: Mapping[str, Mapping[str, float]] = {
    "sandag": {
        **{"2-way": 0.015, "across": 0.014, "siblings": 0.015, "detect": 0.62, "cpu": 15},
        **{"target income": 0.74, "target married": 0.935, "target children": 0.94},
    },
    "tpch": {"detect": 0.60, "cpu": 25},
    "flights": {"2-way": 0.022, "public": 0.012},
}
TIMES, NEGLIGIBLE = 1.5, 0.003
DISTANCES = ("2-way", "across", "public", "hops", "siblings", "cousins", "children")
#: Figures of which more is better.
MORE = "target "


def made(folder: Path, out: Path, epsilon: float) -> float:
    """Make a database with the command; return the processor seconds that it took."""
    beside = folder / "database.yaml"
    schema = beside if beside.is_file() else HERE / f"{folder.name}.yaml"
    rules = schema.with_name("rules.dc") if beside.is_file() else schema.with_suffix(".dc")
    command = [sys.executable, "-m", "kamino", "synth", str(folder / "train"), "-s", str(schema)]
    command += ["-c", str(rules)] if rules.is_file() else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, "-e", str(epsilon), "-d", "1e-6", "-o", str(out)], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def judged(judge: Path, folder: Path, out: Path, *, floor: bool) -> dict[str, Any]:
    """The figures of the judge, by name."""
    with tempfile.TemporaryDirectory() as scratch:
        found = Path(scratch) / "figures.json"
        command = [sys.executable, str(judge), str(folder), str(out), "--json", str(found)]
        quiet = {**os.environ, "OMP_NUM_THREADS": "1"}
        subprocess.run([*command, *(["--floor"] if floor else [])], check=True, stdout=subprocess.DEVNULL, env=quiet)
        figures: dict[str, Any] = json.loads(found.read_text())
        return figures


def plain(figures: Mapping[str, Any]) -> dict[str, float]:
    """The figures that are compared: distances in bins of equal width."""
    mean = figures["mean"]
    found = {name: mean[name]["width"] if isinstance(mean[name], dict) else mean[name] for name in DISTANCES}
    found["detect"] = figures["detect"]
    found |= {f"{MORE}{name}": scores[0] for name, scores in figures["targets"].items()}
    return found


def broken(figures: Mapping[str, Any]) -> int:
    """How many rules are broken, and keys without a row or twice."""
    files = figures["files"]
    return sum(bool(count) for part in ("broken", "orphans", "doubled") for count in files[part].values())


def rows_of(
    name: str, runs: list[dict[str, float]], floor: Mapping[str, float]
) -> list[tuple[str, float, float, float]]:
    """Each figure with its mean over runs, the floor and what is wanted."""
    wanted = dict(WANTED.get(name, {}))
    for figure in DISTANCES:
        wanted.setdefault(figure, max(TIMES * floor[figure], NEGLIGIBLE))
    found = []
    for figure in runs[0]:
        mean = sum(run[figure] for run in runs) / len(runs)
        found.append((figure, mean, floor.get(figure, float("nan")), wanted.get(figure, float("nan"))))
    return found


def short(figure: str, mean: float, wanted: float) -> bool:
    """Whether a figure falls short of what is wanted."""
    return mean < wanted if figure.startswith(MORE) else mean > wanted


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--judge", type=Path, required=True)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=1, help="how often each is made")
    args = parser.parse_args()
    names = args.names or sorted(path.parent.name for path in args.folder.glob("*/database.json"))
    fell_short = False
    for name in names:
        folder, faults = args.folder / name, 0
        runs: list[dict[str, float]] = []
        floor: dict[str, float] = {}
        for turn in range(args.runs):
            with tempfile.TemporaryDirectory() as scratch:
                out = Path(scratch) / "out"
                cpu = made(folder, out, args.epsilon)
                figures = judged(args.judge, folder, out, floor=turn == 0)
            faults += broken(figures[str(out)])
            floor = plain(figures["floor"]) if turn == 0 else floor
            runs.append({**plain(figures[str(out)]), "cpu": cpu})
        print(f"== {name}: rules broken, keys without a row or twice: {faults}")
        print(f"{'':24}{'found':>9}{'floor':>9}{'wanted':>9}")
        for figure, mean, least, wanted in rows_of(name, runs, floor):
            is_short = short(figure, mean, wanted)
            fell_short |= is_short
            print(f"{figure:24}{mean:9.4f}{least:9.4f}{wanted:9.4f}{'  short' if is_short else ''}")
        fell_short |= faults > 0
    return int(fell_short)


if __name__ == "__main__":
    sys.exit(main())

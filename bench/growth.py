"""Measure how costs grow: processor seconds, wall time and peak memory, with the exponent of each law.

    python -m bench.growth                                     # every law and pair, this tree (an hour)
    python -m bench.growth "soft order in groups" --before 5863e38   # some of them, beside an earlier commit
    python -m bench.growth --small                             # what CI runs: fails on what is above a limit
    python -m bench.growth --write docs/speed.md               # put tables and plot into the page

Each command is a process of its own with one thread for linear algebra and at most 6 GiB of addresses. An exponent is
that of the cost without what the shortest run takes: log of the ratio of the costs of the largest and the smallest
size, over the log of the ratio of these. Costs below a fifth of a second count as that: they are noise.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from bench.growth_cases import LAWS, PAIRS, Build, Job, synth
from bench.growth_plot import plot

HERE = Path(__file__).resolve().parent.parent
_COMMAND = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
resource.setrlimit(resource.RLIMIT_CPU, ({patience}, {patience}))
from kamino.cli import main
sys.exit(main())
"""
#: A command is stopped after so many processor seconds.
PATIENCE = 300
_NOISE = 0.2


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What the commands of a job took together; `ended` says whether all of them ended well."""

    cpu: float
    wall: float
    mebibytes: float
    ended: bool = True

    def __str__(self) -> str:
        return f"{'' if self.ended else '>'}{self.cpu:.1f}"


@dataclass(frozen=True, kw_only=True)
class Point:
    """A law at one size, in this tree and in the earlier one."""

    law: str
    size: int
    now: Cost
    before: Cost | None = None


def run(tree: Path, arguments: Sequence[str], errors: Path) -> Cost:
    """Run `kamino` with these arguments from the source of a tree."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(tree / "src")}
    quiet = [
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, str(errors), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    code, begin = _COMMAND.format(patience=PATIENCE), time.perf_counter()
    process = os.posix_spawn(sys.executable, [sys.executable, "-c", code, *arguments], environment, file_actions=quiet)
    _, status, usage = os.wait4(process, 0)
    return Cost(
        cpu=usage.ru_utime + usage.ru_stime,
        wall=time.perf_counter() - begin,
        mebibytes=usage.ru_maxrss / 1024,
        ended=os.waitstatus_to_exitcode(status) == 0,
    )


def measure(build: Build, size: int, tree: Path) -> Cost:
    """Make what a job needs, and run what it measures."""
    with tempfile.TemporaryDirectory() as name:
        job, errors = build(Path(name), size), Path(name) / "errors"
        costs = [run(tree, command, errors) for command in (*job.before, *job.commands)]
        if not all(cost.ended for cost in costs):
            print(errors.read_text(errors="replace").strip()[-300:], file=sys.stderr)
    measured = costs[len(job.before) :]
    return Cost(
        cpu=sum(cost.cpu for cost in measured),
        wall=sum(cost.wall for cost in measured),
        mebibytes=max(cost.mebibytes for cost in measured),
        ended=all(cost.ended for cost in costs),
    )


def shortest(folder: Path, size: int) -> Job:
    """A run that does next to nothing: what starting costs."""
    return synth(pa.table({"a": [0, 1] * size}), "", folder)


def exponent(points: Sequence[Point], start: float) -> float:
    """The exponent with which a cost grows from the first size to the last.

    >>> cost = lambda seconds: Cost(cpu=seconds, wall=seconds, mebibytes=1)
    >>> round(exponent([Point(law="", size=10, now=cost(2)), Point(law="", size=100, now=cost(101))], 1), 3)
    2.0
    """
    first, last = points[0], points[-1]
    if first.size == last.size:
        return 0.0
    ratio = max(last.now.cpu - start, _NOISE) / max(first.now.cpu - start, _NOISE)
    return math.log(ratio) / math.log(last.size / first.size)


def faults_of(name: str, points: Sequence[Point], start: float) -> list[str]:
    """What is above the limits of a law."""
    law, found = LAWS[name], []
    if (steep := exponent(points, start)) > law.exponent:
        found.append(f"{name}: exponent {steep:.2f}, at most {law.exponent:g}")
    if law.times is not None and (times := points[-1].now.cpu / points[0].now.cpu) > law.times:
        found.append(f"{name}: {times:.2f} times from {points[0].size:,} to {points[-1].size:,}, at most {law.times:g}")
    for point in points:
        most = (law.seconds or {}).get(point.size, math.inf)
        if not point.now.ended:
            found.append(f"{name} at {point.size:,}: did not end")
        elif point.now.cpu > most:
            found.append(f"{name} at {point.size:,}: {point.now.cpu:.1f} s, at most {most:g}")
    return found


def measure_laws(names: Sequence[str], trees: Sequence[Path], *, small: bool) -> Iterator[tuple[str, list[Point]]]:
    """Measure laws, size by size, the trees in turn."""
    for name in names:
        law, points = LAWS[name], []
        for size in law.small if small else law.sizes:
            now, *before = (measure(law.build, size, tree) for tree in trees)
            points.append(Point(law=name, size=size, now=now, before=before[0] if before else None))
            earlier = f"   before {before[0]} s, {before[0].mebibytes:,.0f} MiB" if before else ""
            figures = f"{now} s, wall {now.wall:.1f} s, {now.mebibytes:,.0f} MiB{earlier}"
            print(f"{name:28} {size:>10,} {law.unit:12} {figures}", flush=True)
        if points:
            yield name, points


def settled(laws: dict[str, list[Point]], trees: Sequence[Path], start: float) -> dict[str, list[Point]]:
    """The laws of a small run, those above a limit measured once more: what is there once only is a busy machine's.

    Each size then costs the least of its two runs.
    """
    found = dict(laws)
    for name in [name for name, points in laws.items() if faults_of(name, points, start)]:
        again = dict(measure_laws([name], trees, small=True))[name]
        pairs = zip(laws[name], again, strict=True)
        found[name] = [min(pair, key=lambda each: (not each.now.ended, each.now.cpu)) for pair in pairs]
    return found


def law_rows(points: Sequence[Point], start: float) -> list[str]:
    """The lines of one law."""
    law, rows = LAWS[points[0].law], []
    for point in points:
        before = [str(point.before), f"{point.before.mebibytes:,.0f}"] if point.before else ["", ""]
        most = (law.seconds or {}).get(point.size)
        limit = "" if most is None else f"≤ {most:g} s{', **missed**' if point.now.cpu > most else ''}"
        is_last = point is points[-1]
        steep = f"{exponent(points, start):.2f} (≤ {law.exponent:g})" if is_last and law.times is None else ""
        if is_last and law.times is not None:
            steep = f"{point.now.cpu / points[0].now.cpu:.2f} times (≤ {law.times:g})"
        figures = [str(point.now), f"{point.now.wall:.1f}", f"{point.now.mebibytes:,.0f}", *before, limit, steep]
        rows.append(f"| {' | '.join([point.law, f'{point.size:,} {law.unit}', *figures])} |")
    return rows


HEADER = "| what | size | CPU s | wall s | MiB | CPU s before | MiB before | limit | exponent |"


def pair_row(name: str, trees: Sequence[Path]) -> tuple[str, list[str]]:
    """One pair: its line, and what is above its limit."""
    pair = PAIRS[name]
    costs = [[measure(build, pair.rows, tree) for build in (pair.beside, pair.build)] for tree in trees]
    (without, made), *rest = costs
    times = made.cpu / without.cpu
    before = f"{rest[0][1]} ({rest[0][1].cpu / rest[0][0].cpu:.1f})" if rest else ""
    limit = f"≤ {pair.times:g} times{', **missed**' if times > pair.times else ''}"
    cells = [
        name,
        f"{pair.rows:,} rows",
        str(without),
        str(made),
        f"{times:.2f}",
        f"{made.mebibytes:,.0f}",
        before,
        limit,
    ]
    print(" | ".join(cells), flush=True)
    return f"| {' | '.join(cells)} |", [f"{name}: {times:.2f} times, at most {pair.times:g}"] * (times > pair.times)


PAIR_HEADER = "| what | size | without, CPU s | with, CPU s | times | MiB | before, CPU s (times) | limit |"


def ruled(header: str) -> str:
    """A header of a table with the line below it."""
    return f"{header}\n|{' --- |' * (header.count('|') - 1)}"


def earlier_tree(commit: str, folder: Path) -> Path:
    """Clone an earlier commit."""
    clone = folder / "earlier"
    if not clone.exists():
        subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(HERE), str(clone)], check=True)
    subprocess.run(["git", "-C", str(clone), "checkout", "--quiet", commit], check=True)
    return clone


def main(given: Sequence[str] | None = None) -> int:
    """Measure what is asked for; the exit code is 1 if CI's small run is above a limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help=f"some of: {', '.join([*LAWS, *PAIRS])}")
    parser.add_argument("--small", action="store_true", help="few small sizes; fail on an exponent above its limit")
    parser.add_argument("--before", help="an earlier commit to measure beside this one")
    parser.add_argument("--work", type=Path, help="where the clone and the figures are kept")
    parser.add_argument("--write", type=Path, help="the page to put tables and plot into")
    asked = parser.parse_args(given)
    chosen = asked.cases or [*LAWS, *PAIRS]
    if unknown := [name for name in chosen if name not in LAWS and name not in PAIRS]:
        parser.error(f"found {', '.join(unknown)}; expected some of: {', '.join([*LAWS, *PAIRS])}")
    with tempfile.TemporaryDirectory() as temporary:
        work: Path = (asked.work or Path(temporary)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        trees = [HERE, *([earlier_tree(asked.before, work)] if asked.before else [])]
        start = min(measure(shortest, 10, HERE).cpu for _ in range(3))
        laws = dict(measure_laws([name for name in chosen if name in LAWS], trees, small=asked.small))
        laws = settled(laws, trees, start) if asked.small else laws
        pairs = [pair_row(name, trees) for name in chosen if name in PAIRS and not asked.small]
        kept = [{**asdict(point), "start": start} for points in laws.values() for point in points]
        (work / "growth.json").write_text(json.dumps(kept, indent=1))
    faults = [fault for name, points in laws.items() for fault in faults_of(name, points, start)]
    faults += [fault for _, found in pairs for fault in found]
    print(*faults, sep="\n")
    if asked.write:
        table = "\n".join([ruled(HEADER), *(row for points in laws.values() for row in law_rows(points, start))])
        beside = ["", "", ruled(PAIR_HEADER), *(row for row, _ in pairs)] if pairs else []
        write(asked.write, table + "\n".join(beside))
        curves = {name: [(each.size, each.now.cpu) for each in points] for name, points in laws.items()}
        (asked.write.parent / "growth.svg").write_text(plot(curves), encoding="utf-8")
    return int(bool(faults) and asked.small)


def write(page: Path, text: str) -> None:
    """Put figures between the marks of a page."""
    start, end = "<!-- growth -->", "<!-- end of growth -->"
    old = page.read_text(encoding="utf-8")
    new = f"{start}\n{text}\n{end}"
    page.write_text(re.sub(f"{start}.*{end}", lambda _: new, old, flags=re.DOTALL), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

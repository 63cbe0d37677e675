"""Compare the cost of this version with that of an earlier commit: processor seconds, peak memory, ratios in one table.

    python -m bench.speed --data FOLDER --write docs/speed.md      # everything; FOLDER has T/T.csv with T/T.ic
    python -m bench.speed columns noise start --work FOLDER        # some parts, into what FOLDER has of the others

The earlier commit is cloned from this repository. Each version is installed into an environment of its own, with what
it asks for and nothing else, and each command is a process of its own with one thread for linear algebra, without a
seed, as it is used. Where the earlier commit needs longer than a limit it is stopped, and its cost is a lower bound.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench import speed_draw
from kamino.datasets import TAX_CONSTRAINTS, tax

HERE = Path(__file__).resolve().parent.parent
BEFORE = "2f4c440"
#: Processor seconds after which a command of the earlier commit is stopped.
PATIENCE = 120
#: Commands of fewer seconds than the first are run so many times.
SHORT, TIMES = 15.0, 5
_COMMAND = "import sys; from kamino.cli import main; sys.exit(main())"
_NOISE = """
import json, time
from kamino.privacy import SecureNoise
noise = SecureNoise()
noise.discrete_gaussian(6.0, (10,))
begin = time.process_time()
noise.discrete_gaussian(6.0, (1_000_000,))
print(json.dumps(time.process_time() - begin))
"""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a command took; `stopped` if it was not waited for."""

    seconds: float
    gibibytes: float
    stopped: bool = False


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table. Limits are on this version's seconds and GiB, and on both in parts of the earlier's."""

    what: str
    now: Cost
    before: Cost | None = None
    seconds: float | None = None
    gibibytes: float | None = None
    ratio: float | None = None
    memory_ratio: float | None = None

    def verdict(self) -> str:
        """Say which limits there are, and whether they are kept."""
        said = []
        pairs = [("s", self.now.seconds, self.seconds), ("GiB", self.now.gibibytes, self.gibibytes)]
        if self.before is not None:
            pairs += [("times the seconds", self.now.seconds / self.before.seconds, self.ratio)]
            pairs += [("times the memory", self.now.gibibytes / self.before.gibibytes, self.memory_ratio)]
        for unit, found, limit in pairs:
            if limit is not None:
                said.append(f"≤ {limit:g} {unit}{'' if found <= limit else ', **missed**'}")
        return "; ".join(said)

    def cells(self) -> list[str]:
        """The line, cell by cell."""
        if self.before is None:
            ratio, earlier = "", ["", ""]
        else:
            more, less = (">", "<") if self.before.stopped else ("", "")
            ratio = f"{less}{self.now.seconds / self.before.seconds:.2f}"
            earlier = [f"{more}{self.before.seconds:.1f}", f"{self.before.gibibytes:.2f}"]
        return [self.what, f"{self.now.seconds:.1f}", f"{self.now.gibibytes:.2f}", *earlier, ratio, self.verdict()]


def install(source: Path, folder: Path) -> str:
    """Install a version into an environment in `folder`, made if it is not there; return its Python."""
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, env=environment)
        subprocess.run([*pip, str(source)], check=True, env=environment)
    subprocess.run([*pip, "--force-reinstall", "--no-deps", str(source)], check=True, env=environment)
    return python


def prepare(work: Path, commit: str) -> tuple[str, str]:
    """Install this version and an earlier commit; return the Python of each."""
    earlier = work / "earlier"
    if not earlier.exists():
        subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", str(HERE), str(earlier)], check=True)
    subprocess.run(["git", "-C", str(earlier), "checkout", "--quiet", commit], check=True)
    return install(HERE, work / "now-env"), install(earlier, work / "earlier-env")


def run(python: str, code: str, arguments: Sequence[str], *, patience: int | None = None) -> tuple[Cost, str]:
    """Run code by the Python of a version; return what it took and what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    if patience is not None:
        code = f"import resource; resource.setrlimit(resource.RLIMIT_CPU, ({patience}, {patience}))\n{code}"
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([python, "-I", "-c", code, *arguments], env=environment, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode()
    cost = Cost(
        seconds=usage.ru_utime + usage.ru_stime, gibibytes=usage.ru_maxrss / 2**20, stopped=process.returncode < 0
    )
    if process.returncode > 0 or (cost.stopped and patience is None):
        raise RuntimeError(f"found that {' '.join(arguments) or 'the code'} failed; expected that it ends well")
    return cost, text


def both(pythons: Sequence[str], arguments: Callable[[Path], list[str]]) -> list[Cost]:
    """Run `kamino` in each version, this one first; `arguments` is given a folder for outputs.

    Short commands are run `TIMES` times, the versions in turn, and have the median: one run is off by a third.
    """
    turns = [_turn(pythons, arguments)]
    while len(turns) < TIMES and all(cost.seconds < SHORT and not cost.stopped for cost in turns[0]):
        turns.append(_turn(pythons, arguments))
    return [sorted(costs, key=lambda cost: cost.seconds)[len(costs) // 2] for costs in zip(*turns, strict=True)]


def _turn(pythons: Sequence[str], arguments: Callable[[Path], list[str]]) -> list[Cost]:
    found = []
    for number, python in enumerate(pythons):
        with tempfile.TemporaryDirectory() as folder:
            found.append(run(python, _COMMAND, arguments(Path(folder)), patience=PATIENCE if number else None)[0])
    return found


def tables(pythons: Sequence[str], data: Path) -> Iterator[Row]:
    """The paper's tables, end to end by the command."""
    for path in sorted(data.glob("*/*.ic")):
        name = path.stem

        def arguments(folder: Path, path: Path = path, name: str = name) -> list[str]:
            table = str(path.with_suffix(".csv"))
            return ["synth", table, "-c", str(path), "-o", str(folder / f"{name}.csv"), "--trust-domain"]

        now, before = both(pythons, arguments)
        yield Row(what=f"{name}, end to end", now=now, before=before, ratio=0.4, seconds=6 if name == "adult" else None)


def wide_table(num_columns: int, num_rows: int = 20_000) -> pa.Table:
    """Columns of five kinds; five in a row share a hidden number, which leans on that of the five before."""
    rng = np.random.default_rng(7)
    columns: dict[str, pa.Array] = {}
    hidden = rng.normal(size=num_rows)
    for j in range(num_columns):
        if j % 5 == 0:
            hidden = 0.5 * hidden + 0.87 * rng.normal(size=num_rows)
        score = hidden * rng.uniform(0.4, 1.2) + 0.8 * rng.normal(size=num_rows)
        match j % 5:
            case 0:
                columns[f"flag{j}"] = pa.array(np.where(score > 0.5 * rng.normal(), "yes", "no"))
            case 1:
                cuts = np.sort(rng.normal(size=rng.integers(3, 9)))
                columns[f"class{j}"] = pa.array([f"c{place}" for place in np.digitize(score, cuts)])
            case 2:
                columns[f"count{j}"] = pa.array(np.clip(np.rint(20 + 6 * score), 0, 60).astype(np.int64))
            case 3:
                columns[f"amount{j}"] = pa.array(np.round(np.exp(6 + 0.6 * score), 2))
            case _:
                grade = np.clip(np.rint(50 + 15 * score), 0, 100).astype(np.int64)
                columns[f"grade{j}"] = pa.array(grade, mask=rng.random(num_rows) < 0.05)
    return pa.table(columns)


def columns(pythons: Sequence[str]) -> Iterator[Row]:
    """Tables of more and more columns; the earlier commit does the first two."""
    last: Cost | None = None
    for number in (20, 50, 100, 200):
        with tempfile.TemporaryDirectory() as name:
            source = Path(name) / "wide.parquet"
            pq.write_table(wide_table(number), source)
            rules = Path(name) / "none.dc"
            rules.write_text("")

            def arguments(folder: Path, source: Path = source, rules: Path = rules) -> list[str]:
                return ["synth", str(source), "-c", str(rules), "-o", str(folder / "out.parquet"), "--trust-domain"]

            now, *before = both(pythons if number <= 50 else pythons[:1], arguments)
        most = None if last is None or number == 50 else 4 * last.seconds
        most = 120.0 if number == 200 else most
        yield Row(
            what=f"{number} columns, 20,000 rows",
            now=now,
            before=before[0] if before else None,
            seconds=most and round(most, 1),
            gibibytes=1.5 if number == 200 else None,
        )
        last = now


def scale(pythons: Sequence[str]) -> Iterator[Row]:
    """A million rows of the built-in table: the fit, and a million rows drawn from it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(tax(1_000_000), folder / "tax.parquet")
        (folder / "tax.dc").write_text(TAX_CONSTRAINTS)
        costs = []
        for number, python in enumerate(pythons):
            model, one = folder / f"{number}.kamino", folder / f"one{number}.parquet"
            fit = ["synth", str(folder / "tax.parquet"), "-c", str(folder / "tax.dc"), "--trust-domain", "-n", "1"]
            fit += ["--save-model", str(model), "-o", str(one)]
            draw = ["sample", str(model), "-n", "1000000", "-o", str(folder / f"out{number}.parquet")]
            costs.append([run(python, _COMMAND, command)[0] for command in (fit, draw)])
    (fit_now, draw_now), (fit_before, draw_before) = costs
    yield Row(what="built-in, 1M rows: fit", now=fit_now, before=fit_before, ratio=0.3, memory_ratio=0.6)
    yield Row(what="built-in, 1M rows: draw", now=draw_now, before=draw_before, ratio=0.4, memory_ratio=0.6)


#: Limits of what is drawn: seconds, parts of the earlier commit's, and times the seconds of another case.
DRAWN_SECONDS = {"groups": 5.0, "three inequalities, 100k": 120.0}
DRAWN_RATIO = {"soft": 0.3}
DRAWN_TIMES = {
    "three inequalities, 50k": ("three inequalities, 25k", 2.6),
    "three inequalities, 100k": ("three inequalities, 50k", 2.6),
    "dependency and order": ("dependency", 1.5),
}


def drawing(pythons: Sequence[str]) -> Iterator[Row]:
    """The cases of `bench.speed_draw`, fit and draw together; the earlier commit needs hours for most."""
    found: dict[str, Cost] = {}
    for name, case in speed_draw.CASES.items():
        if case.drawn is not None:
            continue
        costs = [_drawn(case, python) for python in (pythons if name in DRAWN_RATIO else pythons[:1])]
        found[name] = costs[0]
        least = DRAWN_SECONDS.get(name, math.inf)
        if name in DRAWN_TIMES:
            other, times = DRAWN_TIMES[name]
            least = min(least, times * found[other].seconds)
        yield Row(
            what=f"{name}, {case.rows:,} rows",
            now=costs[0],
            before=costs[1] if len(costs) > 1 else None,
            seconds=round(least, 1) if math.isfinite(least) else None,
            ratio=DRAWN_RATIO.get(name),
        )


def _drawn(case: speed_draw.Case, python: str) -> Cost:
    parts = speed_draw.measure(case, None, python=python).values()
    return Cost(seconds=sum(part.seconds for part in parts), gibibytes=max(part.gibibytes for part in parts))


def noise(pythons: Sequence[str]) -> Iterator[Row]:
    """A million exact noisy counts, imports apart."""
    costs = []
    for python in pythons:
        cost, text = run(python, _NOISE, [])
        costs.append(Cost(seconds=json.loads(text), gibibytes=cost.gibibytes))
    yield Row(what="a million noisy counts", now=costs[0], before=costs[1], seconds=1.0)


def start(pythons: Sequence[str]) -> Iterator[Row]:
    """The command's help."""
    now, before = both(pythons, lambda _: ["--help"])
    yield Row(what="`kamino --help`", now=now, before=before, seconds=0.6)


HEADER = ("what", "s", "GiB", "s before", "GiB before", "ratio", "limits")
PAGE = """\
# What a run costs

Processor seconds (user and system) and peak memory of this version, and of commit `{before}` before it, measured one
after the other on {machine} by `python -m bench.speed`. Each version has an environment of
its own; each command is a process of its own, its start and its imports included, with one thread for linear algebra;
`>` where the earlier commit was stopped. Commands of less than fifteen seconds are run five times, the two versions in
turn, and have the median. Since that commit the model has become richer: relations between columns,
triples, several resolutions. Imports take about half a second of every run.

{table}
{remark}"""


def as_table(rows: Sequence[Row]) -> str:
    """All lines as a Markdown table."""
    lines = [HEADER, ("---",) * len(HEADER), *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


PARTS: Mapping[str, Callable[[Sequence[str]], Iterator[Row]]] = {
    "columns": columns,
    "scale": scale,
    "drawing": drawing,
    "noise": noise,
    "start": start,
}


def measure_parts(parts: Mapping[str, Callable[[], Iterator[Row]]], store: Path) -> list[Row]:
    """Measure parts, print and store their lines, and return those of all parts that are stored."""
    stored: dict[str, list[dict[str, Any]]] = json.loads(store.read_text()) if store.exists() else {}
    for name, measured in parts.items():
        stored[name] = []
        for row in measured():
            print(" | ".join(row.cells()), flush=True)
            stored[name].append(asdict(row))
            store.write_text(json.dumps(stored, indent=1))
    return [_row(each) for name in ("tables", *PARTS) for each in stored.get(name, ())]


def _row(stored: dict[str, Any]) -> Row:
    costs = {name: stored[name] and Cost(**stored[name]) for name in ("now", "before")}
    return Row(**{**stored, **costs})


def kept_part(page: Path) -> str:
    """What `bench.growth` has written into the page: it stays."""
    old = page.read_text() if page.exists() else ""
    _, mark, rest = old.partition("\n## How costs grow")
    return mark + rest


def main() -> None:
    """Measure the parts asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"some of: tables, {', '.join(PARTS)}")
    parser.add_argument("--data", type=Path, help="a folder of tables T/T.csv with T/T.ic")
    parser.add_argument("--before", default=BEFORE, help="the commit to compare with")
    parser.add_argument("--work", type=Path, help="a folder for environments and figures, to go on with them")
    parser.add_argument("--write", type=Path, help="where to write the page")
    parser.add_argument("--remark", default="", help="what to say below the table, such as how busy the machine was")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work: Path = (arguments.work or Path(temporary)).resolve()
        work.mkdir(exist_ok=True)
        pythons = prepare(work, arguments.before)
        parts = {name: partial(part, pythons) for name, part in PARTS.items()}
        if arguments.data:
            parts = {"tables": partial(tables, pythons, arguments.data.resolve()), **parts}
        chosen = {name: parts[name] for name in arguments.parts or parts}
        rows = measure_parts(chosen, work / "figures.json")
    if arguments.write:
        machine = f"{os.cpu_count()} cores of {platform.machine()}, Python {platform.python_version()}"
        remark = f"\n{arguments.remark}\n" if arguments.remark else ""
        page = PAGE.format(before=arguments.before, machine=machine, table=as_table(rows), remark=remark)
        arguments.write.write_text(page + kept_part(arguments.write))


if __name__ == "__main__":
    main()

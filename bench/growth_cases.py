"""What `bench.growth` runs: tables and rules that grow in one way each, and commands on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kamino.datasets import TAX_CONSTRAINTS, tax


@dataclass(frozen=True, kw_only=True)
class Job:
    """Commands that are measured together, and those that make what they need."""

    commands: Sequence[Sequence[str]]
    before: Sequence[Sequence[str]] = ()


Build: TypeAlias = Callable[[Path, int], Job]


@dataclass(frozen=True, kw_only=True)
class Law:
    """A cost that grows with one size, by an exponent that has a limit; `small` are the sizes that CI runs.

    `seconds` are limits for some of the sizes; `times` a limit on the last size's cost in costs of the first.
    """

    unit: str
    build: Build
    sizes: tuple[int, ...]
    small: tuple[int, ...] = ()
    exponent: float = 1.15
    seconds: Mapping[int, float] | None = None
    times: float | None = None


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A cost beside that of the same without something; `times` is the limit."""

    build: Build
    beside: Build
    rows: int
    times: float


def synth(table: pa.Table, rules: str, folder: Path, *more: str, epsilon: float = 1.0) -> Job:
    """Fit and draw by one command."""
    pq.write_table(table, folder / "table.parquet")
    (folder / "rules.dc").write_text(rules + "\n")
    made = ["synth", str(folder / "table.parquet"), "-c", str(folder / "rules.dc"), "-o", str(folder / "out.parquet")]
    return Job(commands=[[*made, "--trust-domain", "--seed", "1", "--accept", "--epsilon", str(epsilon), *more]])


def drawn(table: pa.Table, rules: str, folder: Path, rows: int, *more: str) -> Job:
    """Fit by one command, and draw by another: the second is measured."""
    (fit,) = synth(table, rules, folder, "-n", "1", "--save-model", str(folder / "model.kamino")).commands
    draw = ["sample", str(folder / "model.kamino"), "-n", str(rows), "-o", str(folder / "out.parquet"), "--seed", "2"]
    return Job(before=[fit], commands=[[*draw, *more]])


def grouped(rows: int) -> pa.Table:
    """Fifty states, a salary and a rate that mostly grows with it, a band that mostly follows the salary."""
    rng = np.random.default_rng(1)
    state, salary = rng.integers(0, 50, rows), np.round(rng.lognormal(10.5, 0.5, rows) / 100).astype(np.int64)
    rate = np.where(rng.random(rows) < 0.05, rng.integers(0, 500, rows), np.clip(salary // 4 + state, 0, 499))
    band = np.where(rng.random(rows) < 0.05, rng.integers(0, 20, rows), np.clip(salary // 100, 0, 19))
    return pa.table(
        {
            "state": [f"s{i}" for i in state],
            "salary": salary,
            "rate": rate,
            "band": band,
            "kind": rng.integers(0, 5, rows),
        }
    )


def stray(rows: int) -> pa.Table:
    """Fifty states with two hundred places each, and an office that mostly follows from both."""
    rng = np.random.default_rng(2)
    state, place = rng.integers(0, 50, rows), rng.integers(0, 200, rows)
    office = np.where(rng.random(rows) < 0.03, rng.integers(0, 30, rows), (state * 7 + place) % 30)
    return pa.table({"state": state, "place": place, "office": office, "kind": rng.integers(0, 5, rows)})


def numbers(rows: int) -> pa.Table:
    """Three numbers that grow with each other, and a class."""
    rng = np.random.default_rng(3)
    a, b = rng.integers(0, 1000, rows), rng.integers(0, 1000, rows)
    return pa.table({"a": a, "b": b, "c": a + b, "d": rng.integers(0, 5, rows)})


def keyed(rows: int) -> pa.Table:
    """Orders and lines that are a key together, ids as text and as numbers, and what goes with them."""
    rng = np.random.default_rng(4)
    line = np.arange(rows) % 5
    return pa.table(
        {
            "order": np.arange(rows) // 5,
            "line": line,
            "text": [f"id-{i:08d}" for i in range(rows)],
            "number": rng.permutation(rows * 3)[:rows],
            "price": np.round(rng.lognormal(3, 1, rows), 1),
            "kind": rng.integers(0, 8, rows),
        }
    )


def named(values: int, rows: int = 100_000) -> pa.Table:
    """A code and its name, each of which says the other."""
    rng = np.random.default_rng(5)
    code = np.append(np.arange(values), rng.integers(0, values, max(0, rows - values)))
    return pa.table(
        {"code": code, "name": [f"name {i * 7919 % values:06d}" for i in code], "kind": rng.integers(0, 5, len(code))}
    )


def ordered(count: int, rows: int = 20_000) -> pa.Table:
    """Numbers that grow together."""
    rng = np.random.default_rng(6)
    level = rng.random(rows)
    return pa.table({f"n{i}": np.floor(level * (20 + 5 * i)).astype(np.int64) for i in range(count + 1)})


def orders(count: int) -> str:
    """That each grows with the first."""
    return "\n".join(f"not (t1.n0 < t2.n0 and t1.n{i + 1} > t2.n{i + 1})" for i in range(count))


def conditional(length: int, rows: int = 20_000) -> tuple[pa.Table, str]:
    """Two lists: who has one of the first list has one of the second."""
    rng = np.random.default_rng(7)
    a, b = rng.integers(0, 2 * length, rows), rng.integers(0, 2 * length, rows)
    b = np.where(a < length, b % length, b)
    first, second = (", ".join(f"'{name}{i}'" for i in range(length)) for name in "ab")
    table = pa.table({"a": [f"a{i}" for i in a], "b": [f"b{i}" for i in b], "c": rng.integers(0, 5, rows)})
    return table, f"check (a not in ({first}) or b in ({second}))"


def wide(columns: int, rows: int = 20_000) -> pa.Table:
    """Columns of five kinds, which lean on each other in groups of five."""
    rng = np.random.default_rng(8)
    found: dict[str, np.ndarray] = {}
    hidden = rng.normal(size=rows)
    for j in range(columns):
        hidden = 0.5 * hidden + 0.87 * rng.normal(size=rows) if j % 5 == 0 else hidden
        score = hidden * (0.4 + 0.1 * (j % 7)) + 0.8 * rng.normal(size=rows)
        size = (2, 6, 61, 2000, 101)[j % 5]
        found[f"c{j}"] = np.clip(np.rint((score + 4) / 8 * size), 0, size - 1).astype(np.int64)
    return pa.table(found)


def dependent(count: int, shape: str, rows: int = 20_000) -> tuple[pa.Table, str]:
    """Dependencies among 110 columns: from a hub, in chains of five, in diamonds, or at random."""
    rng = np.random.default_rng(9)
    of: dict[str, Callable[[int], int]] = {
        "star": lambda i: 0,
        "chain": lambda i: i if i % 5 else 0,
        "diamond": lambda i: max(0, i - 1 - i % 2),
        "random": lambda i: int(rng.integers(0, i + 1)),
    }
    found, rules = {"c0": rng.integers(0, 60, rows)}, []
    for i in range(count):
        left = of[shape](i)
        found[f"c{i + 1}"] = rng.integers(0, 12 + i % 9, 60)[found[f"c{left}"] % 60]
        rules.append(f"c{left} -> c{i + 1}")
    for i in range(count + 1, 110):
        found[f"c{i}"] = rng.integers(0, 2 + i % 7, rows)
    return pa.table(found), "\n".join(rules)


def compared(count: int, rows: int = 20_000) -> tuple[pa.Table, str]:
    """Checks between numbers that grow from column to column: as many pairs as are asked for."""
    rng = np.random.default_rng(10)
    columns = int(np.ceil((1 + np.sqrt(1 + 8 * count)) / 2))
    level = np.sort(rng.integers(0, 50, (rows, columns)), axis=1)
    pairs = [(i, j) for j in range(columns) for i in range(j)][:count]
    rules = "\n".join(f"check (c{i} <= c{j})" for i, j in pairs)
    return pa.table({f"c{i}": level[:, i] for i in range(columns)}), rules


def suggested(table: pa.Table, folder: Path) -> Job:
    """Look for constraints."""
    pq.write_table(table, folder / "table.parquet")
    command = ["suggest", str(folder / "table.parquet"), "--trust-domain", "--epsilon", "1", "--seed", "1", "--accept"]
    return Job(commands=[command])


def reported(rows: int, folder: Path) -> Job:
    """Compare two tables of the built-in kind."""
    for seed, name in enumerate(("true", "synthetic")):
        pq.write_table(tax(rows, seed=seed + 1), folder / f"{name}.parquet")
    (folder / "rules.dc").write_text(TAX_CONSTRAINTS)
    files = [str(folder / "true.parquet"), str(folder / "synthetic.parquet"), "-c", str(folder / "rules.dc")]
    return Job(commands=[["report", *files, "-o", str(folder / "page.html")]])


def checked(rows: int, folder: Path) -> Job:
    """Count violations in the built-in table."""
    pq.write_table(tax(rows, seed=1), folder / "table.parquet")
    (folder / "rules.dc").write_text(TAX_CONSTRAINTS)
    return Job(commands=[["check", str(folder / "table.parquet"), "-c", str(folder / "rules.dc")]])


def _dependent(shape: str, folder: Path, count: int) -> Job:
    return synth(*dependent(count, shape), folder)


SOFT_ORDER = "soft: not (t1.state = t2.state and t1.salary > t2.salary and t1.rate < t2.rate)"
SOFT_DEPENDENCY = "soft: state, place -> office"
ORDER = "not (t1.g = t2.g and t1.x < t2.x and t1.a > t2.a)"
GENERAL = "not (t1.a < t2.a and t1.b < t2.b and t1.c > t2.c)"

LAWS: Mapping[str, Law] = {
    "built-in, fit and draw": Law(
        unit="rows",
        build=lambda folder, rows: synth(tax(rows, seed=1), TAX_CONSTRAINTS, folder),
        sizes=(100_000, 300_000, 1_000_000),
        small=(20_000, 80_000),
    ),
    "columns": Law(
        unit="columns",
        build=lambda folder, n: synth(wide(n), "", folder),
        sizes=(25, 50, 100, 200),
        small=(10, 20),
        exponent=2.0,
    ),
    "one domain": Law(
        unit="values",
        build=lambda folder, n: synth(named(n), "", folder),
        sizes=(1_000, 10_000, 100_000),
        small=(500, 4_000),
    ),
    **{
        f"dependencies, {shape}": Law(
            unit="dependencies",
            build=partial(_dependent, shape),
            sizes=(5, 10, 20, 50, 100),
            exponent=2.0,
            seconds=dict.fromkeys((5, 10, 20, 50, 100), 60.0),
        )
        for shape in ("star", "chain", "diamond", "random")
    },
    "checks": Law(
        unit="checks",
        build=lambda folder, n: synth(*compared(n), folder),
        sizes=(20, 190, 1_000),
        exponent=2.0,
        small=(3, 10),
        seconds=dict.fromkeys((20, 190, 1_000), 60.0),
    ),
    "orders without a group": Law(
        unit="orders",
        build=lambda folder, n: synth(ordered(n), orders(n), folder),
        sizes=(5, 10, 20),
        small=(5, 12),
        exponent=2.0,
    ),
    "soft order in groups": Law(
        unit="rows",
        build=lambda folder, rows: synth(grouped(rows), SOFT_ORDER, folder),
        sizes=(50_000, 200_000, 1_000_000),
        small=(10_000, 40_000),
        seconds={200_000: 12.0, 1_000_000: 60.0},
    ),
    "soft dependency in groups": Law(
        unit="rows",
        build=lambda folder, rows: synth(stray(rows), SOFT_DEPENDENCY, folder),
        sizes=(50_000, 200_000, 1_000_000),
        small=(10_000, 40_000),
        seconds={200_000: 12.0, 1_000_000: 60.0},
    ),
    "code and name, drawn": Law(
        unit="values",
        build=lambda folder, n: drawn(named(n), "code -> name\nname -> code", folder, 100_000),
        sizes=(1_000, 4_000, 20_000, 100_000),
        small=(1_000, 4_000),
        seconds={4_000: 2.0, 100_000: 6.0},
    ),
    "conditional check": Law(
        unit="values",
        build=lambda folder, n: synth(*conditional(n), folder),
        sizes=(20, 50, 100),
        small=(10, 40),
        seconds={100: 3.0},
    ),
    "epsilon": Law(
        unit="epsilon",
        build=lambda folder, n: synth(tax(200_000, seed=1), TAX_CONSTRAINTS, folder, epsilon=n),
        sizes=(1, 10, 100),
        times=1.2,
    ),
    "suggest": Law(
        unit="rows",
        build=lambda folder, rows: suggested(tax(rows, seed=1), folder),
        sizes=(100_000, 1_000_000),
        small=(10_000, 40_000),
        seconds={1_000_000: 10.0},
    ),
    "suggest, columns": Law(
        unit="columns",
        build=lambda folder, n: suggested(wide(n, 100_000), folder),
        sizes=(10, 20, 30),
        exponent=3.0,
        seconds={30: 10.0},
    ),
    "report": Law(
        unit="rows",
        build=lambda folder, rows: reported(rows, folder),
        sizes=(100_000, 1_000_000),
        small=(10_000, 40_000),
        seconds={1_000_000: 8.0},
    ),
    "check": Law(
        unit="rows",
        build=lambda folder, rows: checked(rows, folder),
        sizes=(1_000_000, 4_000_000),
        small=(50_000, 200_000),
    ),
    "groups of an order": Law(
        unit="groups",
        build=lambda folder, n: synth(in_groups(n), ORDER, folder),
        sizes=(100, 1_000, 10_000),
    ),
}


def in_groups(groups: int, rows: int = 100_000) -> pa.Table:
    """A number that never falls with another within a group."""
    rng = np.random.default_rng(11)
    group, x = rng.integers(0, groups, rows), rng.integers(0, 400, rows)
    return pa.table({"g": group, "x": x, "a": x // 4 + group % 7})


def _keys(rules: str, names: Sequence[str], folder: Path, rows: int) -> Job:
    return synth(keyed(rows).select(names), rules, folder)


def _general(rules: str, folder: Path, rows: int) -> Job:
    return synth(numbers(rows), rules, folder)


def _given(more: Sequence[str], folder: Path, rows: int) -> Job:
    return drawn(tax(50_000, seed=1), TAX_CONSTRAINTS, folder, rows, *more)


PAIRS: Mapping[str, Pair] = {
    "general constraint": Pair(build=partial(_general, GENERAL), beside=partial(_general, ""), rows=200_000, times=2.0),
    **{
        f"{name} key": Pair(
            build=partial(_keys, f"key ({', '.join(columns)})", [*columns, "price", "kind"]),
            beside=partial(_keys, "", [*columns, "price", "kind"]),
            rows=200_000,
            times=1.3,
        )
        for name, columns in {"composite": ("order", "line"), "text": ("text",), "integer": ("number",)}.items()
    },
    "given": Pair(
        build=partial(_given, ["--given", "state=CA"]), beside=partial(_given, []), rows=1_000_000, times=1.3
    ),
}

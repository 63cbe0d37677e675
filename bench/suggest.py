"""Measure `kamino suggest`: in how many runs each constraint that is known to hold is suggested, and what else is.

    python -m bench.suggest --data FOLDER                          # epsilon 2 and 0.5, five runs each
    python -m bench.suggest --data FOLDER --write docs/soft.md     # and put the table into the page

Types are trusted, as by `--trust-domain`; each run has other noise. Known is what a table keeps by its origin: the
constraints published with it, a code and its name. One is found if it is suggested or follows from what is. Of the
rest, a suggestion that less than one row (or pair, for an order) of a hundred breaks is true of the table, and any
other one is spurious.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from kamino.cli.commands.suggest import is_number
from kamino.constraints import Constraints, count_violations, value_types, violations_per_row
from kamino.constraints.analysis.canonical import same_meaning
from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.engine.broken_rows import codes_of, count_strays
from kamino.engine.implied_rules import Dependency, determined_by
from kamino.engine.suggesting import suggest_constraints
from kamino.io import read_table
from kamino.privacy import Budget, Gate, SeededNoise
from kamino.privacy.private import PrivateTable

SPURIOUS = 0.01
START, END = "<!-- suggestions -->", "<!-- end of suggestions -->"


def titanic_like(seed: int) -> pa.Table:
    """891 rows and 15 columns, with the exact dependencies of the well-known table and chance besides."""
    rng = np.random.default_rng(seed)
    rows = 891
    pclass, sex = (
        rng.choice([1, 2, 3], rows, p=[0.24, 0.21, 0.55]),
        rng.choice(["male", "female"], rows, p=[0.65, 0.35]),
    )
    survived = (rng.random(rows) < np.where(sex == "female", 0.75, 0.2)).astype(int)
    age, port = np.round(np.clip(rng.normal(30, 14, rows), 1, 80)), rng.choice(3, rows, p=[0.72, 0.19, 0.09])
    sibsp, parch = rng.choice(4, rows, p=[0.7, 0.22, 0.05, 0.03]), rng.choice(3, rows, p=[0.77, 0.14, 0.09])
    who = np.where(age < 16, "child", np.where(sex == "male", "man", "woman"))
    return pa.table(
        {
            "survived": survived, "pclass": pclass, "sex": sex, "age": pa.array(age, mask=rng.random(rows) < 0.2),
            "sibsp": sibsp, "parch": parch, "fare": np.round(np.exp(rng.normal(3, 1, rows)), 1),
            "embarked": np.array(["S", "C", "Q"])[port], "class": np.array(["First", "Second", "Third"])[pclass - 1],
            "who": who, "adult_male": who == "man", "deck": pa.array(rng.choice(list("ABCDEFG"), rows),
                                                                      mask=rng.random(rows) < 0.77),
            "embark_town": np.array(["Southampton", "Cherbourg", "Queenstown"])[port],
            "alive": np.where(survived == 1, "yes", "no"), "alone": sibsp + parch == 0,
        }
    )  # fmt: skip


# What holds in each table by where it comes from: a code and its name, a place and its region, a customer.
KNOWN = {
    "titanic-like": "class -> pclass\npclass -> class\nembarked -> embark_town\nembark_town -> embarked\n"
    "survived -> alive\nalive -> survived\nwho -> adult_male",
    "adult": "education -> education-num\neducation-num -> education\n"
    "not (t1.capital-gain < t2.capital-gain and t1.capital-loss < t2.capital-loss)",
    "tax": "Zip -> City\nZip -> State\nAreaCode -> State\nState, HasChild -> ChildExemp\n"
    "State, MaritalStatus -> SingleExemp\n"
    "not (t1.State = t2.State and t1.Salary < t2.Salary and t1.Rate > t2.Rate)",
    "tpch": "c_custkey -> c_nationkey\nc_custkey -> c_mktsegment\nc_custkey -> c_acctbal\nc_custkey -> n_name\n"
    "c_nationkey -> n_name\nn_name -> c_nationkey\nn_name -> n_regionkey",
    "compas": "age -> age_cat\ndecile_score -> score_text\nv_decile_score -> v_score_text\n"
    "not (t1.dob < t2.dob and t1.age < t2.age)\ncheck (c_jail_in <= c_jail_out)\n"
    "check (is_violent_recid <= is_recid)\ncheck (two_year_recid <= is_recid)",
    "diamonds": "check (z <= x)\ncheck (z <= y)\ncheck (carat <= x)",
    "salary": "check (regular-earnings <= ytd-gross)\ncheck (overtime-earning <= ytd-gross)",
    "nltcs": "",
    "built-in": "\n".join(line for line in TAX_CONSTRAINTS.splitlines() if line.strip() and line[0] != "#"),
}


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What some runs on one table gave."""

    name: str
    rows: int
    columns: int
    epsilon: float
    runs: int
    known: tuple[str, ...]
    found: Counter[str] = field(default_factory=Counter)
    true: Counter[str] = field(default_factory=Counter)
    spurious: Counter[str] = field(default_factory=Counter)

    def row(self) -> str:
        missed = [f"`{each}` {self.runs - self.found[each]}" for each in self.known if self.found[each] < self.runs]
        cells = (
            f"{self.name} ({self.rows:,} x {self.columns})",
            f"{self.epsilon:g}",
            f"{sum(self.found.values())} of {len(self.known) * self.runs}" if self.known else "none known",
            ", ".join(missed) or "-",
            f"{sum(self.true.values()) / self.runs:g}",
            f"{sum(self.spurious.values()) / self.runs:g}",
        )
        return f"| {' | '.join(cells)} |"


def suggested(table: pa.Table, epsilon: float, seed: int) -> list[str]:
    """What the command prints, without figures and strengths."""
    gate = Gate(Budget(epsilon=epsilon, delta=1e-6), noise=SeededNoise(seed))
    ordered = [each.name for each in table.schema if is_number(each.type)]
    return [each.line for each in suggest_constraints(PrivateTable(table), gate, ordered=ordered)]


def broken(line: str, table: pa.Table) -> float:
    """The part of rows that break a dependency, key or check; of pairs, for an order."""
    (rule,) = Constraints.parse(line, types=value_types(table))
    if line.startswith("not"):
        return float(count_violations(table, rule) / (table.num_rows * (table.num_rows - 1) / 2))
    if "->" in line:
        names = rule.attributes
        right = next(name for name in names if line.endswith((f"-> {name}", f'-> "{name}"')))
        codes = {name: codes_of(table.column(name)) for name in names}
        return float(count_strays(codes, tuple(name for name in names if name != right), right) / table.num_rows)
    return float(np.count_nonzero(violations_per_row(table, rule)) / table.num_rows)


def dependencies(lines: Sequence[str]) -> list[Dependency]:
    """Those of the lines that are dependencies."""
    pairs = [line.partition(" -> ") for line in lines if "->" in line]
    return [(tuple(name.strip() for name in left.split(",")), right.strip()) for left, _, right in pairs]


def is_found(wanted: str, lines: Sequence[str]) -> bool:
    """Whether a constraint is suggested, or follows from what is."""
    if "->" in wanted:
        ((left, right),) = dependencies([wanted])
        return right in determined_by(left, dependencies(lines))
    (rule,) = Constraints.parse(wanted)
    return any(same_meaning(rule, other) for line in lines for other in Constraints.parse(line))


def measure(name: str, table: pa.Table, epsilon: float, runs: int) -> Figures:
    """Look for constraints and sort what is suggested."""
    known = tuple(filter(None, KNOWN[name].splitlines()))
    done = Figures(name=name, rows=table.num_rows, columns=table.num_columns, epsilon=epsilon, runs=runs, known=known)
    for run in range(runs):
        lines = suggested(table, epsilon, run)
        done.found.update(each for each in known if is_found(each, lines))
        rest = [line for line in lines if not is_found(line, known)]
        for line in rest:
            (done.spurious if broken(line, table) > SPURIOUS else done.true)[line] += 1
    print(done.row())
    for what, counted in (("true", done.true), ("spurious", done.spurious)):
        for line, times in counted.most_common():
            print(f"    {what}, {times} of {runs}: {line}")
    sys.stdout.flush()
    return done


def tables(data: Path | None) -> Iterator[tuple[str, pa.Table]]:
    """Name and rows of each table."""
    yield "titanic-like", titanic_like(1)
    for name in ("adult", "tax", "tpch", "compas", "diamonds", "salary", "nltcs") if data is not None else ():
        assert data is not None
        path = data / name / f"{name}.csv"
        yield name, read_table(path if path.exists() else data / name / "train.csv")
    yield "built-in", tax(20_000)


def main() -> None:
    """Measure each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult/adult.csv, compas/train.csv and so on")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[2.0, 0.5])
    parser.add_argument("--write", type=Path, help="the page to put the table into")
    arguments = parser.parse_args()
    lines = [
        "| table | epsilon | found | missed, in how many runs | else true, a run | spurious, a run |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, table in tables(arguments.data):
        lines += [measure(name, table, epsilon, arguments.runs).row() for epsilon in arguments.epsilon]
    if arguments.write is not None:
        text = arguments.write.read_text(encoding="utf-8")
        block = "\n".join((START, *lines, END))
        text = re.sub(f"{START}.*{END}", lambda _: block, text, flags=re.DOTALL)
        arguments.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

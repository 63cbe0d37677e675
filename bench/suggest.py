"""Measure `kamino suggest`: in how many runs each constraint that is known to hold is suggested, and what else is.

python -m bench.suggest --data FOLDER --runs 5 --epsilon 2    # adult, tax, tpch, one like titanic, the built-in

Runs the command itself. A suggestion that the table breaks in more than one pair (or row) of a hundred counts as false.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

from kamino.constraints import Constraints, count_violations, print_constraint, value_types, violations_per_row
from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.engine.broken_rows import codes_of, count_strays
from kamino.io import read_table, write_table

FALSE = 0.01


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
    "adult": "education -> education-num\neducation-num -> education",
    "tax": "AreaCode -> State\nZip -> City\nZip -> State\n"
    "not (t1.State = t2.State and t1.Salary < t2.Salary and t1.Rate > t2.Rate)",
    "tpch": "c_custkey -> c_nationkey\nc_custkey -> c_mktsegment\nc_custkey -> c_acctbal\nc_nationkey -> n_name\n"
    "n_name -> n_regionkey",
    "titanic-like": "class -> pclass\npclass -> class\nembarked -> embark_town\nembark_town -> embarked\n"
    "survived -> alive\nalive -> survived\nwho -> adult_male",
}


def suggested(path: Path, epsilon: float) -> list[str]:
    """The lines that the command prints, without what follows a #."""
    command = [
        str(Path(sys.executable).with_name("kamino")),
        "suggest",
        str(path),
        "--trust-domain",
        "--epsilon",
        str(epsilon),
    ]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line.split("#")[0].strip() for line in printed.splitlines() if line.split("#")[0].strip()]


def normal(lines: list[str], table: pa.Table) -> dict[str, float]:
    """The constraints of some lines as they are always printed, each with its true violation rate."""
    rules = Constraints.parse("\n".join(line.removeprefix("soft: ") for line in lines), types=value_types(table))
    pairs = table.num_rows * (table.num_rows - 1) / 2
    return {print_constraint(c): count_violations(table, c) / pairs for c in rules}


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


def measure(name: str, path: Path, known: Constraints, arguments: argparse.Namespace) -> None:
    """Print how often each known constraint was found."""
    table = read_table(path)
    found: Counter[str] = Counter()
    false: Counter[str] = Counter()
    wanted = [print_constraint(c) for c in known]
    for run in range(arguments.runs):
        rates = normal(suggested(path, arguments.epsilon), table)
        found.update(each for each in wanted if each in rates)
        false.update(each for each in rates if broken(each, table) > FALSE)
        print(
            f"{name}, run {run + 1}: {len(rates)} suggestions, {sum(w in rates for w in wanted)} of {len(wanted)} known"
        )
    for each in wanted:
        print(f"  {each}: {found[each]} of {arguments.runs}")
    for each, times in false.items():
        print(f"  false: {each}: {times} of {arguments.runs}")


def main() -> None:
    """Measure each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult/adult.csv, tax/tax.csv and tpch/tpch.csv")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=0.5)
    arguments = parser.parse_args()
    for name in ("adult", "tax", "tpch") if arguments.data is not None else ():
        measure(name, arguments.data / name / f"{name}.csv", Constraints.parse(KNOWN[name], types=None), arguments)
    with tempfile.TemporaryDirectory() as folder:
        write_table(titanic_like(1), Path(folder) / "titanic.parquet")
        rules = Constraints.parse(KNOWN["titanic-like"], types=None)
        measure("titanic-like", Path(folder) / "titanic.parquet", rules, arguments)
    with tempfile.TemporaryDirectory() as folder:
        built_in = tax(20_000)
        write_table(built_in, Path(folder) / "tax.parquet")
        rules = Constraints.parse(TAX_CONSTRAINTS, types=value_types(built_in))
        measure("built-in", Path(folder) / "tax.parquet", rules, arguments)


if __name__ == "__main__":
    main()

"""Measure `kamino suggest`: in how many runs each constraint that is known to hold is suggested, and what else is.

python -m bench.suggest --data FOLDER --runs 5     # adult, and the built-in table

Runs the command itself. A suggestion that the table breaks in more than one pair (or row) of a hundred counts as false.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow as pa

from kamino.constraints import Constraints, count_violations, print_constraint, value_types
from kamino.datasets import TAX_CONSTRAINTS, tax
from kamino.io import read_table, write_table

FALSE = 0.01


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


def measure(name: str, path: Path, known: Constraints, arguments: argparse.Namespace) -> None:
    """Print how often each known constraint was found."""
    table = read_table(path)
    found: Counter[str] = Counter()
    false: Counter[str] = Counter()
    wanted = [print_constraint(c) for c in known]
    for run in range(arguments.runs):
        rates = normal(suggested(path, arguments.epsilon), table)
        found.update(each for each in wanted if each in rates)
        false.update(each for each, rate in rates.items() if rate > FALSE)
        print(
            f"{name}, run {run + 1}: {len(rates)} suggestions, {sum(w in rates for w in wanted)} of {len(wanted)} known"
        )
    for each in wanted:
        print(f"  {each}: {found[each]} of {arguments.runs}")
    for each, times in false.items():
        print(f"  false: {each}: {times} of {arguments.runs}")


def main() -> None:
    """Measure adult and the built-in table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult/adult.csv")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--epsilon", type=float, default=0.5)
    arguments = parser.parse_args()
    if arguments.data is not None:
        path = arguments.data / "adult" / "adult.csv"
        measure("adult", path, Constraints.parse("education -> education-num", types=None), arguments)
    with tempfile.TemporaryDirectory() as folder:
        built_in = tax(20_000)
        write_table(built_in, Path(folder) / "tax.parquet")
        rules = Constraints.parse(TAX_CONSTRAINTS, types=value_types(built_in))
        measure("built-in", Path(folder) / "tax.parquet", rules, arguments)


if __name__ == "__main__":
    main()

"""Draw true tables: `python -m tests.sampling.true_tables --count 1000 --seed 1`.

A true table is made from its rules: it satisfies them, so that tables that do exist. Each is fitted at each epsilon and
drawn in memory and in blocks; a violated rule, a refusal and a run of more than `--seconds` of CPU are faults. A table
follows from the seed and its number alone: `--from NUMBER --count 1` makes a faulty one again.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from tests.sampling.true_tables.running import EPSILONS, run


def main() -> int:
    """Run the campaign; 1 if there was a fault."""
    options = _options()
    slowest, faults, ways, over = 0.0, 0, Counter[str](), 0
    for number in range(options.first, options.first + options.count):
        for epsilon in options.epsilon or EPSILONS:
            for outcome in run(options.seed, number, epsilon, options.rows):
                ways[outcome.way] += 1
                slowest = max(slowest, outcome.seconds)
                over += outcome.seconds > options.seconds
                if not outcome.is_good or outcome.seconds > options.seconds or options.verbose:
                    print(
                        f"table {number} epsilon {epsilon} {outcome.way}: {outcome.columns} columns, {outcome.rules} "
                        f"rules, {outcome.violations} violations, {outcome.seconds:.1f} s\n{outcome.fault}",
                        flush=True,
                    )
                faults += not outcome.is_good
    drawn = ", ".join(f"{count} {way}" for way, count in sorted(ways.items()))
    print(
        f"{options.count} tables, drawn: {drawn}; {faults} violated or refused, {over} over {options.seconds:g} CPU s"
    )
    print(f"slowest {slowest:.1f} CPU s")
    return int(faults > 0 or over > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.sampling.true_tables", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000, help="how many tables")
    parser.add_argument("--seed", type=int, default=1, help="what all tables follow from")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the number of the first table")
    parser.add_argument("--rows", type=int, default=3_000, help="rows of a table, and rows drawn")
    parser.add_argument("--epsilon", type=float, action="append", help="again for several; 0.1, 1 and inf by default")
    parser.add_argument("--seconds", type=float, default=60.0, help="the CPU time that a run may take")
    parser.add_argument("--verbose", action="store_true", help="print every run, not only the faulty ones")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())

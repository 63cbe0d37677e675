"""Measure soft constraints: the private estimate, its error bar, the weight, and the rate delivered.

python bench/soft.py                              # planted tables, with a model that takes columns as independent
python bench/soft.py --data FOLDER --table br2000 # a table's own constraints, all soft, with the marginal model
python bench/soft.py --data FOLDER --table br2000 --sweeps 0 1 2 3
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from kamino.constraints import Constraints, count_violations
from kamino.constraints.tree import SOFT, DenialConstraint
from kamino.engine import MemoryMeasurer
from kamino.engine.rates import RATES_SHARE, RateEstimates, release_rates
from kamino.evaluate.metrics import bin_tables, distances_of
from kamino.io import read_table
from kamino.model.marginal.backend import fit_marginal
from kamino.model.protocol import Cells, CodeMap, Conditional, FloatArray, IntArray, TupleModel
from kamino.pipeline.binding import bind_constraints
from kamino.pipeline.hints import hints_of, model_attributes
from kamino.privacy import Budget, Gate, multiplier_for
from kamino.sampling import build_plan, draw_table
from kamino.sampling.weights import FoundWeights, find_weights, rates_of
from kamino.schema import Codec, CodedTable, Integer, Schema, draft_schema


class Independent:
    """A model of noisy histograms, one for each column: it knows nothing of how columns go together."""

    def __init__(self, coded: CodedTable, codec: Codec, gate: Gate, *, noise_multiplier: float) -> None:
        self.sequence = tuple(codec.attributes)
        self._tables: dict[str, FloatArray] = {}
        each = noise_multiplier * np.sqrt(len(self.sequence))
        for name in self.sequence:
            counts = np.bincount(coded[name], minlength=codec[name].size)
            noisy = gate.release_counts(counts, what="histogram", attributes=(name,), noise_multiplier=each)
            positive = np.maximum(noisy, 0.5)
            self._tables[name] = positive / positive.sum()
            self.num_rows = float(noisy.sum())

    def parents(self, attribute: str) -> tuple[str, ...]:
        """None."""
        del attribute
        return ()

    def conditional(self, attribute: str, context: Mapping[str, IntArray], num_rows: int) -> Conditional:
        """The column's histogram, whatever the context."""
        del context
        table = self._tables[attribute]
        ones = np.ones(len(table), dtype=np.int64)
        cells = Cells(map=CodeMap.identity(len(table)), width=ones, share=ones.astype(np.float64))
        nowhere = np.zeros(num_rows, dtype=np.int64)
        return Conditional(attribute=attribute, context=nowhere, log_prob=np.log(table)[None, :], cells=cells)

    def marginal(self, attributes: tuple[str, ...]) -> FloatArray:
        """The histogram of one attribute."""
        (name,) = attributes
        return self._tables[name]

    def sample(self, num_rows: int, rng: np.random.Generator) -> dict[str, IntArray]:
        """Not needed here."""
        raise NotImplementedError


def planted(rule: str, sizes: tuple[int, int], rate: float, rng: np.random.Generator, rows: int) -> pa.Table:
    """A table whose `b` follows `a` but for strays, as many as make the rule's rate."""
    a = rng.integers(0, sizes[0], rows)
    follows = a % sizes[1] if "->" in rule else a * sizes[1] // sizes[0]
    stray, anything = rng.random(rows), rng.integers(0, sizes[1], rows)
    (constraint,) = Constraints.parse(rule)
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        table = pa.table({"a": a, "b": np.where(stray < middle, anything, follows)})
        found = count_violations(table, constraint) / (rows * (rows - 1) / 2)
        low, high = (middle, high) if found < rate else (low, middle)
    return table


def show(found: FoundWeights, true: Mapping[DenialConstraint, float], made: Mapping[DenialConstraint, float]) -> None:
    """One line for each constraint."""
    for each in found.items:
        rate = made[each.constraint]
        print(
            f"  true {true[each.constraint]:9.5%}  measured {each.measured:9.5%} ± {each.deviation:.5%}  unweighted "
            f"{each.unweighted:9.5%}  weight {each.weight:9.4g}  delivered {rate:9.5%}  "
            f"ratio {rate / true[each.constraint]:.3f}",
            flush=True,
        )


def measure(coded: CodedTable, codec: Codec, rules: Constraints, gate: Gate, model: TupleModel) -> RateEstimates:
    """Measure the rates with what is left of the budget."""
    left = multiplier_for(gate.gaussian_left())
    return release_rates(coded, codec, rules, gate, model=model, noise_multiplier=left)


def run(
    num_rows: int, codec: Codec, rules: Constraints, rates: RateEstimates, model: TupleModel, sweeps: int
) -> tuple[FoundWeights, dict[str, IntArray], float]:
    """Find weights, draw, and tell the seconds of both."""
    plan = build_plan(codec, rules, sequence=model.sequence)
    rng = np.random.default_rng()
    begin = time.process_time()
    found = find_weights(plan, model, codec, rates, rng, sweeps=sweeps)
    made = draw_table(plan, model, codec, num_rows, rng, weights=found.weights, targets=found.targets, sweeps=sweeps)
    return found, made, time.process_time() - begin


def run_planted(arguments: argparse.Namespace) -> None:
    """Rates that independent columns would exceed many times."""
    order = "soft: not (t1.a < t2.a and t1.b > t2.b)"
    cases = [("soft: a -> b", (90, 10), 0.001), ("soft: a -> b", (9, 10), 0.01), (order, (20, 20), 0.1)]
    for rule, sizes, rate in cases:
        for number in range(arguments.runs):
            table = planted(rule, sizes, rate, np.random.default_rng(number), arguments.rows)
            codec = Codec(Schema(attributes={n: Integer(min=0, max=s - 1) for n, s in zip("ab", sizes, strict=True)}))
            rules = Constraints.parse(rule)
            gate = Gate(Budget(epsilon=arguments.epsilon, delta=1e-6))
            coded = codec.encode(table)
            spend = gate.gaussian_left() * (1 - RATES_SHARE)
            model = Independent(coded, codec, gate, noise_multiplier=multiplier_for(spend))
            rates = measure(coded, codec, rules, gate, model)
            found, made, seconds = run(coded.num_rows, codec, rules, rates, model, arguments.sweeps[0])
            print(f"{rule}  a: {sizes[0]}, b: {sizes[1]}  {seconds:.1f} s", flush=True)
            show(found, rates_of(codec, coded.columns, list(rules)), rates_of(codec, made, list(rules)))


def run_table(arguments: argparse.Namespace) -> None:
    """A table's constraints, all taken as soft."""
    folder = arguments.data / arguments.table
    table = read_table(folder / f"{arguments.table}.csv")
    text = (arguments.constraints or folder / f"{arguments.table}.ic").read_text()
    schema = draft_schema(table, trust_domain=True)
    items = tuple(type(c)(predicates=c.predicates, strength=SOFT) for c in Constraints.parse(text))
    rules = bind_constraints(Constraints(items), schema)
    codec = Codec(schema)
    coded = codec.encode(table)
    for _ in range(arguments.runs):
        gate = Gate(Budget(epsilon=arguments.epsilon, delta=1e-6))
        model = fit_marginal(
            MemoryMeasurer(coded, codec.sizes, gate),
            model_attributes(codec),
            noise_multiplier=multiplier_for(gate.gaussian_left() * (1 - RATES_SHARE)),
            hints=hints_of(rules, codec),
        )
        plain = model.sample(coded.num_rows, np.random.default_rng())
        before = distances_of(bin_tables(table, _table(codec, plain)), order=2).mean
        rates = measure(coded, codec, rules, gate, model)
        for sweeps in arguments.sweeps:
            found, made, seconds = run(coded.num_rows, codec, rules, rates, model, sweeps)
            after = distances_of(bin_tables(table, _table(codec, made)), order=2).mean
            print(f"{arguments.table}  sweeps {sweeps}  2-way {after:.4f}, unweighted {before:.4f}  {seconds:.1f} s")
            if len(found.items) <= 8:
                show(found, rates_of(codec, coded.columns, list(rules)), rates_of(codec, made, list(rules)))


def _table(codec: Codec, columns: dict[str, IntArray]) -> pa.Table:
    return codec.decode(CodedTable(columns=columns, num_rows=len(next(iter(columns.values())))))


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with T/T.csv and T/T.ic")
    parser.add_argument("--table", default="br2000")
    parser.add_argument("--constraints", type=Path, help="another constraint file for the table")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--sweeps", type=int, nargs="+", default=[4])
    arguments = parser.parse_args()
    if arguments.data is None:
        run_planted(arguments)
    else:
        run_table(arguments)


if __name__ == "__main__":
    main()

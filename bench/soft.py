"""Measure soft constraints: the private estimate, its error bar, the weight, and the rate delivered.

python bench/soft.py planted                       # planted tables, with a model that takes columns as independent
python bench/soft.py table --data FOLDER           # br2000: weights by matching and by the paper, against none
python bench/soft.py sweeps                        # planted tables: rates, distances, time by the number of sweeps
python bench/soft.py many --data FOLDER            # adult with 2 to 128 approximate constraints, all soft

FOLDER holds T/T.csv and T/T.ic for a table T, and adult/approximate-dcs/adultN.ic. Seconds are of processor time.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from kamino.constraints import Constraints, count_violations
from kamino.constraints.tree import SOFT, DenialConstraint
from kamino.engine import MemoryMeasurer
from kamino.engine.paper_weights import SAMPLING_RATE, paper_noise
from kamino.engine.rates import RATES_SHARE, RateEstimates, release_rates
from kamino.evaluate.measure.metrics import bin_tables, distances_of
from kamino.io import read_table
from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.protocol import Cells, CodeMap, Conditional, FloatArray, IntArray, TupleModel
from kamino.pipeline.plan.bound_schema import bind_constraints
from kamino.pipeline.plan.hints import hints_of, model_attributes
from kamino.pipeline.weighing import paper_weights
from kamino.privacy import Budget, Gate, multiplier_for
from kamino.privacy.private import PrivateCodes
from kamino.sampling import DrawOptions, build_plan, draw_table
from kamino.sampling.partners import rates_of
from kamino.sampling.soft.weights import FoundWeights, find_weights
from kamino.schema import Codec, CodedTable, Integer, Schema, draft_schema

Rates = Mapping[DenialConstraint, float]


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

    @property
    def reads_codes(self) -> frozenset[str]:
        """The attributes of which other attributes' distributions read more than the bin."""
        return frozenset(self.sequence)

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


@dataclass(frozen=True, kw_only=True)
class Problem:
    """A table, its constraints as soft ones, and a budget."""

    table: pa.Table
    codec: Codec
    coded: CodedTable
    rules: Constraints
    epsilon: float

    @property
    def num_rows(self) -> int:
        """How many rows the table has."""
        return self.coded.num_rows

    @property
    def true(self) -> dict[DenialConstraint, float]:
        """The true rates."""
        return rates_of(self.codec, self.coded.columns, list(self.rules))

    def gate(self) -> Gate:
        """A new budget."""
        return Gate(Budget(epsilon=self.epsilon, delta=1e-6))

    def fit(self, gate: Gate, *, share: float) -> TupleModel:
        """The default model for a share of the budget."""
        return fit_marginal(
            MemoryMeasurer(PrivateCodes(self.coded), self.codec.sizes, gate),
            model_attributes(self.codec),
            noise_multiplier=multiplier_for(gate.gaussian_left() * share),
            hints=hints_of(self.rules, self.codec),
        )

    def rates(self, gate: Gate, model: TupleModel) -> RateEstimates:
        """Measure the rates with what is left of the budget."""
        left = multiplier_for(gate.gaussian_left())
        return release_rates(PrivateCodes(self.coded), self.codec, self.rules, gate, model=model, noise_multiplier=left)

    def distance(self, columns: dict[str, IntArray], order: int = 2) -> float:
        """The mean distance of marginals to the true table's."""
        made = self.codec.decode(CodedTable(columns=columns, num_rows=self.num_rows))
        return float(distances_of(bin_tables(self.table, made), order=order).mean)


def read_problem(folder: Path, name: str, epsilon: float, constraints: Path | None = None) -> Problem:
    """Read a table and its constraints, all taken as soft; its domains are public."""
    table = read_table(folder / name / f"{name}.csv")
    text = (constraints or folder / name / f"{name}.ic").read_text()
    schema = draft_schema(table, trust_domain=True)
    items = tuple(type(c)(predicates=c.predicates, strength=SOFT) for c in Constraints.parse(text))
    codec = Codec(schema)
    rules = bind_constraints(Constraints(items), schema)
    return Problem(table=table, codec=codec, coded=codec.encode(table), rules=rules, epsilon=epsilon)


def planted(rule: str, sizes: tuple[int, int], rate: float, rng: np.random.Generator, rows: int) -> pa.Table:
    """A table whose `b` follows `a` but for strays, as many as make the rule's rate."""
    a = rng.integers(0, sizes[0], rows)
    follows = a % sizes[1] if "->" in rule else a * sizes[1] // sizes[0]
    stray, anything = rng.random(rows), rng.integers(0, sizes[1], rows)
    (constraint,) = Constraints.parse(rule)
    every = rows if constraint.is_unary else rows * (rows - 1) / 2
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        table = pa.table({"a": a, "b": np.where(stray < middle, anything, follows)})
        low, high = (middle, high) if count_violations(table, constraint) / every < rate else (low, middle)
    return table


def show(found: FoundWeights, true: Rates, made: Rates) -> None:
    """One line for each constraint."""
    for each in found.items:
        rate, right = made[each.constraint], true[each.constraint]
        measured = "" if each.measured is None else f"measured {each.measured:9.5%} ± {each.deviation:.5%}  "
        alone = "" if each.unweighted is None else f"unweighted {each.unweighted:9.5%}  "
        print(
            f"  true {right:9.5%}  {measured}{alone}weight {each.weight:9.4g}  delivered {rate:9.5%}  "
            f"ratio {rate / right if right else np.inf:.3f}",
            flush=True,
        )


ORDER = "soft: not (t1.a < t2.a and t1.b > t2.b)"
CASES = (
    ("soft: a -> b", (90, 10), 0.001),
    ("soft: a -> b", (9, 10), 0.01),
    ("soft: check (a = b)", (200, 200), 0.1),
    (ORDER, (200, 200), 0.1),
)


def plant(rule: str, sizes: tuple[int, int], rate: float, seed: int, arguments: argparse.Namespace) -> Problem:
    """A planted table with its rule."""
    table = planted(rule, sizes, rate, np.random.default_rng(seed), arguments.rows)
    codec = Codec(Schema(attributes={n: Integer(min=0, max=s - 1) for n, s in zip("ab", sizes, strict=True)}))
    rules = Constraints.parse(rule)
    return Problem(table=table, codec=codec, coded=codec.encode(table), rules=rules, epsilon=arguments.epsilon)


def independent(problem: Problem) -> tuple[TupleModel, RateEstimates]:
    """The model of independent columns and the measured rates, for one budget."""
    gate = problem.gate()
    spend = gate.gaussian_left() * (1 - RATES_SHARE)
    model = Independent(problem.coded, problem.codec, gate, noise_multiplier=multiplier_for(spend))
    return model, problem.rates(gate, model)


def run_planted(arguments: argparse.Namespace) -> None:
    """Rates that independent columns would exceed about ten times."""
    for rule, sizes, rate in CASES:
        for number in range(arguments.runs):
            problem = plant(rule, sizes, rate, number, arguments)
            model, rates = independent(problem)
            begin = time.process_time()
            found, made = match(problem, model, rates, arguments.sweeps)
            print(f"{rule}  a: {sizes[0]}, b: {sizes[1]}  {time.process_time() - begin:.1f} s", flush=True)
            show(found, problem.true, rates_of(problem.codec, made, list(problem.rules)))


def match(
    problem: Problem, model: TupleModel, rates: RateEstimates, sweeps: int
) -> tuple[FoundWeights, dict[str, IntArray]]:
    """Find weights by matching, and draw with them."""
    plan = build_plan(problem.codec, problem.rules, sequence=model.sequence)
    rng = np.random.default_rng()
    found = find_weights(plan, model, problem.codec, rates, rng, sweeps=sweeps)
    return found, draw(problem, model, found, sweeps=sweeps)


def draw(
    problem: Problem, model: TupleModel, found: FoundWeights, *, sweeps: int, steer: bool = True
) -> dict[str, IntArray]:
    """Draw a table of the true size."""
    plan = build_plan(problem.codec, problem.rules, sequence=model.sequence)
    return draw_table(
        plan,
        model,
        problem.codec,
        problem.num_rows,
        np.random.default_rng(),
        DrawOptions(weights=found.weights, targets=found.targets if steer else {}, sweeps=sweeps),
    )


def run_table(arguments: argparse.Namespace) -> None:
    """Weights by matching, weights of the paper, and no constraints with all of the budget."""
    problem = read_problem(arguments.data, arguments.table, arguments.epsilon)
    true = problem.true
    for number in range(arguments.runs):
        free = problem.fit(problem.gate(), share=1.0).sample(problem.num_rows, np.random.default_rng())
        print(
            f"run {number + 1}: {arguments.table}, without constraints: 2-way {problem.distance(free):.4f}", flush=True
        )
        gate = problem.gate()
        model = problem.fit(gate, share=1 - RATES_SHARE)
        rates = problem.rates(gate, model)
        begin = time.process_time()
        found, made = match(problem, model, rates, arguments.sweeps)
        spent = time.process_time() - begin
        print(f" matching: 2-way {problem.distance(made):.4f}, {spent:.1f} s", flush=True)
        show(found, true, rates_of(problem.codec, made, list(problem.rules)))
        gate = problem.gate()
        noise = paper_noise(problem.rules, gate)
        model = problem.fit(gate, share=1 - RATES_SHARE)
        plan = build_plan(problem.codec, problem.rules, sequence=model.sequence)
        begin = time.process_time()
        found = paper_weights(
            PrivateCodes(problem.coded),
            problem.codec,
            plan,
            problem.rules,
            gate,
            sample_rows=round(SAMPLING_RATE * model.num_rows),
            sampling_rate=SAMPLING_RATE,
            noise_multiplier=noise,
            num_rows=model.num_rows,
            rng=np.random.default_rng(),
        )
        made = draw(problem, model, found, sweeps=arguments.sweeps)
        spent = time.process_time() - begin
        print(f" paper, noise multiplier {noise:.3g}: 2-way {problem.distance(made):.4f}, {spent:.1f} s", flush=True)
        show(found, true, rates_of(problem.codec, made, list(problem.rules)))


def run_sweeps(arguments: argparse.Namespace) -> None:
    """Weights found once; then draws with 0, n, 2n and 3n resampled cells for each attribute, and steered ones.

    On planted tables, where weights are needed: on br2000 the default model keeps the rates by itself.
    """
    for rule, sizes, rate in CASES:
        problem = plant(rule, sizes, rate, 0, arguments)
        model, rates = independent(problem)
        found, _ = match(problem, model, rates, arguments.sweeps)
        print(f"{rule}  a: {sizes[0]}, b: {sizes[1]}", flush=True)
        for sweeps, steer in [(0, False), (1, False), (2, False), (3, False), (arguments.sweeps, True)]:
            begin = time.process_time()
            made = draw(problem, model, found, sweeps=sweeps, steer=steer)
            spent = time.process_time() - begin
            ways = ", ".join(f"{order}-way {problem.distance(made, order):.4f}" for order in (1, 2))
            print(f" m = {sweeps} n{', then steered' if steer else ''}: {ways}, {spent:.1f} s", flush=True)
            show(found, problem.true, rates_of(problem.codec, made, list(problem.rules)))


def run_many(arguments: argparse.Namespace) -> None:
    """Adult with more and more approximate constraints."""
    for number in arguments.numbers:
        path = arguments.data / "adult" / "approximate-dcs" / f"adult{number}.ic"
        problem = read_problem(arguments.data, "adult", arguments.epsilon, path)
        gate = problem.gate()
        start = time.process_time()
        model = problem.fit(gate, share=1 - RATES_SHARE)
        fitted = time.process_time()
        rates = problem.rates(gate, model)
        measured = time.process_time()
        found, made = match(problem, model, rates, arguments.sweeps)
        drawn = time.process_time()
        true, got = problem.true, rates_of(problem.codec, made, list(problem.rules))
        errors = [abs(got[c] - true[c]) for c in true]
        weighted = sum(each.weight > 0 for each in found.items)
        print(
            f"adult, {number} soft ({len(true)} distinct), {weighted} with a weight: fit {fitted - start:.1f} s, rates "
            f"{measured - fitted:.1f} s, weights and rows {drawn - measured:.1f} s; 1-way "
            f"{problem.distance(made, 1):.4f}, 2-way {problem.distance(made):.4f}; rates off by "
            f"{np.mean(errors):.4%} in the mean, {max(errors):.4%} at most; true mean "
            f"{np.mean(list(true.values())):.4%}, deviation {max(each.deviation for each in rates.items):.4%} at most",
            flush=True,
        )


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parts = {"planted": run_planted, "table": run_table, "sweeps": run_sweeps, "many": run_many}
    parser.add_argument("part", choices=parts)
    parser.add_argument("--data", type=Path, help="folder with T/T.csv and T/T.ic")
    parser.add_argument("--table", default="br2000")
    parser.add_argument("--numbers", type=int, nargs="+", default=[2, 4, 8, 16, 32, 64, 128])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=30_000)
    parser.add_argument("--sweeps", type=int, default=4)
    arguments = parser.parse_args()
    if arguments.data is None and arguments.part in ("table", "many"):
        parser.error(f"{arguments.part} needs --data FOLDER")
    parts[arguments.part](arguments)


if __name__ == "__main__":
    main()

"""Measure the neural backend beside the marginal one. Prints Markdown tables, as docs/neural.md has them.

    python -m bench.neural --data FOLDER                                  # distances of the tables T/T.csv of FOLDER
    python -m bench.neural --data FOLDER --tables adult --part held-out   # log-likelihood of rows that were not seen
    python -m bench.neural --data FOLDER --tables adult --part parallel   # sub-models in sequence, and in 2 processes
    python -m bench.neural --data FOLDER --tables adult --part variants   # training with and without each of its mends
    python -m bench.neural --part prices                                  # what a budget holds, prices under both

Models only: rows are drawn from the model itself. Constraints decide the order of attributes and, as in a full run,
tell the marginal backend what to measure together; no row is checked against them. Every fit has a process of its own,
so that its CPU time is its own. Domains are taken as public.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.tables import read, table_names
from kamino.engine import MemoryMeasurer, NeuralRows
from kamino.evaluate.measure.metrics import bin_tables, distances_of
from kamino.model import SavedModel, fit_marginal
from kamino.model.neural import (
    NeuralSettings,
    Optimizer,
    Parameters,
    Ranges,
    UnitLimits,
    WideRanges,
    fit_neural,
    search_parameters,
)
from kamino.pipeline.plan.hints import hints_of, model_attributes
from kamino.privacy import Budget, Events, Gate, Neighbours, PoissonGaussianEvent, epsilon, multiplier_for
from kamino.privacy.private import PrivateCodes
from kamino.sampling import build_plan, paper_sequence
from kamino.schema import Codec, CodedTable, draft_schema

HELD_OUT = 3_000
ADULTS_ROWS = 32_561
# A row that a model holds impossible counts as this, for each attribute.
LEAST_LOG = -20.0
HEADERS = {
    "distances": ("table", "backend", "1-way mean", "1-way max", "2-way mean", "CPU s"),
    "held-out": ("table", "backend", "nats a row, all attributes", "nats a row, without the largest", "CPU s"),
    "variants": ("table", "training", "1-way mean", "1-way max", "2-way mean", "CPU s"),
    "prices": ("b", "T", "noise multiplier", "signal to noise"),
    "parallel": ("table", "processes", "1-way mean", "1-way max", "2-way mean", "CPU s", "elapsed s"),
}

VARIANTS = {
    "fitted": NeuralSettings(),
    "fitted, but clip norm 8": NeuralSettings(ranges=WideRanges(clip_norm=8.0)),
    "fitted, but the paper's ranges": NeuralSettings(ranges=Ranges(clip_norm=1.0)),
    "fitted, but the last parameters, no mean": NeuralSettings(optimizer=Optimizer(averaged=1e-9)),
    "printed": NeuralSettings.printed(),
    "printed, but every histogram": replace(NeuralSettings.printed(), limits=UnitLimits(counted=0)),
    "printed, but wide ranges": replace(NeuralSettings.printed(), ranges=WideRanges(clip_norm=8.0)),
}
SIZES = ((32, 3_000), (128, 600), (256, 300), (512, 150), (1_024, 300), (2_048, 100))


def fit(coded: CodedTable, codec: Codec, gate: Gate, arguments: argparse.Namespace) -> SavedModel:
    """Fit one backend along the order that the table's constraints ask for."""
    attributes, rules = model_attributes(codec), read(arguments.data, arguments.tables[0])[1]
    sequence = build_plan(codec, rules).sequence
    if arguments.backend in VARIANTS:
        settings, printed = VARIANTS[arguments.backend], paper_sequence(codec, rules)
        return fit_neural(NeuralRows(PrivateCodes(coded), gate), attributes, sequence=printed, settings=settings)
    if arguments.backend == "neural":
        return fit_neural(NeuralRows(PrivateCodes(coded), gate), attributes, sequence=sequence, jobs=arguments.jobs)
    multiplier = multiplier_for(gate.gaussian_left()) if gate.budget.is_private else 0.0
    measurer = MemoryMeasurer(PrivateCodes(coded), codec.sizes, gate)
    hints = hints_of(rules, codec)
    return fit_marginal(measurer, attributes, noise_multiplier=multiplier, sequence=sequence, hints=hints)


def one_run(arguments: argparse.Namespace) -> None:
    """Fit one backend on one table, and print what was measured as a line of JSON."""
    table, _ = read(arguments.data, arguments.tables[0])
    codec = Codec(draft_schema(table, trust_domain=True))
    coded = codec.encode(table)
    seen, unseen = split(coded) if arguments.part == "held-out" else (coded, coded)
    budget = Budget(epsilon=arguments.epsilon, delta=1e-6, neighbours=Neighbours.REPLACE)
    begin, clock = time.process_time(), time.perf_counter()
    model = fit(seen, codec, Gate(budget), arguments)
    row: dict[str, Any] = {"elapsed": time.perf_counter() - clock, "cpu": time.process_time() - begin}
    if arguments.jobs > 1:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)
        workers = resource.getrusage(resource.RUSAGE_CHILDREN)
        row["cpu"] += workers.ru_utime + workers.ru_stime
    if arguments.part == "held-out":
        row |= surprise(model, unseen)
    else:
        drawn = CodedTable(columns=model.sample(table.num_rows, np.random.default_rng()), num_rows=table.num_rows)
        pair = bin_tables(table, codec.decode(drawn))
        one, two = (distances_of(pair, order=order) for order in (1, 2))
        row |= {"one": one.mean, "most": one.maximum, "two": two.mean}
    print(json.dumps(row), flush=True)


def split(coded: CodedTable) -> tuple[CodedTable, CodedTable]:
    """Set some rows apart, always the same ones."""
    order = np.random.default_rng(0).permutation(coded.num_rows)
    parts = order[:-HELD_OUT], order[-HELD_OUT:]
    first, second = (
        CodedTable(columns={name: codes[rows] for name, codes in coded.columns.items()}, num_rows=len(rows))
        for rows in parts
    )
    return first, second


def surprise(model: SavedModel, rows: CodedTable) -> dict[str, float]:
    """The negative log-likelihood of a row in nats, over all attributes and without the one that has the most."""
    each = {}
    for name in model.sequence:
        conditional = model.conditional(name, {parent: rows[parent] for parent in model.parents(name)}, rows.num_rows)
        each[name] = -float(np.maximum(conditional.of(rows[name]), LEAST_LOG).mean())
    return {"all": sum(each.values()), "rest": sum(each.values()) - max(each.values())}


def runs(arguments: argparse.Namespace, table: str, backend: str, jobs: int) -> list[dict[str, float]]:
    """Several fits, each in a process of its own."""
    epsilon = math.inf if arguments.part == "held-out" else arguments.epsilon
    command = [sys.executable, "-m", "bench.neural", "--one", "--tables", table, "--backend", backend]
    command += ["--jobs", str(jobs), "--part", arguments.part, "--epsilon", str(epsilon)]
    command += ["--data", str(arguments.data)] if arguments.data else []
    found = []
    for _ in range(arguments.runs):
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found.append(json.loads(ran.stdout.splitlines()[-1]))
    return found


def line(part: str, table: str, label: str, rows: list[dict[str, float]]) -> str:
    """One line of a Markdown table: means over runs, and the worst maximum."""

    def mean(key: str) -> float:
        return float(np.mean([row[key] for row in rows]))

    if part == "held-out":
        cells = [f"{mean('all'):.2f}", f"{mean('rest'):.2f}", f"{mean('cpu'):.0f}"]
    else:
        most = max(row["most"] for row in rows)
        cells = [f"{mean('one'):.4f}", f"{most:.3f}", f"{mean('two'):.4f}", f"{mean('cpu'):.0f}"]
    if part == "parallel":
        cells.append(f"{mean('elapsed'):.0f}")
    return f"| {' | '.join([table, label, *cells])} |"


def prices() -> None:
    """Print the noise that (1, 1e-6) holds on adult for samples of several sizes, and prices under both relations."""
    for size, steps in SIZES:
        found = adults_parameters(Neighbours.REPLACE, WideRanges(batch_size=(size, size), steps=steps))
        print(f"| {size:,} | {steps:,} | {found.gradient_noise:.2f} | {found.signal_to_noise:,.0f} |", flush=True)
    print(f"\n{heading('releases', *(f'epsilon, {each.value}' for each in Neighbours))}")
    step = PoissonGaussianEvent(noise_multiplier=1.1, sampling_rate=23 / ADULTS_ROWS)
    releases: dict[str, Events] = {"the paper's own: b 23, 14 x 1,600 steps, noise 1.1": ((step, 14 * 1_600),)}
    for relation in Neighbours:
        found = adults_parameters(relation, WideRanges())
        label = f"the preset's for {relation.value}: b {found.batch_size}, {found.num_models} x {found.steps} steps, "
        label += (
            f"noise {found.gradient_noise:.2f}; {found.num_histograms} histograms, noise {found.histogram_noise:.2f}"
        )
        releases[label] = found.events(relation)
    for label, events in releases.items():
        cells = [f"{epsilon(events, delta=1e-6, neighbours=each):.3f}" for each in Neighbours]
        print(f"| {' | '.join([label, *cells])} |", flush=True)


def adults_parameters(neighbours: Neighbours, ranges: WideRanges) -> Parameters:
    """What the search finds for adult, with its 10 sub-models and 11 histograms."""
    budget = Budget(epsilon=1.0, delta=1e-6, neighbours=neighbours)
    return search_parameters(
        budget, num_rows=ADULTS_ROWS, num_models=10, num_histograms=11, first_size=16, ranges=ranges
    )


def heading(*cells: str) -> str:
    """The first two lines of a Markdown table."""
    return f"| {' | '.join(cells)} |\n| {' | '.join('---' for _ in cells)} |"


def main() -> None:
    """Read the arguments, run, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tables", nargs="+")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--part", choices=list(HEADERS), default="distances")
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--backends", nargs="+", default=["marginal", "neural"])
    parser.add_argument("--variants", choices=["fitted", "printed"], help="of that training only")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--backend", default="neural", help=argparse.SUPPRESS)
    parser.add_argument("--jobs", type=int, default=1, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one_run(arguments)
        return
    print(heading(*HEADERS[arguments.part]))
    if arguments.part == "prices":
        prices()
        return
    for table in arguments.tables or table_names(arguments.data):
        if arguments.part == "parallel":
            ways = [("1", "neural", 1), ("2", "neural", 2)]
        elif arguments.part == "variants":
            ways = [(name, name, 1) for name in VARIANTS if arguments.variants in (None, name.split(",")[0])]
        else:
            ways = [(backend, backend, 1) for backend in arguments.backends]
        for label, backend, jobs in ways:
            print(line(arguments.part, table, label, runs(arguments, table, backend, jobs)), flush=True)


if __name__ == "__main__":
    main()

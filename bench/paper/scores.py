"""The paper's three metrics of a table in the store: violations, trained models, marginals. Each is computed once."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.paper.cases import Case
from bench.paper.runs import Made, Source
from kamino.constraints import Constraints, count_violations
from kamino.evaluate.learn.learning import Learning, train_models
from kamino.evaluate.measure.marginals import MarginalDistances, compare_marginals
from kamino.evaluate.measure.metrics import bin_tables

Facts = dict[str, Any]


def violations(source: Source, made: Made) -> list[float]:
    """Percent of unordered pairs that violate each of the table's own constraints, in either direction."""

    def count() -> Facts:
        _, own = source.true(made.case)
        return {"percent": percent_violating(made.table, own)}

    return list(_kept(made.folder / "violations.json", count)["percent"])


def percent_violating(table: pa.Table, rules: Constraints) -> list[float]:
    """Percent of unordered pairs that violate each constraint, in either direction."""
    pairs = table.num_rows * (table.num_rows - 1) / 2
    return [100 * count_violations(table, constraint) / max(pairs, 1) for constraint in rules]


def rate_errors(source: Source, made: Made) -> Facts:
    """How far the violation rates of the constraints that were heeded are from the true table's, in percent."""

    def compare() -> Facts:
        true, own = source.true(made.case)
        rules = source.constraints(made.case, own)
        wanted = _kept(
            source.store / made.case.table / "truth" / f"rates-{made.case.constraints}.json",
            lambda: {"percent": percent_violating(true, rules)},
        )["percent"]
        off = [abs(a - b) for a, b in zip(percent_violating(made.table, rules), wanted, strict=True)]
        return {"off": sum(off) / len(off), "largest": max(off), "mean": sum(wanted) / len(wanted)}

    return _kept(made.folder / "rates.json", compare)


def marginals(source: Source, made: Made) -> Facts:
    """Distances of the 1-way and 2-way marginals: means and maxima of total variation and of the largest cell."""
    return _kept(made.folder / "marginals.json", lambda: distances(source.true(made.case)[0], made.table))


def distances(true: pa.Table, table: pa.Table) -> Facts:
    """What `marginals` tells, of two tables at hand."""
    pair = bin_tables(true, table)
    return {str(order): _summary(compare_marginals(pair, order=order)) for order in (1, 2)}


def _summary(found: MarginalDistances) -> Facts:
    return {
        "mean": found.mean,
        "max": found.maximum,
        "mean_max_cell": found.mean_max_cell,
        "max_max_cell": found.max_cell,
        "worst": list(found.worst),
    }


def learning(source: Source, made: Made, training_rows: int | None) -> Facts | None:
    """Accuracy and F1 by attribute and by model, trained on the table and tested on true rows."""
    path = made.folder / _learning_name(training_rows)
    if source.stored_only and not path.exists():
        return None
    return _kept(path, lambda: trained(source.true(made.case)[0], made.table, training_rows, side="synthetic"))


def ceiling(source: Source, table: str, training_rows: int | None) -> Facts | None:
    """The same, trained on true rows."""
    path = source.store / table / "truth" / _learning_name(training_rows)
    if source.stored_only and not path.exists():
        return None
    true, _ = source.true(Case(table=table))
    return _kept(path, lambda: trained(true, true, training_rows, side="true"))


def trained(true: pa.Table, table: pa.Table, training_rows: int | None, *, side: str) -> Facts:
    """Train all models on one side, in one thread, and sum up."""
    begin = time.process_time()
    found = train_models(true, table, max_rows=training_rows, workers=1, sides=(side,))
    return _learned(found, side) | {"cpu": time.process_time() - begin}


def _learned(found: Learning, side: str) -> Facts:
    attributes = dict.fromkeys(score.attribute for score in found.scores)
    models = dict.fromkeys(score.model for score in found.scores)
    facts: Facts = {"train_rows": found.train_rows}
    for measure in ("accuracy", "f1"):
        facts[measure] = found.mean(measure, side)
        facts[f"{measure}_by_attribute"] = {a: found.mean(measure, side, attribute=a) for a in attributes}
        facts[f"{measure}_by_model"] = {m: found.mean(measure, side, model=m) for m in models}
    return facts


def _learning_name(training_rows: int | None) -> str:
    return f"learning-{training_rows or 'all'}.json"


def _kept(path: Path, compute: Callable[[], Facts]) -> Facts:
    """What the file says, computed first where there is none."""
    if not path.exists():
        print(f"judging {path.relative_to(path.parents[2])}", file=sys.stderr, flush=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(compute(), indent=1))
        part.rename(path)
    found: Facts = json.loads(path.read_text())
    return found

"""Three million rows, keys of more than 2^40 combinations in each statistic: declared sensitivities hold.

Replay compares the true input of each mechanism on a table and a neighbour with what was declared. The counts of
`suggest` are compared with counts by sorting rows as well, which need no number for a combination.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.privacy.test_sensitivity_at_extremes import EvenModel

from kamino.constraints import Constraints
from kamino.engine import MemoryMeasurer, discover_domains, discover_types
from kamino.engine.broken_rows import Ranks, codes_of, count_out_of_order, count_repeats, count_strays
from kamino.engine.discovery import DiscoveryShare
from kamino.engine.paper_weights import release_violation_matrix
from kamino.engine.rates import release_rates
from kamino.engine.suggesting import suggest_constraints
from kamino.model.marginal.columns.histogram import measure_histogram
from kamino.model.protocol import CodeMap, ModelAttribute
from kamino.pipeline import Settings
from kamino.pipeline.fitting import fit
from kamino.pipeline.plan.run_plan import plan_table
from kamino.privacy import Budget, Gate, Neighbours
from kamino.privacy.private import PrivateCodes, PrivateTable
from kamino.schema import Categorical, Codec, Integer, Real, Schema
from kamino.testing.replay import add_row, assert_replay, record, replace_row

pytestmark = pytest.mark.slow

ROWS = 3_000_000
WIDE = 2**62 - 1
SCHEMA = Schema(
    attributes={
        "g": Integer(min=0, max=8, nullable=True),
        "w": Integer(min=0, max=WIDE - 1, nullable=True),
        "a": Integer(min=0, max=WIDE - 1, nullable=True),
        "b": Integer(min=0, max=WIDE - 1, nullable=True),
        "c": Integer(min=0, max=WIDE - 1, nullable=True),
    }
)
CODEC = Codec(SCHEMA)


def made() -> pa.Table:
    """More than 2^21 distinct values in each of a, b and c, so that 2^63 combinations are not enough.

    The rows beyond share one a, have neighbours in b, and of c the two ends in turn: a wrapped number puts two of them
    in one group. Groups of g and w are 8, of which two and two have one number if 4 * 2^62 wraps to 0.
    """
    distinct = 2**21 + 100
    step = WIDE // (distinct + 1)
    place = np.arange(ROWS)
    beyond = place >= distinct
    a = np.where(beyond, distinct - 1, place)
    b = np.where(beyond, place - distinct, place)
    c = np.where(beyond, place % 2 * (distinct - 1), place)
    kind = place % 8
    return pa.table(
        {"g": kind + (kind > 3), "w": kind % 4 * step, "a": a * step, "b": b * step, "c": c * step},
    )


NEW = {"g": 4, "w": 0, "a": WIDE - 1, "b": WIDE - 1, "c": WIDE - 1}


def assert_bounded(run: Callable[[Any, Gate], Any], table: pa.Table, *, epsilon: float = 3.0) -> None:
    """For a row more only: the smaller tests at the extremes replace rows, too."""
    assert_replay(run, table, add_row(table, NEW), budget=Budget(epsilon=epsilon, delta=1e-9))


def sorted_strays(columns: list[np.ndarray]) -> tuple[int, int]:
    """Repeats of all columns, and strays of the last given the others: by sorting rows, without any joint number."""
    order = np.lexsort(columns[::-1])
    group = np.ones(len(order), dtype=bool)
    pair = np.ones(len(order), dtype=bool)
    group[1:] = np.any([np.diff(column[order]) != 0 for column in columns[:-1]], axis=0)
    pair[1:] = group[1:] | (np.diff(columns[-1][order]) != 0)
    counts = np.diff(np.append(np.flatnonzero(pair), len(order)))
    most = np.maximum.reduceat(counts, np.flatnonzero(group[pair]))
    return int(len(order) - len(counts)), int(len(order) - most.sum())


def test_statistics_of_suggestions_at_scale() -> None:
    table = made()
    found = []
    for some in (table, add_row(table, NEW)):
        codes = {name: codes_of(some.column(name)) for name in "abc"}
        repeats, strays = sorted_strays([some.column(name).to_numpy() for name in "abc"])
        assert count_repeats(codes["a"], codes["b"], codes["c"]) == repeats
        assert count_strays(codes, ("a", "b"), "c") == strays
        found.append((repeats, strays))
    assert np.all(np.abs(np.subtract(*found)) <= 1)


def test_an_order_at_scale() -> None:
    """In a tenth of the rows all pairs of 8 groups are out of order: one row of each may stay."""
    table = made().slice(0, ROWS // 10)
    more = add_row(table, {**NEW, "g": 0, "b": 0})
    one, other = (
        count_out_of_order(
            Ranks.of(some.column("b")), Ranks.of(some.column("c")), falls=True, groups=codes_of(some.column("g"))
        )
        for some in (table, more)
    )
    assert one == table.num_rows - 8
    assert abs(one - other) <= 1


def test_suggestions_at_scale() -> None:
    def run(table: pa.Table, gate: Gate) -> Any:
        return [str(each) for each in suggest_constraints(PrivateTable(table), gate)]

    assert_bounded(run, made().select(["a", "b", "c"]), epsilon=1.0)


def test_rates_at_scale() -> None:
    rules = Constraints.parse("soft: a, b -> c\nsoft: key (a, b, c)\nsoft: g, w -> a")

    def run(table: pa.Table, gate: Gate) -> Any:
        model = EvenModel(CODEC, list(CODEC.attributes))
        model.num_rows = 60.0  # groups larger than T, so that their sizes count
        coded = CODEC.encode(table)
        measured = release_rates(PrivateCodes(coded), CODEC, rules, gate, model=model, noise_multiplier=9.0)
        return measured.to_json()

    assert_bounded(run, made())


def test_marginals_at_scale() -> None:
    def run(table: pa.Table, gate: Gate) -> Any:
        measurer = MemoryMeasurer(PrivateCodes(CODEC.encode(table)), CODEC.sizes, gate)
        pairs = []

        def count(code_map: CodeMap, share: float) -> tuple[np.ndarray, float]:
            maps = {"a": code_map, "b": code_map}
            pairs.append(measurer.marginal(("a", "b"), maps, noise_multiplier=30.0))
            return pairs[-1].reshape(code_map.bins, -1).sum(axis=1).astype(float), 30.0

        attribute = ModelAttribute(name="a", size=WIDE + 1, ordered=True, null_code=WIDE)
        return measure_histogram(attribute, count).starts, pairs

    assert_bounded(run, made())


def test_the_violation_matrix_at_scale() -> None:
    """Of a sample: rows are hashed one by one, so of a tenth of the rows."""
    rules = Constraints.parse("soft: g, a, b -> c\nsoft: key (a, b, c)")

    def run(table: pa.Table, gate: Gate) -> Any:
        return release_violation_matrix(
            PrivateCodes(CODEC.encode(table)),
            CODEC,
            rules,
            gate,
            sample_rows=100,
            noise_multiplier=9.0,
            num_rows=ROWS / 10,
        ).values

    assert_bounded(run, made().slice(0, ROWS // 10))


def spelled(column: np.ndarray) -> pa.Array:
    return pa.array(column).cast(pa.string())


def test_found_domains_at_scale() -> None:
    """Categories of more than 2^21 texts, bounds of numbers up to 2^62 and of floats of all sizes."""
    table = made()
    sizes = np.ldexp(1.0, np.arange(ROWS) % 2_000 - 1_000)
    given = pa.table({"word": spelled(table.column("a").to_numpy()), "n": table.column("b"), "x": sizes})
    schema = Schema(attributes={"word": Categorical(nullable=True), "n": Integer(nullable=True), "x": Real()})
    new = {"word": "nobody has it", "n": 2**62, "x": float("inf")}

    def run(private: pa.Table, gate: Gate) -> Any:
        share = DiscoveryShare(mu_squared=gate.gaussian_left() / 2, delta=1e-10)
        return discover_domains(PrivateTable(private), schema, gate, share).schema.to_yaml()

    budget = Budget(epsilon=3.0, delta=1e-9)
    recording = record(run, given, budget=budget)
    assert [entry.kind for entry, _, _ in recording.records] == ["counts", "bounds", "categories", "counts"]
    recording.assert_plays(add_row(given, new))
    exchanged = Budget(epsilon=3.0, delta=1e-9, neighbours=Neighbours.REPLACE)
    assert_replay(run, given, replace_row(given, 0, new), budget=exchanged)


def test_found_types_at_scale() -> None:
    table = pa.table({name: spelled(made().column(name).to_numpy()) for name in ("a", "c")})

    def run(private: pa.Table, gate: Gate) -> Any:
        return discover_types(PrivateTable(private), gate, mu_squared=0.01).to_yaml()

    assert_replay(run, table, add_row(table, {"a": "1e999", "c": None}), budget=Budget(epsilon=3.0, delta=1e-9))


@pytest.mark.parametrize("relation", Neighbours)
def test_a_whole_fit_at_scale(relation: Neighbours) -> None:
    """All statistics of one fit: histograms, scores, interactions, tables of links, rates of soft constraints.

    Three attributes of 2^62 values and a soft constraint over all of them: no count of combinations fits in 64 bits.
    """
    rules = Constraints.parse("a -> g\nsoft: a, b -> c\nsoft: g, w -> a")

    def run(private: pa.Table, gate: Gate) -> Any:
        settings = Settings(epsilon=3.0, delta=1e-9, neighbours=relation, seed=1)
        fitted = fit(PrivateTable(private), plan_table(PrivateTable(private), SCHEMA, rules, settings), gate)
        return dict(fitted.to_bundle().arrays)

    table = made()
    recording = record(run, table, budget=Budget(epsilon=3.0, delta=1e-9, neighbours=relation))
    said = " ".join(entry.what for entry, _, _ in recording.records)
    for statistic in ("1-way marginal", "2-way", "distances of", "violation rates of 2"):
        assert statistic in said
    if relation is Neighbours.ADD_REMOVE:
        recording.assert_plays(add_row(table, NEW))
    else:
        recording.assert_plays(replace_row(table, 0, NEW))

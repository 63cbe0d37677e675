"""Declared sensitivities at the extremes: domains of up to 2^62 values, products beyond 2^64, zeros of both signs.

Replay compares the true input of each mechanism on two neighbours with the sensitivity that the release declared.
Where a statistic is computed in a clever way, it is compared with a plain one as well.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.sampling.fakes import FakeModel, integers
from tests.trying import examples

from kamino.constraints import Constraints
from kamino.engine import DiscoveryShare, MemoryMeasurer, discover_domains, rates
from kamino.engine.broken_rows import Ranks, codes_of, count_out_of_order, count_repeats, count_strays
from kamino.engine.neural_rows import release_histogram
from kamino.engine.paper_weights import release_violation_matrix
from kamino.engine.rates import release_rates
from kamino.engine.suggesting import suggest_constraints
from kamino.model.marginal.columns.histogram import measure_histogram
from kamino.model.neural.units import Kind, Unit
from kamino.model.protocol import CodeMap, ModelAttribute
from kamino.pipeline import Settings
from kamino.pipeline.fitting import fit
from kamino.pipeline.output.drawn_table import draw
from kamino.pipeline.plan.run_plan import plan_table
from kamino.privacy import Budget, Gate, Neighbours
from kamino.privacy.private import PrivateCodes, PrivateTable
from kamino.privacy.unit import choose_rows, hash_rows
from kamino.schema import Codec, Integer, Real, Schema
from kamino.testing.replay import add_row, assert_replay, remove_row, replace_row

# Of a nullable attribute, 2^62 - 1 values are the most.
SIZES = [2**31, 2**53, 2**62 - 1]
RULES = Constraints.parse(
    "soft: a, b -> c\nsoft: key (a, b, c)\nsoft: not (t1.a = t2.a and t1.b = t2.b and t1.c < t2.d and t1.d > t2.d)\n"
    "soft: check (c >= 5)"
)
Row = tuple[int | None, ...]


def codec_of(size: int) -> Codec:
    return integers(a=-size, b=-size, c=-size, d=-size)


def ends(size: int) -> st.SearchStrategy[int | None]:
    """Values near the ends, and multiples of powers of two: what wraps or rounds to something else."""
    return st.sampled_from([None, 0, 1, 2, 4, 8, size // 2, size // 2 + 1, size - 2, size - 1])


def table_of(rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * 4
    return pa.table({name: pa.array(list(column), pa.int64()) for name, column in zip("abcd", columns, strict=False)})


def neighbours_of(table: pa.Table, row: dict[str, Any], place: int) -> list[tuple[Neighbours, pa.Table]]:
    grow = [add_row(table, row)] + ([remove_row(table, place)] if table.num_rows else [])
    other = [replace_row(table, place, row)] if table.num_rows else []
    return [(Neighbours.ADD_REMOVE, each) for each in grow] + [(Neighbours.REPLACE, each) for each in other]


def assert_bounded(run: Callable[[Any, Gate], Any], table: pa.Table, row: dict[str, Any], place: int = 0) -> None:
    for relation, neighbour in neighbours_of(table, row, place):
        assert_replay(run, table, neighbour, budget=Budget(epsilon=3.0, delta=1e-6, neighbours=relation))


def run_of_rates(codec: Codec, num_rows: float) -> Callable[[Any, Gate], Any]:
    def run(table: pa.Table, gate: Gate) -> Any:
        model = FakeModel(codec, list(codec.attributes))
        model.num_rows = num_rows
        return release_rates(
            PrivateCodes(codec.encode(table)), codec, RULES, gate, model=model, noise_multiplier=9.0
        ).to_json()

    return run


# Statistics of suggestions.


def plain_repeats(rows: Sequence[Row]) -> int:
    there = [row for row in rows if None not in row]
    return len(there) - len(set(there))


def plain_strays(rows: Sequence[Row]) -> int:
    """Of (left side, right side)."""
    groups: dict[Row, Counter[int | None]] = defaultdict(Counter)
    for row in rows:
        if None not in row:
            groups[row[:-1]][row[-1]] += 1
    return sum(group.total() - max(group.values()) for group in groups.values())


@pytest.mark.parametrize("size", SIZES)
@examples(100, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_broken_rows_are_counted_at_every_size(size: int, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(*[ends(size)] * 3), min_size=1, max_size=12))
    codes = {name: np.array([-1 if row[i] is None else row[i] for row in rows]) for i, name in enumerate("abc")}
    assert count_repeats(codes["a"], codes["b"], codes["c"]) == plain_repeats(rows)
    assert count_strays(codes, ("a", "b"), "c") == plain_strays(rows)


def test_one_row_moves_strays_by_one_beyond_64_bits() -> None:
    """The case that was found: a product of sizes that one new value takes across 2^63."""
    wide, num = 2**21, 100_000
    codes = {
        "a": np.full(num, wide - 1),
        "b": np.arange(wide - num, wide),
        "c": np.where(np.arange(num) % 2, 0, wide - 1),
    }
    more = {name: np.append(column, wide) for name, column in codes.items()}
    assert count_strays(codes, ("a", "b"), "c") == 0.0
    assert count_strays(more, ("a", "b"), "c") == 0.0


def test_zeros_of_both_signs_are_one_value_and_nan_is_none() -> None:
    column = pa.chunked_array([[0.0, -0.0, math.nan], [None, 1.0, -0.0]], pa.float64())
    for kind in (pa.float64(), pa.float32()):
        codes = codes_of(column.cast(kind))
        assert codes[0] == codes[1] == codes[5] >= 0
        assert codes[2] == codes[3] == -1
        assert codes[4] not in (codes[0], -1)
        assert count_repeats(codes) == 2


def zeros(num: int) -> pa.Table:
    sign = np.where(np.arange(num) % 2, 0.0, -0.0)
    return pa.table({"g": sign, "x": np.arange(num), "y": -np.arange(num)})


def test_groups_of_an_order_are_equal_values() -> None:
    """Rows of 0.0 and -0.0 are out of order together: of their one group, one row may stay."""

    def statistic(table: pa.Table) -> float:
        x, y = (Ranks.of(table.column(name)) for name in "xy")
        return count_out_of_order(x, y, falls=False, groups=codes_of(table.column("g")))

    table = zeros(40)
    assert statistic(table) == 39
    assert {statistic(remove_row(table, place)) for place in range(40)} == {38}
    lonely = pa.table({"g": [0.0] * 39 + [-0.0], "x": range(40), "y": range(0, -40, -1)})
    assert abs(statistic(lonely) - statistic(remove_row(lonely, 39))) <= 1


def test_suggestions_with_zeros_stay_within_their_sensitivity() -> None:
    table = pa.table(
        {
            "g": [0.0] * 60 + [1.0] * 60 + [2.0] * 60,
            "x": [*range(60)] * 3,
            "y": [*range(60, 0, -1)] * 3,
        }
    )

    def run(some: pa.Table, gate: Gate) -> Any:
        return [str(each) for each in suggest_constraints(PrivateTable(some), gate, ordered=("x", "y"))]

    for value in (-0.0, math.nan, None):
        for relation, neighbour in neighbours_of(table, {"g": value, "x": -1, "y": 99}, 0):
            assert_replay(run, table, neighbour, budget=Budget(epsilon=60.0, delta=1e-6, neighbours=relation))


# Violation rates and the violation matrix.


@pytest.mark.parametrize("size", SIZES)
@examples(40, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_rates_stay_within_their_sensitivity_at_every_size(size: int, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(*[ends(size)] * 4), max_size=14))
    row = dict(zip("abcd", data.draw(st.tuples(*[ends(size)] * 4)), strict=True))
    place = data.draw(st.integers(0, max(0, len(rows) - 1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rates, "_MORE_ROWS", 0)
        assert_bounded(run_of_rates(codec_of(size), data.draw(st.integers(2, 15))), table_of(rows), row, place)


class EvenModel(FakeModel):
    """A model that says how many rows there are, and that all values of a narrow attribute are equally likely."""

    def marginal(self, attributes: tuple[str, ...]) -> np.ndarray:
        (name,) = attributes
        return np.full(self._codec[name].size, 1 / self._codec[name].size)


def test_a_new_value_moves_no_rate_beyond_64_bits() -> None:
    """Groups 0 to 3 and 4 to 7 have one number each once 4 * 2^62 wraps to 0, until a value between them comes."""
    codec = integers(a=9, b=-(2**62 - 1), c=1000)
    rows = [{"a": i + (i > 3), "b": i % 4, "c": k} for i in range(8) for k in range(200)]
    table = pa.Table.from_pylist(rows)
    rules = Constraints.parse("soft: a, b -> c")

    def run(some: pa.Table, gate: Gate) -> Any:
        model = EvenModel(codec, list(codec.attributes))
        model.num_rows = float(len(rows))
        return release_rates(
            PrivateCodes(codec.encode(some)), codec, rules, gate, model=model, noise_multiplier=9.0
        ).to_json()

    assert_bounded(run, table, {"a": 4, "b": 0, "c": 0})


@pytest.mark.parametrize("size", SIZES)
def test_the_violation_matrix_stays_within_its_sensitivity_at_every_size(
    size: int, replays: Callable[..., None]
) -> None:
    codec = codec_of(size)
    rows: list[Row] = [(i % 3 * (size // 3), size - 1, i % 2, size - 1 - i) for i in range(30)]

    def run(table: pa.Table, gate: Gate) -> Any:
        coded = codec.encode(table)
        return release_violation_matrix(
            PrivateCodes(coded), codec, RULES, gate, sample_rows=12, noise_multiplier=9.0, num_rows=30
        ).values

    replays(run, table_of(rows), epsilon=3.0)


# Marginals and domains.


@pytest.mark.parametrize("size", [*SIZES, 2**57, 2**62])
@pytest.mark.parametrize("nullable", [False, True])
def test_cells_of_a_wide_domain_hold_every_row_once(size: int, nullable: bool) -> None:
    attribute = ModelAttribute(name="x", size=size + nullable, ordered=True, null_code=size if nullable else None)
    codes = np.array([0, 1, size // 2, *[size - 1] * 400, *([size] if nullable else [])])
    seen = []

    def count(code_map: CodeMap, share: float) -> tuple[np.ndarray, float]:
        counts = np.bincount(code_map(codes), minlength=code_map.bins).astype(float)
        seen.append(counts)
        return counts, 1.0

    found = measure_histogram(attribute, count)
    assert all(counts.sum() == len(codes) for counts in seen)
    assert np.all(found.width > 0)
    assert found.starts[np.searchsorted(found.starts, size - 1, side="right") - 1] == size - 1


@pytest.mark.parametrize("size", SIZES)
def test_measured_marginals_stay_within_their_sensitivity_at_every_size(size: int) -> None:
    codec = codec_of(size)

    def run(table: pa.Table, gate: Gate) -> Any:
        measurer = MemoryMeasurer(PrivateCodes(codec.encode(table)), codec.sizes, gate)
        released = []

        def count(code_map: CodeMap, share: float) -> tuple[np.ndarray, float]:
            released.append(measurer.marginal(("a", "b"), {"a": code_map, "b": code_map}, noise_multiplier=30.0))
            counts = released[-1].reshape(code_map.bins, code_map.bins).sum(axis=1)
            return counts.astype(float), 30.0

        attribute = ModelAttribute(name="a", size=size + 1, ordered=True, null_code=size)
        found = measure_histogram(attribute, count)
        return released, found.starts

    rows: list[Row] = [(size - 1, size - 1, 0, 0)] * 30 + [(0, None, 0, 0), (size // 2, 1, 0, 0)]
    for row in ((None, None, None, None), (size - 1, 0, 0, 0), (size // 2 + 1, size - 1, 0, 0)):
        assert_bounded(run, table_of(rows), dict(zip("abcd", row, strict=True)))


@pytest.mark.parametrize("size", SIZES)
def test_a_wide_numeric_unit_stays_within_its_sensitivity(size: int) -> None:
    attribute = ModelAttribute(name="a", size=size + 1, ordered=True, null_code=size)
    unit = Unit(attributes=(attribute,), kind=Kind.NUMERIC)
    codec = codec_of(size)

    def run(table: pa.Table, gate: Gate) -> Any:
        joint = unit.joint({"a": codec.encode(table)["a"]})
        return release_histogram(gate, unit, joint, num_cells=64, noise_multiplier=30.0)

    rows: list[Row] = [(size - 1, 0, 0, 0), (None, 0, 0, 0), (0, 0, 0, 0)]
    for value in (None, 0, size // 2, size - 1):
        assert_bounded(run, table_of(rows), {"a": value, "b": 0, "c": 0, "d": 0})


def test_found_domains_stay_within_their_sensitivity_at_the_ends_of_types() -> None:
    schema = Schema(attributes={"whole": Integer(nullable=True), "real": Real(nullable=True)})
    table = pa.table(
        {
            "whole": pa.array([2**63 - 1, -(2**63), 2**53 + 1, 0, None] * 8, pa.int64()),
            "real": pa.array([math.inf, -math.inf, 0.0, -0.0, math.nan] * 8, pa.float64()),
        }
    )

    def run(some: pa.Table, gate: Gate) -> Any:
        found = discover_domains(
            PrivateTable(some), schema, gate, DiscoveryShare(mu_squared=0.1, delta=1e-7, about_rows=10**6)
        )
        return {name: str(found.schema[name]) for name in found.schema.names}, found.lost, found.by_default

    for whole, real in ((2**63 - 1, -0.0), (-(2**63), math.nan), (None, None), (0, 5e-324)):
        assert_bounded(run, table, {"whole": whole, "real": real})


def test_a_table_with_64_bit_numbers_is_fitted_and_drawn(replays: Callable[..., None]) -> None:
    """From the table to the drawn one, with the steps that hold keys and owners of values in a domain of 2^62 - 1."""
    size = 2**62 - 1
    schema = codec_of(size).schema
    rules = Constraints.parse("a -> b\ncheck (c >= 5)\nsoft: c, d -> a\nkey (c)")
    rows: list[Row] = [(i * (size // 80), i * (size // 80), size - 1 - i, i % 5) for i in range(80)]

    def run(table: pa.Table, gate: Gate) -> Any:
        options = Settings(neighbours=gate.budget.neighbours, epsilon=gate.budget.epsilon)
        fitted = fit(PrivateTable(table), plan_table(PrivateTable(table), schema, rules, options), gate)
        drawn = draw(fitted, 40, np.random.default_rng(7))
        return drawn, dict(fitted.to_bundle().arrays)

    replays(run, table_of(rows), epsilon=20.0, relations=(Neighbours.ADD_REMOVE,))


def test_zeros_of_both_signs_are_one_unit() -> None:
    values = [0.0, -0.0] * 10 + [1.0]
    for coins in (bytes(range(32)), bytes(32)):
        kept = choose_rows([hash_rows(pa.table({"who": values}), "who", coins)], 3)
        assert sum(values[place] == 0 for place in kept) == 3

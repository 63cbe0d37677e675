"""Violations counted part by part are those of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.constraints import Constraints, count_violations
from kamino.constraints.counting import in_parts
from kamino.constraints.counting.in_parts import count_in_parts
from kamino.schema.coding.value_hashes import deal_out

RULES = Constraints.parse(
    "a -> b\na, t -> b\nt -> f\nf -> a\nkey (a, b)\ncheck (a >= 1)\ncheck (t <> 'x' or a = 2)\n"
    "not (t1.a = t2.a and t1.b > t2.b and t1.f < t2.f)\n"
    "not (t1.t = t2.t and t1.b < t2.b and t1.f < t2.f)\n"
    "not (t1.t = t2.t and t1.b >= t2.b and t1.f < t2.f)\n"
    "not (t1.b > t2.b and t1.f <= t2.f)\n"
    "not (t1.b > t2.b and t1.t < t2.t)\n"
    "not (t1.d < t2.d and t1.a > t2.a)\n"
    "not (t1.b > t2.b and t1.d < t2.d)\n"
    "not (t1.a = t2.a and t1.b <> t2.b and t1.f > 1)\n"
    "not (t1.a > t2.b and t1.t = t2.t)"
)


class Cut:
    """A table in memory that is handed out in parts."""

    def __init__(self, table: pa.Table, rows: int) -> None:
        self.table, self.rows, self.passes = table, rows, 0

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        self.passes += 1
        table = self.table if names is None else self.table.select(list(names))
        for start in range(0, max(1, table.num_rows), self.rows):
            yield table.slice(start, self.rows)


def table_of(rows: int, rng: np.random.Generator, spread: int) -> pa.Table:
    def some(values: np.ndarray, kind: pa.DataType) -> pa.Array:
        return pa.array(values.tolist(), kind, mask=rng.random(rows) < 0.1)

    floats = rng.choice([0.0, -0.0, float("nan"), 1.0, 2.5, 3.0][: spread + 3], rows)
    return pa.table(
        {
            "a": some(rng.integers(0, spread, rows), pa.int64()),
            "b": some(rng.integers(0, spread, rows), pa.int32()),
            "t": some(rng.choice(["x", "y", "", "é"], rows), pa.string()),
            "f": some(floats, pa.float64()),
            "d": some(rng.integers(0, spread, rows), pa.int32()).cast(pa.date32()),
        }
    )


@examples(20)
@given(st.integers(0, 60), st.integers(1, 25), st.integers(1, 6), st.integers(0, 2**32))
def test_counts_in_parts_are_those_of_the_table(rows: int, part: int, spread: int, seed: int) -> None:
    table = table_of(rows, np.random.default_rng(seed), spread)
    bound = RULES
    expected = {rule: count_violations(table, rule) for rule in bound}
    for most_kept, at_once in ((1 << 23, 1 << 23), (3, 7)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(in_parts, "MOST_KEPT", most_kept)
            patch.setattr(in_parts, "ROWS_AT_ONCE", at_once)
            assert count_in_parts(Cut(table, part), bound) == (expected, rows)


def test_a_clean_table_takes_one_pass() -> None:
    x = np.arange(500)
    table = pa.table({"a": x % 7, "b": (x % 7) // 2, "x": x, "y": x // 3})
    rules = Constraints.parse("a -> b\ncheck (x >= 0)\nnot (t1.a = t2.a and t1.x > t2.x and t1.y < t2.y)")
    cut = Cut(table, 64)
    assert set(count_in_parts(cut, rules)[0].values()) == {0}
    assert cut.passes == 1


def test_equal_rows_have_one_turn() -> None:
    table = pa.table({"f": [0.0, -0.0, 1.0, None], "t": ["a", "a", "b", None]})
    turns = deal_out(pa.concat_tables([table, table.take([3, 2, 1, 0])]), 1_000_003)
    assert turns[0] == turns[1] == turns[6] == turns[7]
    assert turns[2] == turns[5]
    assert turns[3] == turns[4]
    assert len(set(turns.tolist())) == 3

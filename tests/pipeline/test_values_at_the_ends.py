"""Numbers at the ends of their types: written as they were drawn, or refused before anything is spent."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.contracts import servers

from kamino import Synthesizer
from kamino.errors import SchemaError
from kamino.io import read_table
from kamino.schema import Integer, Real, Schema

ROWS = 60


def near(start: int, kind: pa.DataType, places: int = 0) -> pa.Array:
    """A few numbers from `start` on, in units of the last of some places."""
    values = [start + each * 7 % 5 for each in range(ROWS)]
    return pa.array([Decimal(f"{each}e-{places}") for each in values] if pa.types.is_decimal(kind) else values, kind)


COLUMNS = {
    "low": near(-(2**63), pa.int64()),
    "high": near(2**63 - 5, pa.int64()),
    "half": near(2**60 - 2, pa.int64()),
    "unsigned": near(2**64 - 5, pa.uint64()),
    "middle": near(2**63 - 2, pa.uint64()),
    "decimal": near(10**38 - 5, pa.decimal128(38, 0)),
    "negative": near(-(10**38) + 1, pa.decimal128(38, 0)),
    "money": near(123456789012345678_25, pa.decimal128(20, 2), 2),
    "fine": near(10**20 + 1, pa.decimal128(38, 20), 20),
    "hundreds": near(12345, pa.decimal128(9, 2), 2).cast(pa.decimal128(9, 2)),
    "large": pa.array([1.7976931348623157e308, 1.5e308, -1.7976931348623157e308, 0.0] * (ROWS // 4)),
    "single": pa.array([3.4028234663852886e38, -1e38, 0.0, 1.0] * (ROWS // 4), pa.float32()),
}
TABLE = pa.table(COLUMNS)
EXACT = [name for name, column in COLUMNS.items() if not pa.types.is_floating(column.type)]


@pytest.fixture(scope="module")
def made() -> Synthesizer:
    return Synthesizer(trust_domain=True, epsilon=float("inf"), unit="row", seed=1).fit(TABLE)


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "parquet", "feather", "duckdb", "postgres"])
def test_what_is_written_is_what_was_drawn(
    kind: str, made: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = str(tmp_path / f"out.{kind}")
    if kind == "duckdb":
        place = f"duckdb:///{tmp_path}/out.db#made"
    elif kind == "postgres":
        place = f"{servers.postgres()}#ends"
    made.write(place, 40)
    drawn, back = made.sample(40), read_table(place)
    assert back.num_rows == 40
    for name, column in zip(drawn.column_names, drawn.columns, strict=True):
        assert name not in EXACT or set(column.to_pylist()) <= set(TABLE.column(name).to_pylist())
        assert not any(value in (float("inf"), float("-inf")) for value in column.to_pylist())
        if kind in (
            "csv",
            "tsv",
            "jsonl",
        ):  # read as text: types of such files are told by cells, and decimals are doubles
            assert cells(place, name) == {Decimal(repr(v) if isinstance(v, float) else v) for v in texts(column, kind)}
        else:
            assert sorted(back.column(name).cast(column.type).to_pylist()) == sorted(column.to_pylist()), name


def texts(column: pa.ChunkedArray, kind: str) -> list[Any]:
    """The values, floats as they are written with their own digits."""
    if pa.types.is_float32(column.type) and kind != "jsonl":  # there, with those of a double
        return list(column.cast(pa.string()).to_pylist())
    return list(column.to_pylist())


def cells(path: str, name: str) -> set[Decimal]:
    """The numbers of a column as they stand in a file of text."""
    lines = Path(path).read_text().splitlines()
    if path.endswith("jsonl"):
        return {json.loads(line, parse_float=Decimal, parse_int=Decimal)[name] for line in lines}
    separator = "," if path.endswith("csv") else "\t"
    place = lines[0].split(separator).index(name)
    return {Decimal(line.split(separator)[place]) for line in lines[1:]}


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_have_what_was_drawn(library: str) -> None:
    wanted = TABLE.select([name for name in EXACT if not pa.types.is_decimal(TABLE.schema.field(name).type)])
    frame: Any = wanted.to_pandas() if library == "pandas" else pl.from_arrow(wanted)
    drawn = Synthesizer(trust_domain=True, epsilon=float("inf"), unit="row", seed=1).fit(frame).sample(40)
    assert isinstance(drawn, pd.DataFrame if library == "pandas" else pl.DataFrame)
    table = pa.Table.from_pandas(drawn) if library == "pandas" else drawn.to_arrow()
    for name in wanted.column_names:
        assert table.schema.field(name).type == wanted.schema.field(name).type
        assert set(table.column(name).to_pylist()) <= set(wanted.column(name).to_pylist())


@pytest.mark.parametrize(
    "column",
    [
        pa.array([-(2**63), 2**63 - 1] * 30),
        pa.array([0, 2**64 - 1] * 30, pa.uint64()),
        pa.array([Decimal(1), Decimal(10**37 + 1)] * 30, pa.decimal128(38, 0)),
        pa.array([Decimal("0.00000000000000000001"), Decimal("9.5")] * 30, pa.decimal128(38, 20)),
    ],
    ids=["int64", "uint64", "decimal", "places"],
)
def test_numbers_that_cannot_be_kept_are_refused_before_spending(column: pa.Array) -> None:
    synthesizer = Synthesizer(trust_domain=True, seed=1)
    with pytest.raises(SchemaError, match="found 'a' with numbers of which 2\\^62 or more") as refused:
        synthesizer.fit(pa.table({"a": column, "b": ["x", "y"] * 30}))
    assert not getattr(refused.value, "__notes__", ())


FOUND = {
    "int64": (near(2**63 - 5, pa.int64()), 2**63 - 1),
    "uint64": (near(2**64 - 5, pa.uint64()), 2**64 - 1),
    "decimal": (near(10**38 - 5, pa.decimal128(38, 0)), 10**38 - 1),
    "double": (pa.array([1e307, 1.7e308] * (ROWS // 2)), 1.7976931348623157e308),
    "single": (pa.array([1e37, 3e38] * (ROWS // 2), pa.float32()), 3.4028234663852886e38),
}


@pytest.mark.parametrize("kind", FOUND)
def test_ranges_that_are_found_reach_the_ends_of_their_types(kind: str) -> None:
    """What is found holds the values, to as many digits as codes have, and no more than the type holds."""
    column, most = FOUND[kind]
    many = pa.table({"a": pa.concat_arrays([column] * 50)})
    made = Synthesizer(epsilon=50.0, unit="row", seed=1, anyway=True).fit(many)
    found: Any = made.fitted.schema["a"]
    kinds: Any = (Integer, Real)
    assert isinstance(found, kinds)
    true = [float(value) for value in column.to_pylist()]
    drawn = [float(value) for value in made.sample(200).column("a").to_pylist() if value is not None]
    assert found.max <= most
    assert min(drawn) >= min(true) * 0.4
    assert max(drawn) <= float(most)
    assert sum(min(abs(value - one) for one in true) <= 0.05 * abs(value) for value in drawn) >= 0.9 * len(drawn)


def test_decimals_of_hundreds_are_whole_numbers(tmp_path: Path) -> None:
    column = pa.array([Decimal(12300 + 100 * (i % 4)) for i in range(ROWS)], pa.decimal128(5, -2))
    made = Synthesizer(trust_domain=True, unit="row", seed=1).fit(pa.table({"a": column}))
    for name in ("o.parquet", "o.csv", "o.feather", "o.jsonl"):
        made.write(tmp_path / name, 20)
        found = read_table(tmp_path / name).column("a").to_pylist()
        assert all(value == int(value) and 12300 <= value <= 12600 for value in found)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ((Decimal("0.1"), Decimal("0.3")), {"0.1", "0.2", "0.3"}),
        ((0.1, 0.3), {"0.1", "0.2", "0.3"}),
        ((None, 0.3), {"0.0", "0.1", "0.2", "0.3"}),
        ((0.85, float("inf")), {"0.9", "1.0"}),
        (0.7, {"0.7"}),
    ],
)
@pytest.mark.parametrize("dtype", ["decimal128(5, 1)", "float64"])
def test_ends_of_an_interval_are_among_its_values(dtype: str, given: Any, kept: set[str]) -> None:
    column = pa.array([Decimal(i % 11) / 10 for i in range(110)], pa.decimal128(5, 1))
    schema = Schema(attributes={"a": Real(min=0, max=1, decimals=1, dtype=dtype)})
    made = Synthesizer(schema, seed=1).fit(pa.table({"a": column}))
    drawn = made.sample(300, given={"a": given}).column("a").to_pylist()
    assert {f"{value:.1f}" for value in drawn} == kept


def test_an_interval_of_large_numbers_holds_them_all() -> None:
    made = Synthesizer(trust_domain=True, epsilon=float("inf"), unit="row", seed=1).fit(TABLE)
    low, high = 2**63 - 4, 2**63 - 3
    assert set(made.sample(200, given={"high": (low, high)}).column("high").to_pylist()) == {low, high}
    only = Decimal("123456789012345678.27")
    assert set(made.sample(50, given={"money": only}).column("money").to_pylist()) == {only}
    assert set(made.sample(50, given={"money": (only, only)}).column("money").to_pylist()) == {only}

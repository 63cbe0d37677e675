from __future__ import annotations

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.trying import examples

from kamino.errors import InputError
from kamino.io import read_table, write_table
from kamino.io.atomic import staged
from kamino.io.write import ROWS_AT_ONCE, stage_parts, stage_table

# Text that cannot be taken for another type: it starts with a letter no keyword or number starts with.
WORDS = st.text(st.sampled_from('",\r\n ') | st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8).map(
    lambda text: "w" + text
)
CSV_TYPES: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): WORDS,
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("us", "UTC"): st.datetimes(timezones=st.just(dt.UTC)),
}
PARQUET_TYPES: dict[pa.DataType, st.SearchStrategy[object]] = {
    **CSV_TYPES,
    pa.string(): st.text(st.characters(codec="utf-8"), max_size=8),
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.decimal128(10, 3): st.decimals(-(10**6), 10**6, places=3),
    pa.decimal256(60, 2): st.decimals(-(10**30), 10**30, places=2),
    pa.timestamp("ns"): st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)),
    # In the year 9999 of the zone, too.
    pa.timestamp("ms", "Europe/Berlin"): st.datetimes(
        dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30), timezones=st.just(dt.UTC)
    ).map(lambda moment: moment.replace(microsecond=0)),
}
NO_FIXTURE_CHECK = [HealthCheck.function_scoped_fixture]


@st.composite
def tables(draw: st.DrawFn, types: dict[pa.DataType, st.SearchStrategy[object]]) -> pa.Table:
    num_rows = draw(st.integers(1, 5))
    kinds = draw(st.lists(st.sampled_from(list(types)), min_size=1, max_size=4))
    columns = {}
    for position, kind in enumerate(kinds):
        values = [draw(types[kind]), *(draw(st.none() | types[kind]) for _ in range(num_rows - 1))]
        columns[f'c"{position},'] = pa.array(draw(st.permutations(values)), kind)
    return pa.table(columns)


@given(tables(CSV_TYPES))
@examples(150, suppress_health_check=NO_FIXTURE_CHECK)
def test_csv_round_trip(tmp_path: Path, table: pa.Table) -> None:
    # A column of infinities alone has no number in it, and stays text.
    finite = [
        not pa.types.is_floating(column.type)
        or any(v is not None and abs(v) < float("inf") for v in column.to_pylist())
        for column in table.columns
    ]
    table = pa.table(
        {name: table[name] for name, keep in zip(table.column_names, finite, strict=True) if keep} or {"a": ["x"]}
    )
    write_table(table, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").equals(table)


@given(tables(PARQUET_TYPES))
@examples(80, suppress_health_check=NO_FIXTURE_CHECK)
def test_parquet_round_trip(tmp_path: Path, table: pa.Table) -> None:
    write_table(table, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").equals(table)


def written(folder: Path, columns: dict[str, pa.Array]) -> str:
    write_table(pa.table(columns), folder / "t.csv")
    return (folder / "t.csv").read_bytes().decode()


def test_the_text_of_each_type(tmp_path: Path) -> None:
    text = written(
        tmp_path,
        {
            "i": pa.array([1, None], pa.uint8()),
            "f": pa.array([1.0, -0.0]),
            "g": pa.array([0.1, 1e-7], pa.float32()),
            "b": pa.array([True, None]),
            "s": pa.array(['a "b", c', "007"]),
            "d": pa.array([dt.date(2024, 1, 2), None]),
            "t": pa.array([dt.datetime(2024, 1, 2), None], pa.timestamp("s")),
            "z": pa.array([dt.datetime(2024, 1, 2, 3), None], pa.timestamp("us", "Europe/Berlin")),
        },
    )
    assert text == (
        "i,f,g,b,s,d,t,z\n"
        '1,1.0,0.1,true,"a ""b"", c",2024-01-02,2024-01-02 00:00:00,2024-01-02 03:00:00Z\n'
        ",-0.0,1e-7,,007,,,\n"
    )


@pytest.mark.parametrize("special", ['"', ",", "\n", "\r", "\r\n"])
def test_each_special_character(tmp_path: Path, special: str) -> None:
    table = pa.table({f"n{special}": [f"a{special}b", special, "plain"]})
    write_table(table, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").equals(table)


def test_decimals_keep_their_places(tmp_path: Path) -> None:
    prices = pa.array([Decimal("1.50"), Decimal("0.00"), None], pa.decimal128(9, 2))
    tiny = pa.array([Decimal("1E-9"), Decimal(0), Decimal(-2)], pa.decimal128(20, 9))
    hundreds = pa.array([Decimal(1200), None, Decimal(0)], pa.decimal128(9, -2))
    text = written(tmp_path, {"p": prices, "t": tiny, "h": hundreds})
    assert text.splitlines()[1:] == ["1.50,0.000000001,1200", "0.00,0.000000000,", ",-2.000000000,0"]


def test_empty_string_and_null_are_one_in_csv(tmp_path: Path) -> None:
    write_table(pa.table({"a": ["", None, "x"], "b": [1, 2, 3]}), tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").column("a").to_pylist() == [None, None, "x"]


def test_nulls_of_a_lone_column_are_not_lost(tmp_path: Path) -> None:
    for values in ([None, "x", None], [1, None], [None]):
        write_table(pa.table({"a": values}), tmp_path / "t.csv")
        assert read_table(tmp_path / "t.csv").column("a").to_pylist() == values


def test_not_a_number_among_numbers(tmp_path: Path) -> None:
    write_table(pa.table({"a": [float("nan"), 1.0, None]}), tmp_path / "t.csv")
    assert str(read_table(tmp_path / "t.csv").column("a").to_pylist()) == "[nan, 1.0, None]"


def test_many_rows_and_chunks(tmp_path: Path) -> None:
    rows = ROWS_AT_ONCE * 2 + 1
    values = pa.chunked_array([list(range(rows - 5)), list(range(5))])
    table = pa.table({"a": values, "b": pa.array(["x"] * rows)})
    write_table(table, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv").equals(table)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_no_rows(tmp_path: Path, name: str) -> None:
    table = pa.table({"a": pa.array([], pa.string()), "b": pa.array([], pa.string())})
    write_table(table, tmp_path / name)
    assert read_table(tmp_path / name).equals(table)


def test_bad_targets(tmp_path: Path) -> None:
    table = pa.table({"a": [1]})
    (tmp_path / "d.csv").mkdir()
    for name, message in [
        ("t.txt", "name ending in"),
        ("t.csv.bz2", "name ending in"),
        ("t.parquet.gz", "name ending in"),
        ("d.csv", "found a directory"),
        ("none/t.csv", "there is no folder"),
    ]:
        with pytest.raises(InputError, match=message):
            write_table(table, tmp_path / name)
    with pytest.raises(InputError, match="column 'a' has type list"):
        write_table(pa.table({"a": [[1]]}), tmp_path / "t.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["d.csv"]


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_compressed_files_read_back(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"a": list(range(3_000)), "b": ["x,y", None, "z"] * 1_000})
    for year, name in enumerate((f"one.csv.{ending}", f"two.csv.{ending}")):
        # gzip writes the time into its header, if it is let.
        monkeypatch.setattr("time.time", lambda year=year: 1.7e9 + 3e7 * year)
        write_table(table, tmp_path / name)
        assert read_table(tmp_path / name).equals(table)
    write_table(table, tmp_path / "plain.csv")
    # What is whole can be followed by more, which programs that read such files then find.
    how = "gzip" if ending == "gz" else "zstd"
    more = gzip.compress(b"end") if how == "gzip" else pa.Codec("zstd").compress(b"end", asbytes=True)
    with pa.input_stream(pa.py_buffer((tmp_path / f"one.csv.{ending}").read_bytes() + more), compression=how) as both:
        assert both.read() == (tmp_path / "plain.csv").read_bytes() + b"end"
    assert (tmp_path / f"one.csv.{ending}").read_bytes() == (tmp_path / f"two.csv.{ending}").read_bytes()
    assert 2 * (tmp_path / f"one.csv.{ending}").stat().st_size < (tmp_path / "plain.csv").stat().st_size


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.zst", ".parquet"])
def test_a_staged_table_reads_back(tmp_path: Path, suffix: str) -> None:
    table = pa.table({"zip": ["01", "2"], "n": [1, None], "x": [0.1, 2.0], "digits": ["1", "2"]})
    with staged(tmp_path / f"t{suffix}") as file:
        assert stage_table(table, file).equals(table)
        assert not (tmp_path / f"t{suffix}").exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("names", [None, ["zip", "x"]])
def test_staged_parts_read_back(tmp_path: Path, suffix: str, names: list[str] | None) -> None:
    table = pa.table({"zip": ["01", "2", "01", None], "n": [1, None, 3, 4], "x": [0.1, 2.0, 3.0, 4.0]})
    with staged(tmp_path / f"t{suffix}") as file:
        read = stage_parts(iter([table.slice(0, 2), table.slice(2, 1), table.slice(3)]), file, names=names)
        wanted = table.select(names or table.column_names)
        assert read.column_names == wanted.column_names
        assert read.to_pylist() == wanted.to_pylist()


def test_as_text_ignores_the_cells(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,x\n,2.5\n")
    table = read_table(tmp_path / "t.csv", private=True)
    assert table.schema.types == [pa.string(), pa.string()]
    assert table.to_pylist() == [{"a": "1", "b": "x"}, {"a": None, "b": "2.5"}]

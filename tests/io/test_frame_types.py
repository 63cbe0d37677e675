"""Frames come back as they went in: the same library, the same types of columns."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.io.oddities import THEMES
from tests.trying import examples

from kamino import Schema, Synthesizer
from kamino.io import Reading, read_table
from kamino.io.frame_types import FrameKind, frame_from, kind_of
from kamino.schema import Categorical, Integer

PRICES = [Decimal("1.50"), Decimal("2.25"), Decimal("9.99")]
HOURS = [dt.timedelta(hours=h) for h in (1, 2, 3)]
DAYS = [dt.datetime(2024, 1, day) for day in (1, 2, 3)]
WORDS = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)

# Each with three values; every type is tried with nulls too, if it has them.
PANDAS: dict[str, Any] = {
    **{kind: pd.Series([1, 2, 3], dtype=kind) for kind in ("int8", "int32", "int64", "uint8", "uint64")},
    **{kind: pd.Series([1, 2, 3], dtype=kind) for kind in ("Int8", "Int64", "UInt32")},
    **{kind: pd.Series([0.5, 1.5, 2.0], dtype=kind) for kind in ("float32", "float64", "Float32", "Float64")},
    **{kind: pd.Series([True, False, True], dtype=kind) for kind in ("bool", "boolean")},
    "object": pd.Series(["a", "b", "c"], dtype=object),
    "string": pd.Series(["a", "b", "c"], dtype="string[python]"),
    "string[pyarrow]": pd.Series(["a", "b", "c"], dtype="string[pyarrow]"),
    "category": pd.Series(["x", "y", "x"], dtype=pd.CategoricalDtype(["y", "z", "x"])),
    "category of numbers": pd.Series([5, 1, 9], dtype=pd.CategoricalDtype([9, 1, 5, 7])),
    "ordered": pd.Series(["low", "high", "low"], dtype=WORDS),
    "category of days": pd.Series(DAYS, dtype="category"),
    "category of truths": pd.Series([True, False, True], dtype="category"),
    "cut": pd.cut(pd.Series([1, 20, 300]), [0, 10, 100, 1_000]),
    "cut times": pd.cut(pd.Series(DAYS), 3, right=False),
    "ordered numbers": pd.Series([5, 1, 9], dtype=pd.CategoricalDtype([9, 1, 5, 7], ordered=True)),
    **{f"datetime64[{unit}]": pd.Series(DAYS).astype(f"datetime64[{unit}]") for unit in ("s", "ms", "us", "ns")},
    "zoned": pd.Series(DAYS).dt.tz_localize("Europe/Berlin"),
    "timedelta": pd.Series(pd.to_timedelta([1, 2, 3], unit="h")),
    "timedelta64[s]": pd.Series(pd.to_timedelta([1, 2, 3], unit="h")).astype("timedelta64[s]"),
    "period[M]": pd.Series(pd.period_range("2024-01", periods=3, freq="M")),
    "period[D]": pd.Series(pd.period_range("2024-01-01", periods=3, freq="D")),
    "arrow decimal": pd.Series(PRICES, dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "arrow int": pd.Series([1, 2, 3], dtype="int32[pyarrow]"),
    "arrow text": pd.Series(["a", "b", "c"], dtype=pd.ArrowDtype(pa.string())),
    "arrow date": pd.Series([day.date() for day in DAYS], dtype=pd.ArrowDtype(pa.date32())),
}  # fmt: skip
POLARS: dict[str, Any] = {
    **{str(kind): pl.Series([1, 2, 3], dtype=kind) for kind in (pl.Int8, pl.Int64, pl.UInt16, pl.UInt64)},
    **{str(kind): pl.Series([0.5, 1.5, 2.0], dtype=kind) for kind in (pl.Float32, pl.Float64)},
    "bool": pl.Series([True, False, True]),
    "text": pl.Series(["a", "b", "c"]),
    "Categorical": pl.Series(["x", "y", "x"], dtype=pl.Categorical),
    "Enum": pl.Series(["low", "high", "low"], dtype=pl.Enum(["low", "mid", "high"])),
    "Date": pl.Series([day.date() for day in DAYS]),
    **{f"Datetime {unit}": pl.Series(DAYS, dtype=pl.Datetime(unit)) for unit in ("ms", "us", "ns")},
    "zoned": pl.Series(DAYS, dtype=pl.Datetime("us")).dt.replace_time_zone("Europe/Berlin"),
    **{f"Duration {unit}": pl.Series(HOURS, dtype=pl.Duration(unit)) for unit in ("ms", "us")},
    "Time": pl.Series([dt.time(1), dt.time(2), dt.time(3)]),
    "Decimal": pl.Series(PRICES, dtype=pl.Decimal(9, 2)),
}  # fmt: skip
ARROW: dict[str, Any] = {
    **{str(kind): pa.array([1, 2, 3], kind) for kind in (pa.int8(), pa.int64(), pa.uint32())},
    "half": pa.array(np.array([0.5, 1.5, 2.0], np.float16)),
    "float": pa.array([0.5, 1.5, 2.0], pa.float32()),
    "bool": pa.array([True, False, True]),
    **{str(kind): pa.array(["a", "b", "c"], kind) for kind in (pa.string(), pa.large_string())},
    "dictionary": pa.array(["x", "y", "x"]).dictionary_encode(),
    "ordered dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), ["x", "y"], ordered=True),
    "date32": pa.array([day.date() for day in DAYS]),
    "date64": pa.array([day.date() for day in DAYS], pa.date64()),
    **{f"timestamp {unit}": pa.array(DAYS, pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    "zoned": pa.array(DAYS, pa.timestamp("us", "Europe/Berlin")),
    **{f"duration {unit}": pa.array([1, 2, 3], pa.duration(unit)) for unit in ("s", "us", "ns")},
    "time32": pa.array([1, 2, 3], pa.time32("s")),
    "time64": pa.array([1, 2, 3], pa.time64("us")),
    "decimal": pa.array(PRICES, pa.decimal128(9, 2)),
}


def frames() -> st.SearchStrategy[Any]:
    """Frames of some columns of any types, with nulls here and there where the type has them."""
    return st.one_of(_frames(PANDAS, _pandas), _frames(POLARS, _polars), _frames(ARROW, _arrow))


def _frames(columns: dict[str, Any], make: Any) -> st.SearchStrategy[Any]:
    names = st.lists(st.sampled_from(sorted(columns)), min_size=1, max_size=4, unique=True)
    places = st.lists(st.sampled_from([0, 1, 2, None]), min_size=0, max_size=8)
    return st.tuples(names, places).map(lambda pair: make({name: columns[name] for name in pair[0]}, pair[1]))


def _pandas(columns: dict[str, Any], places: list[int | None]) -> Any:
    made = {}
    for name, series in columns.items():
        full = str(series.dtype) in ("bool", "int8", "int32", "int64", "uint8", "uint64")
        index = [(0 if place is None else place) if full else place for place in places]
        made[name] = series.reindex(index).reset_index(drop=True).astype(series.dtype)
    return pd.DataFrame(made).set_index(pd.Index(range(7, 7 + len(places))))


def _polars(columns: dict[str, Any], places: list[int | None]) -> Any:
    return pl.DataFrame({name: series.gather(pl.Series(places, dtype=pl.UInt32)) for name, series in columns.items()})


def _arrow(columns: dict[str, Any], places: list[int | None]) -> Any:
    taken = {name: array.take(pa.array(places, pa.int32())) for name, array in columns.items()}
    # Views cannot be taken from.
    return pa.table({**taken, "view": pa.array([None if p is None else "abc"[p] for p in places], pa.string_view())})


def types(frame: Any) -> Any:
    if isinstance(frame, pd.DataFrame):
        return dict(frame.dtypes)
    return dict(frame.schema) if isinstance(frame, pl.DataFrame) else frame.schema


def sealed(found: Any) -> Any:
    """Types without what cells decide: the values of categories that are not ordered or are intervals, the type of the
    values of a dictionary and the width of its indices, and whether texts are held as texts or as objects.
    """
    if isinstance(found, pa.Schema):
        return pa.schema([field.with_type(_sealed_dictionary(field.type)) for field in found])
    return {name: _sealed_type(name, kind) for name, kind in found.items()}


def _sealed_dictionary(kind: pa.DataType) -> pa.DataType:
    is_listed = pa.types.is_dictionary(kind)
    return pa.dictionary(pa.int32(), pa.string(), ordered=kind.ordered) if is_listed else kind


def _sealed_type(name: str, kind: Any) -> Any:
    if str(kind) == "category" and ("cut" in name or not kind.ordered):
        return "category"
    return pd.Series([""]).dtype if kind is np.dtype(object) else kind


@examples(30, suppress_health_check=list(HealthCheck))
@given(frames(), st.booleans())
def test_frames_come_back_with_their_types(frame: Any, trusted: bool) -> None:
    made = Synthesizer(trust_domain=trusted, anyway=True, seed=1).fit(frame).sample(5)
    assert type(made) is type(frame)
    # Categories that no type lists are found within the budget, and their values then differ.
    before, after = (types(each) if trusted else sealed(types(each)) for each in (frame, made))
    assert after == before
    assert len(made) == 5
    if isinstance(made, pd.DataFrame):
        assert isinstance(made.index, pd.RangeIndex), "the index is no data"


@pytest.mark.parametrize(("columns", "library"), [(PANDAS, "pandas"), (POLARS, "polars"), (ARROW, "arrow")])
def test_values_come_back_in_their_types(columns: dict[str, Any], library: str, tmp_path: Path) -> None:
    frame = {"pandas": _pandas, "polars": _polars, "arrow": _arrow}[library](columns, [0, 1, 2] * 20)
    made = Synthesizer(trust_domain=True, epsilon=float("inf"), seed=1).fit(frame)
    drawn = made.sample(50)
    assert types(drawn) == types(frame)
    true, found = read_table(frame), read_table(drawn)
    for name in true.column_names:
        domain = made.fitted.schema[name]
        if isinstance(domain, Categorical) and domain.values is not None:
            assert set(found[name].to_pylist()) <= set(domain.values), name
            continue
        low, high = (pa.compute.min_max(true[name])[end].as_py() for end in ("min", "max"))
        assert all(low <= value <= high for value in found[name].to_pylist()), name
    made.save(tmp_path / "m.kamino")
    again = Synthesizer.load(tmp_path / "m.kamino").sample(50)
    assert (type(again), types(again)) == (type(frame), types(frame)), "a loaded model remembers"


def kind(frame: Any) -> FrameKind | None:
    return kind_of(frame, read_table(frame, private=True).schema)


def test_the_kind_of_a_frame_depends_on_no_cell() -> None:
    for table, make in ((PANDAS, _pandas), (POLARS, _polars), (ARROW, _arrow)):
        kinds = [kind(make(table, places)) for places in ([], [0, 1, 2], [1, 1, None, 2])]
        assert kinds[0] == kinds[1] == kinds[2]
        assert kinds[0] is not None


CELLS = [*THEMES.values(), (1, 2.5), (dt.datetime(2024, 1, 1), pd.Timestamp(1)), (Decimal(1), Decimal("2.5"))]


@examples(60)
@given(st.sampled_from(CELLS), st.sampled_from(CELLS))
def test_no_cell_decides_what_comes_back(first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    """Frames of one library that are sealed as the same table have one kind, whatever their cells were found to be."""
    for make in (_found_by_pandas, _listed_by_pandas, _listed_by_arrow):
        frames = [make(cells) for cells in (first, second)]
        tables = [read_table(frame, private=True) for frame in frames]
        assert tables[0].schema == tables[1].schema == pa.schema({"a": pa.string()})
        kinds = [kind_of(frame, tables[0].schema) for frame in frames]
        assert kinds[0] is not None
        assert kinds[0] == kinds[1]


def _found_by_pandas(cells: tuple[Any, ...]) -> Any:
    return pd.DataFrame({"a": [*cells, "x"]})


def _listed_by_pandas(cells: tuple[Any, ...]) -> Any:
    return pd.DataFrame({"a": pd.Series(cells, dtype=object).astype("category")})


def _listed_by_arrow(cells: tuple[Any, ...]) -> Any:
    """A dictionary, its indices of a type that follows from how many values there are."""
    listed = pa.array(_listed_by_pandas(cells)["a"])
    index = listed.indices.cast(pa.int8() if len(cells) > 2 else pa.int64())
    return pa.table({"a": pa.DictionaryArray.from_arrays(index, listed.dictionary)})


def test_only_columns_that_are_read_have_types() -> None:
    for frame in (
        pd.DataFrame({"a": ["x"], "b": [{"secret": 1}]}),
        pl.DataFrame({"a": ["x"], "b": [{"secret": 1}]}),
        pa.table({"a": ["x"], "b": [{"secret": 1}]}),
    ):
        made = Synthesizer(anyway=True, seed=1).fit(frame, reading=Reading(drop=("b",))).fitted.frame
        assert made is not None
        assert list(made.types) == ["a"]
        assert "secret" not in str(made)


def test_an_ordered_category_declares_its_domain() -> None:
    frame = pd.DataFrame({"a": pd.Series(["low"] * 50, dtype=WORDS), "b": pd.Series(["u", "v"] * 25, dtype="category")})
    fitted = Synthesizer(anyway=True, seed=1).fit(frame).fitted
    assert fitted.schema["a"] == Categorical(values=["low", "mid", "high"], nullable=True)
    assert fitted.schema["b"].source.value == "private", "astype('category') lists the cells"
    listed = pl.DataFrame({"a": pl.Series(["low"] * 50, dtype=pl.Enum(["low", "mid"]))})
    assert Synthesizer(anyway=True, seed=1).fit(listed).fitted.schema["a"] == Categorical(
        values=["low", "mid"], nullable=True
    )
    # A schema that declares the domain wins.
    declared = Schema(attributes={"a": Categorical(values=["low", "high"], nullable=True)})
    assert Synthesizer(declared, seed=1).fit(frame[["a"]]).fitted.schema == declared


def test_intervals_come_back() -> None:
    """What `pandas.cut` makes has bounds that come from the cells: a domain only where domains are trusted."""
    frame = pd.DataFrame({"a": pd.cut(pd.Series(range(60)), 3), "m": pd.Series(range(60)).astype("category")})
    frame["m"] = frame["m"].cat.rename_categories(pd.period_range("2024-01", periods=60, freq="M"))
    assert kind(frame).domains == {}  # type: ignore[union-attr]
    assert Synthesizer(anyway=True, seed=1).fit(frame).sample(3)["a"].dtype.ordered
    drawn = Synthesizer(trust_domain=True, epsilon=50.0, seed=1).fit(frame).sample(200)
    assert dict(drawn.dtypes) == dict(frame.dtypes)
    assert set(drawn["a"]) == set(frame["a"])


@pytest.mark.parametrize("cells", [PRICES, HOURS, [1, 2, 3], [True, False], [dt.time(1), dt.time(2)], [DAYS[0].date()]])
def test_objects_come_back(cells: list[Any]) -> None:
    """Where domains are trusted; elsewhere their type is private, and what comes back are the texts of pandas."""
    frame = pd.DataFrame({"a": pd.Series([*cells, None] * 20, dtype=object)})
    made = Synthesizer(trust_domain=True, epsilon=50.0, seed=1).fit(frame).sample(200)["a"]
    assert made.dtype == frame["a"].dtype
    assert {type(cell) for cell in made} == {type(cells[0]), type(None)}
    assert all(min(cells) <= cell <= max(cells) for cell in made if cell is not None)
    text = Synthesizer(anyway=True, epsilon=50.0, seed=1).fit(frame).sample(20)["a"]
    assert text.dtype == pd.Series([""]).dtype
    assert {type(cell) for cell in text.dropna()} <= {str}


def test_types_without_nulls_stay_so() -> None:
    frame = pd.DataFrame({"n": [1, 2] * 20, "f": [True, False] * 20, "x": [0.5, None] * 20})
    assert [read_table(frame).schema.field(name).nullable for name in frame] == [False, False, True]
    fitted = Synthesizer(anyway=True, seed=1).fit(frame).fitted
    assert [fitted.schema[name].nullable for name in frame] == [False, False, True]
    loose = Schema(attributes={"n": Integer(min=1, max=2, nullable=True)})
    drawn = Synthesizer(loose, seed=1).fit(frame[["n"]]).sample(5)
    assert str(drawn["n"].dtype) == "Int64", "a schema that allows nulls needs a type that holds them"


def test_a_type_in_the_schema_wins() -> None:
    schema = Schema(attributes={"n": Integer(min=1, max=2, dtype="int16")})
    assert str(Synthesizer(schema, seed=1).fit(pd.DataFrame({"n": [1, 2]})).sample(3)["n"].dtype) == "int16"


def test_spans_of_time_are_numbers() -> None:
    table = read_table(pa.table({"a": pa.array([1, None], pa.duration("s")), "b": pa.array([5, 6], pa.time32("ms"))}))
    assert table.to_pydict() == {"a": [1, None], "b": [5, 6]}
    frame = pd.DataFrame({"p": pd.period_range("1970-01", periods=2, freq="M")})
    assert read_table(frame).to_pydict() == {"p": [0, 1]}


def test_without_its_library_a_table_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kamino.io.frame_types.kinds.find_spec", lambda name: None)
    table = pa.table({"a": [1]})
    schema = Schema(attributes={"a": Integer(min=1, max=2)})
    assert frame_from(table, FrameKind(library="pandas", types={"a": "int64"}), schema) is table


@pytest.mark.parametrize("text", ["category[object", "timedelta64[xx]", "period[??]", "O", "(9,9)i8", "x[pyarrow]", ""])
def test_a_type_that_is_none_changes_nothing(text: str) -> None:
    table, schema = pa.table({"a": [1]}), Schema(attributes={"a": Integer(min=1, max=2)})
    for library in ("pandas", "polars", "pyarrow"):
        made = frame_from(table, FrameKind(library=library, types={"a": text}), schema)
        assert read_table(made).to_pydict() == {"a": [1]}

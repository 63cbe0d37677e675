"""Whatever schema and frame can be given: a model that was fitted and saved can be loaded, and is the same."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.schema import strategies
from tests.trying import examples

from kamino import Synthesizer
from kamino.constraints.language.printer import print_name
from kamino.errors import KaminoError, SchemaError
from kamino.io import read_table
from kamino.io.frame_types import FrameKind, kind_of
from kamino.schema import Categorical, Date, Datetime, Integer, Key, Schema

# What a file of YAML, JSON, constraints or types could take for something else.
ODD = (
    "a;b|a\nb|a\r|\t|#x|: |- |'|\"|''|\\|null|~|yes|1|1e3|0x1|\x00|\x1b[0m|\u2028|\x85|\ufeff|\u202e| a|a |\xe9|"
    "e\u0301|{}|%|[a]|a,b|a.b|t1|not|and|key|->|=|<|>|*|&a|!x|@|`|?|\U0001f600|using|\ud800|__proto__|index|"
    + "x"
    * 300
).split("|")
NAMES = st.one_of(st.sampled_from(ODD), st.text(min_size=1, max_size=6))
TEXTS = st.one_of(st.sampled_from([*ODD, "", "|"]), st.text(max_size=6))
FORMATS = ("%d/%m/%Y", "%Y-%m-%d;", "'%d' %m %Y", "%d\n%m %Y", "%d.%m.%y", "# %d %m %Y", '"%d %m: %Y')
PATTERNS = (None, "uuid", "C{:06d};", '"{:04d}"', "a#{:d}", "x\n{:d}", "\xe9{:05d}", "{};", "\ud800{}")


def _made(kind: Callable[..., Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Attributes of a kind; what is refused is not there."""

    def attempt(**given: Any) -> Any:
        try:
            return kind(**given)
        except SchemaError:
            return None

    return st.builds(attempt, **fields).filter(lambda attribute: attribute is not None)


ATTRIBUTES = st.one_of(
    _made(
        Categorical,
        values=st.lists(TEXTS, min_size=1, max_size=5, unique=True),
        other=st.none() | TEXTS,
        nullable=st.booleans(),
        dtype=st.sampled_from([None, "dictionary"]),
        description=st.none() | TEXTS,
    ),
    _made(Date, min=st.just(dt.date(2000, 1, 1)), max=st.just(dt.date(2020, 1, 1)), format=st.sampled_from(FORMATS)),
    _made(Key, pattern=st.sampled_from(PATTERNS), repeats=st.booleans(), description=st.none() | TEXTS),
    strategies.attributes(),
)


def _check_model(attributes: dict[str, Any], form: str, folder: Path) -> None:
    """A schema, or the constraints on it, may be refused with an error of ours, and nothing after that may fail."""
    try:
        schema = Schema(attributes=attributes)
        names = [print_name(name) for name in schema.names]
        rules = {"key": f"key ({', '.join(names)})", "fd": f"{names[0]} -> {names[-1]}"}.get(form)
        made = Synthesizer(schema, rules, epsilon=float("inf"), unit="row")
        made.fit(pa.table({name: pa.array([None] * 4, pa.string()) for name in schema.names}))
    except KaminoError:
        return
    made.save(folder / "m.kamino")
    again = Synthesizer.load(folder / "m.kamino")
    assert again.fitted.schema == made.fitted.schema
    assert again.fitted.constraints == made.fitted.constraints
    assert again.sample(2, seed=1).equals(made.sample(2, seed=1))


GIVEN = given(st.dictionaries(NAMES, ATTRIBUTES, min_size=1, max_size=4), st.sampled_from(["none", "key", "fd"]))
TOO_SLOW = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much)


@GIVEN
@examples(12, suppress_health_check=TOO_SLOW)
def test_a_model_of_any_schema_can_be_loaded(tmp_path: Path, attributes: dict[str, Any], form: str) -> None:
    _check_model(attributes, form, tmp_path)


@pytest.mark.slow
@GIVEN
@examples(1200, suppress_health_check=TOO_SLOW)
def test_a_model_of_any_of_many_schemas_can_be_loaded(tmp_path: Path, attributes: dict[str, Any], form: str) -> None:
    _check_model(attributes, form, tmp_path)


@pytest.mark.parametrize(
    "fields",
    [
        {"values": ["a", "\ud800"]},
        {"values": ["a"], "other": "\udfff"},
        {"values": ["a"], "description": "x\ud8ffy"},
    ],
)
def test_text_that_no_file_can_hold_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(SchemaError, match=r"half of a pair of surrogates, expected text that UTF-8 can hold") as told:
        Categorical(**fields)
    str(told.value).encode()
    with pytest.raises(SchemaError, match="half of a pair"):
        Schema(attributes={"a\ud800": Integer(min=0, max=1)})
    with pytest.raises(SchemaError, match="half of a pair"):
        Schema.from_yaml('attributes: {a: {type: key, pattern: "\\ud800{}"}}')


ZONES = ("UTC;", "a;b", "x\ny", '"', "Europe/Paris", "{}", "\u2028", "z" * 500, "+01:00", "\xe9")


@pytest.mark.parametrize("zone", ZONES)
def test_a_model_of_any_frame_can_be_loaded(tmp_path: Path, zone: str) -> None:
    """Arrow takes any text for a timezone; the column comes back with that of the schema."""
    at = pa.array([0, 1, 2, 3], pa.int64()).cast(pa.timestamp("us", zone))
    frame = pa.table({"at": at, "a": ["x", "y", "x", "y"]})
    schema = Schema(
        attributes={
            "at": Datetime(min=dt.datetime(1970, 1, 1), max=dt.datetime(1970, 1, 2), timezone="UTC"),
            "a": Categorical(values=["x", "y"]),
        }
    )
    made = Synthesizer(schema, epsilon=float("inf"), unit="row").fit(frame)
    made.save(tmp_path / "m.kamino")
    drawn = Synthesizer.load(tmp_path / "m.kamino").sample(3)
    assert drawn.column_names == ["at", "a"]
    for each in (frame, frame.set_column(0, "at", at.dictionary_encode())):
        kind = kind_of(each, read_table(each, private=True).schema)
        assert kind is not None
        assert FrameKind.problem(kind.library, kind.types) == ""

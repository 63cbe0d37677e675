"""Every kind of recoding keeps the laws, and so does a layout of several."""

from __future__ import annotations

import datetime as dt
import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from tests.contracts.recodings import RecodingLaws, random_table, same

from kamino.constraints import Constraints, count_violations
from kamino.errors import ModelError
from kamino.layout.rule_types import schema_types
from kamino.layout.table_layout import KINDS, Layout
from kamino.schema import Codec, Date, Integer, Key, Schema
from kamino.schema.coding.differences import Difference

SCHEMA = Schema(
    attributes={
        "id": Key(dtype="int64"),
        "who": Key(repeats=True, dtype="int64"),
        "start": Date(min=dt.date(2020, 1, 1), max=dt.date(2020, 2, 1)),
        "end": Date(min=dt.date(2020, 1, 1), max=dt.date(2020, 3, 1), nullable=True),
        "age": Integer(min=0, max=9),
    }
)
LAYOUT = Layout.of(SCHEMA, differences={"end": Difference(base="start", least=0)})


def test_every_kind_is_held_to_the_laws() -> None:
    for path in sorted((Path(__file__).parents[1] / "layout").glob("test_*.py")):
        importlib.import_module(f"tests.layout.{path.stem}")
    held = {case.recoding.kind for each in RecodingLaws.__subclasses__() for case in each.cases}
    assert held == set(KINDS)


def test_layouts_are_read_as_they_were_written() -> None:
    written = json.loads(json.dumps(LAYOUT.to_json()))
    assert Layout.from_json(written, SCHEMA) == LAYOUT
    with pytest.raises(ModelError, match="no known kind"):
        Layout.from_json([*written, {"kind": "magic"}], SCHEMA)


@pytest.mark.parametrize("seed", range(6))
def test_a_layout_of_several_steps_keeps_all_that_they_keep(seed: int) -> None:
    rules = Constraints.parse("key (id)\ncheck (start <= end)\ncheck (age > 2)", types=schema_types(SCHEMA))
    split = LAYOUT.rules(rules)
    assert list(map(str, split.drawn)) == list(map(str, Constraints.parse("check (age > 2)")))
    inner = random_table(LAYOUT.inner, seed)
    back = LAYOUT.backward(inner, np.random.default_rng(seed))
    assert back.column_names == list(SCHEMA)
    assert all(count_violations(back, rule) == 0 for rule in split.kept)
    again = LAYOUT.backward(LAYOUT.forward(back), np.random.default_rng(seed))
    assert same(back, again)
    coded = Codec(LAYOUT.inner).encode(LAYOUT.forward(back))
    fast = LAYOUT.codec.encode(back)
    assert all(np.array_equal(coded[name], fast[name]) for name in fast.columns)

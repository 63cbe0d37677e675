"""The whole run on frames, replayed: given the releases, no odd cell shows in what is fitted, saved or comes back."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.io.odd_frames import categories, categories_by_arrow, objects

from kamino.constraints import Constraints
from kamino.io import read_table
from kamino.io.frame_types import frame_from, kind_of
from kamino.pipeline import Settings
from kamino.pipeline.fitting import fit
from kamino.pipeline.output.drawn_table import draw
from kamino.pipeline.plan.run_plan import plan_table
from kamino.privacy import Budget, Gate, PrivacyUnit
from kamino.privacy.private import PrivateTable
from kamino.schema import Date, Datetime, Integer, Real, Schema
from kamino.testing.replay import assert_replay

ROWS = 60
CELLS: dict[str, list[Any]] = {
    "size": [1, 2, 3] * (ROWS // 3),
    "price": [Decimal(1), Decimal(2)] * (ROWS // 2),
    "at": [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2, 3), None] * (ROWS // 3),
    "seen": [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2)] * (ROWS // 2),
}
DECLARED = Schema(
    attributes={
        "size": Integer(min=0, max=9, nullable=True),
        "price": Real(min=0, max=9, decimals=0, nullable=True),
        "at": Datetime(min=dt.datetime(2024, 1, 1), max=dt.datetime(2024, 1, 3), nullable=True),
        "seen": Date(min=dt.date(2024, 1, 1), max=dt.date(2024, 1, 3), nullable=True),
    }
)
# One odd row for each oddity that a column has been read by in another way.
NANOSECOND = pd.Timestamp("2024-01-02 03:04:05.000000001")
ODD: dict[str, tuple[Any, ...]] = {
    "fractions": (2.5, Decimal("2.505"), NANOSECOND, None),
    "texts": ("x", "y", "z", "2024"),
    "incomparable": (3, Decimal("sNaN"), pd.NaT, Decimal("sNaN")),
    "half a pair": ("\ud800", Decimal(1), None, NANOSECOND),
}
MAKERS: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "pandas categories": (categories, ("fractions", "texts")),
    "pandas objects": (objects, tuple(ODD)),
    "pyarrow": (categories_by_arrow, ("fractions",)),
}
PAIRS = [(library, odd) for library, (_, kinds) in MAKERS.items() for odd in kinds]


def run(frame: Any, gate: Gate, schema: Schema | None) -> Any:
    """Everything that a run on a frame lets out."""
    table = read_table(frame, private=True)
    kind, private = kind_of(frame, table.schema), PrivateTable(table)
    settings = Settings(neighbours=gate.budget.neighbours, epsilon=gate.budget.epsilon, anyway=True)
    fitted = fit(private, plan_table(private, schema, Constraints.parse(""), settings), gate)
    fitted = replace(fitted, frame=kind)
    drawn = frame_from(draw(fitted, 20, np.random.default_rng(7)), kind, fitted.schema)
    kinds = drawn.schema if isinstance(drawn, pa.Table | pl.DataFrame) else drawn.dtypes.to_dict()
    return dict(fitted.to_bundle().texts), str(kinds), read_table(drawn).to_pylist()


@pytest.mark.parametrize(("library", "odd"), PAIRS, ids=lambda value: value)
@pytest.mark.parametrize("schema", [None, DECLARED], ids=["found", "declared"])
def test_replay_passes_for_frames_with_an_odd_row(library: str, odd: str, schema: Schema | None) -> None:
    make = MAKERS[library][0]
    longer = {name: [*cells, cell] for (name, cells), cell in zip(CELLS.items(), ODD[odd], strict=True)}
    budget, unit = Budget(epsilon=1.0, delta=1e-6), PrivacyUnit()
    assert_replay(lambda frame, gate: run(frame, gate, schema), make(CELLS), make(longer), budget=budget, unit=unit)


def test_a_declared_domain_holds_beside_an_odd_row() -> None:
    """One price with a fraction leaves all others what they are."""
    for make in (categories, objects, categories_by_arrow):
        longer = {name: [*cells, cell] for (name, cells), cell in zip(CELLS.items(), ODD["fractions"], strict=True)}
        table = read_table(make(longer), private=True)
        assert table["price"].to_pylist() == [*map(str, CELLS["price"]), "2.505"]
        assert table["size"].to_pylist() == [*map(str, CELLS["size"]), "2.5"]

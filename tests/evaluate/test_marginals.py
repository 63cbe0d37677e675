"""Distances of marginals of any order."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from tests.constraints.strategies import tables
from tests.trying import examples

from kamino.evaluate.measure import marginals
from kamino.evaluate.measure.marginals import compare_marginals, split_halves
from kamino.evaluate.measure.metrics import bin_tables, distances_of
from kamino.schema.coding import joint_codes

TRUE = pa.table({"x": ["u", "u", "v", "v"], "y": ["p", "q", "p", "q"], "z": ["a", "a", "a", "a"]})
SYNTHETIC = pa.table({"x": ["u", "v", "v", "v"], "y": ["p", "p", "q", "q"], "z": ["a", "a", "a", "b"]})


def test_known_distances() -> None:
    pair = bin_tables(TRUE, SYNTHETIC)
    one = compare_marginals(pair, order=1)
    assert {names: d.total_variation for names, d in one.by_attributes.items()} == {
        ("x",): 0.25,
        ("y",): 0,
        ("z",): 0.25,
    }
    assert (one.maximum, one.max_cell, one.worst) == (0.25, 0.25, ("x",))
    assert one.mean == pytest.approx(1 / 6)
    assert one.mean_max_cell == pytest.approx(1 / 6)
    two = compare_marginals(pair, order=2).by_attributes[("x", "y")]
    # true: a quarter each of up uq vp vq; synthetic: up vp vq vq
    assert (two.total_variation, two.max_cell) == (0.25, 0.25)
    three = compare_marginals(pair, order=3)
    assert (three.total, len(three.by_attributes), three.mean) == (1, 1, 0.25)


@examples(40)
@given(tables(), tables())
def test_compare_marginals_agrees_with_plain_distances(true: pa.Table, synthetic: pa.Table) -> None:
    names = [name for name in true.column_names if name in synthetic.column_names]
    pair = bin_tables(true.select(names), synthetic.select(names))
    for order in (1, 2):
        plain = distances_of(pair, order=order).by_attributes
        found = compare_marginals(pair, order=order).by_attributes
        assert {k: d.total_variation for k, d in found.items()} == pytest.approx(plain)


def test_wide_tables_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = bin_tables(TRUE, SYNTHETIC)
    dense = compare_marginals(pair, order=3).by_attributes
    monkeypatch.setattr(marginals, "DENSE_CELLS", 1)
    monkeypatch.setattr(joint_codes, "MOST_NUMBERS", 4)
    assert compare_marginals(pair, order=3).by_attributes == dense


def test_a_limit_says_how_many_there_are() -> None:
    found = compare_marginals(bin_tables(TRUE, SYNTHETIC), order=2, limit=2)
    assert (found.total, len(found.by_attributes)) == (3, 2)
    assert (
        found.by_attributes.keys()
        == compare_marginals(bin_tables(TRUE, SYNTHETIC), order=2, limit=2).by_attributes.keys()
    )


def test_halves_part_the_true_table() -> None:
    pair = split_halves(bin_tables(TRUE, SYNTHETIC))
    assert sorted([*pair.true["x"], *pair.synthetic["x"]]) == sorted(bin_tables(TRUE, SYNTHETIC).true["x"])
    assert len(pair.true["x"]) == len(pair.synthetic["x"]) == 2


def test_empty_tables() -> None:
    empty = TRUE.slice(0, 0)
    assert compare_marginals(bin_tables(TRUE, empty), order=1).mean == 1
    assert compare_marginals(bin_tables(empty, empty), order=1).mean == 0

"""Checks that decide inside bins: rows change places there, and the model's distributions stay."""

from __future__ import annotations

import numpy as np
import pytest
from tests.sampling.fakes import FakeModel, integers

from kamino.constraints import Constraints
from kamino.sampling import build_plan, draw_table
from kamino.sampling.sampler import _read_by_code

ROWS = 20_000
# a has eight values, b the same in four bins of two: a = 1 needs the second value of b's first bin.
CODEC = integers(a=8, b=16)


def tables(first: str) -> dict[str, np.ndarray]:
    """Half of the rows are in the bin of b that begins with the even value below a, the others in the last bin."""
    joint = np.zeros((8, 8))
    for a in range(8):
        joint[a, a // 2] += 1 / 16
        joint[a, 7] += 1 / 16
    if first == "a":
        return {"a": joint.sum(axis=1), "b": joint / joint.sum(axis=1, keepdims=True)}
    with np.errstate(invalid="ignore"):
        given = np.nan_to_num(joint.T / joint.sum(axis=0)[:, None], nan=1 / 8)
    return {"a": given, "b": joint.sum(axis=0)}


@pytest.mark.parametrize("first", ["a", "b"])
def test_checks_inside_bins(first: str) -> None:
    second = "b" if first == "a" else "a"
    rules = Constraints.parse("check (a <= b)")
    plan = build_plan(CODEC, rules, num_rows=ROWS, sequence=(first, second))
    model = FakeModel(CODEC, (first, second), parents={second: (first,)}, max_bins=8, tables=tables(first))
    table = draw_table(plan, model, CODEC, ROWS, np.random.default_rng(0))
    assert np.all(table["a"] <= table["b"])
    # Without exchanges, a third of the rows whose a is odd would leave their bin, or the last value of a bin of b
    # would be half as common again as it is.
    found = np.histogram2d(table["a"], table["b"] // 2, bins=(np.arange(9), np.arange(9)))[0] / ROWS
    joint = tables("a")["b"] * tables("a")["a"][:, None]
    assert np.abs(found - joint).sum() / 2 < 0.02
    odd = np.array([np.mean(table["b"][table["b"] // 2 == k] % 2) for k in range(4)])
    assert odd == pytest.approx(0.5, abs=0.04)


def test_columns_with_constraints_keep_their_codes() -> None:
    codec = integers(a=8, b=16, c=4)
    plan = build_plan(codec, Constraints.parse("check (a <= b)\nb -> c"), num_rows=ROWS, sequence=("a", "b", "c"))
    model = FakeModel(codec, ("a", "b", "c"))
    assert _read_by_code(plan, model) == {"b", "c"}

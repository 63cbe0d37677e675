"""Checks that decide inside bins: rows change places there, and the model's distributions stay."""

from __future__ import annotations

import numpy as np
import pytest
from tests.sampling.fakes import FakeModel, integers

from kamino.constraints import Constraints
from kamino.sampling import DrawOptions, build_plan, draw_table
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.modes import Sampling
from kamino.sampling.steps import exchange
from kamino.sampling.steps.exchange import read_by_code

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
    codec = integers(a=8, b=16, c=4, d=16)
    rules = Constraints.parse("check (a <= b)\nb -> c\nsoft: check (d <= b)")
    plan = build_plan(codec, rules, num_rows=ROWS, sequence=("a", "b", "c", "d"))
    assert read_by_code(plan) == {"b", "c", "d"}


@pytest.mark.parametrize("num_rows", [0, 1, 2, 7])
@pytest.mark.parametrize("rules", ["check (a <= b)", "check (a = b)", "check (a <= b)\ncheck (b <= a)\ncheck (c <> b)"])
def test_few_rows_and_tight_checks_hold(num_rows: int, rules: str) -> None:
    """Nulls, too: they satisfy a comparison, and have a bin of their own."""
    codec = integers(a=-300, b=-300, c=-9)
    constraints = Constraints.parse(rules)
    plan = build_plan(codec, constraints, num_rows=num_rows, sequence=("b", "a", "c"))
    model = FakeModel(codec, ("b", "a", "c"), parents={"a": ("b",)}, max_bins=4)
    table = draw_table(plan, model, codec, num_rows, np.random.default_rng(num_rows))
    assert all(len(codes) == num_rows for codes in table.values())
    assert not any(Judge(codec).violates(c, table, table).any() for c in constraints)


def test_other_ways_of_drawing_exchange_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The domain is too wide to be listed value by value, so that the check is left to the row in every way."""
    codec = integers(a=9_000, b=9_000)
    plan = build_plan(codec, Constraints.parse("check (a <= b)"), num_rows=50, sequence=("b", "a"))
    model = FakeModel(codec, ("b", "a"), parents={"a": ("b",)}, max_bins=8)
    moved: list[str] = []
    monkeypatch.setattr(exchange, "_exchange", lambda task, *_: moved.append(task.step.attribute))
    for sampling in (Sampling.PRINTED, Sampling.ROW_BY_ROW, Sampling.CONSTRAINT_AWARE):
        draw_table(plan, model, codec, 50, np.random.default_rng(0), DrawOptions(sampling=sampling))
        assert bool(moved) == (sampling is Sampling.CONSTRAINT_AWARE)

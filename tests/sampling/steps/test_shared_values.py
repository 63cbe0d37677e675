"""Groups of rows with one value each: how the values of a bin are shared out among them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.sampling.fakes import FakeModel, integers

from kamino.constraints import Constraints
from kamino.sampling import build_plan, draw_table
from kamino.sampling.codes.choices import Choices, make_choices
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.steps.shared_values import group_weights, share_out


def _choices(check: str = "") -> tuple[Choices, np.ndarray, np.ndarray]:
    """Choices of a in bins of several codes, for 60 rows in 7 groups."""
    codec = integers(x=7, b=40, a=40)
    model = FakeModel(codec, ("x", "b", "a"), parents={"a": ("x",)}, max_bins=7)
    rng = np.random.default_rng(0)
    columns = {"x": rng.integers(0, 7, 60), "b": rng.integers(0, 12, 60)}
    conditional = model.conditional("a", columns, 60)
    choices = make_choices(conditional, Judge(codec), list(Constraints.parse(check)), columns)
    return choices, columns["x"], columns["b"]


def test_listed_codes_weigh_as_their_bins() -> None:
    """Whether codes have bins of their own is a matter of how checks are built in: the groups' weights stay."""
    choices, groups, _ = _choices()
    rows, listed = np.arange(60), choices.by_code()
    assert listed.spread is not None
    assert len(listed.starts) > len(choices.starts)
    run = np.repeat(np.arange(len(choices.starts)), choices.width)
    whole = group_weights(choices, rows, groups, 7)[:, run] - np.log(choices.width[run])[None, :]
    np.testing.assert_allclose(group_weights(listed, rows, groups, 7), whole, rtol=1e-9, atol=1e-9)


def test_listed_codes_are_shared_out_by_what_is_allowed() -> None:
    """b <= a is decided inside bins: a group has a value that is above all of its rows' values of b."""
    choices, groups, below = _choices("check (b <= a)")
    assert choices.spread is not None
    runs = share_out(choices, np.arange(60), groups, np.random.default_rng(0))
    assert np.all(choices.starts[runs][groups] >= below)


def test_large_groups_take_frequent_values() -> None:
    """One bin of codes of which each x of the true table has its own, as often as x: sizes say which goes with which.

    Drawn by share, the large group would take a rare value in every second table.
    """
    codec = integers(x=8, a=800)
    often = np.array([0.5, 0.2, 0.1, 0.1, 0.04, 0.03, 0.02, 0.01])
    model = FakeModel(codec, ("x", "a"), parents={"a": ("x",)}, max_bins=8, tables={"x": often, "a": np.ones((8, 1))})
    model.map_of = lambda name: _one_bin(name, FakeModel.map_of(model, name))
    inner = model.conditional
    model.conditional = lambda name, context, rows: _spread(inner(name, context, rows), often)
    plan = build_plan(codec, Constraints.parse("x -> a"), sequence=("x", "a"))
    for seed in range(10):
        drawn = draw_table(plan, model, codec, 5000, np.random.default_rng(seed))
        used = np.bincount(drawn["a"] // 100, minlength=8) / 5000
        assert np.abs(used - often[::-1]).sum() / 2 < 0.02


def _one_bin(name: str, found):
    """All runs of a, a hundred codes each, in one bin."""
    return found if name != "a" else replace(found, labels=np.zeros_like(found.labels), bins=1)


def _spread(conditional, often: np.ndarray):
    """The runs of a as frequent as the values of x, the last the most."""
    if conditional.attribute != "a":
        return conditional
    return replace(conditional, cells=replace(conditional.cells, share=often[::-1].copy()))

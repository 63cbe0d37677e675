"""Columns keep their frequencies where constraints moved the columns before them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.sampling.fakes import FakeModel, integers

from kamino.constraints import Constraints
from kamino.sampling import Sampling, build_plan, draw_table
from kamino.sampling.codes.calibrating import rake
from kamino.sampling.draw_options import DrawOptions


class _Knowing(FakeModel):
    """A model that says how often the bins of each attribute occur."""

    def __init__(self, *args, known: dict[str, np.ndarray], **settings) -> None:
        super().__init__(*args, **settings)
        self._known = known

    def frequencies(self, attribute: str) -> np.ndarray:
        return self._known[attribute]


CODEC = integers(x=6, a=5)
X = np.array([0.3, 0.3, 0.2, 0.1, 0.05, 0.05])


def _conditional(rows: int):
    rng = np.random.default_rng(3)
    model = FakeModel(CODEC, ("x", "a"), parents={"a": ("x",)})
    return model.conditional("a", {"x": rng.choice(6, rows, p=X)}, rows)


def _expected(conditional) -> np.ndarray:
    chance = np.exp(conditional.log_prob)
    return (chance / chance.sum(axis=1, keepdims=True))[conditional.context].mean(axis=0)


def test_raking_meets_the_frequencies() -> None:
    conditional = _conditional(5000)
    wanted = _expected(conditional) * np.array([0.7, 1.2, 1.0, 0.9, 1.4])
    wanted /= wanted.sum()
    assert np.abs(_expected(conditional) - wanted).sum() > 0.1
    raked = rake(conditional, wanted)
    np.testing.assert_allclose(_expected(raked), wanted, atol=2e-4)
    # One factor for each bin: what contexts say of each other stays.
    ratio = raked.log_prob - conditional.log_prob
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[0], ratio.shape), atol=1e-12)


def test_few_rows_are_not_raked() -> None:
    """A single row must follow its own context, not the frequencies of a whole table."""
    for rows in (1, 9):
        conditional = _conditional(rows)
        assert np.array_equal(rake(conditional, np.full(5, 0.2)).log_prob, conditional.log_prob)


def test_no_bin_gets_more_than_a_bounded_factor() -> None:
    conditional = _conditional(5000)
    raked = rake(conditional, np.array([0.996, 0.001, 0.001, 0.001, 0.001]))
    assert np.abs(raked.log_prob - conditional.log_prob).max() <= 1 + 1e-12


def test_columns_keep_their_distribution() -> None:
    """The check forbids half of the cells of (x, y), to which the model gives weight; z depends on both."""
    codec = integers(x=6, y=6, z=4)
    rng = np.random.default_rng(0)
    tables = {"x": X, "y": np.full((6, 6), 1 / 6), "z": rng.dirichlet(np.ones(4), size=(6, 6))}
    known = {"x": X, "y": np.full(6, 1 / 6), "z": np.einsum("x,xy,xyz->z", X, tables["y"], tables["z"])}
    model = _Knowing(codec, ("x", "y", "z"), parents={"y": ("x",), "z": ("x", "y")}, tables=tables, known=known)
    plan = build_plan(codec, Constraints.parse("check (x <= y)"), sequence=("x", "y", "z"))
    drawn = draw_table(plan, model, codec, 20_000, np.random.default_rng(1))
    assert np.all(drawn["x"] <= drawn["y"])
    np.testing.assert_allclose(np.bincount(drawn["z"], minlength=4) / 20_000, known["z"], atol=0.003)
    loose = draw_table(plan, _without(model), codec, 20_000, np.random.default_rng(1))
    assert np.abs(np.bincount(loose["z"], minlength=4) / 20_000 - known["z"]).max() > 0.01


def _without(model: _Knowing) -> FakeModel:
    """The same distributions of a model that does not know its frequencies."""
    plain = FakeModel.__new__(FakeModel)
    plain.__dict__ |= {name: value for name, value in model.__dict__.items() if name != "_known"}
    return plain


def test_given_columns_and_the_paper_are_not_calibrated() -> None:
    """Columns that somebody gave need not have the model's frequencies; Algorithm 3 follows the paper."""
    known = {"x": X, "a": np.array([0.05, 0.05, 0.1, 0.3, 0.5])}
    model = _Knowing(CODEC, ("x", "a"), parents={"a": ("x",)}, known=known)
    plan = build_plan(CODEC, Constraints.parse(""), sequence=("x", "a"))
    given = DrawOptions(prefix={"x": np.full(4000, 2)})
    for options in (given, DrawOptions(sampling=Sampling.ROW_BY_ROW)):
        plain = draw_table(plan, _without(model), CODEC, 4000, np.random.default_rng(0), replace(options))
        drawn = draw_table(plan, model, CODEC, 4000, np.random.default_rng(0), replace(options))
        assert np.array_equal(drawn["a"], plain["a"])

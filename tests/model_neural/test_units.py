from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kamino.errors import ModelError
from kamino.model.neural.neural_schedule import plan_steps
from kamino.model.neural.units import Kind, Unit, UnitLimits, plan_units
from kamino.model.protocol import ModelAttribute

attribute_lists = st.lists(st.tuples(st.integers(1, 3_000), st.booleans()), min_size=1, max_size=9).map(
    lambda found: [ModelAttribute(name=f"a{i}", size=size, ordered=o) for i, (size, o) in enumerate(found)]
)


@given(attribute_lists, st.integers(1, 500))
def test_units_keep_the_sequence(attributes: list[ModelAttribute], joint: int) -> None:
    units = plan_units(attributes, UnitLimits(joint=joint))
    assert [a for unit in units for a in unit.attributes] == attributes
    assert all(len(unit.attributes) == 1 or unit.size <= joint for unit in units)


@given(attribute_lists)
def test_wide_units_are_in_no_context(attributes: list[ModelAttribute]) -> None:
    steps = plan_steps(attributes, UnitLimits())
    for place, step in enumerate(steps):
        assert all(i < place and steps[i].unit.kind is not Kind.WIDE for i in step.context)
        assert step.unit.kind is not Kind.WIDE or step.context == ()
    assert steps[0].context == ()


def test_kinds_follow_sizes() -> None:
    limits = UnitLimits(joint=10, numeric=20, wide=100)
    sizes = [("a", 2, True), ("b", 5, False), ("c", 2, False), ("d", 21, True), ("e", 100, False), ("f", 101, False)]
    units = plan_units([ModelAttribute(name=n, size=s, ordered=o) for n, s, o in sizes], limits)
    assert [(unit.name, unit.kind.value) for unit in units] == [
        ("a+b", "categorical"),
        ("c", "categorical"),
        ("d", "numeric"),
        ("e", "categorical"),
        ("f", "wide"),
    ]


def test_joint_codes_have_the_first_attribute_in_front() -> None:
    unit = Unit(attributes=(ModelAttribute(name="a", size=2), ModelAttribute(name="b", size=3)), kind=Kind.CATEGORICAL)
    columns = {"a": np.array([0, 1, 1]), "b": np.array([2, 0, 2])}
    assert unit.joint(columns).tolist() == [2, 3, 5]


def test_numbers_are_scaled_by_the_domain_alone() -> None:
    unit = Unit(attributes=(ModelAttribute(name="a", size=12, ordered=True, null_code=11),), kind=Kind.NUMERIC)
    assert unit.scaled(np.array([0, 5, 10, 11])).tolist() == [-1.0, 0.0, 1.0, 0.0]


def test_units_that_cannot_be_are_refused() -> None:
    a, b = ModelAttribute(name="a", size=50, ordered=True, null_code=0), ModelAttribute(name="b", size=3)
    with pytest.raises(ModelError, match="last code"):
        Unit(attributes=(a,), kind=Kind.NUMERIC)
    with pytest.raises(ModelError, match="several categorical"):
        Unit(attributes=(b, b), kind=Kind.WIDE)

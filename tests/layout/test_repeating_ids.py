"""Ids of groups stay where they are; what one id says of another is kept by how groups are drawn."""

from __future__ import annotations

import pytest
from tests.contracts.recodings import RecodingCase, RecodingLaws

from kamino.errors import SamplingError
from kamino.layout.repeating_ids import RepeatingIds
from kamino.schema import Integer, Key, Schema

SCHEMA = Schema(
    attributes={
        "person": Key(repeats=True, pattern="P{:05d}"),
        "clinic": Key(repeats=True, dtype="int64"),
        "visit": Integer(min=0, max=9, nullable=True),
    }
)


class TestRepeatingIds(RecodingLaws):
    cases = (
        RecodingCase(
            schema=SCHEMA,
            recoding=RepeatingIds(names=("person", "clinic")),
            drawn="key (person, visit)\nperson -> visit",
            made_up=("person", "clinic"),
        ),
    )


def test_a_dependency_of_ids_is_kept_and_values_are_refused() -> None:
    case = TestRepeatingIds.cases[0]
    (rule,) = case.rules("person -> clinic")
    assert case.recoding.rule(rule) is None
    (refused,) = case.rules("not (t1.person < t2.person and t1.visit = t2.visit)")
    with pytest.raises(SamplingError, match="compares values of ids"):
        case.recoding.rule(refused)

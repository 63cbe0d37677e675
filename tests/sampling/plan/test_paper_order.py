"""The paper's Algorithm 4, and plans along its order."""

from __future__ import annotations

import numpy as np
import pytest
from tests.sampling.fakes import FakeModel, integers
from tests.sampling.tables import ADULT, ADULT_CONSTRAINTS, TAX, TAX_CONSTRAINTS, TPCH, TPCH_CONSTRAINTS

from kamino.constraints import Constraints
from kamino.sampling import DrawOptions, Sampling, build_plan, draw_table, paper_sequence
from kamino.sampling.codes.recounting import broken_constraints
from kamino.schema import Codec, Integer, Key, Schema


def test_domain_sizes_decide_without_dependencies() -> None:
    """The paper's own example: domains of 2, 3 and 5 values, in this order."""
    assert paper_sequence(integers(a3=5, a1=2, a2=3), []) == ("a1", "a2", "a3")


@pytest.mark.parametrize(
    ("codec", "constraints", "expected"),
    [
        (
            ADULT,
            ADULT_CONSTRAINTS,
            "education education-num sex income age capital-loss capital-gain",
        ),
        (
            TAX,
            TAX_CONSTRAINTS,
            "HasChild State ChildExemp MaritalStatus SingleExemp AreaCode Zip City Gender Salary Rate",
        ),
        (
            TPCH,
            TPCH_CONSTRAINTS,
            "n_name n_regionkey c_custkey c_nationkey c_mktsegment o_orderstatus c_acctbal",
        ),
    ],
    ids=["adult", "tax", "tpch"],
)
def test_paper_sequences(codec: Codec, constraints: Constraints, expected: str) -> None:
    sequence = paper_sequence(codec, constraints)
    assert sequence == tuple(expected.split())
    assert paper_sequence(codec, constraints) == sequence
    plan = build_plan(codec, constraints, sequence=sequence)
    assert plan.sequence == sequence


def test_soft_dependencies_order_too() -> None:
    codec = integers(a=9, b=2, c=3)
    assert paper_sequence(codec, Constraints.parse("soft: a -> b")) == ("a", "b", "c")
    assert paper_sequence(codec, Constraints.parse("weight 2: a, c -> b")) == ("c", "a", "b")
    assert paper_sequence(codec, Constraints.parse("a -> b\nb -> a")) == ("b", "a", "c")


def test_made_up_keys_are_left_out() -> None:
    codec = Codec(Schema(attributes={"id": Key(), "b": Integer(min=0, max=5), "a": Integer(min=0, max=1)}))
    assert paper_sequence(codec, Constraints.parse("id -> b")) == ("a", "b")


@pytest.mark.parametrize("sampling", [Sampling.CONSTRAINT_AWARE, Sampling.ROW_BY_ROW, Sampling.PRINTED])
@pytest.mark.parametrize(
    ("codec", "constraints"),
    [(ADULT, ADULT_CONSTRAINTS), (TAX, TAX_CONSTRAINTS), (TPCH, TPCH_CONSTRAINTS)],
    ids=["adult", "tax", "tpch"],
)
def test_paper_sequences_can_be_drawn(codec: Codec, constraints: Constraints, sampling: Sampling) -> None:
    sequence = paper_sequence(codec, constraints)
    plan = build_plan(codec, constraints, sequence=sequence, num_rows=800)
    rng = np.random.default_rng(1)
    table = draw_table(plan, FakeModel(codec, sequence), codec, 800, rng, DrawOptions(sampling=sampling, sweeps=0))
    assert broken_constraints(codec, table, list(constraints)) == ()
    assert all(len(codes) == 800 for codes in table.values())

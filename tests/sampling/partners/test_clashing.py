"""Tables of clashes, in products and in one piece, against comparing every pair of combinations."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tests.sampling.fakes import integers
from tests.sampling.strategies import OPERATORS

from kamino.constraints import Constraints
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.partners.clashing import find_clashes

THIRD = ("", " and t1.c = 1", " and t2.b < 2", " and t1.c is null", " and t1.a <= t1.b", " and t1.a > t2.b")


@pytest.mark.parametrize("third", THIRD)
@pytest.mark.parametrize(("first", "second"), list(product(OPERATORS, repeat=2)))
def test_clashes_are_those_of_every_pair(first: str, second: str, third: str) -> None:
    """All operators in pairs, with a third predicate of one row, of a constant, or of code and context together."""
    codec, rng = integers(a=-4, c=-3, b=-4), np.random.default_rng(1)
    (constraint,) = Constraints.parse(f"not (t1.a {first} t2.a and t1.b {second} t2.b{third})")
    contexts = {name: rng.integers(0, codec[name].size, 7) for name in constraint.attributes if name != "b"}
    listed = np.array([0, 1, 3, 4])
    combined = {name: np.repeat(codes, 4) for name, codes in contexts.items()} | {"b": np.tile(listed, 7)}
    down, across = ({n: codes[lines] for n, codes in combined.items()} for lines in np.ix_(range(28), range(28)))
    judge = Judge(codec)
    expected = judge.clashes(constraint, down, across)
    clashes = find_clashes(constraint, judge, "b", contexts, listed)
    assert np.array_equal(clashes.table(), expected)
    many = 2 * rng.integers(0, 1 << 24, 28) + 1  # beyond whole numbers in single precision
    for held in (rng.integers(-5, 6, 28), np.where(np.arange(28) == 3, 2, 0), many):
        assert np.array_equal(clashes.partners(held), expected @ held)


def test_a_column_alone_has_one_context() -> None:
    codec = integers(b=3)
    (constraint,) = Constraints.parse("key (b)")
    clashes = find_clashes(constraint, Judge(codec), "b", {}, np.arange(3))
    assert clashes.partners(np.array([1, 0, 4])).tolist() == [1, 0, 4]

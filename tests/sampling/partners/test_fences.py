"""Fences against trying every pair of rows by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from tests.constraints.brute_force import violates
from tests.sampling.fakes import integers
from tests.sampling.strategies import codecs, general, lines
from tests.trying import examples

from kamino.constraints import Constraints, DenialConstraint
from kamino.constraints.counting import extremes
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.partners.fences import Bounds, Fence, is_fenced
from kamino.schema import Boolean, Codec

NUM_ROWS = 9


def check(codec: Codec, constraint: DenialConstraint, name: str, seed: int) -> None:
    """Of nine rows some are settled: each value of each other row clashes exactly if it is out of bounds."""
    rng = np.random.default_rng(seed)
    columns = {n: rng.integers(0, codec[n].size, NUM_ROWS) for n in codec.attributes if n != name}
    codes = rng.integers(0, codec[name].num_values, NUM_ROWS)
    keys = codec[name].order_keys(codes)

    def row(place: int, code: int) -> dict[str, object]:
        known = {n: codec[n].value_of(int(column[place])) for n, column in columns.items()}
        return known | {name: codec[name].value_of(code)}

    fence = Fence(constraint, Judge(codec), name, columns, NUM_ROWS)
    rows = rng.permutation(NUM_ROWS)
    asked, settled = rows[:5], rows[5:]
    bounds = Bounds.of(NUM_ROWS)
    fence.tighten(bounds, asked, settled, keys[settled])
    ties, there = fence.among(rows), np.isin(rows, settled)
    for place, each in enumerate(asked.tolist()):
        low, high = int(bounds.low[each]), int(bounds.high[each])
        found = ties.tighten(
            *(int(bound[0]) for bound in (Bounds.of(1).low, Bounds.of(1).high)), place, keys[rows], there
        )
        others = [row(other, int(codes[other])) for other in settled.tolist()]
        for code in range(codec[name].num_values):
            key = int(codec[name].order_keys(np.array([code]))[0])
            mine = row(each, code)
            clash = any(violates(constraint, mine, other) or violates(constraint, other, mine) for other in others)
            assert (not low <= key <= high) == clash
            assert (not found[0] <= key <= found[1]) == clash


@examples(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(st.data(), st.integers(0, 2**16), st.booleans())
def test_fences_agree_with_brute_force(data: st.DataObject, seed: int, sorting: bool) -> None:
    codec = data.draw(codecs())
    numbers = [n for n in codec.attributes if not isinstance(codec.schema[n], Boolean)]
    text = data.draw(st.one_of(lines(codec), general(numbers)) if numbers else lines(codec))
    (constraint,) = Constraints.parse(text)
    fenced = [n for n in constraint.attributes if is_fenced(constraint, n) and codec[n].num_values]
    assume(fenced)
    with pytest.MonkeyPatch.context() as patch:
        if sorting:
            patch.setattr(extremes, "_FEW_PAIRS", -1)
        check(codec, constraint, data.draw(st.sampled_from(fenced)), seed)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    "text",
    [
        "not (t1.a < t2.a and t1.b < t2.b and t1.c > t2.c)",
        "not (t1.a <= t2.a and t1.b < t2.b and t1.c >= t2.c)",
        "not (t1.a = t2.a and t1.b != t2.b and t1.c <= t2.c)",
        "not (t1.a < t2.b and t1.c != t2.c)",
        "not (t1.a > 2 and t2.b < 3 and t1.b < t2.b and t1.c < t2.c)",
        "a, b -> c",
    ],
)
def test_fences_of_known_shapes(text: str, seed: int) -> None:
    (constraint,) = Constraints.parse(text)
    assert is_fenced(constraint, "c")
    check(integers(a=-4, b=-4, c=-7), constraint, "c", seed)


@pytest.mark.parametrize("text", ["not (t1.c != t2.c)", "not (t1.c < t2.c)"])
def test_fences_of_a_column_alone(text: str) -> None:
    """No other column says how many rows there are."""
    (constraint,) = Constraints.parse(text)
    check(integers(c=-4), constraint, "c", seed=0)


@pytest.mark.parametrize(
    "text",
    [
        "not (t1.a < t2.a and t1.c = t2.c)",
        "not (t1.a < t2.a and t1.c < t2.b)",
        "not (t1.a < t2.a and t1.c < t2.c and t1.c > 3)",
        "weight 2: not (t1.a < t2.a and t1.c < t2.c)",
        "check (c > 2)",
        "key (a, c)",
    ],
)
def test_other_shapes_have_no_fence(text: str) -> None:
    (constraint,) = Constraints.parse(text)
    assert not is_fenced(constraint, "c")

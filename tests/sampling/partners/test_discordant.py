"""Counting by chunks of places and ranks, against the kernels that try every comparison."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.sampling.fakes import integers
from tests.sampling.strategies import OPERATORS
from tests.trying import examples

from kamino.constraints import Constraints
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.partners import DEAD, Block, discordant, make_partners
from kamino.sampling.partners.discordant import Discordant, Regrouped, discordance_of, regrouping_of
from kamino.sampling.partners.kernel import Kernel

ORDERS = [op for op in OPERATORS if op in ("<", "<=", ">", ">=")]


@pytest.mark.parametrize("own", ORDERS)
@pytest.mark.parametrize("other", ORDERS)
@examples(25)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_chunks_count_as_kernels_do(own: str, other: str, data: st.DataObject, seed: int) -> None:
    """Any operators, few groups or many, ties, nulls, rows without a value; tables and lookups; chunks of all sizes."""
    sizes = {name: data.draw(st.sampled_from([1, 2, 7, 60, 900]), label=name) for name in "gxy"}
    grouped = data.draw(st.booleans())
    num_rows = data.draw(st.sampled_from([1, 2, 40, 300]))
    rng = np.random.default_rng(seed)
    codec = integers(**{name: -size for name, size in sizes.items()})  # a null beside the values
    group = "t1.g = t2.g and " if grouped else ""
    (constraint,) = Constraints.parse(f"not ({group}t1.x {other} t2.x and t1.y {own} t2.y)")
    columns = {name: rng.integers(0, codec[name].size, num_rows) for name in "gx"}
    column = np.where(rng.random(num_rows) < 0.2, DEAD, rng.integers(0, codec["y"].size, num_rows))
    rows = rng.permutation(num_rows)[: max(1, num_rows // 2)]
    outside = column.copy()
    outside[rows] = DEAD
    block = Block(
        rows=rows,
        candidates=rng.integers(DEAD, codec["y"].size, (len(rows), 5)),
        listed=False,
        outside=outside,
        inside=column[rows],
    )
    slow = Kernel(constraint, Judge(codec), "y", columns).of_block(block)
    shape = discordance_of(constraint, "y")
    strict = {own, other} & {"<", ">"}
    same_way = (own[0] == other[0]) and "=" in own and "=" in other
    assert (shape is None) == (not strict), same_way
    if shape is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discordant, "_CELLS_A_ROW", data.draw(st.sampled_from([0, 1, 12])))
        patch.setattr(discordant, "_BOUNDS_A_ROW", data.draw(st.sampled_from([0, 4])))
        patch.setattr(discordant, "_AT_ONCE", data.draw(st.sampled_from([64, 1 << 19])))
        fast = Discordant(constraint, Judge(codec), "y", columns, shape).of_block(block)
    assert fast.tolist() == slow.tolist()


@pytest.mark.parametrize("own", ORDERS)
@pytest.mark.parametrize("other", ORDERS)
@examples(25)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_chunks_count_as_kernels_do_where_groups_are_drawn(
    own: str, other: str, data: st.DataObject, seed: int
) -> None:
    """One column of groups or two, few or as many as rows; ties, nulls, rows without a value."""
    sizes = {name: data.draw(st.sampled_from([1, 3, 40, 700]), label=name) for name in "gkxy"}
    more = data.draw(st.booleans())
    num_rows = data.draw(st.sampled_from([1, 2, 40, 300]))
    rng = np.random.default_rng(seed)
    codec = integers(**{name: -size for name, size in sizes.items()})
    group = "t1.k = t2.k and " if more else ""
    (constraint,) = Constraints.parse(f"not ({group}t1.g = t2.g and t1.x {other} t2.x and t1.y {own} t2.y)")
    columns = {name: rng.integers(0, codec[name].size, num_rows) for name in "kxy"}
    column = np.where(rng.random(num_rows) < 0.2, DEAD, rng.integers(0, codec["g"].size, num_rows))
    rows = rng.permutation(num_rows)[: max(1, num_rows // 2)]
    outside = column.copy()
    outside[rows] = DEAD
    candidates = rng.integers(0, codec["g"].size, (len(rows), 5))
    block = Block(rows=rows, candidates=candidates, listed=False, outside=outside, inside=column[rows])
    slow = Kernel(constraint, Judge(codec), "g", columns).of_block(block)
    regrouping = regrouping_of(constraint, "g")
    assert (regrouping is None) == (not {own, other} & {"<", ">"})
    assert discordance_of(constraint, "g") is None
    if regrouping is None:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discordant, "_CELLS_A_ROW", data.draw(st.sampled_from([0, 1, 12])))
        patch.setattr(discordant, "_AT_ONCE", data.draw(st.sampled_from([64, 1 << 19])))
        fast = Regrouped(constraint, Judge(codec), "g", columns, *regrouping).of_block(block)
    assert fast.tolist() == slow.tolist()


@pytest.mark.parametrize("size", [8, 64, 1024])
def test_flags_are_counted(size: int) -> None:
    flags = np.random.default_rng(size).random((5, 3, size)) < np.array([0, 0.3, 1])[:, None]
    assert discordant._count_flags(flags).tolist() == flags.sum(axis=-1).tolist()


def test_wide_domains_are_ranked() -> None:
    """Keys near 2^62 in many groups: nothing may wrap."""
    rng, codec = np.random.default_rng(0), integers(g=400, x=2**61, y=2**62 - 1)
    columns = {"g": rng.integers(0, 400, 900), "x": rng.integers(0, 2**61, 900)}
    (constraint,) = Constraints.parse("not (t1.g = t2.g and t1.x > t2.x and t1.y < t2.y)")
    partners = make_partners(constraint, Judge(codec), "y", columns, 900)
    assert isinstance(partners, Discordant)
    column = rng.choice(rng.integers(0, 2**62 - 1, 300), 900)
    rows = np.arange(500)
    outside = np.where(np.arange(900) < 500, DEAD, column)
    block = Block(rows=rows, candidates=column[rng.integers(0, 900, (500, 3))], listed=False, outside=outside,
                  inside=column[rows])  # fmt: skip
    slow = Kernel(constraint, Judge(codec), "y", columns)
    assert partners.of_block(block).tolist() == slow.of_block(block).tolist()

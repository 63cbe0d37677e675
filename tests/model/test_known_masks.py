"""Which structural zeros the model holds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.model.memory import MemoryMeasurer
from tests.trying import examples

from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.inference import Measurement
from kamino.model.marginal.graph.junction import build_tree
from kamino.model.marginal.marginal_schedule import Hints
from kamino.model.marginal.pairs.known_masks import excluded_share, keep_masks
from kamino.model.marginal.pairs.prior import margins_of
from kamino.model.protocol import Cells, CodeMap, ModelAttribute


def frame_of(sizes: list[int], masks: dict[tuple[int, ...], np.ndarray], sequence: tuple[int, ...] | None) -> Frame:
    attributes = tuple(ModelAttribute(name=f"a{i}", size=size, ordered=True) for i, size in enumerate(sizes))
    cells = tuple(
        Cells(map=CodeMap.identity(size), width=np.ones(size, dtype=np.int64), share=np.ones(size)) for size in sizes
    )
    return Frame(
        attributes=attributes, cells=cells, num_rows=1000.0, sequence=sequence, chains=(), allowed=masks, noise=5.0
    )


def measured_of(sizes: list[int], rng: np.random.Generator) -> list[Measurement]:
    return [
        Measurement(attributes=(i,), counts=1000 * rng.dirichlet(np.ones(size)), sigma=np.full(size, 1.0))
        for i, size in enumerate(sizes)
    ]


@given(st.data())
@examples(60)
def test_masks_leave_the_model_within_its_size(data: st.DataObject) -> None:
    """Whatever the masks and the order of drawing; those that are kept are as they were."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    sizes = data.draw(st.lists(st.integers(1, 12), min_size=2, max_size=7))
    pairs = data.draw(st.lists(st.sampled_from(list(combinations(range(len(sizes)), 2))), unique=True))
    masks = {pair: (rng.random([sizes[a] for a in pair]) < 0.6).astype(float) for pair in pairs}
    sequence = tuple(rng.permutation(len(sizes)).tolist()) if data.draw(st.booleans()) else None
    most = data.draw(st.integers(sum(sizes), 2_000))
    frame = frame_of(sizes, masks, sequence)
    found, left_out = keep_masks(frame, measured_of(sizes, rng), [(i,) for i in range(len(sizes))], most)
    tree = build_tree(sizes, [*((i,) for i in range(len(sizes))), *found.allowed], sequence)
    assert tree.cells <= most
    assert {*found.allowed, *left_out} == set(masks)
    assert all(np.array_equal(found.allowed[pair], masks[pair]) for pair in found.allowed)


def test_masks_that_follow_from_others_are_left_out() -> None:
    """a0 <= a1 <= ... <= a7, every pair of them: seven say it all."""
    sizes = [10] * 8
    masks = {pair: np.triu(np.ones((10, 10))) for pair in combinations(range(8), 2)}
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, 10, (5_000, 8)), axis=1)
    counts = [np.bincount(columns[:, i], minlength=10).astype(float) for i in range(8)]
    measured = [Measurement(attributes=(i,), counts=c, sigma=np.full(10, 1.0)) for i, c in enumerate(counts)]
    frame = frame_of(sizes, masks, None)
    found, left_out = keep_masks(frame, measured, [(i,) for i in range(8)], 10**6)
    assert set(found.allowed) == {(i, i + 1) for i in range(7)}
    assert len(left_out) == 21
    share = excluded_share(masks[0, 7], (0, 7), margins_of(frame, measured))
    assert share == excluded_share(masks[0, 7], (0, 7), margins_of(found, measured))


def test_many_right_sides_of_one_attribute_take_no_more_room_than_there_is() -> None:
    """An age and twelve bands of it, drawn before it: all their masks together would need billions of cells."""
    rng = np.random.default_rng(0)
    age = np.minimum(rng.geometric(0.05, 20_000), 79)
    bands = [np.searchsorted(np.sort(rng.choice(80, 6, replace=False)), age) for _ in range(12)]
    table = {"age": age} | {f"band{i}": band for i, band in enumerate(bands)}
    attributes = tuple(ModelAttribute(name=name, size=80 if name == "age" else 7, ordered=True) for name in table)
    pairs = tuple(("age", f"band{i}") for i in range(12))
    sequence = (*(f"band{i}" for i in range(12)), "age")
    hints = Hints(functional=pairs, together=pairs)
    model = fit_marginal(
        MemoryMeasurer(table, seed=1), attributes, noise_multiplier=4.22, sequence=sequence, hints=hints
    )
    assert max(node.table.size for node in model.nodes) < 10**6
    drawn = model.sample(20_000, rng)
    for name, size in {"age": 80, **{f"band{i}": 7 for i in range(12)}}.items():
        true, made = (np.bincount(each, minlength=size) / 20_000 for each in (table[name], drawn[name]))
        assert np.abs(true - made).sum() / 2 < 0.05

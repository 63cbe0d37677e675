from __future__ import annotations

import numpy as np
import pytest

from kamino.engine import block_counts
from kamino.engine.block_counts import count_blocks, count_candidates
from kamino.errors import SchemaError
from kamino.model.protocol import Candidate, CodeMap, ConditionalMap

SIZES = (2, 300, 7, 70_000)
MARGINALS = ((0,), (3,), (0, 1), (1, 0), (2, 1, 0), (1, 3))


def table(seed, num_rows):
    rng = np.random.default_rng(seed)
    kinds = (np.uint8, np.uint16, np.uint8, np.uint32)
    return [rng.integers(0, size, num_rows).astype(kind) for size, kind in zip(SIZES, kinds, strict=True)]


def one_by_one(codes, places):
    shape = [SIZES[place] for place in places]
    flat = np.ravel_multi_index([codes[place].astype(np.int64) for place in places], shape)
    return np.bincount(flat, minlength=int(np.prod(shape)))


@pytest.mark.parametrize("num_rows", [0, 1, 50, 5000])
@pytest.mark.parametrize("seed", range(5))
def test_blocks_count_what_single_passes_count(seed, num_rows):
    codes = table(seed, num_rows)
    for places, found in zip(MARGINALS[:-1], count_blocks(codes, SIZES, MARGINALS[:-1]), strict=True):
        np.testing.assert_array_equal(found, one_by_one(codes, places))
        assert found.dtype == np.int64


@pytest.mark.parametrize("size", [255, 256, 257, 65_535, 65_536, 65_537])
def test_sizes_at_the_edges_of_types(size):
    codes = [np.zeros(2, dtype=np.uint8), np.full(2, size - 1, dtype=np.uint32)]
    for found in count_blocks(codes, [1, size], [(0, 1), (1, 0), (1,)]):
        assert found[-1] == found.sum() == 2
        assert len(found) == size


def test_more_cells_than_can_be_numbered_are_refused():
    codes = [np.zeros(1, dtype=np.uint8), np.zeros(1, dtype=np.uint8)]
    with pytest.raises(SchemaError, match="2\\^63"):
        count_blocks(codes, [2**40, 2**40], [(0, 1)])


@pytest.mark.parametrize("cut", [0, 1, 17, 60])
@pytest.mark.parametrize("seed", range(5))
def test_counts_of_blocks_add_up(seed, cut):
    codes = table(seed, 60)
    parts = ([column[:cut] for column in codes], [column[cut:] for column in codes])
    first, second = (count_blocks(part, SIZES, MARGINALS[:5]) for part in parts)
    for one, two, places in zip(first, second, MARGINALS[:5], strict=True):
        np.testing.assert_array_equal(one + two, one_by_one(codes, places))


@pytest.mark.parametrize("num_rows", [0, 1, 100, 1001])
def test_candidates_are_read_through_their_views(num_rows, monkeypatch):
    monkeypatch.setattr(block_counts, "BLOCK_ROWS", 64)
    rng = np.random.default_rng(3)
    columns = {"a": rng.integers(0, 10, num_rows), "b": rng.integers(0, 6, num_rows)}
    halves = CodeMap(size=10, bins=2, starts=np.array([0, 5]), labels=np.array([0, 1]))
    labels = rng.integers(0, 3, (2, 6))
    relative = ConditionalMap(base="a", over=halves, own=CodeMap.identity(6), labels=labels, bins=3)
    asked = [
        Candidate(attributes=("a",), binning={"a": CodeMap.identity(10)}),
        Candidate(attributes=("b", "a"), binning={"a": halves, "b": relative}),
    ]
    single, pair = count_candidates(asked, columns, num_rows)
    np.testing.assert_array_equal(single, np.bincount(columns["a"], minlength=10))
    half = columns["a"] // 5
    wanted = np.bincount(labels[half, columns["b"]] * 2 + half, minlength=6)
    np.testing.assert_array_equal(pair, wanted)

from __future__ import annotations

import numpy as np
import pytest

from kamino.errors import ModelError
from kamino.model.protocol import CodeMap, ModelAttribute


def test_a_code_map_reads_runs():
    runs = CodeMap(size=10**9, bins=2, starts=np.array([0, 5, 900]), labels=np.array([0, 1, 0]))
    assert runs(np.array([0, 4, 5, 899, 900, 10**9 - 1])).tolist() == [0, 0, 1, 1, 0, 0]
    assert CodeMap.identity(3)(np.array([2, 0])).tolist() == [2, 0]


@pytest.mark.parametrize(
    ("starts", "labels", "message"),
    [
        ([1], [0], "starts at code 0"),
        ([0, 2], [0], "one label"),
        ([0, 2, 2], [0, 1, 0], "ascend"),
        ([0, 12], [0, 1], "inside the domain"),
        ([0, 2], [0, 2], "outside its bins"),
    ],
)
def test_a_wrong_code_map_is_refused(starts, labels, message):
    with pytest.raises(ModelError, match=message):
        CodeMap(size=10, bins=2, starts=np.array(starts), labels=np.array(labels))


def test_a_wrong_attribute_is_refused():
    with pytest.raises(ModelError, match="at least one"):
        ModelAttribute(name="x", size=0)
    with pytest.raises(ModelError, match="null code"):
        ModelAttribute(name="x", size=2, null_code=2)


@pytest.mark.parametrize("bins", [3, 300])
def test_code_maps_read_many_codes_as_few(bins):
    rng = np.random.default_rng(3)
    starts = np.sort(np.append(0, rng.choice(np.arange(1, 1000), 400, replace=False)))
    found = CodeMap(size=1000, bins=bins, starts=starts, labels=rng.integers(0, bins, len(starts)))
    codes = rng.integers(0, 1000, 10_000)
    one_by_one = np.concatenate([found(codes[[i]]) for i in range(len(codes))])
    np.testing.assert_array_equal(found(codes), one_by_one)
    assert found(codes).dtype == np.int64

"""Drawing in domains of up to 2^62 codes: numbers neither wrap nor round."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kamino.constraints.tree import Operator
from kamino.model.marginal.columns.binning import BinLimits, choose_bins
from kamino.model.marginal.columns.histogram import measure_histogram
from kamino.model.protocol import CodeMap, ModelAttribute
from kamino.pipeline import Synthesizer
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.steps.ownership.taking import _Taken
from kamino.schema import Codec, Integer, Schema


def test_taken_values_of_a_wide_domain_are_told_apart() -> None:
    """Groups 0 and 4 meet once 4 * 2^62 wraps to 0."""
    for size in (1000, 2**62):
        taken = _Taken(5, size)
        values = np.array([7, 7, 3, 7])
        taken.add(taken.number(np.array([0, 4, 0, 4]), values), np.array([10, 11, 12, 13]))
        assert taken.find(taken.number(np.array([4, 0, 0, 4]), np.array([7, 7, 3, 3]))).tolist() == [11, 10, 12, -1]


def test_values_past_the_widest_domain_compare() -> None:
    below, above = Integer(min=0, max=2**62 - 2, nullable=True), Integer(min=2**62 - 3, max=2**63 - 6)
    judge = Judge(Codec(Schema(attributes={"a": below, "b": above})))
    x, y = judge.numbers("a", np.array([2**62 - 2] * 3), "b", np.array([0, 1, 2**62 - 4]), Operator.LT)
    assert (x > y).tolist() == [True, False, False]
    assert (x < y).tolist() == [False, False, True]


def test_bins_of_a_wide_domain_are_of_equal_width() -> None:
    size = 2**62
    codes = np.arange(1600) * (size // 1600) + size // 3200

    def count(code_map: CodeMap, share: float) -> tuple[np.ndarray, float]:
        return np.bincount(code_map(codes), minlength=code_map.bins).astype(float), 0.1

    attribute = ModelAttribute(name="x", size=size, ordered=True)
    cells = choose_bins(attribute, measure_histogram(attribute, count), BinLimits(least_rows=10))
    assert np.bincount(cells.map(codes)).tolist() == [100] * 16


def test_spikes_of_a_wide_domain_are_drawn_as_often_as_they_are() -> None:
    """Runs without a row are as wide as 2^55 codes, and have no weight that grows with that."""
    size = 2**61
    values = [0, size // 3, size // 2 + 7, size]
    table = pa.table({"n": np.repeat(values, [400, 300, 200, 100])})
    schema = Schema(attributes={"n": Integer(min=0, max=size)})
    drawn = Synthesizer(schema, epsilon=20.0, seed=1).fit(table, num_rows=1000).sample(1000)["n"].to_numpy()
    shares = [float(np.mean(drawn == value)) for value in values]
    assert shares == pytest.approx([0.4, 0.3, 0.2, 0.1], abs=0.02)

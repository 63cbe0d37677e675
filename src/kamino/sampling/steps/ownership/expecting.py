"""What the model expects of the values that rows may have: their list, and the rows of each owner in each bin."""

from __future__ import annotations

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.sampling.codes.choices import Choices
from kamino.sampling.codes.count_matrix import CountMatrix, count_matrix
from kamino.sampling.codes.stratified import normalised


def listed_values(choices: Choices) -> tuple[IntArray, IntArray]:
    """Return all values that rows may have, null aside, and the run that each stands in."""
    value_run = np.repeat(np.arange(len(choices.starts)), choices.width)
    values = choices.starts[value_run] + _inside(choices)
    if choices.null_bin is not None:
        keep = choices.label[value_run] != choices.null_bin
        value_run, values = value_run[keep], values[keep]
    return values, value_run


def _inside(choices: Choices) -> IntArray:
    """Return the place of each code inside its run, runs one after the other."""
    begin = np.cumsum(choices.width) - choices.width
    return np.asarray(np.arange(int(choices.width.sum())) - np.repeat(begin, choices.width))


def expected_of_owners(choices: Choices, rows: IntArray, owners: IntArray) -> FloatArray:
    """Return the rows of each owner that the model expects in each bin."""
    counts = count_matrix(owners, choices.context[rows], int(owners.max()) + 1, len(choices.log_weight))
    return _expected_bins(counts, choices.log_weight)


def _expected_bins(counts: CountMatrix, log_weight: FloatArray) -> FloatArray:
    """Return expected counts of bins by owner, going through the contexts in pieces."""
    total = np.zeros((len(counts), log_weight.shape[1]))
    lines = max(1, (1 << 22) // max(1, log_weight.shape[1]))
    for start in range(0, len(log_weight), lines):
        total += counts.between(start, start + lines) @ normalised(log_weight[start : start + lines])
    return total

"""One value for each group of rows: which bin of the model the rows of a group speak for, and which value of that bin.

Where a bin holds several values, the product of the rows' distributions is over bins, and how values are spread inside
a bin counts once for a group: the model knows that spread over all groups, not within one. Counting it for each row
would give all groups of a bin its most frequent value.

The spread over all groups is evidence, too: a group of 400 rows does not have a value that 30 rows have. So the groups
of a bin share out its values, the largest first, and each takes the value that most rows are still wanting.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from kamino.arrays import FloatArray, IntArray, stable_order
from kamino.sampling.codes.choices import Choices
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.codes.count_matrix import count_matrix
from kamino.sampling.codes.stratified import draw_one_each, normalised

_PIECE = 1 << 23


def group_weights(choices: Choices, rows: IntArray, groups: IntArray, num_groups: int) -> FloatArray:
    """Return, for each group and run of codes, the log weight of the run there: bins by row, the spread once.

    Guarantees:
        Bins of one code each weigh the same as the bins they were made of.  [test_listed_codes_weigh_as_their_bins]
    """
    by_bin = _products(choices, rows, groups, num_groups)[:, choices.label]
    if choices.spread is None:
        with np.errstate(divide="ignore"):
            return np.asarray(by_bin + np.log(choices.share)[None, :])
    size = np.bincount(groups, minlength=num_groups)
    return np.asarray(by_bin - np.maximum(size - 1, 0)[:, None] * choices.spread[None, :])


def _products(choices: Choices, rows: IntArray, groups: IntArray, num_groups: int) -> FloatArray:
    """Return the product of the rows' weights of each bin, as logarithms, for each group."""
    counts = count_matrix(groups, choices.context[rows], num_groups, len(choices.log_weight))
    return counts @ choices.log_weight


def share_out(choices: Choices, rows: IntArray, groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw a bin of the model for each group, and choose a run of codes inside it; -1 where no run is left.

    Guarantees:
        Bins follow the product of the rows' distributions.  [test_lookup_is_exact]
        Runs of a bin are had by about as many rows as their share says.  [test_large_groups_take_frequent_values]
        A run that some row of a group cannot have is not taken.  [test_listed_codes_are_shared_out_by_what_is_allowed]
    """
    sizes = np.bincount(groups)
    bin_of = choices.label if choices.model_bin is None else choices.model_bin
    bins = np.full(len(sizes), -1, dtype=np.int64)
    for mine, weight in _in_pieces(choices, rows, groups, len(sizes), by_bin=choices.spread is None):
        bins[mine] = draw_one_each(weight if choices.spread is None else _by_bin(weight, bin_of), rng)
    return _Sharing(choices, bin_of, bins, sizes).share(rows, groups, rng)


def expected_runs(choices: Choices) -> FloatArray:
    """Return how many of the rows the model expects in each run."""
    counts = np.bincount(choices.context, minlength=len(choices.log_weight))
    by_bin = counts @ normalised(choices.log_weight)
    return np.asarray(by_bin[choices.label] * choices.share)


def largest_first(sizes: IntArray, rng: np.random.Generator) -> IntArray:
    """Return the groups by descending size, equal ones in random order."""
    shuffled = rng.permutation(len(sizes))
    return shuffled[np.argsort(-sizes[shuffled], kind="stable")]


def _by_bin(weight: FloatArray, bin_of: IntArray) -> FloatArray:
    """Add up the weights of each bin's runs, as logarithms."""
    order = stable_order(bin_of)
    held, begin = np.unique(bin_of[order], return_index=True)
    result = np.full((len(weight), int(bin_of.max(initial=-1)) + 1), -np.inf)
    if len(held):
        result[:, held] = np.logaddexp.reduceat(weight[:, order], begin, axis=1)
    return result


def _in_pieces(
    choices: Choices, rows: IntArray, groups: IntArray, num_groups: int, *, by_bin: bool = False
) -> Iterator[tuple[slice, FloatArray]]:
    """Yield the weights of the groups' runs, or of their bins, so many groups at a time as take little memory."""
    weigh = _products if by_bin else group_weights
    lines = max(1, _PIECE // max(1, choices.log_weight.shape[1], len(choices.starts)))
    order = stable_order(groups)
    for start in range(0, num_groups, lines):
        stop = min(start + lines, num_groups)
        low, high = np.searchsorted(groups, [start, stop], sorter=order)
        mine = order[low:high]
        yield slice(start, stop), weigh(choices, rows[mine], groups[mine] - start, stop - start)


class _Sharing:
    """The runs of each bin with the rows that still want them, given out to groups."""

    def __init__(self, choices: Choices, bin_of: IntArray, bins: IntArray, sizes: IntArray) -> None:
        self._choices, self._bin_of, self._bins, self._sizes = choices, bin_of, bins, sizes
        num_bins = max(int(bin_of.max(initial=-1)), int(bins.max(initial=-1))) + 1
        live = bins >= 0
        rows_in = np.bincount(bins[live], sizes[live], minlength=num_bins)
        share = choices.share if choices.spread is None else np.exp(choices.spread)
        held = np.bincount(bin_of, share, minlength=num_bins)
        self._wanting = rows_in[bin_of] * share / np.maximum(held, np.finfo(float).tiny)[bin_of]
        order = stable_order(bin_of)
        self._runs = np.split(order, np.searchsorted(bin_of[order], np.arange(1, num_bins)))

    def share(self, rows: IntArray, groups: IntArray, rng: np.random.Generator) -> IntArray:
        """Return the run of each group, -1 where it has no bin."""
        order = largest_first(self._sizes, rng)
        order = order[self._bins[order] >= 0]
        if self._choices.spread is None:
            return self._from_whole_bins(order)
        return self._from_what_is_allowed(order, rows, groups)

    def _from_whole_bins(self, order: IntArray) -> IntArray:
        """All runs of a bin are open to all its groups."""
        wanting, sizes = self._wanting, self._sizes.tolist()
        heaps = [[(-wanting[run], run) for run in runs.tolist()] for runs in self._runs]
        for heap in heaps:
            heapq.heapify(heap)
        taken = np.full(len(self._bins), -1, dtype=np.int64)
        for group, place in zip(order.tolist(), self._bins[order].tolist(), strict=True):
            want, run = heaps[place][0]
            heapq.heapreplace(heaps[place], (want + sizes[group], run))
            taken[group] = run
        return taken

    def _from_what_is_allowed(self, order: IntArray, rows: IntArray, groups: IntArray) -> IntArray:
        """Each group has the runs that none of its rows rules out."""
        place = np.empty(len(self._bins), dtype=np.int64)
        rest = np.flatnonzero(self._bins < 0)
        ranked = np.concatenate([order, rest])
        place[ranked] = np.arange(len(ranked))
        taken = np.full(len(self._bins), -1, dtype=np.int64)
        for piece, weight in _in_pieces(self._choices, rows, place[groups], len(ranked)):
            for group, open_runs in zip(ranked[piece].tolist(), np.isfinite(weight), strict=True):
                if self._bins[group] >= 0:
                    taken[group] = self._take(group, open_runs)
        return taken

    def _take(self, group: int, open_runs: Mask) -> int:
        runs = self._runs[self._bins[group]]
        mine = runs[open_runs[runs]]
        run = int(mine[np.argmax(self._wanting[mine])])
        self._wanting[run] -= self._sizes[group]
        return run

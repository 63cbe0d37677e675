"""One to one: which value each group of rows has, no two the same.

The likeliest assignment of values to groups is one of greatest weight (the assignment problem). Where the model cannot
tell groups apart, that pairs the largest group with the most frequent value, the next with the next, and so on: a group
of 400 rows does not have a value that 30 rows have. Many groups are matched so many at a time, in order of size.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.sampling.codes.choices import Choices
from kamino.sampling.partners import DEAD
from kamino.sampling.steps.shared_values import expected_runs, group_weights, largest_first

#: So many groups are matched at once: the work grows with the cube.
_AT_ONCE = 256
#: What can be matched as a whole in a moment is.
_WHOLE = 1024
#: A value that a group cannot have: it is matched only if nothing else is left, and then taken back.
_NEVER = -1e15


def match_groups(choices: Choices, rows: IntArray, groups: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a value for each group of rows, all different; `DEAD` where there are too few. Null is no value.

    Guarantees:
        No value twice.  [test_matched_values_differ]
        Where the model cannot tell groups apart, sizes and frequencies go together.  [test_sizes_are_matched]
        Where it can, the match has the greatest weight.  [test_the_match_has_the_greatest_weight]
    """
    listed = choices.without_null().by_code()
    sizes = np.bincount(groups)
    order = largest_first(sizes, rng)
    expected = expected_runs(listed.of_rows(rows))
    shuffled = rng.permutation(len(expected))
    values = shuffled[np.argsort(-expected[shuffled], kind="stable")]
    at_once = len(order) if max(len(order), len(values)) <= _WHOLE else _AT_ONCE
    found = np.full(len(sizes), DEAD, dtype=np.int64)
    place = np.empty(len(sizes), dtype=np.int64)
    place[order] = np.arange(len(order))
    by_place = np.argsort(place[groups], kind="stable")
    ends = np.searchsorted(place[groups], np.arange(0, len(order) + at_once, at_once), sorter=by_place)
    for i, start in enumerate(range(0, len(order), at_once)):
        mine = order[start : start + at_once]
        # The last ones may have any of the values that are left, as far as that is little work.
        stop = start + (at_once if start + at_once < len(order) else max(at_once, _WHOLE))
        offered = values[start:stop]
        if not len(offered):
            break
        of_mine = by_place[ends[i] : ends[i + 1]]
        weight = _weights(listed, rows[of_mine], place[groups[of_mine]] - start, len(mine), offered)
        line, column = _best(weight)
        found[mine[line]] = listed.starts[offered[column]]
    return found


def _weights(choices: Choices, rows: IntArray, groups: IntArray, num_groups: int, runs: IntArray) -> FloatArray:
    """Return the log weights of some runs for each group."""
    used, context = np.unique(choices.context[rows], return_inverse=True)
    few = replace(
        choices,
        context=context.astype(np.int64),
        log_weight=choices.log_weight[used][:, choices.label[runs]],
        starts=choices.starts[runs],
        width=choices.width[runs],
        label=np.arange(len(runs), dtype=np.int64),
        share=choices.share[runs],
        model_bin=None,
        spread=None if choices.spread is None else choices.spread[runs],
    )
    return group_weights(few, np.arange(len(rows)), groups, num_groups)


def _best(weight: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the lines and columns of an assignment of greatest weight."""
    from scipy.optimize import linear_sum_assignment

    line, column = linear_sum_assignment(np.where(np.isfinite(weight), weight, _NEVER), maximize=True)
    allowed = np.isfinite(weight[line, column])
    return line[allowed], column[allowed]

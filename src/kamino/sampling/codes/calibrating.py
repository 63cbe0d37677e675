"""Columns keep their distribution, whatever constraints did to the columns before them.

A column is drawn given earlier ones. Where constraints moved rows there, the rows' distributions no longer add up to
what the model says of the column: cells of the model that hold little but noise are used more often than it knows. So
each bin gets a factor, one for all rows, that brings the sum back (iterative proportional fitting, raking).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from kamino.arrays import FloatArray
from kamino.model.protocol import FrequencyModel

if TYPE_CHECKING:
    from kamino.model.protocol import Conditional, TupleModel
    from kamino.sampling.draw_options import DrawOptions

_ROUNDS = 30
_CLOSE = 1e-4
# A bin of fewer expected rows than this keeps its weight: that many rows do not tell a frequency.
_LEAST_ROWS = 10.0
# No bin gets more than this factor, or less than its inverse: a wider gap is none that frequencies should close.
_MOST_FACTOR = np.e


def frequencies_of(model: TupleModel, options: DrawOptions) -> Callable[[str], FloatArray] | None:
    """Return the frequencies that columns are to have, by attribute; None if the model does not know them.

    None as well where the caller gave columns or conditions, and for the ways of drawing that are there to compare
    with: those follow the paper.
    """
    if options.prefix or options.given or not options.sampling.is_usual or not isinstance(model, FrequencyModel):
        return None
    return model.frequencies


def rake(conditional: Conditional, frequencies: FloatArray) -> Conditional:
    """Return the distributions with one factor for each bin, such that all rows together have these frequencies.

    Guarantees:
        The rows' distributions add up to the frequencies, where factors within bounds can do that.
        [test_raking_meets_the_frequencies]
        Bins of few rows keep their weight.  [test_few_rows_are_not_raked]
    """
    counts = np.bincount(conditional.context, minlength=len(conditional.log_prob)).astype(float)
    used = np.flatnonzero(counts)
    rows = counts[used]
    wanted = frequencies * rows.sum()
    chance = np.exp(conditional.log_prob[used])
    told = wanted >= _LEAST_ROWS
    factor = np.ones(len(wanted))
    for _ in range(_ROUNDS if told.any() else 0):
        total = np.maximum(chance @ factor, np.finfo(float).tiny)
        expected = (rows / total) @ chance * factor
        told &= expected > 0
        if np.abs(expected - wanted)[told].sum() <= _CLOSE * rows.sum():
            break
        step = np.divide(wanted, expected, out=np.ones_like(wanted), where=told)
        factor = np.clip(factor * step, 1 / _MOST_FACTOR, _MOST_FACTOR)
    return replace(conditional, log_prob=conditional.log_prob + np.log(factor)[None, :])

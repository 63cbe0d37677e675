"""Categories that are worth counting once more, now that it shows in how many pairs their noise is.

The noise of a 1-way marginal is in every pair of the attribute. What it costs there is known without looking: the
standard deviation of what was counted so far, and the distances of the pairs, which have been released. Ordered
attributes are left alone: wide ones were counted twice, and of a few values little is to be gained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.inference import LEAST_SIGMA, Measurement
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.pairs.selection import Scored
from kamino.model.marginal.purse import Purse
from kamino.model.protocol import Candidate, CodeMap, Measurer

#: The part of the noise of an attribute that its pairs lose with it. Errors add up in squares, which leaves half of it
#: at most where there are others, and pairs that are still to be measured tell of the attribute, too.
LOST_IN_PAIRS = 0.25


def single_candidates(frame: Frame, scored: Sequence[Scored], histograms: Mapping[int, Histogram]) -> list[Scored]:
    """Return attributes with these histograms as candidates, with the error that their noise makes in pairs.

    Reads releases only.
    """
    errors: dict[Clique, float] = {}
    for each in scored:
        errors[each.attributes] = max(errors.get(each.attributes, 0.0), each.error)
    inner = [a for a, size in enumerate(frame.sizes) if size > 1]
    found = []
    for a in (a for a in inner if a in histograms):
        counts, known = histograms[a].counts, max(float(histograms[a].sigma.max()), LEAST_SIGMA)
        single = Scored(attributes=(a,), error=0.0, answer=np.maximum(counts, 0.0), known=known)
        own = single.left(np.inf)
        pairs = [errors.get((min(a, b), max(a, b)), 0.0) for b in inner if b != a]
        times = LOST_IN_PAIRS * sum(own / max(error, own) for error in pairs) if own else 0.0
        found.append(replace(single, error=times * own, times=times))
    return found


def single_candidate(frame: Frame, a: int, histogram: Histogram) -> Candidate:
    """Name the 1-way marginal of an attribute, value by value, for the private side."""
    runs = np.arange(len(histogram.starts), dtype=np.int64)
    values = CodeMap(size=histogram.size, bins=len(runs), starts=histogram.starts, labels=runs)
    name = frame.attributes[a].name
    return Candidate(attributes=(name,), binning={name: values})


def count_again(
    frame: Frame, measurer: Measurer, purse: Purse, a: int, share: float, histogram: Histogram
) -> tuple[Measurement, Histogram]:
    """Count an attribute once more, value by value; return its bins as a measurement, and the histogram of both counts.

    Guarantees:
        The histogram is that of one count with the noise of both.  [test_two_counts_are_one]
    """
    asked = single_candidate(frame, a, histogram)
    multiplier = purse.take(asked.attributes[0], share)
    noisy = np.asarray(measurer.marginal(asked.attributes, asked.binning, noise_multiplier=multiplier), dtype=float)
    cells = frame.cells[a].map
    bins = Measurement(
        attributes=frame.levels.bins((a,)),
        counts=np.bincount(cells.labels, weights=noisy, minlength=cells.bins).astype(float),
        sigma=multiplier * np.sqrt(np.bincount(cells.labels, minlength=cells.bins)),
    )
    return bins, histogram.joined(noisy, multiplier)

"""Which relations of ordered attributes are worth reading, by what else their attributes go with.

An attribute that is read relative to another keeps what the rest says of its place in the distribution given its base,
and loses what the rest says of its value. That is nothing if it is nearly a function of the base, and little if the
base explains what goes with its value: the price of a stone follows its weight, and so do its sizes. It is much if
something says of the value what the base does not: an arrival follows the departure, and the destination as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.maps.functions import function_distance
from kamino.model.marginal.purse import Purse
from kamino.model.protocol import FloatArray, Measurer

#: What the ledger says that distances are measured from.
INDEPENDENCE = "independence"
#: A relation is close if its distance from independence is this part of that of a function with the same shares: what
#: is left of the attribute then lies within one or two of its bins.
CLOSE = 0.9
#: An attribute at this distance from independence says much of another one's value, if the base does not explain it: if
#: it is this much larger than that of attributes of which one follows the base, and the base the other.
PARTNER, UNEXPLAINED = 0.25, 0.05
#: How far normal attributes with such correlations are from independence, in total variation.
_CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99, 1.0)
_DISTANCES = (0.0, 0.101, 0.185, 0.301, 0.386, 0.515, 0.624, 0.69, 0.802, 1.0)


def distances(
    frame: Frame,
    pairs: Sequence[Clique],
    shares: Mapping[int, FloatArray],
    measurer: Measurer,
    purse: Purse,
    share: float,
) -> dict[Clique, float]:
    """Return the noisy total variation distance of each pair from independence."""
    expected = [np.outer(shares[a], shares[b]).ravel() * frame.num_rows for a, b in pairs]
    noisy = measurer.scores(
        [frame.candidate(pair) for pair in pairs],
        expected,
        noise_multiplier=purse.take("relations", share),
        against=INDEPENDENCE,
    )
    return {pair: float(error) / (2 * frame.num_rows) for pair, error in zip(pairs, noisy, strict=True)}


def find_loose(
    frame: Frame,
    strengths: Mapping[Clique, float],
    shares: Mapping[int, FloatArray],
    strong: float,
    tied: frozenset[int],
    measurer: Measurer,
    purse: Purse,
    share: float,
) -> frozenset[tuple[int, int]]:
    """Return the strong relations, (attribute, base), that are not to be read, because something else says as much.

    Distances of attributes that may be read loosely, and of their bases, are released for this with `share` of the
    budget; nothing is if all strong relations are close.

    Guarantees:
        What depends on two attributes alike is read in bins.  [test_what_has_other_partners_is_read_in_bins]
    """
    close = {pair for pair, value in strengths.items() if value >= CLOSE * _function(shares, pair)}
    loose = [pair for pair, value in strengths.items() if value >= strong and pair not in close]
    directed = [(own, base) for pair in loose for own, base in (pair, pair[::-1]) if own not in tied]
    inner = [a for a, size in enumerate(frame.sizes) if size > 1]
    others = sorted({_pair(a, b) for pair in directed for a in pair for b in inner if a != b} - strengths.keys())
    known = dict(strengths)
    if others:
        known |= distances(frame, others, shares, measurer, purse, share)

    def is_explained(own: int, base: int, other: int) -> bool:
        found = known[_pair(own, other)]
        through = implied(known[_pair(own, base)], known[_pair(base, other)])
        return found < PARTNER or found <= through + UNEXPLAINED

    return frozenset(
        (own, base)
        for own, base in directed
        if not all(is_explained(own, base, a) for a in inner if a not in (own, base))
    )


def implied(first: float, second: float) -> float:
    """Return how far from independence two attributes are that follow a third one so far from it, and nothing else.

    Reckons as if all were normal.

    >>> round(implied(0.515, 1.0), 3), round(implied(0.515, 0.515), 3)
    (0.515, 0.399)
    """
    correlation = math.prod(float(np.interp(each, _DISTANCES, _CORRELATIONS)) for each in (first, second))
    return float(np.interp(correlation, _CORRELATIONS, _DISTANCES))


def _pair(a: int, b: int) -> Clique:
    return (a, b) if a < b else (b, a)


def _function(shares: Mapping[int, FloatArray], pair: Clique) -> float:
    return function_distance(shares[pair[0]], shares[pair[1]])

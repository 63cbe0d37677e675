"""What three attributes of two values say together that no two of them say: one number, their parity.

It is the number of rows with an even number of second values minus that of rows with an odd one. To release how far the
model is from it costs what releasing it costs, so such triples are measured without waiting for a score: once, when the
pairs are known, those of the most dependent pairs. (They are scored as well, in an earlier round, where a parity of all
rows stands out of any noise and is given a larger part of the budget.) What the parities of all of them let one believe
goes into the model, of those that are farthest from it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from kamino.model.marginal.adaptive_shrinkage import believed
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.inference import Fit, Measurement
from kamino.model.marginal.graph.junction import Clique, Graph
from kamino.model.marginal.pairs.scoring import CLEAR_SCORES, draw_model_rows
from kamino.model.marginal.pairs.settled import settle_cliques
from kamino.model.marginal.purse import Purse
from kamino.model.protocol import FloatArray, Measurer, ModelAttribute

#: Parities that are measured at most, and those that go into the model for each of their attributes.
MOST_PARITIES, PARITIES_PER_ATTRIBUTE = 1000, 4
#: Rows drawn from the model to find what it expects of parities: their noise is a fifth of that of what is measured.
MODEL_ROWS = 30_000
#: The sign with which each cell of three attributes of two values counts.
_SIGNS = np.array([1.0, -1.0])[:, None, None] * np.array([1.0, -1.0])[:, None] * np.array([1.0, -1.0])


@dataclass(frozen=True, kw_only=True)
class Parities:
    """How many parities of these attributes are measured, for which share of the budget together."""

    attributes: tuple[int, ...] = ()
    count: int = 0
    share: float = 0.0


def has_parity(attribute: ModelAttribute) -> bool:
    """Whether an attribute may have two values beside null, so that its parities can be asked for."""
    return attribute.size - (attribute.null_code is not None) == 2


def most_parities(num_attributes: int) -> int:
    """Return how many parities of so many attributes are measured at most."""
    return min(math.comb(num_attributes, 3), MOST_PARITIES)


def plan_parities(frame: Frame, noise_multiplier: float, most_share: float, without: Collection[int] = ()) -> Parities:
    """Plan as many parities as can be measured with noise below `CLEAR_SCORES` of the rows.

    Guarantees:
        They cost `most_share` at most.  [test_parities_stay_within_their_share]
    """
    usual = (a for a in range(len(frame.sizes)) if a not in without and a not in frame.relatives)
    inner = tuple(a for a in usual if frame.sizes[a] == 2 and has_parity(frame.attributes[a]))
    each = (frame.score_noise(noise_multiplier, 1) / (CLEAR_SCORES * frame.num_rows)) ** 2
    count = min(most_parities(len(inner)), int(most_share / each)) if each > 0 else 0
    return Parities(attributes=inner, count=count, share=count * each)


def measure_parities(
    frame: Frame, fit: Fit, answers: Mapping[Clique, FloatArray], measurer: Measurer, purse: Purse, planned: Parities
) -> list[Measurement]:
    """Measure parities, and return them with the noise taken out, those first that are farthest from the model.

    Guarantees:
        Three-way marginals come nearer to the truth.  [test_parities_bring_triples_nearer]
    """
    triples = most_dependent(answers, planned)
    if not triples:
        return []
    triples = settle_cliques(measurer, "parities", triples, combinations(planned.attributes, 3))
    measurer.expect([frame.candidate(triple) for triple in triples])
    share = planned.share / len(triples)
    measured = [frame.measure(measurer, purse, triple, share, by_interactions=True) for triple in triples]
    expected = _expected_parities(frame, fit, triples)
    found = np.array([float((_SIGNS * each.counts).sum()) for each in measured])
    # The sum of eight numbers of this deviation.
    variance = np.array([float((each.sigma**2).sum()) for each in measured])
    added = believed(found - expected, variance, np.ones(len(triples))) * (found - expected)
    most = PARITIES_PER_ATTRIBUTE * len(planned.attributes)
    first = np.argsort(-np.abs(added), kind="stable")[:most]
    return [replace(measured[i], counts=_SIGNS * ((expected[i] + added[i]) / _SIGNS.size)) for i in first]


def within_size(
    frame: Frame, measured: Sequence[Measurement], cliques: Sequence[Clique], most_cells: int
) -> list[Measurement]:
    """Return those measurements, the first ones first, with which a model of `cliques` stays within its size."""
    levels = frame.levels
    graph = Graph(
        levels.all_sizes, cliques, levels.sequence(frame.sequence), levels.after(frame.after), levels.all_groups
    )
    kept = []
    for each in measured:
        if graph.cells_with(each.attributes) <= most_cells:
            graph.add(each.attributes)
            kept.append(each)
    return kept


def most_dependent(answers: Mapping[Clique, FloatArray], planned: Parities) -> list[Clique]:
    """Return the triples whose pairs depend most on each other in the model: three covariances, added up."""
    if not planned.count:
        return []
    pairs = {pair: abs(_covariance(answers[pair])) for pair in combinations(planned.attributes, 2)}
    triples = list(combinations(planned.attributes, 3))
    sums = np.array([sum(pairs[pair] for pair in combinations(triple, 2)) for triple in triples])
    return [triples[i] for i in np.argsort(-sums, kind="stable")[: planned.count]]


def _covariance(table: FloatArray) -> float:
    share = table / table.sum()
    return float(share[0, 0] - share[0].sum() * share[:, 0].sum())


def _expected_parities(frame: Frame, fit: Fit, triples: Sequence[Clique]) -> FloatArray:
    """The parities of triples in the model, from rows drawn from it."""
    rows = draw_model_rows(frame, fit, MODEL_ROWS)
    signs = {a: (1 - 2 * rows[a]).astype(np.int8) for triple in triples for a in triple}
    means = [float((signs[a] * signs[b] * signs[c]).mean(dtype=float)) for a, b, c in triples]
    return np.array(means) * frame.num_rows

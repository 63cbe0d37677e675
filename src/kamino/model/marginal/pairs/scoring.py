"""How far the model is from the table, pair by pair and triple by triple: noisy distances, and what they are worth.

All pairs are scored in every round. Triples, and quadruples of attributes of two values, are scored once, when the
pairs are known: what counts of them is the distance that smaller ones do not explain (the parity of three columns, say,
shows in no pair).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from kamino.model.marginal.columns.resolution import Resolution
from kamino.model.marginal.even_draws import draw_bins
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.factor import sum_groups, without_groups
from kamino.model.marginal.graph.inference import Fit
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.pairs.selection import Scored
from kamino.model.marginal.pairs.settled import settle_cliques
from kamino.model.marginal.purse import Purse
from kamino.model.protocol import FloatArray, IntArray, Measurer
from kamino.schema.coding.joint_codes import distinct_values

#: Pairs are scored both in bins and in groups if the noise of the distances is then below this part of the rows.
CLEAR_SCORES = 0.03
#: Pairs at such a distance from independence in groups of bins are scored in bins in any case.
STRONG = 0.25
#: Scores of one round get what brings their noise down to the first part of the rows, and the second of the budget at
#: least: a pair that explains a fiftieth of the rows is about the weakest that is worth its cells.
TOLD_APART, LEAST_SHARE = 0.02, 0.01
#: Triples with more cells than this, in groups of bins, are not scored; nor are more than so many triples.
TRIPLE_CELLS, MOST_TRIPLES, TRIPLE_ATTRIBUTES = 256, 1000, 256
#: Quadruples are scored where all of them are at most so many, those of twelve attributes of two values: more would
#: hide in noise what triples say.
MOST_QUADRUPLES = 500
#: Rows drawn from the model to find what it expects of triples: their noise is far below that of the distances.
MODEL_ROWS = 100_000
#: Points of the prior of distances.
PRIOR_POINTS = 200


@dataclass(frozen=True)
class _Asked:
    clique: Clique
    resolution: Resolution


def most_pair_scores(num_attributes: int) -> int:
    """Return how many distances of pairs one release has at most."""
    return len(Resolution) * math.comb(num_attributes, 2)


def most_triple_scores(num_attributes: int, comparisons: int = 0) -> int:
    """Return how many distances of triples and quadruples one release has at most.

    `comparisons`: the pairs that checks compare, which are scored by their difference with each other attribute.
    """
    gaps = comparisons * max(num_attributes - 2, 0)
    return min(MOST_TRIPLES, math.comb(num_attributes, 3)) + min(MOST_QUADRUPLES, math.comb(num_attributes, 4)) + gaps


def needed_for_scores(frame: Frame, noise_multiplier: float) -> float:
    """Return the share of the budget that brings the noise of one round's distances down to `TOLD_APART`.

    Depends on what was released before. More would tell pairs apart that are hardly worth measuring.
    """
    pairs = [p for p in combinations([i for i, size in enumerate(frame.sizes) if size > 1], 2) if frame.is_open(p)]
    asked = len(_both_resolutions(frame, pairs))
    needed = (frame.score_noise(noise_multiplier, asked) / (TOLD_APART * frame.num_rows)) ** 2
    return max(needed, LEAST_SHARE) if asked else 0.0


def score_pairs(
    frame: Frame,
    measurer: Measurer,
    purse: Purse,
    answers: Mapping[Clique, FloatArray],
    share: float,
    forced: Sequence[Clique] = (),
) -> list[Scored]:
    """Release the distances of all pairs to the model's `answers` at once; `forced` pairs always in bins."""
    multiplier = purse.take("scores", share)
    both = _both_resolutions(frame, sorted(answers))
    if frame.score_noise(multiplier, len(both)) <= CLEAR_SCORES * frame.num_rows:
        asked = both
    else:
        strong = settle_cliques(measurer, "strong pairs", _strong_pairs(frame, answers), answers)
        inside = {*forced, *strong}
        asked = [a for a in both if _is_coarsest(frame, a) or (a.clique in inside and a.resolution is Resolution.BINS)]
    return _score(frame, measurer, asked, [_grouped(frame, a, answers[a.clique].ravel()) for a in asked], multiplier)


def _both_resolutions(frame: Frame, pairs: Sequence[Clique]) -> list[_Asked]:
    asked = [_Asked(pair, Resolution.BINS) for pair in pairs]
    asked += [_Asked(pair, Resolution.GROUPS) for pair in pairs if any(a in frame.groups for a in pair)]
    return asked + [_Asked(pair, Resolution.NULLS) for pair in pairs if all(a in frame.nulls for a in pair)]


def _strong_pairs(frame: Frame, answers: Mapping[Clique, FloatArray]) -> list[Clique]:
    """Return the pairs whose dependence in groups of bins makes it likely that it goes on inside them, so far.

    At most as many as attributes: they add little to the noise of the distances.
    """
    found: dict[Clique, float] = {}
    for pair, answer in answers.items():
        table = _grouped(frame, _Asked(pair, Resolution.GROUPS), answer.ravel())
        table = table.reshape(frame.grouped(pair, Resolution.GROUPS)[1]) / max(float(answer.sum()), 1e-300)
        apart = np.abs(table - np.outer(table.sum(axis=1), table.sum(axis=0))).sum() / 2
        if apart >= STRONG:
            found[pair] = float(apart)
    return sorted(found, key=lambda pair: -found[pair])[: len(frame.sizes)]


def _is_coarsest(frame: Frame, asked: _Asked) -> bool:
    return asked.resolution is not Resolution.BINS or not any(a in frame.groups for a in asked.clique)


def score_triples(
    frame: Frame, measurer: Measurer, purse: Purse, fit: Fit, pairs: Sequence[Scored], share: float
) -> list[Scored]:
    """Release the distances of small triples and quadruples to the model; their errors are what smaller ones leave.

    Guarantees:
        The parity of three and of four columns is found.  [test_parity_is_found]
        What depends on a difference is found.  [test_what_follows_a_difference_is_found]
    """
    inner = [i for i, size in enumerate(frame.sizes) if size > 1]
    sizes = {a: frame.grouped((a,), Resolution.GROUPS)[1][0] for a in inner}
    asked = [_Asked(each, Resolution.GROUPS) for each in (*small_triples(sizes), *binary_quadruples(sizes))]
    asked += [_Asked(each, Resolution.GAPS) for each in _triples_by_gap(frame, sizes)]
    asked = [each for each in asked if frame.is_open(each.clique)]
    if not asked:
        return []
    rows = draw_model_rows(frame, fit)
    in_groups = {a: _in_groups(frame, a, rows[a]) for a in inner}
    # One at a time: in bins, before they are grouped, a thousand tables would fill the memory.
    expected = (
        _grouped(frame, each, _expected([(rows[a], frame.sizes[a]) for a in each.clique], frame.num_rows))
        if each.resolution is Resolution.GAPS
        else _expected([in_groups[a] for a in each.clique], frame.num_rows)
        for each in asked
    )
    scored = _score(frame, measurer, asked, expected, purse.take("scores of triples", share))
    known: dict[Clique, float] = {}
    for pair in pairs:
        known[pair.attributes] = max(known.get(pair.attributes, 0.0), pair.error)
    # A difference has few groups: with it, a triple costs no more than a pair, and competes like one.
    found = [each for each in scored if each.resolution is Resolution.GAPS]
    usual = (each for each in scored if each.resolution is not Resolution.GAPS)
    for each in sorted(usual, key=lambda s: len(s.attributes)):
        parts = (p for size in range(2, len(each.attributes)) for p in combinations(each.attributes, size))
        own = each.error - sum(known.get(part, 0.0) for part in parts)
        known[each.attributes] = max(own, 0.0)
        found.append(replace(each, error=own, noise_factor=1.0))
    return found


def _triples_by_gap(frame: Frame, sizes: Mapping[int, int]) -> list[Clique]:
    """Return the triples of a pair that is read by its difference, and another attribute, of at most `TRIPLE_CELLS`."""
    fits = ((*pair, a) for pair, gap in frame.gaps.items() for a in sizes if gap.size * sizes[a] <= TRIPLE_CELLS)
    return sorted({(low, middle, high) for low, middle, high in (sorted(each) for each in fits) if low < middle < high})


def small_triples(sizes: Mapping[int, int]) -> list[Clique]:
    """Return the triples of at most `TRIPLE_CELLS` cells, those of fewest first, at most `MOST_TRIPLES`.

    Of more than `TRIPLE_ATTRIBUTES` attributes only those of fewest values are looked at: there are a cubic number.

    Guarantees:
        Up to that many attributes, equals sorting all.  [test_small_triples_are_the_smallest]
    """
    kept = np.sort(np.array(sorted(sizes, key=lambda a: (sizes[a], a))[:TRIPLE_ATTRIBUTES], dtype=np.int64))
    size = np.array([sizes[int(a)] for a in kept], dtype=np.int64)
    cells = np.zeros(0, dtype=np.int64)
    triples = np.zeros((0, 3), dtype=np.int64)
    for a in range(len(kept) - 2):
        b, c = np.triu_indices(len(kept) - a - 1, 1)
        new = size[a] * size[a + 1 + b] * size[a + 1 + c]
        small = np.flatnonzero(new <= TRIPLE_CELLS)
        lines = np.stack([np.full(len(small), a), a + 1 + b[small], a + 1 + c[small]], axis=1)
        cells, triples = np.concatenate([cells, new[small]]), np.concatenate([triples, lines])
        # Stable: among triples of as many cells the first ones stay.
        best = np.argsort(cells, kind="stable")[:MOST_TRIPLES]
        cells, triples = cells[best], triples[best]
    return [(int(a), int(b), int(c)) for a, b, c in kept[triples]]


def binary_quadruples(sizes: Mapping[int, int]) -> list[Clique]:
    """Return all quadruples of attributes of two values; none if there are more than `MOST_QUADRUPLES`.

    >>> binary_quadruples({0: 2, 1: 2, 2: 3, 3: 2, 4: 2})
    [(0, 1, 3, 4)]
    """
    binary = sorted(a for a, size in sizes.items() if size == 2)
    return list(combinations(binary, 4)) if math.comb(len(binary), 4) <= MOST_QUADRUPLES else []


def _score(
    frame: Frame, measurer: Measurer, asked: Sequence[_Asked], answers: Iterable[FloatArray], multiplier: float
) -> list[Scored]:
    """Release the distances of marginals at once, and shrink them to what such noise lets one believe.

    `answers` are the model's counts of what would be measured.
    """
    grouped = list(answers)
    noisy = measurer.scores(
        [frame.candidate(a.clique, a.resolution) for a in asked], grouped, noise_multiplier=multiplier
    )
    errors = shrink_scores(np.asarray(noisy, dtype=float), frame.score_noise(multiplier, len(asked)))
    return [
        Scored(
            attributes=each.clique,
            error=float(error),
            answer=answer,
            resolution=each.resolution,
            noise_factor=frame.noise_factor(each.clique, each.resolution),
        )
        for each, error, answer in zip(asked, errors, grouped, strict=True)
    ]


def shrink_scores(noisy: FloatArray, sigma: float, iterations: int = 100) -> FloatArray:
    """Return the posterior mean of each distance under the prior that best explains all of them together.

    The largest of many noisy distances are large by luck; this takes the luck out.
    """
    if sigma <= 0 or len(noisy) < 8:
        return np.maximum(noisy, 0.0)
    grid = np.linspace(0.0, max(float(noisy.max()), sigma), PRIOR_POINTS)
    like = np.exp(-0.5 * ((noisy[:, None] - grid[None, :]) / sigma) ** 2)
    prior = np.full(len(grid), 1.0 / len(grid))
    for _ in range(iterations):
        prior = prior * (like.T @ (1.0 / np.maximum(like @ prior, 1e-300))) / len(noisy)
    weight = like * prior
    result: FloatArray = (weight @ grid) / np.maximum(weight.sum(axis=1), 1e-300)
    return result


def draw_model_rows(frame: Frame, fit: Fit, num_rows: int = MODEL_ROWS) -> IntArray:
    """Draw rows of the fitted model in bins, one line for each attribute; always the same for the same model."""
    rng = np.random.default_rng(0)
    tree = fit.tree
    rows = np.zeros((len(tree.sizes), num_rows), dtype=np.int64)
    for a in tree.sequence:
        parents = without_groups(tree.parents[a], tree.groups)
        clique = tuple(sorted((*parents, a)))
        joint = np.moveaxis(fit.joint(clique), clique.index(a), -1)
        flat = np.zeros(num_rows, dtype=np.int64)
        for p in parents:
            flat = flat * tree.sizes[p] + rows[p]
        used, context = distinct_values(flat)
        table = joint.reshape(-1, tree.sizes[a])[used]
        total = table.sum(axis=1, keepdims=True)
        table = np.where(total > 0, table / np.where(total > 0, total, 1.0), 1.0 / tree.sizes[a])
        rows[a] = draw_bins(context, table, rng)
    return rows[list(frame.levels.fine)]


def _grouped(frame: Frame, asked: _Asked, answer: FloatArray) -> FloatArray:
    """Return the counts of what would be measured of a marginal in bins."""
    group, shape = frame.grouped(asked.clique, asked.resolution)
    return answer if group is None else sum_groups(group, answer, math.prod(shape))


def _in_groups(frame: Frame, a: int, codes: IntArray) -> tuple[IntArray, int]:
    """Return the bins of an attribute as they are measured in groups, and how many there are."""
    group, (size,) = frame.grouped((a,), Resolution.GROUPS)
    return codes if group is None else group[codes], size


def _expected(columns: Sequence[tuple[IntArray, int]], num_rows: float) -> FloatArray:
    """Return the model's counts of a marginal, from the columns of rows drawn from it and the sizes of these."""
    index, cells = columns[0]
    for codes, size in columns[1:]:
        index, cells = index * size + codes, cells * size
    return np.asarray(np.bincount(index, minlength=cells) * (num_rows / len(index)), dtype=np.float64)

"""Which marginals to measure next: those whose measuring is expected to take the most error away.

A candidate measured with noise sigma would be left with an error of about 0.8 * sigma in each cell that is not
almost empty. A set shares one budget in proportion to cells ** (2/3); it grows, best gain first, while the expected
sum of errors falls and the model stays within its size. Gains that need much model are discounted a little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kamino.model.marginal.columns.resolution import Resolution
from kamino.model.marginal.graph.junction import Clique, build_tree
from kamino.model.protocol import FloatArray
from kamino.privacy.schedule import divide_by_cells

#: The mean of |noise| is this times its standard deviation.
MEAN_ABSOLUTE = float(np.sqrt(2 / np.pi))
#: Error left in an almost empty cell, in standard deviations: negative noise is cut off there.
EMPTY_CELL = 0.3
#: A gain is divided by (cells the model grows by + GROWTH_FREE) ** GROWTH_POWER.
GROWTH_POWER, GROWTH_FREE = 0.25, 300
#: Of the candidates with the largest gains, this many are tried for the size they would give the model.
LOOK = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class Scored:
    """A candidate, its noisy distance to the model in rows, and the model's expected counts.

    `noise_factor`: the noise of its cells, in that of a table of counts for the same cost.
    """

    attributes: Clique
    error: float
    answer: FloatArray
    resolution: Resolution = Resolution.BINS
    noise_factor: float = 1.0

    def gain(self, sigma: float) -> float:
        """Return by how much measuring this with noise `sigma` is expected to lower its error."""
        sigma = sigma * self.noise_factor
        left = np.minimum(MEAN_ABSOLUTE * sigma, self.answer + EMPTY_CELL * sigma).sum()
        return self.error - float(left)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one round may choose: how many marginals, and how many cells the model may then have.

    A `forest` has no two chosen marginals that explain each other: where several attributes go together, every pair of
    them looks worth measuring until one tree of pairs has been.
    """

    marginals: int
    cells: int
    forest: bool = False


def _total_gain(scored: Sequence[Scored], sigma: float) -> float:
    """Return the gain of measuring a set that shares the budget of one release with noise `sigma`."""
    if not scored:
        return 0.0
    shares = divide_by_cells([s.answer.size for s in scored])
    return sum(max(s.gain(sigma / np.sqrt(share)), 0.0) for s, share in zip(scored, shares, strict=True))


def select(
    scored: Sequence[Scored],
    *,
    sizes: Sequence[int],
    cliques: Sequence[Clique],
    sequence: Sequence[int] | None,
    sigma: float,
    limits: Limits,
    forced: Sequence[Scored] = (),
    after: Mapping[int, int] | None = None,
) -> list[Scored]:
    """Choose the marginals to measure with the budget of one release with noise `sigma`, `forced` first.

    Guarantees:
        The model never exceeds `limits.cells` because of a choice.  [test_selection_respects_the_size]
    """
    picked: list[Scored] = []
    kept = list(cliques)
    for s in forced:
        if build_tree(sizes, [*kept, s.attributes], sequence, after).cells <= limits.cells:
            picked.append(s)
            kept.append(s.attributes)
    size = build_tree(sizes, kept, sequence, after).cells
    value = _total_gain(picked, sigma)
    # Without noise nothing but the size limits the model, and the largest error is worth any size.
    power = GROWTH_POWER if sigma > 0 else 0.0
    open_ = [s for s in scored if s.error > 0 and all(s is not p for p in picked)]
    while open_ and len(picked) < limits.marginals:
        taken = sum(p.answer.size ** (2 / 3) for p in picked)
        gains = [s.gain(sigma * np.sqrt(1 + taken / s.answer.size ** (2 / 3))) for s in open_]
        best, best_rank, best_cells = -1, 0.0, 0
        for i in np.argsort([-g for g in gains], kind="stable")[:LOOK]:
            if gains[i] <= 0:
                break
            if limits.forest and _is_connected(open_[i].attributes, [p.attributes for p in picked]):
                continue
            cells = build_tree(sizes, [*kept, open_[i].attributes], sequence, after).cells
            rank = gains[i] / (max(cells - size, 0) + GROWTH_FREE) ** power
            if cells <= limits.cells and rank > best_rank:
                best, best_rank, best_cells = int(i), rank, cells
        if best < 0:
            break
        new = open_.pop(best)
        grown = _total_gain([*picked, new], sigma)
        if grown > value:
            # One resolution of a marginal is enough for a round.
            open_ = [s for s in open_ if s.attributes != new.attributes]
            picked.append(new)
            kept.append(new.attributes)
            size, value = best_cells, grown
    return picked


def _is_connected(clique: Clique, cliques: Sequence[Clique]) -> bool:
    """Whether all attributes of `clique` are in one part of the graph that `cliques` make."""
    part = {clique[0]}
    grown = True
    while grown:
        joined = part.union(*(c for c in cliques if part & set(c)))
        grown, part = joined != part, joined
    return part >= set(clique)

"""Which marginals to measure next: those whose measuring is expected to take the most error away.

A candidate measured with noise sigma would have an error of about 0.8 * sigma in each cell that is not almost empty,
of which shrinking what was measured (see `shrinkage`) and other marginals leave half. A set shares one budget in
proportion to cells ** (2/3); it grows, best gain first, while the expected sum of errors falls and the model stays
within its size. Gains that need much model are discounted a little. An attribute alone may be a candidate, too: one
that was counted before, and whose noise is in all of its pairs (see `singles`).

Every pick makes the noise of all others larger, so a gain never rises again: gains of earlier picks bound those of now,
and only candidates whose bound comes up are looked at (lazy greedy, Minoux 1978). The choice is that of looking at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from kamino.model.marginal.columns.resolution import Resolution
from kamino.model.marginal.graph.factor import Groups
from kamino.model.marginal.graph.junction import Clique, Graph
from kamino.model.protocol import FloatArray
from kamino.privacy.schedule import divide_by_cells, weighed_cells

#: The part of the noise of a measured cell that is left in the model; of an attribute alone all is.
LEFT = 0.5
#: The mean of |noise| is sqrt(2 / pi) times its standard deviation.
MEAN_ABSOLUTE = float(np.sqrt(2 / np.pi))
#: Error left in an almost empty cell, in standard deviations: negative noise is cut off there.
EMPTY_CELL = 0.3
#: A gain is divided by (cells the model grows by + GROWTH_FREE) ** GROWTH_POWER.
GROWTH_POWER, GROWTH_FREE = 0.25, 300
#: Of the candidates with the largest gains that fit, this many are tried for the size they would give the model.
LOOK = 40
#: So many candidates in a round may turn out to make the model too large: each is looked at once. More would let wide
#: tables take their time, for little: 24 columns come out the same with 150 as with 1,000.
MOST_MISSES = 150


@dataclass(frozen=True, kw_only=True, eq=False)
class Scored:
    """A candidate, its noisy distance to the model in rows, and the model's expected counts.

    `noise_factor`: the noise of its cells, in that of a table of counts for the same cost. `variables`: those of the
    model that it is measured over, if not the attributes. `known`: the standard deviation with which its cells are
    known already; `times`: how often what noise leaves of it counts.
    """

    attributes: Clique
    error: float
    answer: FloatArray
    resolution: Resolution = Resolution.BINS
    noise_factor: float = 1.0
    variables: Clique = ()
    known: float = math.inf
    times: float = 1.0

    @property
    def clique(self) -> Clique:
        """What has to share a clique of the model."""
        return self.variables or self.attributes

    def deviation(self, sigma: float) -> float:
        """Return the part of the noise that is left in each cell once it was measured with noise `sigma`."""
        noise = sigma * self.noise_factor
        if noise > 0 and math.isfinite(self.known):
            noise = (noise**-2.0 + self.known**-2.0) ** -0.5
        return noise if len(self.attributes) == 1 else LEFT * noise

    def left(self, sigma: float) -> float:
        """Return the error that noise leaves once this was measured with noise `sigma`; infinite for not at all."""
        noise = self.deviation(sigma)
        return self.times * float(np.minimum(MEAN_ABSOLUTE * noise, self.answer + EMPTY_CELL * noise).sum())

    def gain(self, sigma: float) -> float:
        """Return by how much measuring this with noise `sigma` is expected to lower its error."""
        return self.error - self.left(sigma)


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What one round may choose: how many marginals, and how many cells the model may then have.

    A `forest` has no two chosen marginals that explain each other: where several attributes go together, every pair of
    them looks worth measuring until one tree of pairs has been. An attribute alone has the budget of `single_weight`
    times its cells.
    """

    marginals: int
    cells: int
    forest: bool = False
    single_weight: float = 1.0


@dataclass(kw_only=True)
class _Picked:
    """The marginals chosen so far, with what it takes to say quickly what they are worth together."""

    sigma: float
    single_weight: float = 1.0
    scored: list[Scored] = field(default_factory=list)
    _answers: list[FloatArray] = field(default_factory=list)

    @property
    def taken(self) -> float:
        return sum(self.weight(s) for s in self.scored)

    def cells(self, scored: Scored) -> float:
        """The cells that a marginal's part of the budget goes by."""
        return weighed_cells(scored.answer.size, len(scored.attributes), self.single_weight)

    def weight(self, scored: Scored) -> float:
        """A marginal's part of a shared budget, in any unit."""
        return float(self.cells(scored) ** (2 / 3))

    def gain(self, *more: Scored) -> float:
        """Return the gain of measuring the set, and `more`, with the budget of one release with noise `sigma`."""
        scored = [*self.scored, *more]
        if not scored:
            return 0.0
        sigmas = self.sigma / np.sqrt(divide_by_cells([self.cells(s) for s in scored]))
        sizes = [s.answer.size for s in scored]
        noise = np.repeat([s.deviation(float(sigma)) for s, sigma in zip(scored, sigmas, strict=True)], sizes)
        answers = np.concatenate([*self._answers, *(s.answer.ravel() for s in more)])
        left = np.minimum(MEAN_ABSOLUTE * noise, answers + EMPTY_CELL * noise)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        times = np.array([s.times for s in scored])
        gains = np.array([s.error for s in scored]) - times * np.add.reduceat(left, starts)
        return float(np.maximum(gains, 0.0).sum())

    def add(self, new: Scored) -> None:
        self.scored.append(new)
        self._answers.append(new.answer.ravel())


def select(
    scored: Sequence[Scored],
    *,
    sizes: Sequence[int],
    cliques: Sequence[Clique],
    sequence: Sequence[int] | None,
    sigma: float,
    limits: Limits,
    forced: Sequence[Clique] = (),
    after: Mapping[int, int] | None = None,
    groups: Groups | None = None,
) -> list[Scored]:
    """Choose the marginals to measure with the budget of one release with noise `sigma`, `forced` first, in all bins.

    Guarantees:
        The model never exceeds `limits.cells` because of a choice.  [test_selection_respects_the_size]
        What is chosen is what looking at all candidates chooses.  [test_lazy_selection_is_greedy_selection]
        Up to `MOST_MISSES` candidates that are too large hide none that fit.  [test_large_candidates_hide_none]
    """
    picked = _Picked(sigma=sigma, single_weight=limits.single_weight)
    graph = Graph(sizes, cliques, sequence, after, groups)
    for s in (s for s in scored if s.attributes in forced and s.resolution is Resolution.BINS):
        if graph.cells_with(s.clique) <= limits.cells:
            picked.add(s)
            graph.add(s.clique)
    value = picked.gain()
    queue = _Queue([s for s in scored if s.error > 0 and all(s is not p for p in picked.scored)], sigma)
    while len(picked.scored) < limits.marginals:
        new = _best(queue, picked, graph, limits)
        if new is None:
            break
        queue.drop(new)
        grown = picked.gain(new)
        if grown > value:
            # One resolution of a marginal is enough for a round.
            queue.drop_all(new.attributes)
            picked.add(new)
            graph.add(new.clique)
            value = grown
    return picked.scored


def _best(queue: _Queue, picked: _Picked, graph: Graph, limits: Limits) -> Scored | None:
    """Return the candidate with the largest gain for its size; those that cannot be taken leave the queue."""
    # Without noise nothing but the size limits the model, and the largest error is worth any size.
    power = GROWTH_POWER if picked.sigma > 0 else 0.0
    size = graph.cells_with()
    best: tuple[float, Scored] | None = None
    for gain, s in queue.largest(picked, LOOK):
        # No candidate ranks higher than its gain allows that lets the model not grow at all.
        if best is not None and gain / GROWTH_FREE**power <= best[0]:
            break
        alone = len(s.attributes) == 1
        # What is connected stays so, and what is too large now hardly ever fits later.
        if limits.forest and not alone and _is_connected(s.attributes, [p.attributes for p in picked.scored]):
            queue.drop(s)
            continue
        cells = graph.cells_with(s.clique)
        if cells > limits.cells:
            queue.drop(s)
            queue.misses += 1
            if queue.misses >= MOST_MISSES:
                break
            continue
        rank = gain / (max(cells - size, 0) + GROWTH_FREE) ** power
        if rank > (best[0] if best else 0.0):
            best = rank, s
    return best[1] if best else None


class _Queue:
    """Candidates by a bound of their gain: what it was when they were last looked at."""

    def __init__(self, scored: Sequence[Scored], sigma: float) -> None:
        self._scored = scored
        self._sigma = sigma
        self._over: dict[Clique, list[int]] = {}
        for i, s in enumerate(scored):
            self._over.setdefault(s.attributes, []).append(i)
        # A gain is the error minus what noise leaves of it.
        self._heap = [(-s.error, i) for i, s in enumerate(scored)]
        heapify(self._heap)
        self._gone: set[int] = set()
        #: How many candidates turned out to make the model too large.
        self.misses = 0

    def largest(self, picked: _Picked, most: int) -> Iterator[tuple[float, Scored]]:
        """Yield candidates with a gain, best first, earlier ones first among equals; at most so many that stay."""
        back: list[tuple[float, int]] = []
        try:
            ready: list[tuple[float, int]] = []
            taken = picked.taken
            while len(back) < most and (self._heap or ready):
                if ready and (not self._heap or ready[0] <= self._heap[0]):
                    found = heappop(ready)
                    back.append(found)
                    yield -found[0], self._scored[found[1]]
                    if found[1] in self._gone:
                        back.pop()
                    continue
                _, i = heappop(self._heap)
                if i in self._gone:
                    continue
                s = self._scored[i]
                gain = s.gain(self._sigma * math.sqrt(1 + taken / picked.weight(s)))
                # What has no gain now has none later.
                if gain > 0:
                    heappush(ready, (-gain, i))
        finally:
            for entry in (*back, *ready):
                heappush(self._heap, entry)

    def drop(self, scored: Scored) -> None:
        """Take a candidate out."""
        self._gone.update(i for i in self._over[scored.attributes] if self._scored[i] is scored)

    def drop_all(self, attributes: Clique) -> None:
        """Take all candidates over these attributes out."""
        self._gone.update(self._over[attributes])


def _is_connected(clique: Clique, cliques: Sequence[Clique]) -> bool:
    """Whether all attributes of `clique` are in one part of the graph that `cliques` make."""
    part = {clique[0]}
    grown = True
    while grown:
        joined = part.union(*(c for c in cliques if part & set(c)))
        grown, part = joined != part, joined
    return part >= set(clique)

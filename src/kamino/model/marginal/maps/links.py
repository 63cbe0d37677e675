"""Wide attributes: a table of a wide attribute with the small ones it determines, too sparse for the model itself.

A wide attribute W (a customer, an area code) that determines small attributes Y is drawn last, given Y. The noisy
counts of (w, y) say how likely each w belongs to y; scaling them to the histogram of W and the model's marginal of Y
(iterative proportional fitting) gives a joint table in which each w sits almost wholly with one y, and both margins
are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kamino.model.marginal.columns.denoise import KEPT, spread_of_counts
from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.measurement import LEAST_SIGMA
from kamino.model.marginal.purse import Purse
from kamino.model.protocol import Cells, CodeMap, FloatArray, Measurer, ModelAttribute

#: An attribute with at least this many values may be linked instead of modelled.
WIDE = 64
#: A link pays if a value of W is expected to have CLEAR standard deviations of the link's noise; more than ENOUGH
#: would be wasted on it.
CLEAR, ENOUGH = 1.0, 5.0
#: Values of so few rows are to stand out, too, where that takes no more than a little of the budget.
RARE, LITTLE, LEAST_SHARE = 3.0, 0.01, 1e-3
#: Evidence is raised to this power: an owner is meant to be one value, not a posterior.
SHARPEN = 3.0
#: For its owner, a value is taken to have at least this part of the rows of an average one: rows counted as none may
#: be some.
LEAST_TYPICAL = 0.25
MOST_LINK_CELLS, MOST_OWNER_CELLS = 4_000_000, 5_000
#: Margins are met when they are off by less than this part of the whole; a step goes so far beyond its end, at most
#: by a factor of FARTHEST.
MET, FURTHER, FARTHEST = 1e-9, 0.4, 100.0


@dataclass(frozen=True, kw_only=True)
class Link:
    """A wide attribute, the small attributes it determines, and the share of the budget that measures them."""

    wide: int
    owners: tuple[int, ...]
    share: float


def can_link(wide: ModelAttribute, small: ModelAttribute) -> bool:
    """Whether the domains of a dependency wide -> small allow a link at all.

    A linked attribute leaves the model. One that is ordered stays there, in bins: what goes with a date or an amount
    goes with the dates and amounts beside it, too.

    Guarantees:
        Ordered left sides keep what goes with them.  [test_ordered_left_sides_stay_in_the_model]
    """
    return not wide.ordered and is_wide(wide.size, small.size)


def is_wide(wide: int, small: int) -> bool:
    """Whether a domain of so many values, beside one of so few, is too wide for the model."""
    return wide >= WIDE and small < wide


def plan_links(
    frame_sizes: Sequence[int],
    sizes: Sequence[int],
    functional: Sequence[tuple[int, int]],
    *,
    num_rows: float,
    noise_multiplier: float,
    most_share: float,
    places: Mapping[int, int],
) -> list[Link]:
    """Choose the links that are worth their budget, at most `most_share` of it; reads public facts only.

    `functional` are pairs (X, Y) with X -> Y. Where their `places` are given, X must come after Y.
    """
    owners: dict[int, list[int]] = {}
    # What is drawn after a wide attribute is read from it: the model needs that attribute.
    needed = {x for x, y in functional if x in places and y in places and places[x] < places[y]}
    for wide, small in functional:
        # A column can be drawn given another only after it.
        late = wide not in places or small not in places or places[wide] > places[small]
        fits = sizes[wide] * frame_sizes[small] <= MOST_LINK_CELLS and frame_sizes[small] > 1
        clear = num_rows / sizes[wide] >= CLEAR * noise_multiplier / math.sqrt(most_share)
        if is_wide(sizes[wide], sizes[small]) and late and fits and clear and wide not in needed:
            owners.setdefault(wide, []).append(small)
    # A wide attribute leaves the model, so it cannot own another one.
    kept = {w: tuple(sorted(o for o in found if o not in owners)) for w, found in owners.items()}
    kept = {w: _joinable(found, frame_sizes) for w, found in kept.items() if found}
    wanted = {w: len(o) * _share_of(noise_multiplier, num_rows / sizes[w]) for w, o in kept.items()}
    scale = min(1.0, most_share / sum(wanted.values())) if wanted else 1.0
    return [Link(wide=w, owners=o, share=wanted[w] * scale) for w, o in kept.items()]


def shared_out(links: Sequence[Link], most_share: float) -> list[Link]:
    """Return the links with what is left for them, each in proportion."""
    wanted = sum(link.share for link in links)
    scale = min(1.0, most_share / wanted) if links else 1.0
    return [replace(link, share=link.share * scale) for link in links]


def _share_of(noise_multiplier: float, typical: float) -> float:
    """Return the share with which values of `typical` rows stand out enough, and rare ones where that costs little."""
    enough = ENOUGH * noise_multiplier
    return max((enough / typical) ** 2, min((enough / RARE) ** 2, LITTLE), LEAST_SHARE)


def _joinable(owners: tuple[int, ...], sizes: Sequence[int]) -> tuple[int, ...]:
    """Keep as many owners as one small clique of the model can hold, the largest first."""
    kept: list[int] = []
    cells = 1
    for owner in sorted(owners, key=lambda o: -sizes[o]):
        if cells * sizes[owner] <= MOST_OWNER_CELLS:
            kept.append(owner)
            cells *= sizes[owner]
    return tuple(sorted(kept or owners[:1]))


def drop_implied(link: Link, determined: Mapping[int, int]) -> Link:
    """Leave out owners that are functions of other owners: they follow for free."""
    kept = tuple(o for o in link.owners if determined.get(o) not in link.owners)
    return replace(link, owners=kept or link.owners[:1])


def wide_cells(histogram: Histogram) -> Cells:
    """Return the cells of a linked attribute: every run of its histogram a bin of its own."""
    runs = np.arange(len(histogram.starts), dtype=np.int64)
    code_map = CodeMap(size=histogram.size, bins=len(runs), starts=histogram.starts, labels=runs)
    return Cells(map=code_map, width=histogram.width, share=np.ones(len(runs)))


def measure_link(
    frame: Frame, link: Link, histogram: Histogram, joint: FloatArray, measurer: Measurer, purse: Purse
) -> FloatArray:
    """Measure a link and return P(w | owners): one row for each combination of owners' bins.

    `joint` is the model's marginal of the owners, one axis each. A value is as frequent as its histogram says, however
    few rows it has; for what its line tells of its owner, it is taken to have some.

    Guarantees:
        Rare values stay as rare as they were counted.  [test_rare_values_of_a_link_stay_rare]
    """
    runs = np.arange(len(histogram.starts), dtype=np.int64)
    cells = wide_cells(histogram)
    name = frame.attributes[link.wide].name
    lines = []
    for place, owner in enumerate(link.owners):
        other = frame.attributes[owner].name
        multiplier = purse.take(f"{name} x {other}", link.share / len(link.owners))
        maps = {name: cells.map, other: frame.cells[owner].map}
        noisy = np.asarray(measurer.marginal((name, other), maps, noise_multiplier=multiplier), dtype=float)
        margin = joint.sum(axis=tuple(axis for axis in range(joint.ndim) if axis != place))
        table = noisy.reshape(len(runs), frame.sizes[owner])
        lines.append(Line(table=table, owners=margin, sigma=max(multiplier, LEAST_SIGMA)))
    counts = counts_by_lines(histogram, lines)
    typical = max(float(counts.sum()) / len(runs), 1.0)
    size = np.maximum(counts, LEAST_TYPICAL * typical)
    known = np.maximum(counts, 0.0)
    margin = known / known.sum() if known.sum() > 0 else size / size.sum()
    evidence = np.zeros(len(runs))
    for line in lines:
        # log of the ratio of N(y; count, sigma) to N(y; 0, sigma), the count of w being `size`
        ratio = (line.table - size[:, None] / 2) * size[:, None] / line.sigma**2
        evidence = evidence[..., None, :] + ratio.T
    evidence *= SHARPEN
    table = balance(evidence.reshape(-1, len(runs)), joint.ravel(), margin)
    total = table.sum(axis=1)
    lonely = total <= 0
    table /= np.where(lonely, 1.0, total)[:, None]
    table[lonely] = margin
    return table


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """The noisy counts of each value of a wide attribute (a line each) with its owners, and how frequent owners are."""

    table: FloatArray
    owners: FloatArray
    sigma: float


def counts_by_lines(histogram: Histogram, lines: Sequence[Line]) -> FloatArray:
    """Return the posterior mean of the count of each value, by its histogram and by the cells of its owners.

    All rows of a value stand with one owner, so that the cell there counts the value once more; which owner that is has
    a posterior of its own. With a prior of counts pi (see `shrink`), the weight of count g of value w with line t is
    pi(g) N(h_w; g, sigma_h) * sum over owners y of P(y) N(t_y; g, sigma) / N(t_y; 0, sigma).

    Guarantees:
        Values whose owners stand out are counted as well as both counts together tell.  [test_lines_count_their_values]
        Lines that hold nothing but noise change nothing much.  [test_noise_in_lines_adds_no_rows]
    """
    sigma = max(float(histogram.sigma.max()), LEAST_SIGMA)
    grid, weight = spread_of_counts(histogram.noisy, sigma)
    log = np.log(np.maximum(weight, np.finfo(float).tiny))
    clear, precision = histogram.noisy / sigma**2, sigma**-2.0
    for line in lines:
        owners = np.log(np.maximum(line.owners / line.owners.sum(), np.finfo(float).tiny))
        for place, count in enumerate(grid):
            told = owners[None, :] + (line.table - count / 2) * (count / line.sigma**2)
            most = told.max(axis=1)
            log[:, place] += most + np.log(np.exp(told - most[:, None]).sum(axis=1))
        clear = clear + line.table.max(axis=1) / line.sigma**2
        precision += line.sigma**-2.0
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    found = (weight @ grid) / weight.sum(axis=1)
    return np.asarray(np.where(found > KEPT * sigma, clear / precision, found))


def balance(log_weight: FloatArray, rows: FloatArray, columns: FloatArray, iterations: int = 100) -> FloatArray:
    """Scale exp(log_weight) by columns and rows until it has the given margins (iterative proportional fitting).

    Steps go further than to the margin (Thibault, Chizat, Dossal, Papadakis 2021), as long as that brings the margins
    of the columns nearer; it ends where all are met, or after `iterations`. Overwrites `log_weight`.

    Guarantees:
        The limit is that of plain steps.  [test_balanced_tables_are_those_of_plain_steps]
    """
    weight = log_weight
    weight -= weight.max(axis=0)
    np.exp(np.maximum(weight, -60.0, out=weight), out=weight)
    by_row, by_column, last = np.ones(len(rows)), columns, math.inf
    for left_over in reversed(range(iterations)):
        sums = by_row @ weight
        off = float(np.abs(by_column * sums - columns).sum())
        beyond = FURTHER if off < last else 0.0
        by_column = _step(by_column, columns / np.maximum(sums, math.ulp(0.0)), beyond)
        sums = weight @ by_column
        done = left_over == 0 or max(off, float(np.abs(by_row * sums - rows).sum())) <= MET
        by_row = _step(by_row, rows / np.maximum(sums, 1e-300), 0.0 if done else beyond)
        if done:
            break
        last = off
    weight *= by_column
    weight *= by_row[:, None]
    return weight


def _step(scale: FloatArray, to: FloatArray, beyond: float) -> FloatArray:
    """Return the scales `to` which a step leads, and the part `beyond` of the way on, in logarithms."""
    if beyond == 0:
        return to
    ratio = np.divide(to, scale, out=np.ones(len(to)), where=scale > 0)
    return np.asarray(to * np.clip(ratio, 1 / FARTHEST, FARTHEST) ** beyond)

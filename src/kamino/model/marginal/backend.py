"""Fitting the marginal backend, from the first histogram to the network.

histograms -> bins -> rounds of pairs and inference -> links of wide attributes -> network
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kamino.errors import ModelError
from kamino.model.marginal.assemble import build_network, measure_links
from kamino.model.marginal.binning import BinLimits, bin_counts, choose_bins
from kamino.model.marginal.budget import BudgetShares, Purse, weigh
from kamino.model.marginal.frame import Frame, positions
from kamino.model.marginal.histogram import Histogram, measure_histogram
from kamino.model.marginal.inference import Measurement
from kamino.model.marginal.junction import Clique
from kamino.model.marginal.links import Link, plan_links
from kamino.model.marginal.masks import apply_masks
from kamino.model.marginal.network import MarginalModel
from kamino.model.marginal.rounds import Effort, RoundPlan, fit_rounds
from kamino.model.protocol import Cells, CodeMap, FloatArray, IntArray, Measurer, ModelAttribute

#: Says which combinations of codes (one array for each attribute) are allowed.
Allowed = Callable[[Mapping[str, IntArray]], NDArray[np.bool_]]
#: Histograms wider than this get no more budget than this: single counts drown in noise anyway.
WIDE_CELLS = 64


@dataclass(frozen=True, kw_only=True)
class MarginalSettings:
    """How the backend works; the defaults were measured on tables of 20 to 40 thousand rows.

    A bin should hold `least_deviations` standard deviations of a pair's noise if 30 pairs share the budget, and
    `least_fraction` of the rows.
    """

    shares: BudgetShares = field(default_factory=BudgetShares)
    effort: Effort = field(default_factory=Effort)
    least_deviations: float = 2.0
    least_fraction: float = 0.0005
    parts: int = 16


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What constraints say for free, by names of attributes.

    functional: pairs (X, Y) of a hard functional dependency X -> Y. together: attributes to measure together.
    allowed: combinations that unary constraints allow, for the attributes they speak of.
    """

    functional: tuple[tuple[str, str], ...] = ()
    together: tuple[tuple[str, ...], ...] = ()
    allowed: Mapping[tuple[str, ...], Allowed] = field(default_factory=dict)


def fit_marginal(
    measurer: Measurer,
    attributes: Sequence[ModelAttribute],
    *,
    noise_multiplier: float,
    sequence: Sequence[str] | None = None,
    hints: Hints | None = None,
    settings: MarginalSettings | None = None,
) -> MarginalModel:
    """Fit the model with releases that together cost what one release with `noise_multiplier` costs.

    Without a sequence one that suits the model is chosen. A multiplier of 0 fits the exact counts, without privacy.

    Guarantees:
        The result depends on private rows only through `measurer`.  [test_fit_depends_on_releases_only]
        The releases cost the budget and no more.  [test_fit_spends_exactly_the_budget]
    """
    hints, settings = hints or Hints(), settings or MarginalSettings()
    place = _check(attributes, noise_multiplier, sequence, hints)
    purse = Purse(noise_multiplier=noise_multiplier)
    histograms = _measure_histograms(measurer, attributes, purse, settings.shares.histograms)
    num_rows = estimate_rows(histograms)
    order = tuple(place[name] for name in sequence) if sequence is not None else None
    frame = _make_frame(attributes, histograms, num_rows, order, noise_multiplier, hints, settings)
    functional = [(place[x], place[y]) for x, y in hints.functional]
    links = plan_links(
        frame.sizes,
        [a.size for a in attributes],
        functional,
        num_rows=num_rows,
        noise_multiplier=noise_multiplier,
        most_share=settings.shares.links,
        sequence=order,
    )
    frame = _without_wide(frame, links)
    plan = RoundPlan(
        shares=settings.shares,
        effort=settings.effort,
        reserved=sum(link.share for link in links),
        forced=_forced(hints, place),
        joined=tuple(link.owners for link in links),
        determined=_known(frame, functional),
    )
    fit = fit_rounds(frame, _first_measurements(frame, histograms), measurer, purse, plan)
    tables = measure_links(frame, fit, links, histograms, measurer, purse)
    return build_network(frame, fit, histograms, tables, purse)


def _forced(hints: Hints, place: Mapping[str, int]) -> tuple[Clique, ...]:
    """Return the pairs that hints ask to measure, as sorted positions."""
    groups = (*hints.functional, *hints.together)
    found = {pair for group in groups for pair in combinations(sorted({place[n] for n in group}), 2)}
    return tuple(sorted(found))


def _check(
    attributes: Sequence[ModelAttribute], noise_multiplier: float, sequence: Sequence[str] | None, hints: Hints
) -> dict[str, int]:
    place = positions(attributes)
    if not attributes or len(place) != len(attributes):
        raise ModelError("a model needs at least one attribute, and no name twice.")
    if not 0 <= noise_multiplier < np.inf:
        raise ModelError(f"the noise multiplier is {noise_multiplier}; it must be finite and not negative.")
    if sequence is not None and sorted(sequence) != sorted(place):
        raise ModelError("the sequence must name every attribute once.")
    named = {n for group in (*hints.functional, *hints.together, *hints.allowed) for n in group}
    if not named <= set(place):
        raise ModelError(f"a hint names unknown attributes: {', '.join(sorted(named - set(place)))}.")
    return place


def _measure_histograms(
    measurer: Measurer, attributes: Sequence[ModelAttribute], purse: Purse, share: float
) -> list[Histogram]:
    """Measure all fine histograms."""
    parts = weigh([min(a.size, WIDE_CELLS) for a in attributes])

    def one(attribute: ModelAttribute, part: float) -> Histogram:
        def count(code_map: CodeMap, fraction: float) -> tuple[FloatArray, float]:
            multiplier = purse.take(attribute.name, share * part * fraction)
            binning = {attribute.name: code_map}
            counts = measurer.marginal((attribute.name,), binning, noise_multiplier=multiplier)
            return np.asarray(counts, dtype=float), multiplier

        return measure_histogram(attribute, count)

    return [one(attribute, float(part)) for attribute, part in zip(attributes, parts, strict=True)]


def estimate_rows(histograms: Sequence[Histogram]) -> float:
    """Estimate the number of rows from the totals of all histograms, by inverse variance; at least 1."""
    variance = np.array([max(h.total_sigma**2, 1e-9) for h in histograms])
    totals = np.array([h.total for h in histograms])
    return max(float((totals / variance).sum() / (1 / variance).sum()), 1.0)


def _make_frame(
    attributes: Sequence[ModelAttribute],
    histograms: Sequence[Histogram],
    num_rows: float,
    order: tuple[int, ...] | None,
    noise_multiplier: float,
    hints: Hints,
    settings: MarginalSettings,
) -> Frame:
    """Choose the bins."""
    typical = noise_multiplier * np.sqrt(30.0)
    limits = BinLimits(
        least_rows=max(settings.least_deviations * typical, settings.least_fraction * num_rows),
        parts=settings.parts,
    )
    cells = tuple(choose_bins(a, h, limits) for a, h in zip(attributes, histograms, strict=True))
    cells, allowed = apply_masks(attributes, cells, hints.allowed)
    return Frame(attributes=tuple(attributes), cells=cells, num_rows=num_rows, sequence=order, allowed=allowed)


def _without_wide(frame: Frame, links: Sequence[Link]) -> Frame:
    """Take linked attributes out of the model: one bin each."""
    cells = list(frame.cells)
    for link in links:
        old = cells[link.wide]
        one = CodeMap(size=old.map.size, bins=1, starts=old.map.starts, labels=np.zeros_like(old.map.labels))
        cells[link.wide] = Cells(map=one, width=old.width, share=old.width / old.map.size)
    wide = {link.wide for link in links}
    allowed = {clique: mask for clique, mask in frame.allowed.items() if not wide & set(clique)}
    return replace(frame, cells=tuple(cells), allowed=allowed)


def _first_measurements(frame: Frame, histograms: Sequence[Histogram]) -> list[Measurement]:
    """Read the histograms as measurements of the 1-way marginals in bins."""
    found = []
    for i, (histogram, cells) in enumerate(zip(histograms, frame.cells, strict=True)):
        counts, sigma = bin_counts(histogram, cells)
        found.append(Measurement(attributes=(i,), counts=counts, sigma=sigma))
    return found


def _known(frame: Frame, functional: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Return which attributes are functions of others that the model sees value by value."""
    known: dict[int, int] = {}
    for x, y in functional:
        whole = frame.sizes[x] == frame.attributes[x].size and frame.sizes[y] > 1
        if whole and x not in known and y not in known and y not in known.values():
            known[y] = x
    return known

"""Fitting the marginal backend, from the first histogram to the network.

histograms -> maps of dependencies -> bins -> close relations -> rounds of marginals and inference
-> links of wide attributes -> network
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kamino.model.marginal.assemble import build_network, measure_links
from kamino.model.marginal.columns.binning import BinLimits, bin_counts, choose_bins, spread_anew
from kamino.model.marginal.columns.histogram import Count, Histogram, Rows, first_map, measure_first, measure_histogram
from kamino.model.marginal.columns.resolution import group_bins
from kamino.model.marginal.frame import Frame, positions
from kamino.model.marginal.graph.inference import LEAST_SIGMA, Measurement
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.graph.masks import apply_masks, join_masks
from kamino.model.marginal.known_rows import ROOM
from kamino.model.marginal.maps.links import Link, can_link, plan_links, shared_out
from kamino.model.marginal.maps.part_maps import as_steps, known_masks, measure_part_maps
from kamino.model.marginal.maps.relations import measure_relations
from kamino.model.marginal.maps.step_maps import StepMap, cut_at_steps, measure_step_maps, step_masks
from kamino.model.marginal.marginal_schedule import (
    BINS,
    HISTOGRAMS,
    Hints,
    MarginalPlan,
    MarginalSettings,
    forced_pairs,
    plan_marginal,
    round_name,
)
from kamino.model.marginal.network import MarginalModel
from kamino.model.marginal.pairs.known_masks import keep_masks
from kamino.model.marginal.pairs.parities import plan_parities
from kamino.model.marginal.pairs.rounds import RoundPlan, fit_rounds
from kamino.model.marginal.pairs.scoring import needed_for_scores
from kamino.model.marginal.pairs.settled import settle_bins
from kamino.model.marginal.purse import InDeviations, Purse
from kamino.model.parts import KnownMap
from kamino.model.protocol import Candidate, Cells, CodeMap, FloatArray, IntArray, Measurer, ModelAttribute
from kamino.privacy.schedule import PlannedRelease

#: The part of the rounds' marginals that is theirs whatever links, relations and maps of dependencies would take.
LEAST_ROUNDS = 1 / 15


def fit_marginal(
    measurer: Measurer,
    attributes: Sequence[ModelAttribute],
    *,
    noise_multiplier: float,
    sequence: Sequence[str] | None = None,
    chains: Sequence[Sequence[str]] = (),
    hints: Hints | None = None,
    settings: MarginalSettings | None = None,
) -> MarginalModel:
    """Plan a fit and carry it out; see `plan_marginal` and `fit_planned`."""
    plan = plan_marginal(
        attributes, noise_multiplier=noise_multiplier, sequence=sequence, chains=chains, hints=hints, settings=settings
    )
    return fit_planned(measurer, plan)


def fit_planned(measurer: Measurer, plan: MarginalPlan) -> MarginalModel:
    """Fit the model with the releases of a plan.

    Guarantees:
        The result depends on private rows only through `measurer`.  [test_fit_depends_on_releases_only]
        The releases cost the budget and no more.  [test_fit_spends_exactly_the_budget]
        Every release is one of the plan's.  [test_the_ledger_is_what_was_planned]
        Noise is reckoned as large as it is, whatever the privacy unit.  [test_noise_of_units_is_known]
    """
    attributes, settings = plan.attributes, plan.settings
    place = positions(attributes)
    purse = Purse(noise_multiplier=plan.deviation)
    measurer = InDeviations(measurer=measurer, distance=plan.distance)
    histograms, num_rows = _measure_histograms(measurer, plan, purse)
    order = tuple(place[name] for name in plan.sequence) if plan.sequence is not None else None
    functional = [(place[x], place[y]) for x, y in plan.hints.functional]
    before = purse.spent
    maps = _measure_maps(measurer, plan, histograms, purse)
    taken = purse.spent - before
    frame = _make_frame(plan, histograms, num_rows, order, maps)
    known = plan.known
    if known is not None:
        frame = replace(frame, sides=known.open_sides(place))
    # What a map tells of X needs X in the model: no other right side takes X out of it as a link.
    functional = [pair for pair in functional if pair[0] not in maps.lefts]
    links = plan_links(
        frame.sizes,
        [a.size for a in attributes],
        [(x, y) for x, y in functional if can_link(attributes[x], attributes[y])],
        num_rows=num_rows,
        noise_multiplier=plan.deviation,
        most_share=settings.shares.links,
        places=frame.places,
    )
    frame = _without_wide(frame, links)
    ones = [*_first_measurements(frame, histograms), *_measure_bins(measurer, frame, plan, purse)]
    before = purse.spent
    linked = frozenset(a for link in links for a in (link.wide, *link.owners))
    tied = (
        maps.lefts | {place[name] for name in plan.hints.tied} | (set(place.values()) if known is not None else set())
    )
    relations = settings.relations.beside(sum(link.share for link in links), _room(plan, taken))
    found = measure_relations(frame, histograms, ones, measurer, purse, relations, without=linked, tied=tied)
    taken += purse.spent - before
    links = shared_out(links, _room(plan, taken))
    frame = _with_resolutions(found.frame, ones, settings)
    settle_bins(measurer, frame)
    first = [*(m for m in ones if m.attributes[0] not in frame.relatives), *found.measured]
    told_rows = frozenset(place[name] for name in known.columns) if known is not None else frozenset()
    # What rules read keeps the budget of its pairs: counting it again cost pairs more than it gave columns.
    unusual = linked | tied | told_rows
    countable = {i: h for i, h in enumerate(histograms) if not attributes[i].ordered and i not in unusual}
    frame, left_out = _with_fitting_masks(plan, frame, first, links)
    if known is not None:
        most = int(settings.effort.limit(plan.deviation, 0, 1, num_rows) * ROOM)
        first = [*first, *known.pairs(frame, frame.noise, most)]
    told = {*frame.allowed, *maps.pairs} - maps.open_pairs - set(left_out)
    forced = [pair for pair in forced_pairs(plan.hints, place) if pair not in told]
    rounds = _round_plan(plan, frame, links, taken, forced, countable, functional)
    if known is not None:
        rounds = replace(rounds, mirrored=known.mirrored)
    fit, counted, rows = fit_rounds(frame, first, measurer, purse, rounds)
    again = {i: each for i, each in counted.items() if each is not histograms[i]}
    cells = [spread_anew(each, again[i]) if i in again else each for i, each in enumerate(frame.cells)]
    frame = replace(frame, cells=tuple(cells))
    tables = measure_links(frame, fit, links, histograms, measurer, purse)
    network = build_network(frame, fit, histograms, tables, purse)
    return replace(network, maps=maps.learned, num_rows=rows)


def _room(plan: MarginalPlan, taken: float) -> float:
    """The share of the budget that can still be taken off the rounds, beside what their scores and parities may take.

    Guarantees:
        No share is negative, and all add up to the whole.  [test_every_schema_spends_the_whole_budget]
    """
    settings = plan.settings
    giving = sum(settings.shares.rounds)
    return max(giving * (1 - LEAST_ROUNDS) - sum(settings.shares.scores) - settings.parities - taken, 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Maps:
    """The maps of dependencies that were found as boundaries, and those that are known of every value.

    These are public, or were `learned` as parts of their left side.
    """

    steps: tuple[StepMap, ...]
    known: tuple[KnownMap, ...]
    learned: tuple[KnownMap, ...]
    place: Mapping[str, int]

    @property
    def lefts(self) -> frozenset[int]:
        return frozenset((*(each.left for each in self.steps), *(self.place[each.left] for each in self.known)))

    @property
    def pairs(self) -> frozenset[tuple[int, int]]:
        """The dependencies that are known, which no pair of bins tells more about."""
        return frozenset(_sorted_pair(self.place[each.left], self.place[each.right]) for each in self.known)

    @property
    def open_pairs(self) -> frozenset[tuple[int, int]]:
        """The pairs of step functions that do not say everything: a measurement of them tells more."""
        return frozenset(_sorted_pair(each.left, each.right) for each in self.steps if not each.is_whole)


def _sorted_pair(first: int, second: int) -> tuple[int, int]:
    return (first, second) if first < second else (second, first)


def _measure_maps(measurer: Measurer, plan: MarginalPlan, histograms: Sequence[Histogram], purse: Purse) -> _Maps:
    """Find dependencies that follow a part, and among the others those that are step functions."""
    attributes, settings, place = plan.attributes, plan.settings, positions(plan.attributes)
    following = plan.hints.following if settings.part_maps else ()
    share = settings.part_share(len(following))
    learned = tuple(measure_part_maps(attributes, histograms, following, measurer, purse, share))
    share, found = settings.step_share(len(plan.stepping)), {(each.left, each.right) for each in learned}
    stepping = [(place[x], place[y]) for x, y in plan.stepping if (x, y) not in found]
    steps = measure_step_maps(attributes, histograms, stepping, measurer, purse, share)
    return _Maps(steps=tuple(steps), known=(*plan.hints.known, *learned), learned=learned, place=place)


def _with_fitting_masks(
    plan: MarginalPlan, frame: Frame, first: Sequence[Measurement], links: Sequence[Link]
) -> tuple[Frame, tuple[Clique, ...]]:
    """Leave out masks that would take the room of what the rounds measure."""
    effort, rounds = plan.settings.effort, max(len(plan.settings.shares.scores), 1)
    together = [m.attributes for m in first] + [link.owners for link in links]
    cliques = [frame.levels.bins(each) for each in (*((i,) for i in range(len(frame.sizes))), *together)]
    return keep_masks(frame, first, cliques, effort.limit(plan.deviation, 0, rounds, frame.num_rows))


def _round_plan(
    plan: MarginalPlan,
    frame: Frame,
    links: Sequence[Link],
    taken: float,
    forced: Sequence[tuple[int, ...]],
    histograms: Mapping[int, Histogram],
    functional: Sequence[tuple[int, int]],
) -> RoundPlan:
    """Say what the rounds are to do, once it is known what was `taken` off them and what links will take."""
    settings, reserved = plan.settings, sum(link.share for link in links)
    known = _known(frame, functional)
    most = settings.parities if plan.known is None else 0.0
    parities = plan_parities(frame, plan.deviation, most, without=known)
    return RoundPlan(
        rounds=_rounds(plan, frame, reserved + taken + parities.share),
        effort=settings.effort,
        reserved=reserved,
        forced=tuple(forced),
        joined=tuple(link.owners for link in links),
        determined=known,
        functional=tuple(functional),
        histograms=histograms,
        recounts=settings.recounts,
        gaps=settings.groups if settings.differences else 0,
        parities=parities,
        shared_nulls=settings.shared_nulls,
    )


def _rounds(plan: MarginalPlan, frame: Frame, taken: float) -> tuple[tuple[PlannedRelease, ...], ...]:
    """Return the planned releases of each round, now that it is known what share others take off them."""
    if len(plan.attributes) < 2:
        return ()
    need = needed_for_scores(frame, plan.deviation)
    # Without two attributes of two bins there is nothing to score.
    scores = [min(most, need) if need else 0.0 for most in plan.settings.shares.scores]
    schedule = plan.schedule.taking(taken + sum(scores))
    parts = [schedule.part(round_name(i)) for i in range(len(scores))]
    return tuple((replace(part[0], share=score), *part[1:]) for part, score in zip(parts, scores, strict=True))


def _measure_histograms(measurer: Measurer, plan: MarginalPlan, purse: Purse) -> tuple[list[Histogram], float]:
    """Measure all fine histograms, the first levels of all first; return them and the number of rows."""

    def counter(attribute: ModelAttribute) -> Count:
        planned = [each for each in plan.schedule.part(HISTOGRAMS) if each.attributes == (attribute.name,)]

        def count(code_map: CodeMap, level: int) -> tuple[FloatArray, float]:
            multiplier = purse.take(attribute.name, planned[min(level, 1)].share)
            binning = {attribute.name: code_map}
            counts = measurer.marginal((attribute.name,), binning, noise_multiplier=multiplier)
            return np.asarray(counts, dtype=float), multiplier

        return count

    known = plan.known
    columns = {} if known is None else known.columns
    attributes = plan.attributes
    counters = [counter(a) if known is None or a.name not in columns else known.counter(a) for a in attributes]
    asked = [a for a in attributes if a.name not in columns]
    measurer.expect([Candidate(attributes=(a.name,), binning={a.name: first_map(a)}) for a in asked])
    firsts = [measure_first(a, count) for a, count in zip(attributes, counters, strict=True)]
    rows = [first.rows for first in firsts]
    found = []
    for i, (attribute, count, first) in enumerate(zip(attributes, counters, firsts, strict=True)):
        others = Rows.by_all([*rows[:i], *rows[i + 1 :]]) if len(rows) > 1 else None
        found.append(measure_histogram(attribute, count, first, others))
    return found, Rows.by_all(rows).number


def _measure_bins(measurer: Measurer, frame: Frame, plan: MarginalPlan, purse: Purse) -> list[Measurement]:
    """Count wide attributes once more, in the bins that their histograms suggest."""
    planned = {each.attributes[0]: each.share for each in plan.schedule.part(BINS)}
    places = [i for i, a in enumerate(frame.attributes) if a.name in planned and frame.sizes[i] > 1]
    measurer.expect([frame.candidate((i,)) for i in places])
    return [frame.measure(measurer, purse, (i,), planned[frame.attributes[i].name]) for i in places]


def _with_resolutions(frame: Frame, ones: Sequence[Measurement], settings: MarginalSettings) -> Frame:
    """Choose how bins are joined where marginals are measured at lower resolutions."""
    mass = {m.attributes[0]: m.counts for m in ones}
    groups: dict[int, IntArray] = {}
    nulls: dict[int, IntArray] = {}
    for i, attribute in enumerate(frame.attributes):
        null, size = frame.null_bin(i), frame.sizes[i]
        if attribute.ordered and settings.groups:
            held = np.ones(size) if i in frame.relatives else mass[i]
            group = group_bins(held, null, settings.groups)
            if group is not None:
                groups[i] = group
        if null is not None and size > 2:
            nulls[i] = (np.arange(size) == null).astype(np.int64)
    return replace(frame, groups=groups, nulls=nulls if settings.groups else {}, interactions=settings.interactions)


def _make_frame(
    plan: MarginalPlan,
    histograms: Sequence[Histogram],
    num_rows: float,
    order: tuple[int, ...] | None,
    maps: _Maps,
) -> Frame:
    """Choose the bins."""
    settings, attributes = plan.settings, plan.attributes
    typical = plan.deviation * np.sqrt(30.0)
    limits = BinLimits(
        least_rows=max(settings.least_deviations * typical, settings.least_fraction * num_rows),
        parts=settings.parts,
        masses=settings.masses,
    )
    cells = tuple(choose_bins(a, h, limits) for a, h in zip(attributes, histograms, strict=True))
    steps = (*maps.steps, *as_steps(maps.known, maps.place, histograms))
    cells = cut_at_steps(attributes, cells, histograms, steps, limits)
    cells, allowed = apply_masks(attributes, cells, plan.hints.allowed)
    place = positions(attributes)
    allowed = join_masks(allowed, step_masks(cells, maps.steps))
    allowed = join_masks(allowed, known_masks(attributes, cells, maps.known, place))
    chains = tuple(tuple(place[name] for name in chain) for chain in plan.chains)
    return Frame(
        attributes=attributes,
        cells=cells,
        num_rows=num_rows,
        sequence=order,
        chains=chains,
        allowed=allowed,
        noise=max(typical, LEAST_SIGMA),
        replaced=plan.replaced,
    )


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

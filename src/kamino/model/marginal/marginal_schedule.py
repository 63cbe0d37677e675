"""What a marginal fit will release, planned from public facts: the schedule that `fit_planned` follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from kamino.errors import ModelError
from kamino.model.marginal.columns.binning import BinLimits, most_bins
from kamino.model.marginal.columns.histogram import (
    first_cells,
    level_shares,
    measured_phase,
    most_finer_cells,
    most_runs,
    phase_counts,
)
from kamino.model.marginal.columns.periods import PHASE_SHARE
from kamino.model.marginal.frame import positions
from kamino.model.marginal.graph.junction import Clique
from kamino.model.marginal.known_rows import KnownRows
from kamino.model.marginal.maps.links import MOST_LINK_CELLS, can_link
from kamino.model.marginal.maps.part_maps import Following
from kamino.model.marginal.maps.partners import INDEPENDENCE
from kamino.model.marginal.maps.relations import RelationLimits, can_relate
from kamino.model.marginal.maps.step_maps import MOST_STEPS, can_step
from kamino.model.marginal.pairs.parities import has_parity, most_parities
from kamino.model.marginal.pairs.rounds import Effort, most_marginals, single_weight
from kamino.model.marginal.pairs.scoring import TRIPLE_CELLS, most_pair_scores, most_triple_scores
from kamino.model.marginal.purse import BudgetShares, multiplier_of_share
from kamino.model.parts import KnownMap
from kamino.model.protocol import IntArray, ModelAttribute
from kamino.privacy.schedule import PlannedRelease, Rule, Schedule, divide_by_cells

#: Says which combinations of codes (one array for each attribute) are allowed.
Allowed = Callable[[Mapping[str, IntArray]], NDArray[np.bool_]]
#: Histograms of ordered attributes, and of others, that are wider than this get no more budget than this: neighbours in
#: an order are read together, and of very many categories most single counts drown in noise anyway.
WIDE_CELLS, MOST_CATEGORIES = 64, 256
# The parts of the schedule.
HISTOGRAMS, PART_MAPS, STEP_MAPS, BINS = "histograms", "part maps", "step maps", "bins"
RELATIONS, PARITIES, LINKS, REST = "relations", "parities", "links", "rest"
#: Triples are scored in this round (the first is 0), when the strongest pairs are known.
TRIPLES_ROUND = 2
# The releases of an attribute's histogram beside the first.
FINER, BY_PHASE = "finer histogram of heavy cells", "counts by weekday, time of day or last digits"


@dataclass(frozen=True, kw_only=True)
class MarginalSettings:
    """How the backend works; the defaults were measured on tables of 20 to 40 thousand rows.

    A bin should hold `least_deviations` standard deviations of a pair's noise if 30 pairs share the budget, and
    `least_fraction` of the rows; an ordered domain is cut into `parts` of equal width and `masses` of equal mass.
    `bins_part` of the budget of a wide attribute's histogram counts its bins. Pairs are measured in bins or in
    `groups` of them (0: in bins only), by their interactions where these have `interactions` of the noise or less (0:
    never), and so are `triples` whose pairs do not explain them. `relations` are read as `RelationLimits` says.
    With `recounts`, categories whose noise is in many pairs are counted again; with `differences`, numbers that checks
    compare are read by their difference; with `shared_nulls`, attributes that seem to be null in the same rows are held
    to that. `parities` of the budget, at most, measures what three attributes of two values say together (0: none).
    `step_maps` of the budget, at most, finds dependencies of ordered attributes as step functions (0: none), and
    `part_maps` those that follow a part, such as the month of a date (0: none).
    """

    shares: BudgetShares = field(default_factory=BudgetShares)
    effort: Effort = field(default_factory=Effort)
    least_deviations: float = 2.0
    least_fraction: float = 0.0005
    parts: int = 16
    masses: int = 12
    bins_part: float = 0.5
    groups: int = 6
    interactions: float = 0.8
    triples: bool = True
    recounts: bool = True
    differences: bool = True
    shared_nulls: bool = True
    parities: float = 0.02
    relations: RelationLimits = field(default_factory=RelationLimits)
    step_maps: float = 0.06
    part_maps: float = 0.02

    def step_share(self, dependencies: int) -> float:
        """The share of the budget that finds the step function of one of so many dependencies."""
        return self.step_maps / max(dependencies, 2)

    def part_share(self, candidates: int) -> float:
        """The share of the budget that tells whether one of so many dependencies follows a part."""
        return self.part_maps / max(candidates, 4)


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What constraints say for free, by names of attributes.

    functional: pairs (X, Y) of a hard functional dependency X -> Y. together: attributes to measure together.
    allowed: combinations that unary constraints allow, for the attributes they speak of. tied: attributes whose rows
    constraints compare, which are drawn jointly and so are not read relative to another. following: dependencies whose
    right side may be a part of the left one. known: public maps of dependencies, of which nothing is to be measured.
    """

    functional: tuple[tuple[str, str], ...] = ()
    together: tuple[tuple[str, ...], ...] = ()
    tied: frozenset[str] = frozenset()
    allowed: Mapping[tuple[str, ...], Allowed] = field(default_factory=dict)
    following: tuple[Following, ...] = ()
    known: tuple[KnownMap, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalPlan:
    """What a fit does: attributes, order, noise and the schedule of its releases. Every field may be published.

    `noise_multiplier` is that of the one release that would cost as much as all of them, `distance` how far one privacy
    unit moves a histogram, `replaced` whether a unit is replaced by another. Without a sequence the model chooses one
    from what it has measured; attributes of a chain come in its order then.
    """

    attributes: tuple[ModelAttribute, ...]
    noise_multiplier: float
    sequence: tuple[str, ...] | None
    chains: tuple[tuple[str, ...], ...]
    hints: Hints
    settings: MarginalSettings
    schedule: Schedule
    distance: float = 1.0
    replaced: bool = False
    known: KnownRows | None = None

    @property
    def deviation(self) -> float:
        """The standard deviation of the counts of a release that costs as much as all of them."""
        return self.noise_multiplier * self.distance

    @property
    def stepping(self) -> tuple[tuple[str, str], ...]:
        """The dependencies that are looked at as step functions."""
        return stepping_pairs(self.attributes, self.hints, self.settings)


def plan_marginal(
    attributes: Sequence[ModelAttribute],
    *,
    noise_multiplier: float,
    sequence: Sequence[str] | None = None,
    chains: Sequence[Sequence[str]] = (),
    hints: Hints | None = None,
    settings: MarginalSettings | None = None,
    distance: float = 1.0,
    replaced: bool = False,
    known: KnownRows | None = None,
) -> MarginalPlan:
    """Plan a fit whose releases together cost what one release with `noise_multiplier` costs.

    Without a sequence one that suits the model is chosen, with each chain of attributes in its order. A multiplier of 0
    fits the exact counts, without privacy.

    Raises:
        ModelError: names that are unknown, missing or there twice, or a multiplier that is none.
    """
    hints, settings = hints or Hints(), settings or MarginalSettings()
    _check(attributes, noise_multiplier, sequence, hints)
    _check_chains(attributes, chains)
    draft = _Draft(
        attributes=tuple(attributes),
        noise_multiplier=noise_multiplier,
        hints=hints,
        settings=settings,
        known=frozenset(known.columns) if known is not None else frozenset(),
    )
    return MarginalPlan(
        attributes=draft.attributes,
        noise_multiplier=noise_multiplier,
        sequence=tuple(sequence) if sequence is not None else None,
        chains=() if sequence is not None else tuple(tuple(chain) for chain in chains),
        hints=hints,
        settings=settings,
        schedule=draft.schedule(),
        distance=distance,
        replaced=replaced,
        known=known,
    )


def stepping_pairs(
    attributes: Sequence[ModelAttribute], hints: Hints, settings: MarginalSettings
) -> tuple[tuple[str, str], ...]:
    """Return the dependencies X -> Y that may be step functions of X."""
    named = {a.name: a for a in attributes}
    known = {(each.left, each.right) for each in hints.known}
    asked = [pair for pair in hints.functional if settings.step_maps and pair not in known]
    return tuple((x, y) for x, y in asked if can_step(named[x], named[y]))


def forced_pairs(hints: Hints, place: Mapping[str, int]) -> tuple[Clique, ...]:
    """Return the pairs that hints ask to measure, as sorted positions."""
    groups = (*hints.functional, *hints.together)
    found = {pair for group in groups for pair in combinations(sorted({place[n] for n in group}), 2)}
    return tuple(sorted(found))


def round_name(index: int) -> str:
    """The part of the schedule that round `index` follows; the first is 0."""
    return f"round {index + 1}"


@dataclass(frozen=True, kw_only=True)
class _Draft:
    """The public facts that the parts of a schedule follow from."""

    attributes: tuple[ModelAttribute, ...]
    noise_multiplier: float
    hints: Hints
    settings: MarginalSettings
    known: frozenset[str] = frozenset()

    @property
    def measured(self) -> tuple[ModelAttribute, ...]:
        """The attributes whose histograms nobody knows."""
        return tuple(attribute for attribute in self.attributes if attribute.name not in self.known)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(attribute.name for attribute in self.attributes)

    @property
    def bins(self) -> dict[str, int]:
        """The most bins of each attribute."""
        limits = BinLimits(least_rows=0.0, parts=self.settings.parts, masses=self.settings.masses)
        found = {attribute.name: most_bins(attribute, limits) for attribute in self.attributes}
        steps = list(stepping_pairs(self.attributes, self.hints, self.settings))
        steps += [(each.left, each.right) for each in self.hints.known]
        steps += [(each.left, each.right) for each in self.hints.following]
        sizes = {attribute.name: attribute.size for attribute in self.attributes}
        # A map of few steps cuts its left side at them, and tells every value of its right side apart.
        for x, y in dict.fromkeys(steps):
            found[x] += MOST_STEPS
            found[y] = max(found[y], sizes[y])
        return {name: min(sizes[name], most) for name, most in found.items()}

    @property
    def comparisons(self) -> int:
        """The most pairs of attributes of which a check may say that one is never below the other."""
        return sum(1 for names in self.hints.allowed if len(set(names)) == 2)

    @property
    def linked(self) -> tuple[tuple[str, str], ...]:
        """The dependencies from a wide attribute to a small one."""
        named = {a.name: a for a in self.attributes}
        return tuple((x, y) for x, y in self.hints.functional if can_link(named[x], named[y]))

    def schedule(self) -> Schedule:
        """All parts, in the order in which a fit comes to them."""
        early = (self.histograms(), self.part_maps(), self.step_maps(), self.bin_counts(), self.relations())
        parts = (*early, self.rounds(), self.parities(), self.rest(), self.links())
        return Schedule(releases=tuple(release for part in parts for release in part))

    def noise(self, share: float) -> float:
        return multiplier_of_share(self.noise_multiplier, share)

    def histograms(self) -> Iterator[PlannedRelease]:
        """The 1-way histograms: one release for each attribute, then finer ones where the domain is wide."""
        parts = divide_by_cells([_weighed_cells(a) for a in self.measured])
        whole = [self.settings.shares.histograms * float(part) for part in parts]
        shares = [share * (1 - self._bins_part(a)) for a, share in zip(self.measured, whole, strict=True)]
        for attribute, share in zip(self.measured, shares, strict=True):
            first = share * level_shares(attribute)[0]
            yield self._histogram(attribute, first, most_cells=len(first_cells(attribute)))
        for attribute, share in zip(self.measured, shares, strict=True):
            levels = level_shares(attribute)
            if len(levels) > 1:
                finer, count = most_finer_cells(attribute), len(levels) - 1
                yield self._histogram(attribute, share * levels[1], most_cells=finer, most=count, what=FINER)
            phase = measured_phase(attribute)
            if phase is not None:
                most, cells = phase_counts(phase)
                yield self._histogram(attribute, share * PHASE_SHARE / most, most_cells=cells, most=most, what=BY_PHASE)

    def bin_counts(self) -> Iterator[PlannedRelease]:
        """Wide attributes once more, in their bins."""
        parts = divide_by_cells([_weighed_cells(a) for a in self.measured])
        for attribute, part in zip(self.measured, parts, strict=True):
            share = self.settings.shares.histograms * float(part) * self._bins_part(attribute)
            if share:
                bins = self._histogram(attribute, share, most_cells=self.bins[attribute.name])
                yield replace(bins, part=BINS, what="histogram in bins of its quantiles")

    def _bins_part(self, attribute: ModelAttribute) -> float:
        """The part of an attribute's budget that counts its bins: none where single codes are as few."""
        most = self.settings.parts + self.settings.masses
        return self.settings.bins_part if attribute.ordered and attribute.size > most else 0.0

    def part_maps(self) -> Iterator[PlannedRelease]:
        """Dependencies whose right side may follow a part of the left one."""
        asked = self.hints.following if self.settings.part_maps else ()
        named = {a.name: a for a in self.attributes}
        tables = [(each.left, each.right, each.part.map.bins * named[each.right].size) for each in asked]
        what = "dependencies by parts of dates and numbers, such as months and last digits, taken off the rounds"
        yield from self._maps(PART_MAPS, what, tables, self.settings.part_share(len(asked)))

    def step_maps(self) -> Iterator[PlannedRelease]:
        """Dependencies of ordered attributes with the groups they determine."""
        pairs = stepping_pairs(self.attributes, self.hints, self.settings)
        named = {a.name: a for a in self.attributes}
        tables = [(x, y, most_runs(named[x]) * named[y].size) for x, y in pairs]
        what = "2-way marginals of dependencies that may be step functions, taken off the rounds"
        yield from self._maps(STEP_MAPS, what, tables, self.settings.step_share(len(pairs)))

    def _maps(
        self, part: str, what: str, tables: Sequence[tuple[str, str, int]], share: float
    ) -> Iterator[PlannedRelease]:
        """Tables of two attributes and their cells, each with `share` of the budget at most; nothing for none."""
        if not tables:
            return
        yield PlannedRelease(
            part=part,
            kind="counts",
            what=what,
            attributes=tuple(dict.fromkeys(name for *pair, _ in tables for name in pair)),
            choose=2,
            rule=Rule.AT_MOST,
            noise_multiplier=self.noise(share),
            most_cells=max(cells for *_, cells in tables),
            most=len(tables),
            share=share * len(tables),
            whole=self.noise_multiplier,
        )

    def relations(self) -> Iterator[PlannedRelease]:
        """Close relations of ordered attributes, if their distances from independence show any."""
        limits = self.settings.relations
        names = tuple(a.name for a in self.attributes if can_relate(a))
        # What is tied is a base only: there has to be something to read by it.
        if self.known or len(names) < 2 or self.hints.tied.issuperset(names) or limits.most_share == 0:
            return
        what = "distances of pairs of ordered attributes from independence"
        yield self._distances(names, what, math.comb(len(names), 2), limits.scores)
        if limits.partners:
            what = "distances of such attributes and others from independence, if a relation is strong but not close"
            others = max(1, *(used * (len(self.names) - used) for used in range(1, len(names) + 1)))
            yield self._distances(self.names, what, others, limits.partners)
        yield PlannedRelease(
            part=RELATIONS,
            kind="counts",
            what="2-way marginals of close relations in fine bins, taken off the rounds",
            attributes=names,
            choose=2,
            rule=Rule.AT_MOST,
            noise_multiplier=self.noise(limits.each / 2),
            most_cells=self._fine_cells() ** 2,
            most=2 * (len(names) - 1),
            share=limits.most_share,
            whole=self.noise_multiplier,
        )

    def _distances(self, names: tuple[str, ...], what: str, most_cells: int, share: float) -> PlannedRelease:
        """Distances of pairs of these attributes from independence."""
        return PlannedRelease(
            part=RELATIONS,
            kind="vector",
            what=what,
            says=INDEPENDENCE,
            attributes=names,
            choose=len(names),
            or_fewer=True,
            rule=Rule.AT_MOST,
            noise_multiplier=self.noise(share),
            most_cells=most_cells,
            share=share,
            whole=self.noise_multiplier,
        )

    def _fine_cells(self) -> int:
        """The most fine bins of an attribute in a relation, which are cut where its bins are."""
        fine = self.settings.relations.fine
        return fine // 2 + 3 * fine + max(self.bins.values())

    def _histogram(
        self, attribute: ModelAttribute, share: float, *, most_cells: int, most: int = 1, what: str = "histogram"
    ) -> PlannedRelease:
        return PlannedRelease(
            part=HISTOGRAMS,
            kind="counts",
            what=what,
            attributes=(attribute.name,),
            noise_multiplier=self.noise(share),
            most_cells=most_cells,
            most=most,
            share=share,
            whole=self.noise_multiplier,
        )

    def rounds(self) -> Iterator[PlannedRelease]:
        """The adaptive part: distances of all pairs to the model, and the pairs that are worth measuring."""
        if len(self.attributes) < 2:
            return
        shares, effort = self.settings.shares, self.settings.effort
        widest = math.prod(sorted(self.bins.values())[-2:])
        place = positions(self.attributes)
        triples = shares.triples if self.settings.triples and len(self.attributes) > 2 else 0.0
        least = TRIPLE_CELLS if triples else 1
        # Categories are counted again value by value.
        counted = max((len(first_cells(a)) for a in self.attributes if not a.ordered), default=1)
        for i, (scores, marginals) in enumerate(zip(shares.scores, shares.rounds, strict=True)):
            last = i == len(shares.rounds) - 1
            most = most_marginals(i, len(self.attributes))
            yield PlannedRelease(
                part=round_name(i),
                kind="vector",
                what="distances of all pairs to the model, taken off the rounds",
                says="the model",
                attributes=self.names,
                choose=len(self.names),
                or_fewer=True,
                rule=Rule.AT_MOST,
                noise_multiplier=self.noise(scores),
                most_cells=most_pair_scores(len(self.names)),
                share=scores,
                whole=self.noise_multiplier,
            )
            if i == TRIPLES_ROUND and triples:
                yield PlannedRelease(
                    part=round_name(i),
                    kind="vector",
                    what="distances of triples, and of quadruples of two values each, to the model",
                    attributes=self.names,
                    choose=len(self.names),
                    or_fewer=True,
                    noise_multiplier=self.noise(triples),
                    most_cells=most_triple_scores(len(self.names), self.comparisons),
                    share=triples,
                    whole=self.noise_multiplier,
                    gives_way=True,
                )
            yield PlannedRelease(
                part=round_name(i),
                kind="counts",
                what="marginals, chosen by their distances, and categories whose noise is in many of them",
                attributes=self.names,
                choose=min(4, len(self.names)) if i == TRIPLES_ROUND and triples else 2,
                or_fewer=True,
                rule=Rule.REST if last else Rule.TOGETHER,
                noise_multiplier=self.noise(1.0 if last else marginals),
                most_cells=max(least, counted, min(widest, effort.limit(self.noise_multiplier, i, len(shares.rounds)))),
                single_weight=single_weight(len(self.names)),
                chosen=True,
                most=most if i else max(most, len(forced_pairs(self.hints, place))),
                share=marginals,
                whole=self.noise_multiplier,
                gives_way=True,
            )

    def parities(self) -> Iterator[PlannedRelease]:
        """What three attributes of two values say together."""
        names = tuple(attribute.name for attribute in self.attributes if has_parity(attribute))
        if self.known or len(names) < 3 or self.settings.parities == 0:
            return
        yield PlannedRelease(
            part=PARITIES,
            kind="counts",
            what="parities of three attributes of two values, taken off the rounds",
            attributes=names,
            choose=3,
            rule=Rule.AT_MOST,
            noise_multiplier=self.noise(self.settings.parities),
            most_cells=8,
            most=most_parities(len(names)),
            share=self.settings.parities,
            whole=self.noise_multiplier,
        )

    def rest(self) -> Iterator[PlannedRelease]:
        """What no round found worth a pair goes to the 1-way marginals."""
        yield PlannedRelease(
            part=REST,
            kind="counts",
            what="1-way marginals, if no pair is worth the rest",
            attributes=self.names,
            choose=1,
            rule=Rule.REST,
            noise_multiplier=self.noise(1.0),
            most_cells=max(self.bins.values()),
            most=len(self.names),
            whole=self.noise_multiplier,
        )

    def links(self) -> Iterator[PlannedRelease]:
        """Wide attributes with the small ones they determine, if worth it once their counts are known."""
        sizes, pairs = {a.name: a.size for a in self.attributes}, self.linked
        if not pairs:
            return
        yield PlannedRelease(
            part=LINKS,
            kind="counts",
            what="2-way marginals of wide attributes, taken off the rounds, if worth it",
            attributes=tuple(dict.fromkeys(name for pair in pairs for name in pair)),
            choose=2,
            rule=Rule.AT_MOST,
            noise_multiplier=self.noise(self.settings.shares.links),
            most_cells=min(MOST_LINK_CELLS, max(sizes[x] * self.bins[y] for x, y in pairs)),
            most=len(pairs),
            share=self.settings.shares.links,
            whole=self.noise_multiplier,
        )


def _weighed_cells(attribute: ModelAttribute) -> int:
    """Return the cells that an attribute's part of the budget for histograms goes by."""
    return min(attribute.size, WIDE_CELLS if attribute.ordered else MOST_CATEGORIES)


def _check(
    attributes: Sequence[ModelAttribute], noise_multiplier: float, sequence: Sequence[str] | None, hints: Hints
) -> None:
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


def _check_chains(attributes: Sequence[ModelAttribute], chains: Sequence[Sequence[str]]) -> None:
    names = [name for chain in chains for name in chain]
    if len(set(names)) != len(names) or not set(names) <= set(positions(attributes)):
        raise ModelError("chains must name attributes of the model, each once at most.")

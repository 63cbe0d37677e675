"""The adaptive part of a fit: score pairs and triples against the model, measure the best, infer, and again."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from kamino.model.marginal.columns.histogram import Histogram
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.graph.inference import LEAST_SIGMA, Fit, Key, Measurement, combine, infer
from kamino.model.marginal.graph.junction import Clique, build_tree
from kamino.model.marginal.graph.masks import join_masks
from kamino.model.marginal.graph.pair_marginals import pair_marginals
from kamino.model.marginal.graph.shrinkage import shrink_pair
from kamino.model.marginal.maps.clear_lines import find_clear_lines
from kamino.model.marginal.maps.gaps import Gap, find_gap
from kamino.model.marginal.pairs.parities import Parities, measure_parities, within_size
from kamino.model.marginal.pairs.prior import independent_prior
from kamino.model.marginal.pairs.scoring import score_pairs, score_triples
from kamino.model.marginal.pairs.selection import Limits, Scored, select
from kamino.model.marginal.pairs.settled import settle_chosen, settle_gaps
from kamino.model.marginal.pairs.shared_nulls import find_shared_nulls
from kamino.model.marginal.pairs.singles import count_again, single_candidate, single_candidates
from kamino.model.marginal.purse import Purse
from kamino.model.protocol import Candidate, FloatArray, Measurer
from kamino.privacy.schedule import PlannedRelease, Rule, divide_by_cells, weighed_cells

#: Marginals chosen in a round, at most, for each attribute of the table; the last entry holds for later rounds.
MARGINALS_PER_ATTRIBUTE = (1.0, 1.4, 2.0, 6.0)
#: An attribute counts as determined by another if the best guess is right for this share of rows ...
DETERMINED = 0.93
#: ... and guessing without the other is right for less than this.
GUESSED = 0.90


def single_weight(num_attributes: int) -> float:
    """Return how often the cells of an attribute count that is counted again beside pairs: it is in all of its pairs.

    Half of them, for the noise of a pair has other parts, too.
    """
    return max((num_attributes - 1) / 2, 1.0)


def most_marginals(index: int, num_attributes: int) -> int:
    """Return how many marginals round `index` chooses at most, besides those that it is told to measure."""
    per_attribute = MARGINALS_PER_ATTRIBUTE[min(index, len(MARGINALS_PER_ATTRIBUTE) - 1)]
    return math.ceil(per_attribute * num_attributes)


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How large the model may grow, how hard inference works, and how strongly it is held to independent attributes.

    Without noise every pair is worth modelling: the limit of the size is `exact_cells` then, but no more than
    `cells_per_row` of each row, since a few rows fill few cells; and there is no polish, which only takes noise out.
    Inference ends when no more than `enough` (at last `final_enough`) can be gained for each measured cell, or after so
    many iterations.

    A model of N rows under noise of standard deviation s is held to its prior by `prior` * N / s pseudo-rows, at least
    one. The clearer rows stand out of the noise, the weaker are the dependences that are worth measuring, and the
    nearer do measured cells come to independence.
    """

    most_cells: int = 600_000
    exact_cells: int = 2_000_000
    cells_per_row: int = 200
    iterations: int = 100
    final_iterations: int = 300
    enough: float = 0.05
    final_enough: float = 0.01
    prior: float = 0.08

    def limit(self, noise: float, index: int, rounds: int, num_rows: float = math.inf) -> int:
        """The most cells of the model after round `index`; without a number of rows, of any table.

        Guarantees:
            A small table is fitted without noise in seconds.  [test_a_small_table_without_noise_is_quick]
        """
        exact = self.exact_cells if math.isinf(num_rows) else min(self.exact_cells, self.cells_per_row * int(num_rows))
        return (self.most_cells if noise > 0 else max(exact, 10_000)) * (index + 1) // rounds


@dataclass(frozen=True, kw_only=True)
class RoundPlan:
    """What the rounds are to do.

    `rounds` are the planned releases of each: distances (of pairs; in one round, of triples too), then marginals.
    `reserved` is the share of the budget kept for later, `forced` are pairs that the first round measures in any case,
    `joined` attributes that must share a clique, `determined` what is known to be a function of what, `functional` the
    pairs (X, Y) of dependencies X -> Y. With `recounts`, the attributes of `histograms` may be counted again, value by
    value. Pairs that checks compare are read by differences, in at most `gaps` groups (0: not at all). After the last
    round `parities` are measured. With `shared_nulls`, attributes that seem to be null in the same rows are held to
    that.
    """

    rounds: tuple[tuple[PlannedRelease, ...], ...]
    effort: Effort
    reserved: float = 0.0
    forced: tuple[Clique, ...] = ()
    joined: tuple[Clique, ...] = ()
    determined: Mapping[int, int] = field(default_factory=dict)
    functional: tuple[tuple[int, int], ...] = ()
    histograms: Mapping[int, Histogram] = field(default_factory=dict)
    recounts: bool = True
    gaps: int = 0
    parities: Parities = field(default_factory=Parities)
    shared_nulls: bool = True
    mirrored: Callable[[Frame, Measurement], Measurement | None] = lambda frame, measured: None


def fit_rounds(
    frame: Frame, first: Sequence[Measurement], measurer: Measurer, purse: Purse, plan: RoundPlan
) -> tuple[Fit, dict[int, Histogram], float]:
    """Measure in rounds until the budget, but for what is reserved, is used.

    Returns the fitted model, the histograms of the plan with what was counted again, and the number of rows by all that
    was measured.
    """
    levels, noisy = frame.levels, purse.noise_multiplier > 0
    histograms = dict(plan.histograms)
    measured = [replace(m, attributes=levels.bins(m.attributes)) for m in first]
    pairs_seen = {m.attributes for m in first if len(m.attributes) > 1} | set(frame.allowed)
    cliques = [levels.bins(each) for each in (*((i,) for i in range(len(frame.sizes))), *pairs_seen, *plan.joined)]
    prior = independent_prior(frame, first)
    fit = _infer(frame, cliques, measured, None, plan.effort, prior=prior)
    before: dict[Key, FloatArray] = {}
    must = frozenset(plan.forced)
    pairs = [p for p in combinations([i for i, size in enumerate(frame.sizes) if size > 1], 2) if frame.is_open(p)]
    for i, (*scores, marginals) in enumerate(plan.rounds) if pairs else ():
        answers = pair_answers(frame, fit)
        asked: dict[Clique, FloatArray] = {pair: answers[pair] for pair in pairs}
        scored = score_pairs(frame, measurer, purse, asked, scores[0].share, forced=plan.forced)
        if len(scores) > 1:
            frame = replace(frame, gaps=settle_gaps(measurer, _find_gaps(frame, answers, plan.gaps)))
            scored += score_triples(frame, measurer, purse, fit, scored, scores[1].share)
        known = {**find_determined(answers, sorted(pairs_seen), frame.num_rows), **plan.determined}
        useful = [s for s in scored if s.attributes in must or not is_implied(s.attributes, known, pairs_seen)]
        singles = single_candidates(frame, scored, histograms) if noisy and plan.recounts else []
        last = marginals.rule is Rule.REST
        share = purse.left - plan.reserved - plan.parities.share if last else marginals.share
        chosen = _choose(frame, [*useful, *singles], cliques, purse.noise_multiplier / math.sqrt(share), i, plan)
        chosen = settle_chosen(measurer, f"round {i + 1}", chosen, [*scored, *singles])
        weight = single_weight(len(frame.sizes))
        parts = divide_by_cells([weighed_cells(s.answer.size, len(s.attributes), weight) for s in chosen])
        measurer.expect([_candidate(frame, s, histograms) for s in chosen])
        for s, part in zip(chosen, parts, strict=True):
            if len(s.attributes) == 1:
                a = s.attributes[0]
                again, histograms[a] = count_again(frame, measurer, purse, a, share * float(part), histograms[a])
                measured.append(again)
                continue
            measured.append(frame.measure(measurer, purse, s.attributes, share * float(part), s.resolution))
            variables = measured[-1].attributes
            mirrored = plan.mirrored(frame, measured[-1])
            if mirrored is not None:
                measured.insert(-1, mirrored)
                if mirrored.attributes not in cliques:
                    cliques.append(mirrored.attributes)
            if s.attributes in answers:
                before.setdefault(measured[-1].key, levels.seen(answers[s.attributes], s.attributes, variables))
            pairs_seen.add(s.attributes)
            if variables not in cliques:
                cliques.append(variables)
        fit = _infer(frame, cliques, measured, fit, plan.effort, prior=prior)
    now = pair_answers(frame, fit) if noisy else {}
    parities = _measure_parities(frame, fit, now, measurer, purse, plan, cliques)
    measured += parities
    cliques += [each.attributes for each in parities if each.attributes not in cliques]
    if _spend_rest(frame, measurer, purse, plan, measured):
        fit = _infer(frame, cliques, measured, fit, plan.effort, prior=prior, polish=not noisy)
        now = pair_answers(frame, fit) if noisy else {}
    if noisy:
        shared = find_shared_nulls(frame, measured, now) if plan.shared_nulls else {}
        shared = join_masks(shared, find_clear_lines(frame, plan.functional, measured, now))
        fit = _polish(frame, cliques, measured, before, now, fit, plan.effort, prior, shared)
    return fit, histograms, count_rows(measured)


def count_rows(measured: Sequence[Measurement]) -> float:
    """Estimate the number of rows from the totals of all tables of counts, by inverse variance; at least 1.

    Guarantees:
        Few rows with many columns are counted within a few percent.  [test_rows_are_counted_by_all_tables]
    """
    tables = [each for each in measured if not each.is_interaction]
    weights = [1 / max(float((each.sigma**2).sum()), LEAST_SIGMA**2) for each in tables]
    total = sum(weight * float(each.counts.sum()) for weight, each in zip(weights, tables, strict=True))
    return max(total / max(sum(weights), 1e-300), 1.0)


def _measure_parities(
    frame: Frame,
    fit: Fit,
    now: Mapping[Clique, FloatArray],
    measurer: Measurer,
    purse: Purse,
    plan: RoundPlan,
    cliques: Sequence[Clique],
) -> list[Measurement]:
    """Measure what three attributes of two values say together, as far as the model has room for it.

    `now` are the model's counts of all pairs.
    """
    if not plan.parities.count:
        return []
    found = measure_parities(frame, fit, now, measurer, purse, plan.parities)
    last = len(plan.rounds) - 1
    limit = plan.effort.limit(purse.noise_multiplier, last, len(plan.rounds), frame.num_rows)
    return within_size(frame, found, cliques, limit)


def _candidate(frame: Frame, scored: Scored, histograms: Mapping[int, Histogram]) -> Candidate:
    """Name what was chosen for the private side."""
    if len(scored.attributes) == 1:
        return single_candidate(frame, scored.attributes[0], histograms[scored.attributes[0]])
    return frame.candidate(scored.attributes, scored.resolution)


def _find_gaps(frame: Frame, answers: Mapping[Clique, FloatArray], groups: int) -> dict[Clique, Gap]:
    """Return the pairs of ordered attributes that checks compare, and how they are read by their differences."""
    found: dict[Clique, Gap] = {}
    for clique, mask in frame.allowed.items() if groups else ():
        usual = [a for a in clique if frame.attributes[a].ordered and a not in frame.relatives]
        if len(clique) == 2 and len(usual) == 2:
            pair = (clique[0], clique[1])
            gap = find_gap(pair, mask, answers[clique], [frame.ranked(a) for a in pair], groups)
            found |= {clique: gap} if gap is not None else {}
    return found


def _choose(
    frame: Frame, scored: Sequence[Scored], cliques: Sequence[Clique], sigma: float, index: int, plan: RoundPlan
) -> list[Scored]:
    """Choose what round `index` measures."""
    levels = frame.levels
    return select(
        [replace(s, variables=frame.variables(s.attributes, s.resolution)) for s in scored],
        sizes=levels.all_sizes,
        cliques=cliques,
        sequence=levels.sequence(frame.sequence),
        sigma=sigma,
        limits=Limits(
            marginals=most_marginals(index, len(frame.sizes)),
            cells=plan.effort.limit(sigma, index, len(plan.rounds), frame.num_rows),
            forest=index == 0,
            single_weight=single_weight(len(frame.sizes)),
        ),
        forced=plan.forced if index == 0 else (),
        after=levels.after(frame.after),
        groups=levels.all_groups,
    )


def _spend_rest(frame: Frame, measurer: Measurer, purse: Purse, plan: RoundPlan, measured: list[Measurement]) -> bool:
    """Use what no round found worth a pair on the 1-way marginals; return whether there was something."""
    rest = purse.left - plan.reserved
    if rest < 1e-6:
        return False
    alone = [a for a in range(len(frame.sizes)) if frame.sides is None or any(a in side for side in frame.sides)]
    measurer.expect([frame.candidate((a,)) for a in alone])
    for a, part in zip(alone, divide_by_cells([frame.sizes[a] for a in alone]), strict=True):
        measured.append(frame.measure(measurer, purse, (a,), rest * float(part)))
    return True


def _polish(
    frame: Frame,
    cliques: Sequence[Clique],
    measured: Sequence[Measurement],
    before: Mapping[Key, FloatArray],
    now: Mapping[Clique, FloatArray],
    fit: Fit,
    effort: Effort,
    prior: Sequence[FloatArray],
    shared: Mapping[Clique, FloatArray],
) -> Fit:
    """Take noise out of the measured pairs, and infer once more and to the end.

    `before` are the model's counts of pairs before they were measured, and `now` those with all measurements; `shared`
    are masks of variables whose nulls are shared.
    """
    levels = frame.levels

    def cleaned(each: Measurement) -> Measurement:
        if each.key not in before:
            return each
        pair = tuple(levels.attribute[v] for v in each.attributes)
        ranked = _ranked(frame, pair, each.counts.shape)
        return shrink_pair(each, before[each.key], levels.seen(now[pair], pair, each.attributes), ranked)

    clean = [cleaned(each) for each in combine(measured)]
    return _infer(frame, cliques, clean, fit, effort, prior=prior, shared=shared, polish=True)


def _ranked(frame: Frame, pair: Clique, shape: Sequence[int]) -> list[int] | None:
    """Return how many of the measured values of each attribute have an order, null not; None if one has no order."""
    if not all(frame.attributes[a].ordered or size == 2 for a, size in zip(pair, shape, strict=True)):
        return None
    return [size - (size > 2 and frame.null_bin(a) is not None) for a, size in zip(pair, shape, strict=True)]


def _infer(
    frame: Frame,
    cliques: Iterable[Clique],
    measured: Sequence[Measurement],
    before: Fit | None,
    effort: Effort,
    *,
    prior: Sequence[FloatArray] | None = None,
    shared: Mapping[Clique, FloatArray] | None = None,
    polish: bool = False,
) -> Fit:
    levels = frame.levels
    sequence, after = levels.sequence(frame.sequence), levels.after(frame.after)
    return infer(
        build_tree(levels.all_sizes, cliques, sequence, after, levels.all_groups),
        measured,
        num_rows=frame.num_rows,
        tau=max(effort.prior * frame.num_rows / frame.noise, 1.0),
        prior={levels.fine[a]: weights for a, weights in enumerate(prior or ())},
        zeros=join_masks({levels.bins(clique): mask for clique, mask in frame.allowed.items()}, shared or {}),
        start=before.multipliers if before else None,
        iterations=effort.final_iterations if polish else effort.iterations,
        enough=effort.final_enough if polish else effort.enough,
    )


def pair_answers(frame: Frame, fit: Fit) -> dict[Clique, FloatArray]:
    """Return the model's expected counts of every pair of attributes."""
    attribute = frame.levels.attribute
    found = pair_marginals(fit.tree, fit.beliefs)
    return {(attribute[a], attribute[b]): table * frame.num_rows for (a, b), table in found.items()}


def find_determined(answers: Mapping[Clique, FloatArray], cliques: Sequence[Clique], num_rows: float) -> dict[int, int]:
    """Return attributes that one measured pair shows to be, nearly, a function of another: {attribute: of which}."""
    found: dict[int, int] = {}
    for pair in cliques:
        if len(pair) != 2:
            continue
        table = answers[pair] / num_rows
        for source, target, rows in ((*pair, table), (pair[1], pair[0], table.T)):
            sure = rows.max(axis=1).sum() >= DETERMINED and rows.sum(axis=0).max() < GUESSED
            if sure and source not in found and target not in found and target not in found.values():
                found[target] = source
    return found


def is_implied(clique: Clique, determined: Mapping[int, int], modelled: Collection[Clique]) -> bool:
    """Say whether a marginal follows from what the model holds: an attribute of it, what determines that, and the rest.

    What determines an attribute says nothing for it unless both are `modelled` together, and with the rest.

    Guarantees:
        Nothing counts as implied by what is not in the model.  [test_nothing_is_implied_by_what_is_not_modelled]
    """
    for a in clique:
        if a not in determined:
            continue
        source = determined[a]
        rest = tuple(b for b in clique if b not in (a, source))
        held = tuple(sorted((*rest, source)))
        if rest and _pair(a, source) in modelled and (len(held) < 2 or held in modelled):
            return True
    return False


def _pair(a: int, b: int) -> Clique:
    return (a, b) if a < b else (b, a)

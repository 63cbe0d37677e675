"""The adaptive part of a fit: score all pairs against the model, measure the best, infer, and again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from kamino.model.marginal.budget import Purse
from kamino.model.marginal.frame import Frame
from kamino.model.marginal.inference import Fit, Measurement, infer
from kamino.model.marginal.junction import Clique, build_tree
from kamino.model.marginal.propagation import pair_marginals
from kamino.model.marginal.selection import Limits, Scored, select
from kamino.model.protocol import FloatArray, Measurer
from kamino.privacy.schedule import PlannedRelease, Rule, divide_by_cells

#: Marginals chosen in a round, at most, for each attribute of the table; the last entry holds for later rounds.
MARGINALS_PER_ATTRIBUTE = (1.0, 1.4, 1.4, 4.0)
#: An attribute counts as determined by another if the best guess is right for this share of rows ...
DETERMINED = 0.93
#: ... and guessing without the other is right for less than this.
GUESSED = 0.90


def most_marginals(index: int, num_attributes: int) -> int:
    """Return how many marginals round `index` chooses at most, besides those that it is told to measure."""
    per_attribute = MARGINALS_PER_ATTRIBUTE[min(index, len(MARGINALS_PER_ATTRIBUTE) - 1)]
    return math.ceil(per_attribute * num_attributes)


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How large the model may grow, how hard inference works, and how strongly it leans to the even distribution.

    Without noise every pair is worth modelling: the limit of the size is `exact_cells` then, and there is no polish,
    which would only take noise out.
    """

    most_cells: int = 300_000
    exact_cells: int = 2_000_000
    iterations: int = 100
    final_iterations: int = 300
    tau: float = 150.0

    def limit(self, noise: float, index: int, rounds: int) -> int:
        """The most cells of the model after round `index`."""
        return (self.most_cells if noise > 0 else self.exact_cells) * (index + 1) // rounds


@dataclass(frozen=True, kw_only=True)
class RoundPlan:
    """What the rounds are to do.

    `rounds` are the planned releases of each: distances, then marginals. `reserved` is the share of the budget kept for
    later, `forced` are pairs that the first round measures in any case, `joined` attributes that must share a clique,
    `determined` what is known to be a function of what.
    """

    rounds: tuple[tuple[PlannedRelease, PlannedRelease], ...]
    effort: Effort
    reserved: float = 0.0
    forced: tuple[Clique, ...] = ()
    joined: tuple[Clique, ...] = ()
    determined: Mapping[int, int] = field(default_factory=dict)


def fit_rounds(frame: Frame, first: Sequence[Measurement], measurer: Measurer, purse: Purse, plan: RoundPlan) -> Fit:
    """Measure in rounds until the budget, but for what is reserved, is used; return the fitted model."""
    measured = list(first)
    cliques: list[Clique] = [(i,) for i in range(len(frame.sizes))]
    cliques += [*frame.allowed, *plan.joined]
    fit = _infer(frame, cliques, measured, None, plan.effort, plan.effort.iterations)
    pairs = list(combinations([i for i, size in enumerate(frame.sizes) if size > 1], 2))
    for i, (scores, marginals) in enumerate(plan.rounds) if pairs else ():
        answers = pair_answers(fit, frame.num_rows)
        scored = _score(frame, measurer, purse, pairs, answers, scores.share)
        known = {**find_determined(answers, cliques, frame.num_rows), **plan.determined}
        useful = [s for s in scored if not _is_implied(s.attributes, known)]
        last = marginals.rule is Rule.REST
        share = purse.left - plan.reserved if last else marginals.share
        chosen = _choose(frame, useful, cliques, purse.noise_multiplier / math.sqrt(share), i, plan)
        parts = divide_by_cells([s.answer.size for s in chosen])
        for s, part in zip(chosen, parts, strict=True):
            measured.append(frame.measure(measurer, purse, s.attributes, share * float(part)))
            if s.attributes not in cliques:
                cliques.append(s.attributes)
        polish = last and purse.noise_multiplier > 0
        steps = plan.effort.final_iterations if polish else plan.effort.iterations
        fit = _infer(frame, cliques, measured, fit, plan.effort, steps)
    return _spend_rest(frame, measurer, purse, plan, cliques, measured, fit)


def _choose(
    frame: Frame, scored: Sequence[Scored], cliques: Sequence[Clique], sigma: float, index: int, plan: RoundPlan
) -> list[Scored]:
    """Choose what round `index` measures."""
    return select(
        scored,
        sizes=frame.sizes,
        cliques=cliques,
        sequence=frame.sequence,
        sigma=sigma,
        limits=Limits(
            marginals=most_marginals(index, len(frame.sizes)),
            cells=plan.effort.limit(sigma, index, len(plan.rounds)),
        ),
        forced=[s for s in scored if s.attributes in plan.forced] if index == 0 else (),
    )


def _spend_rest(
    frame: Frame,
    measurer: Measurer,
    purse: Purse,
    plan: RoundPlan,
    cliques: Sequence[Clique],
    measured: list[Measurement],
    fit: Fit,
) -> Fit:
    """Use what no round found worth a pair on the 1-way marginals."""
    rest = purse.left - plan.reserved
    if rest < 1e-6:
        return fit
    for a, part in enumerate(divide_by_cells(frame.sizes)):
        measured.append(frame.measure(measurer, purse, (a,), rest * float(part)))
    return _infer(frame, cliques, measured, fit, plan.effort, plan.effort.final_iterations)


def _infer(
    frame: Frame,
    cliques: Iterable[Clique],
    measured: Sequence[Measurement],
    before: Fit | None,
    effort: Effort,
    iterations: int,
) -> Fit:
    return infer(
        build_tree(frame.sizes, cliques, frame.sequence),
        measured,
        num_rows=frame.num_rows,
        tau=effort.tau,
        zeros=frame.allowed,
        start=before.multipliers if before else None,
        iterations=iterations,
    )


def pair_answers(fit: Fit, num_rows: float) -> dict[Clique, FloatArray]:
    """Return the model's expected counts of every pair of attributes."""
    answers: dict[Clique, FloatArray] = {}
    for a in range(len(fit.tree.sizes)):
        for b, table in pair_marginals(fit.tree, fit.beliefs, a).items():
            if a < b:
                answers[a, b] = table * num_rows
    return answers


def _score(
    frame: Frame,
    measurer: Measurer,
    purse: Purse,
    pairs: Sequence[Clique],
    answers: Mapping[Clique, FloatArray],
    share: float,
) -> list[Scored]:
    """Release the distances of all pairs to the model at once."""
    errors = measurer.scores(
        [frame.candidate(pair) for pair in pairs],
        [answers[pair].ravel() for pair in pairs],
        noise_multiplier=purse.take("scores", share),
    )
    return [
        Scored(attributes=pair, error=float(error), answer=answers[pair].ravel())
        for pair, error in zip(pairs, errors, strict=True)
    ]


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


def _is_implied(pair: Clique, determined: Mapping[int, int]) -> bool:
    """Say whether a pair follows from what determines one of its attributes."""
    a, b = pair
    return (a in determined and determined[a] != b) or (b in determined and determined[b] != a)

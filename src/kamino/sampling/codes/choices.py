"""What a row may take for an attribute, with weights: the model's conditional cut down by checks on single rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import TYPE_CHECKING

import numpy as np

from kamino.arrays import FloatArray, IntArray, distinct
from kamino.constraints import DenialConstraint
from kamino.constraints.tree import Comparison, Constant
from kamino.model.phase import PhaseWeights, codes_inside
from kamino.sampling.codes.comparing import Columns, Judge, Mask, is_tabled
from kamino.sampling.codes.grouping import join_keys
from kamino.sampling.codes.stratified import draw_places, normalised, spread_points
from kamino.schema.coding.joint_codes import distinct_values

if TYPE_CHECKING:
    from kamino.model.protocol import Conditional

# Domains up to this size get one bin for each code where the allowed values differ from row to row.
DENSE = 4096
_DENSE_CELLS = 50_000_000
# Terms are computed exactly, which takes ten times as long as comparing codes.
_TERM_CELLS = 5_000_000
# Many rows are drawn so many at a time: what is computed on the way stays small.
_ROWS_AT_ONCE = 1 << 17
# An allowed value never has less than exp(-FLOOR) times the weight of the likeliest: zeros of a model are estimates.
FLOOR = 40.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Choices:
    """Weights of bins by context, and how codes are spread inside bins: runs of codes, and in a run by phase or evenly.

    P(code v | row i) is proportional to exp(log_weight[context[i], bin of v]) * share[run of v] / width[run of v], or
    with `weights` to exp(log_weight[..]) * share[run of v] * weight(v) / (sum of the weights of the run's codes).
    A bin without runs has no weight. Null, where it is allowed, has the bin `null_bin` to itself. `residual` are
    checks that are not built in, because the allowed values differ from row to row in a wide domain. Where codes got
    bins of their own (`by_code`), `model_bin` is the bin of the model that held each run, and `spread` is what its
    weight has for log P(run | that bin); otherwise both are None.
    """

    attribute: str
    context: IntArray
    log_weight: FloatArray
    starts: IntArray
    width: IntArray
    label: IntArray
    share: FloatArray
    null_bin: int | None
    residual: tuple[DenialConstraint, ...] = ()
    weights: PhaseWeights | None = None
    model_bin: IntArray | None = None
    spread: FloatArray | None = None

    @property
    def is_exact(self) -> bool:
        """Whether each bin is one code."""
        return len(self.starts) == len(distinct(self.label)) and bool(np.all(self.width == 1))

    def draw(self, rng: np.random.Generator, rows: IntArray | None = None, *, independent: bool = False) -> IntArray:
        """Draw a code for each row; -1 where nothing is allowed. Residual checks are not heeded.

        Rows of one context share out the values evenly unless `independent`.
        """
        bins = self.draw_bins(rng, rows, independent=independent)
        return self.draw_codes(bins, rng, independent=independent)

    def draw_bins(
        self, rng: np.random.Generator, rows: IntArray | None = None, *, independent: bool = False
    ) -> IntArray:
        """Draw a bin for each row; -1 where nothing is allowed."""
        context = self.context if rows is None else self.context[rows]
        return draw_places(context, self.log_weight, rng, independent=independent)

    def draw_codes(self, bins: IntArray, rng: np.random.Generator, *, independent: bool = False) -> IntArray:
        """Draw a code inside each bin; -1 stays -1."""
        runs = self.draw_runs(bins, rng, independent=independent)
        live = np.flatnonzero(runs >= 0)
        inside = _points(runs[live], rng, independent) if np.any(self.width > 1) else np.zeros(len(live))
        result = np.full(len(bins), -1, dtype=np.int64)
        result[live] = self.codes_at(runs[live], inside, rng)
        return result

    def draw_runs(self, bins: IntArray, rng: np.random.Generator, *, independent: bool = False) -> IntArray:
        """Draw a run of each bin by its share; -1 stays -1."""
        num_bins = self.log_weight.shape[1]
        by_bin = np.argsort(self.label, kind="stable")
        begin = np.searchsorted(self.label[by_bin], np.arange(num_bins + 1))
        result = np.full(len(bins), -1, dtype=np.int64)
        live = np.flatnonzero(bins >= 0)
        mine = bins[live]
        place = np.minimum(begin[mine], len(by_bin) - 1)
        if np.any(np.diff(begin) > 1):
            ends = np.cumsum(self.share[by_bin])
            base = np.concatenate([[0.0], ends])[begin[:-1]]
            mass = np.concatenate([[0.0], ends])[begin[1:]] - base
            target = base[mine] + _points(mine, rng, independent) * mass[mine]
            place = np.clip(np.searchsorted(ends, target, side="right"), begin[mine], begin[mine + 1] - 1)
        result[live] = by_bin[place]
        return result

    def codes_at(self, run: IntArray, points: FloatArray, rng: np.random.Generator) -> IntArray:
        """Return the code at each point of [0, 1) of its run: uniform points give codes as likely as they should be."""
        codes = np.empty(len(run), dtype=np.int64)
        for begin in range(0, len(run), _ROWS_AT_ONCE):
            rows = slice(begin, begin + _ROWS_AT_ONCE)
            mine = run[rows]
            codes[rows] = codes_inside(self.weights, self.starts[mine], self.width[mine], points[rows], rng)
        return codes

    def null_chance(self) -> FloatArray:
        """Return how likely null is for each row."""
        if self.null_bin is None:
            return np.zeros(len(self.context))
        return np.asarray(normalised(self.log_weight)[:, self.null_bin][self.context])

    def draw_nulls(self, rng: np.random.Generator) -> Mask:
        """Draw which rows are null, evenly among rows of one context."""
        return np.asarray(spread_points(self.context, rng) < self.null_chance())

    def without_null(self) -> Choices:
        """Return the choices of values alone."""
        if self.null_bin is None:
            return self
        log_weight = self.log_weight.copy()
        log_weight[:, self.null_bin] = -np.inf
        kept = self.label != self.null_bin
        names = ("starts", "width", "label", "share", "model_bin", "spread")
        parts = {name: value[kept] for name in names if (value := getattr(self, name)) is not None}
        return replace(self, log_weight=log_weight, null_bin=None, **parts)

    def codes(self) -> IntArray:
        """Return all codes that some row may take, ascending; for domains that are not too wide to list."""
        inside = np.arange(int(self.width.sum())) - np.repeat(np.cumsum(self.width) - self.width, self.width)
        return np.asarray(np.repeat(self.starts, self.width) + inside)

    def of_rows(self, rows: IntArray) -> Choices:
        """Return the choices of these rows alone, in this order."""
        used, context = distinct_values(self.context[rows])
        return replace(self, context=context, log_weight=self.log_weight[used])

    def bins_of(self, codes: IntArray) -> tuple[IntArray, IntArray]:
        """Return the bin and the run of each code; -1 where the code is not allowed."""
        run = np.searchsorted(self.starts, codes, side="right") - 1
        inside = (run >= 0) & (codes < self.starts[run] + self.width[run])
        return np.where(inside, self.label[run], -1), np.where(inside, run, -1)

    def log_density(self) -> FloatArray:
        """Return log P(code | its bin) for each run, on average over its codes."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.share / self.width))

    def log_share(self, codes: IntArray, run: IntArray) -> FloatArray:
        """Return log P(code | its bin) for each code, its run being known."""
        if self.weights is None:
            return self.log_density()[run]
        with np.errstate(divide="ignore"):
            log = np.log(self.share / self.weights.mass(self.starts, self.width))
        return np.asarray(log[run] + np.log(self.weights(codes)))

    def spots(self, codes: IntArray) -> tuple[IntArray, FloatArray]:
        """Return the bin of each code, and the logarithm of its probability there; all must be allowed."""
        bins, run = self.bins_of(codes)
        return bins, self.log_share(codes, run)

    def log_of(self, codes: IntArray, rows: IntArray | None = None) -> FloatArray:
        """Return the log weight of codes for rows (elementwise, shapes broadcast); -inf where not allowed."""
        context = self.context if rows is None else self.context[rows]
        bins, run = self.bins_of(codes)
        value = self.log_weight[context, bins] + self.log_share(codes, run)
        return np.where(bins < 0, -np.inf, value)

    def by_code(self) -> Choices:
        """Return the same choices with one bin for each code; for small domains."""
        if self.is_exact and np.array_equal(self.label, np.arange(self.log_weight.shape[1])):
            return self
        run = np.repeat(np.arange(len(self.starts)), self.width)
        codes = self.codes()
        null = None
        if self.null_bin is not None:
            null = int(np.flatnonzero(self.label[run] == self.null_bin)[0])
        ones = np.ones(len(codes), dtype=np.int64)
        spread = self.log_share(codes, run)
        return replace(
            self,
            log_weight=self.log_weight[:, self.label[run]] + spread[None, :],
            starts=codes,
            width=ones,
            label=np.arange(len(codes), dtype=np.int64),
            share=ones.astype(np.float64),
            null_bin=null,
            weights=None,
            model_bin=self.label[run],
            spread=spread,
        )


def _points(groups: IntArray, rng: np.random.Generator, independent: bool) -> FloatArray:
    """Return a point of [0, 1) for each row: spread within each group, or each for itself."""
    return rng.random(len(groups)) if independent else spread_points(groups, rng)


def make_choices(
    conditional: Conditional,
    judge: Judge,
    checks: Sequence[DenialConstraint],
    columns: Columns,
    *,
    movable: Collection[str] | None = None,
) -> Choices:
    """Cut a conditional down to what checks on single rows allow.

    With `movable`, the columns whose codes may change hands inside bins, checks on this one and others are residual
    wherever a code of either may.

    Guarantees:
        Without checks, codes keep their probabilities.  [test_choices_keep_probabilities]
        A code that a check forbids for a row has no weight, residual checks aside.  [test_choices_obey_checks]
    """
    name = conditional.attribute
    # A term of one attribute may change its answer anywhere in a domain that is too wide to list.
    wide = not is_tabled(judge.codec[name])
    own = [c for c in checks if c.attributes == (name,) and not (wide and c.has_terms)]
    mixed = tuple(c for c in checks if c not in own)
    choices = _floored(_cut(conditional, judge, own))
    if not mixed:
        return choices
    choices = replace(choices, residual=mixed)
    others = {n for c in mixed for n in c.attributes if n != name}
    if movable is not None and (not choices.is_exact or not others.isdisjoint(movable)):
        return choices
    return list_codes(choices, judge, columns) or choices


def list_codes(choices: Choices, judge: Judge, columns: Columns) -> Choices | None:
    """Build the residual checks in, value by value; None if there are too many values."""
    name, mixed = choices.attribute, choices.residual
    others = sorted({n for c in mixed for n in c.attributes if n != name})
    key = join_keys([choices.context, *(columns[other] for other in others)])
    _, first = np.unique(key, return_index=True)
    num_codes = int(choices.width.sum())
    most = _TERM_CELLS if any(c.has_terms for c in mixed) else _DENSE_CELLS
    if num_codes > DENSE or num_codes * len(first) > most:
        return None
    dense = choices.by_code()
    down = {other: columns[other][first][:, None] for other in others}
    down[name] = dense.starts[None, :]
    log_weight = dense.log_weight[dense.context[first]]
    for constraint in mixed:
        log_weight[judge.violates(constraint, down, down)] = -np.inf
    return replace(dense, context=key, log_weight=log_weight, residual=())


def _cut(conditional: Conditional, judge: Judge, own: Sequence[DenialConstraint]) -> Choices:
    """Split runs where the checks on this attribute alone change, and drop the forbidden ones."""
    name, cells = conditional.attribute, conditional.cells
    codec = judge.codec[name]
    starts, ends = cells.map.starts, cells.map.starts + cells.width
    cuts = np.array(sorted(_cut_points(judge, name, own)), dtype=np.int64)
    pieces = distinct(starts, cuts[(cuts > starts[0]) & (cuts < ends[-1])])
    run = np.searchsorted(starts, pieces, side="right") - 1
    width = np.diff(np.append(pieces, ends[-1]))
    held = width if cells.weights is None else cells.weights.mass(pieces, width)
    share = cells.share[run] * held / np.bincount(run, weights=held)[run]
    allowed = np.ones(len(pieces), dtype=np.bool_)
    for constraint in own:
        allowed &= ~judge.violates(constraint, {name: pieces}, {name: pieces})
    label = cells.map.labels[run].copy()
    log_prob, null_bin = conditional.log_prob, None
    if codec.null_code is not None:
        (at,) = np.flatnonzero(pieces == codec.null_code)
        null_bin = log_prob.shape[1] if np.sum(label == label[at]) > 1 else int(label[at])
        if null_bin == log_prob.shape[1]:
            log_prob = np.concatenate([log_prob, log_prob[:, [label[at]]]], axis=1)
            label[at] = null_bin
        null_bin = null_bin if allowed[at] else None
    # A bin is as likely as what is left of it; a bin whose codes all had no share keeps them evenly.
    num_bins = log_prob.shape[1]
    share = np.where(share > 0, share, 1e-12 * (width / width.sum()))[allowed]
    label, pieces, width = label[allowed], pieces[allowed], width[allowed]
    mass = np.bincount(label, weights=share, minlength=num_bins)
    with np.errstate(divide="ignore"):
        log_weight = log_prob + np.log(mass)[None, :]
    return Choices(
        attribute=name,
        context=conditional.context,
        log_weight=log_weight,
        starts=pieces,
        width=width,
        label=label,
        share=share / mass[label],
        null_bin=null_bin,
        weights=cells.weights,
    )


def _floored(choices: Choices) -> Choices:
    with np.errstate(invalid="ignore"):
        empty = np.bincount(choices.label, minlength=choices.log_weight.shape[1]) == 0
        table = np.where(np.isnan(choices.log_weight), -np.inf, choices.log_weight)
        top = np.where(empty, -np.inf, table).max(axis=1, keepdims=True, initial=-np.inf)
        floored = np.maximum(table, np.where(np.isfinite(top), top, 0.0) - FLOOR)
    return replace(choices, log_weight=np.where(empty[None, :], -np.inf, floored))


def _cut_points(judge: Judge, name: str, own: Sequence[DenialConstraint]) -> set[int]:
    """Return the codes at which a check may change its answer, and both ends of null."""
    codec = judge.codec[name]
    points = set() if codec.null_code is None else {codec.null_code}
    if not own:
        return points
    if is_tabled(codec):
        codes = {name: np.arange(codec.size, dtype=np.int64)}
        bad = np.logical_or.reduce([judge.violates(c, codes, codes) for c in own])
        return points | set((np.flatnonzero(bad[1:] != bad[:-1]) + 1).tolist())
    for constraint in own:
        for predicate in constraint.predicates:
            match predicate:
                case Comparison(right=Constant(value=value)):
                    place = codec.position(value)
                    if place is not None:
                        points |= {ceil(place), floor(place) + 1}
    return points

"""Free and mask: each row by itself, from what is allowed for it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kamino.arrays import IntArray
from kamino.sampling.codes.balancing import balance
from kamino.sampling.codes.choices import list_codes
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.codes.smoothing import Parents, rank_scores, smooth
from kamino.sampling.codes.stratified import normalised
from kamino.sampling.feasible.row_search import tried_codes
from kamino.sampling.partners import DEAD
from kamino.sampling.steps.exchange import change_places
from kamino.sampling.steps.in_ranges import draw_in_ranges, solved_checks
from kamino.sampling.steps.task import Task
from kamino.schema import GridCodec

_ROUNDS = 30
# Rounds in which a row keeps its bin, before it may leave it.
_ROUNDS_IN_BIN = 10
_PIECE = 20_000


def draw_free(task: Task) -> IntArray:
    """Draw each row from its choices; rows of one context share out the values evenly.

    The model knows how often a row comes into a bin, checks included. So a row whose code breaks a check that decides
    inside bins first changes places with another row of its bin, then is drawn anew in its bin, and leaves it last.
    Where codes may not move (see `Task.movable`), it leaves it at once.
    """
    solved = solved_checks(task)
    if solved:
        return draw_in_ranges(task, solved)
    codes = _draw_balanced(task, task.grouped) if task.grouped else task.choices.draw(task.rng)
    if not task.choices.residual:
        return codes
    if task.movable is not None:
        change_places(task, codes)
    bad = np.flatnonzero(breaks_checks(task, codes))
    bins, _ = task.choices.bins_of(np.maximum(codes, 0))
    for _ in range(_ROUNDS_IN_BIN if task.movable is not None and len(bad) else 0):
        codes[bad] = task.choices.draw_codes(bins[bad], task.rng)
        bad = bad[breaks_checks(task, codes[bad], bad)]
    if len(bad):
        codes[bad] = _draw_anywhere(task, bad)
    return codes


def _draw_balanced(task: Task, grouped: Mapping[str, IntArray]) -> IntArray:
    """Draw bins and then codes, and let rows that are alike to the model change places after either.

    Where what the model says of other columns goes on inside bins, rows change places to follow it, else by chance.
    """
    choices, others = task.choices, tuple(grouped.values())
    bins = balance(choices.draw_bins(task.rng), choices.context, others, task.rng)
    codes = choices.draw_codes(bins, task.rng)
    alike, smoothed = bins, _smooth(task, codes, bins)
    if smoothed is not None:
        codes, are_alike = smoothed
        if not are_alike:
            return codes
        alike = bins * len(choices.log_weight) + choices.context
    return codes if choices.is_exact else balance(codes, alike, others, task.rng)


def _smooth(task: Task, codes: IntArray, bins: IntArray) -> tuple[IntArray, bool] | None:
    """Let the dependence on ordered parents go on inside bins; None where it does not matter."""
    codec, choices = task.judge.codec, task.choices
    ordered = [name for name in sorted(task.parents or ()) if isinstance(codec[name], GridCodec)]
    if not ordered or not isinstance(codec[task.step.attribute], GridCodec):
        return None
    parents = Parents(
        scores=tuple(rank_scores(task.columns[name], codec[name].null_code) for name in ordered),
        codes=tuple(task.columns[name] for name in sorted(task.parents or ()) if name not in ordered),
    )
    live = bins if choices.null_bin is None else np.where(bins == choices.null_bin, -1, bins)
    return smooth(codes, live, choices.context, normalised(choices.log_weight), parents, task.rng)


def _draw_anywhere(task: Task, rows: IntArray) -> IntArray:
    """Draw rows whose bin has nothing for them: value by value, if that is not too much, else again and again."""
    choices = task.choices.of_rows(rows)
    listed = list_codes(choices, task.judge, {name: column[rows] for name, column in task.columns.items()})
    if listed is not None:
        return listed.draw(task.rng)
    codes = choices.draw(task.rng)
    bad = np.flatnonzero(breaks_checks(task, codes, rows))
    for _ in range(_ROUNDS):
        if len(bad) == 0:
            return codes
        codes[bad] = choices.draw(task.rng, bad)
        bad = bad[breaks_checks(task, codes[bad], rows[bad])]
    for start in range(0, len(bad), _PIECE):
        piece = bad[start : start + _PIECE]
        codes[piece] = _best_of_few(task, rows[piece])
    return codes


def breaks_checks(task: Task, codes: IntArray, rows: IntArray | None = None) -> Mask:
    """Tell which rows break a residual check with these codes; dead ones do not."""
    everyone = np.arange(task.num_rows) if rows is None else rows
    return task.breaks(task.choices.residual, codes, everyone)


def _best_of_few(task: Task, rows: IntArray) -> IntArray:
    """Take the likeliest allowed code among a few."""
    return likeliest(task, rows, few_codes(task, rows))


def few_codes(task: Task, rows: IntArray) -> IntArray:
    """Return a few codes worth a try: ends, neighbours of constants and of the row's other values; a line each."""
    name = task.step.attribute
    fixed, _ = tried_codes(task.judge, name, task.choices.residual)
    others = {n for c in task.choices.residual for n in c.attributes if n != name}
    near = [task.judge.near(name, other, task.columns[other][rows]) for other in sorted(others)]
    return np.concatenate([np.broadcast_to(fixed, (len(rows), len(fixed))), *near], axis=1)


def likeliest(task: Task, rows: IntArray, tried: IntArray) -> IntArray:
    """Return the likeliest code of each line that breaks no check; `DEAD` where there is none, and is none."""
    weight = task.choices.log_of(np.maximum(tried, 0), rows[:, None])
    weight = np.where((tried == DEAD) | breaks_checks(task, tried, rows), -np.inf, weight)
    best = np.argmax(weight, axis=1)
    line = np.arange(len(rows))
    return np.where(np.isfinite(weight[line, best]), tried[line, best], DEAD)

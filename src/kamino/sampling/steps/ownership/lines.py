"""The values of a wide left side as a table of their own: one line a value, with all its right sides; rows draw lines.

Right sides that are drawn first, row by row, meet in combinations that no value has: 3,000 ids with a town, a code and
a region have 3,000 combinations, and independent draws make a hundred thousand. So each value is given one combination
that some row has, such that every right side stays as frequent as it was drawn, and rows of combinations that no value
was given take the right sides of rows that have one: of rows that agree with them as far as can be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import DenialConstraint
from kamino.sampling.codes.choices import Choices
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.codes.grouping import join_keys
from kamino.sampling.codes.stratified import normalised
from kamino.sampling.feasible.row_search import spares_copies
from kamino.sampling.steps.ownership.expecting import listed_values
from kamino.sampling.steps.task import Task
from kamino.schema.coding.joint_codes import distinct_values, number_values

#: So many rows that may have a value are looked at, of which the one is taken whose right sides are most wanted.
_LOOKED_AT = 64
_LEAST_LIKELY = 0.5
#: Each value chooses so often, the later times knowing what all others have.
_SWEEPS = 2
#: Rows are shared out between values and right sides in so many steps.
_EVENED = 30
#: Values are given lines so many at a time where there are many.
_AT_ONCE, _MANY = 64, 20_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Lines:
    """Which row of the table each row takes its right sides from (mostly itself), and which rows draw which values.

    `columns` are the right sides and what constraints tie to them. `values` have `wanted` rows each, and belong to
    the rows of the same `owner`: `of_row` has the owner of each row of the table, -1 where a row draws no line.
    """

    columns: frozenset[str]
    source: IntArray
    of_row: IntArray
    values: IntArray
    wanted: FloatArray
    owner: IntArray


def deal_lines(
    task: Task, rights: frozenset[str], rows: IntArray, rules: Iterable[DenialConstraint], kept: Collection[str]
) -> Lines | None:
    """Give each value a line, and each of these rows right sides that some line has; None where rows must stay.

    Rows must stay where a column that would change is one of those `kept`, or stands in a key.

    Guarantees:
        Every row has right sides of a line, and values have about as many rows as they had.
        [test_every_row_draws_a_line]
        Right sides keep their frequencies.  [test_right_sides_keep_their_frequencies]
        Whatever constraints tie to right sides, soft ones too, goes with them.
        [test_what_is_tied_to_right_sides_goes_with_them]
    """
    columns = _tied(rights, rules, task.columns.keys())
    if columns is None or not columns.isdisjoint(kept):
        return None
    choices = task.choices.of_rows(rows).without_null()
    values, run = listed_values(choices)
    wanted = _expected(choices, values, run)
    if not len(values) or wanted.sum() <= 0:
        return None
    wanted = wanted * (len(rows) / wanted.sum())
    names = sorted(rights, key=lambda name: -len(distinct_values(task.columns[name][rows])[0]))
    sides = [number_values(task.columns[name][rows])[0] for name in names]
    row_of = _choose_rows(choices, run, wanted, _with_pairs(sides), task.rng)
    wanted = _evened(wanted, [side[row_of] for side in sides], [np.bincount(side) for side in sides])
    owner, _ = number_values(join_keys(sides))
    held = np.bincount(owner[row_of], weights=wanted, minlength=int(owner.max()) + 1).astype(np.float64)
    places = _rounded(held, task.rng)
    seated = _seat(owner, places, sides, task.rng)
    source, of_row = np.arange(task.num_rows), np.full(task.num_rows, -1, dtype=np.int64)
    source[rows], of_row[rows] = rows[seated], owner[seated]
    return Lines(columns=columns, source=source, of_row=of_row, values=values, wanted=wanted, owner=owner[row_of])


def _tied(rights: frozenset[str], rules: Iterable[DenialConstraint], drawn: Collection[str]) -> frozenset[str] | None:
    """Return the drawn columns that must go with the right sides; None if a hard constraint on them forbids copies.

    A row that takes what another one has in all these columns keeps what they have to do with each other.
    """
    ties = [(frozenset(c.attributes), c.is_hard and not c.is_unary and not spares_copies(c)) for c in rules]
    ties = [(names, no_copies) for names, no_copies in ties if names <= set(drawn)]
    found, grown = frozenset(rights), True
    while grown:
        near = frozenset(name for names, _ in ties if names & found for name in names)
        grown, found = not near <= found, found | near
    return None if any(no_copies and names & found for names, no_copies in ties) else found


def _expected(choices: Choices, values: IntArray, run: IntArray) -> FloatArray:
    """Return how many of the rows the model expects to have each value."""
    counts = np.bincount(choices.context, minlength=len(choices.log_weight))
    by_bin = counts @ normalised(choices.log_weight)
    return np.asarray(by_bin[choices.label[run]] * np.exp(choices.log_share(values, run)))


def _with_pairs(sides: Sequence[IntArray]) -> list[IntArray]:
    """Return the right sides, their pairs, and all of them together, each numbered.

    What right sides have to do with each other is kept like their frequencies: a town and a region that hardly any row
    has together are no line of a value with many rows.
    """
    pairs = [list(pair) for pair in combinations(sides, 2)]
    together = [list(sides)] if len(sides) > 2 else []
    return [*sides, *(number_values(join_keys(each))[0] for each in (*pairs, *together))]


def _choose_rows(
    choices: Choices, run: IntArray, wanted: FloatArray, sides: Sequence[IntArray], rng: np.random.Generator
) -> IntArray:
    """Return the row whose right sides each value has, the values with most rows first.

    Of some rows that the model would give the value, the one is taken whose right sides, alone and together, are most
    behind what they were drawn: that which makes the sum of (rows given - rows drawn)² / rows drawn smallest. What was
    drawn in fewer rows than the value has counts as drawn in as many: a table cannot tell how rare it is.
    """
    drawn = [np.bincount(side).astype(np.float64) for side in sides]
    behind = [each.copy() for each in drawn]
    taken = np.full(len(run), -1, dtype=np.int64)
    order = np.argsort(-wanted, kind="stable")
    likely, lags = _likely_rows(choices, run, rng)
    step = _AT_ONCE if len(run) > _MANY else 1
    for _ in range(_SWEEPS):
        for mine in np.split(order, range(step, len(order), step)):
            size, old = wanted[mine], taken[mine]
            gain = np.where(lags[mine], -np.inf, 0.0)
            for side, short, held in zip(sides, behind, drawn, strict=True):
                np.add.at(short, side[old[old >= 0]], size[old >= 0])
                here = side[likely[mine]]
                gain += (2 * short[here] - size[:, None]) / np.maximum(held[here], size[:, None])
            taken[mine] = best = likely[mine, np.argmax(gain, axis=1)]
            for side, short in zip(sides, behind, strict=True):
                np.subtract.at(short, side[best], size)
    return taken


def _evened(wanted: FloatArray, sides: Sequence[IntArray], drawn: Sequence[IntArray]) -> FloatArray:
    """Return how many rows each value has, between what is wanted and what its right sides were drawn.

    It makes the sum of (rows - wanted)² / wanted over values and of (rows - drawn)² / drawn over all right sides least:
    values that do not add up to their right sides share the misfit with these.
    """
    rows = wanted
    for _ in range(_EVENED):
        misfit = np.zeros(len(wanted))
        for side, held in zip(sides, drawn, strict=True):
            misfit += (1 - np.bincount(side, rows, len(held)) / np.maximum(held, 1))[side]
        rows = rows + (np.maximum(wanted * (1 + misfit), 0.0) - rows) / (1 + len(sides))
    return np.asarray(rows * (wanted.sum() / max(rows.sum(), 1e-300)))


def _likely_rows(choices: Choices, run: IntArray, rng: np.random.Generator) -> tuple[IntArray, Mask]:
    """Return some rows for each value, drawn as the model expects rows to have it, and which of them hardly have it.

    A row hardly has a value that is less likely there than half of what it is in the middle one of the rows drawn: what
    the model knows of a value is not given up for frequencies.
    """
    order = np.argsort(choices.context, kind="stable")
    held = np.bincount(choices.context, minlength=len(choices.log_weight))
    begin = np.cumsum(held) - held
    chance = normalised(choices.log_weight) * held[:, None]
    bins = choices.label[run]
    by_bin = np.argsort(bins, kind="stable")
    used, first = np.unique(bins[by_bin], return_index=True)
    found = np.zeros((len(run), _LOOKED_AT), dtype=np.int64)
    lags = np.zeros(found.shape, dtype=np.bool_)
    for each, mine in zip(used.tolist(), np.split(by_bin, first[1:]), strict=True):
        ends = np.cumsum(chance[:, each])
        weights = ends if ends[-1] > 0 else np.cumsum(held.astype(np.float64))
        points = rng.random((len(mine), _LOOKED_AT)) * weights[-1]
        context = np.minimum(np.searchsorted(weights, points, side="right"), len(weights) - 1)
        context = np.where(held[context] > 0, context, int(np.argmax(held)))
        inside = (rng.random(context.shape) * held[context]).astype(np.int64)
        found[mine] = order[begin[context] + inside]
        here = ends if ends[-1] <= 0 else np.divide(chance[:, each], held, out=np.zeros(len(held)), where=held > 0)
        likelihood = here[context]
        lags[mine] = likelihood < _LEAST_LIKELY * np.median(likelihood, axis=1, keepdims=True)
    return found, lags


def _rounded(places: FloatArray, rng: np.random.Generator) -> IntArray:
    """Round numbers to whole ones with the same sum, each up or down."""
    ends = np.floor(np.cumsum(places) + rng.random()).astype(np.int64)
    ends[-1] = round(float(places.sum()))
    return np.asarray(np.diff(np.minimum(ends, ends[-1]), prepend=0))


def _seat(owner: IntArray, places: IntArray, sides: Sequence[IntArray], rng: np.random.Generator) -> IntArray:
    """Return the row whose right sides each row takes: each owner's as often as it has places.

    Rows whose own right sides have a place stay. The others go where as many of their right sides are as can be: all
    but the widest, all but the two widest, ..., any.
    """
    seated = np.full(len(owner), -1, dtype=np.int64)
    left = places.copy()
    shuffled = rng.permutation(len(owner))
    # One row of each owner stands for its right sides, or for another one of its rows at random.
    first = np.zeros(len(places), dtype=np.int64)
    first[owner[shuffled]] = shuffled
    for kept in _fewer(sides):
        waiting = shuffled[seated[shuffled] < 0]
        if len(waiting) == 0:
            break
        open_places = rng.permutation(np.repeat(np.arange(len(places)), left))
        row, place = _pairs(kept[waiting], kept[first[open_places]])
        seated[waiting[row]] = open_places[place]
        left -= np.bincount(open_places[place], minlength=len(places))
    stays = seated == owner
    donors = _any_row_of(owner, seated, rng)
    return np.where(stays, np.arange(len(owner)), donors)


def _fewer(sides: Sequence[IntArray]) -> Iterator[IntArray]:
    """Yield the rows' keys by all right sides, by all but the widest, ..., by none."""
    for dropped in range(len(sides)):
        yield number_values(join_keys(list(sides[dropped:])))[0]
    yield np.zeros(len(sides[0]), dtype=np.int64)


def _pairs(waiting: IntArray, open_places: IntArray) -> tuple[IntArray, IntArray]:
    """Pair what has the same key, one to one, as long as there is something on both sides."""
    by_row, by_place = np.argsort(waiting, kind="stable"), np.argsort(open_places, kind="stable")
    rows, places = waiting[by_row], open_places[by_place]
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows, side="left")
    place = np.searchsorted(places, rows, side="left") + rank
    fits = place < np.searchsorted(places, rows, side="right")
    return by_row[fits], by_place[place[fits]]


def _any_row_of(owner: IntArray, wanted: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a random row of the wanted owner for each row."""
    shuffled = rng.permutation(len(owner))
    order = shuffled[np.argsort(owner[shuffled], kind="stable")]
    low = np.searchsorted(owner[order], wanted, side="left")
    high = np.searchsorted(owner[order], wanted, side="right")
    return np.asarray(order[low + (rng.random(len(wanted)) * (high - low)).astype(np.int64)])

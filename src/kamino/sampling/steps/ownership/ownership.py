"""Ownership: hard dependencies A -> Y with Y there already. Each value of A belongs to one Y, and rows draw among
the values that their Y owns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np

from kamino.arrays import FloatArray, IntArray, stable_order
from kamino.constraints import DenialConstraint
from kamino.constraints.analysis.classify import dependency_of
from kamino.sampling.codes.choices import Choices
from kamino.sampling.codes.comparing import Mask
from kamino.sampling.codes.grouping import join_keys
from kamino.sampling.codes.stratified import draw_places, normalised
from kamino.sampling.partners import DEAD
from kamino.sampling.steps.ownership.expecting import expected_of_owners, listed_values
from kamino.sampling.steps.ownership.lines import Lines, deal_lines
from kamino.sampling.steps.ownership.owners import Owner, assign_owners
from kamino.sampling.steps.ownership.taking import take_as_drawn
from kamino.sampling.steps.shared_values import expected_runs
from kamino.sampling.steps.task import Task
from kamino.schema.coding.joint_codes import distinct_values, number_values

# Up to this many pairs of an owner and a value, owners are chosen from expected counts; beyond, values are taken as
# they are drawn.
_MAX_PAIRS = 20_000_000
_MAX_VALUES = 200_000
# Up to this many values are listed where maps say whose each is.
_MOST_MAPPED = 1 << 21
# Values that maps say nothing of are left out where less than this part of the rows are expected to have one.
_MOST_UNKNOWN = 0.02
# Values are scaled to their wanted rows so many times; what is wanted is an estimate.
_SCALINGS = 3
# An owner with fewer rows than this part of a value's average is a stray, if at most this part of the rows are strays.
_STRAY = 0.35
_MOST_STRAYS = 0.2
# Rows with small owners are no strays if rows with values as rare are at least one for so many: drawn owners scatter.
_AS_MANY = 2.0


def draw_ownership(task: Task) -> IntArray:
    """Choose an owner for each value, then draw each row among the values of its owner, or null.

    Rows without a value on any right side, or with a null on the left, are free.

    Guarantees:
        No value is held under two owners.  [test_ownership_holds]
        A value keeps its number of rows, also where the model is not sure of its owner, and so does null.
        [test_ownership_keeps_the_marginal]
    """
    dependencies = [d for c in task.step.constraints if (d := dependency_of(c)) is not None]
    rights = frozenset(d.right for d in dependencies)
    rest = dependencies[0].left - {task.step.attribute}
    bound = task.present(rest) & np.logical_or.reduce([task.present(frozenset({name})) for name in rights])
    codes = np.full(task.num_rows, DEAD, dtype=np.int64)
    free = np.flatnonzero(~bound)
    codes[free] = task.choices.draw(task.rng, free)
    rows = np.flatnonzero(bound)
    if len(rows) == 0:
        return codes
    num_values = int(task.choices.width.sum())
    if not rest and num_values <= _MOST_MAPPED and _is_mapped(task, rows, rights):
        codes[rows] = _draw_mapped(task, rows, tuple(sorted(rights)))
        return codes
    if task.lines is not None:
        codes[rows] = _draw_dealt(task, rows, task.lines)
        return codes
    if len(rights) > 1:
        rows = rows[~_strays(task.keys(rights)[rows], task.choices.of_rows(rows))]
    owners, _ = number_values(task.keys(rights)[rows])
    if rest or num_values > _MAX_VALUES or num_values * (int(owners.max()) + 1) > _MAX_PAIRS:
        codes[rows] = take_as_drawn(task, rows, task.keys(rest)[rows], owners)
    else:
        codes[rows] = _draw_among_owned(task, rows, owners, tuple(sorted(rights)))
    return codes


def lines_of(task: Task, rules: Iterable[DenialConstraint], kept: Collection[str]) -> Lines | None:
    """Deal lines where several right sides, or more values of one than the left side has, must go together.

    None where nothing is to be dealt: maps say whose each value is, values belong to owners group by group or are too
    many to list, or rows must stay (see `deal_lines`).
    """
    dependencies = [d for c in task.step.constraints if (d := dependency_of(c)) is not None]
    rights = frozenset(d.right for d in dependencies)
    rows = np.flatnonzero(np.logical_or.reduce([task.present(frozenset({name})) for name in rights]))
    num_values = int(task.choices.width.sum())
    if len(dependencies[0].left) > 1 or num_values > _MAX_VALUES or len(rows) == 0:
        return None
    if any(((task.step.attribute,), right) in task.references for right in rights):
        return None
    if len(rights) == 1 and len(distinct_values(task.keys(rights)[rows])[0]) <= num_values:
        return None
    return deal_lines(task, rights, rows, rules, kept)


def _draw_dealt(task: Task, rows: IntArray, lines: Lines) -> IntArray:
    """Draw each row among the values whose line has its right sides."""
    values, run = listed_values(task.choices)
    line = np.minimum(np.searchsorted(lines.values, values), len(lines.values) - 1)
    held, owners = distinct_values(lines.of_row[rows])
    place = np.minimum(np.searchsorted(held, lines.owner[line]), len(held) - 1)
    is_owned = (lines.values[line] == values) & (held[place] == lines.owner[line])
    owner = np.where(is_owned, place, Owner.NOBODY)
    return _draw_rows(task, rows, owners, _Owned(owner, values, run, np.zeros(len(values)), wanted=lines.wanted[line]))


def _is_mapped(task: Task, rows: IntArray, rights: frozenset[str]) -> bool:
    """Whether maps say whose each value is, but for values that hardly any row has."""
    name, choices = task.step.attribute, task.choices
    if any(((name,), right) not in task.references for right in rights):
        return False
    open_maps = [each for right in rights if not (each := task.references[(name,), right]).learned]
    if not open_maps:
        return True
    values, value_run = listed_values(choices)
    unknown = np.logical_or.reduce([each.find({name: values}) < 0 for each in open_maps])
    by_bin = expected_of_owners(choices, rows, np.zeros(len(rows), dtype=np.int64))[0]
    mass = by_bin[choices.label[value_run]] * np.exp(choices.log_share(values, value_run))
    return bool(mass[unknown].sum() <= _MOST_UNKNOWN * mass.sum())


def _draw_mapped(task: Task, rows: IntArray, rights: tuple[str, ...]) -> IntArray:
    """Draw each row among the values that have its right sides in the maps; one that is null may be any.

    A model that knows the right sides says into which bin a row comes. One that does not knows the bins of all rows
    together, and values keep their frequency.

    Guarantees:
        Bins are as frequent beside right sides as the model has them.  [test_mapped_values_keep_the_models_bins]
        Rows hold values that the maps give their right sides.  [test_maps_of_all_right_sides_are_followed]
    """
    name = task.step.attribute
    values, value_run = listed_values(task.choices)
    found = [task.references[(name,), right].find({name: values}) for right in rights]
    known = np.logical_and.reduce([each >= 0 for each in found])
    values, value_run, found = values[known], value_run[known], [each[known] for each in found]
    codes = np.full(len(rows), DEAD, dtype=np.int64)
    knows = task.parents is None or task.parents.issuperset(rights)
    missing = np.stack([task.judge.is_null(right, task.columns[right][rows]) for right in rights])
    for pattern in np.unique(missing, axis=1).T:
        mine = np.flatnonzero((missing == pattern[:, None]).all(axis=0))
        there = [i for i in range(len(rights)) if not pattern[i]]
        both = [np.concatenate([found[i], task.columns[rights[i]][rows[mine]]]) for i in there]
        keys = join_keys(both)
        distinct, owners = distinct_values(keys[len(values) :])
        place = np.minimum(np.searchsorted(distinct, keys[: len(values)]), len(distinct) - 1)
        owner = np.where(distinct[place] == keys[: len(values)], place, Owner.FORBIDDEN)
        bins = task.choices.label[value_run]
        if knows:
            gain = _fill_bins(np.exp(task.choices.log_share(values, value_run)), owner, bins)
        else:
            gain = _raise(expected_of_owners(task.choices, rows[mine], owners), owner, bins)
        owned = _Owned(owner, values, value_run, gain, told=True)
        codes[mine] = _draw_rows(task, rows[mine], owners, owned)
    return codes


def _strays(owners: IntArray, choices: Choices) -> Mask:
    """Tell which rows have an owner too small to be one: far fewer rows than a value holds on average.

    A model that knows two right sides only roughly draws combinations that never occur. Each would take a value for a
    handful of rows, and the values left would be held by too many. Such rows are left without a value, and become
    copies of others; where they are many, the combinations are no mistake, nor where so many rows have values that are
    as rare.

    Guarantees:
        Rare combinations stay where values are as rare.  [test_rare_owners_of_rare_values_stay]
    """
    number, _ = number_values(owners)
    least = _STRAY * len(owners) / max(1, int(choices.width.sum()))
    small: Mask = (np.bincount(number) < least)[number]
    expected = expected_runs(choices)
    rare = expected[expected < least * choices.width].sum()
    plausible = small.sum() <= _AS_MANY * rare or small.mean() > _MOST_STRAYS
    return np.zeros(len(owners), dtype=np.bool_) if plausible else small


def _draw_among_owned(task: Task, rows: IntArray, owners: IntArray, rights: tuple[str, ...]) -> IntArray:
    choices = task.choices
    num_owners = int(owners.max()) + 1
    values, value_run = listed_values(choices)
    by_bin = expected_of_owners(choices, rows, owners)
    expected = by_bin[:, choices.label[value_run]] * np.exp(choices.log_share(values, value_run))[None, :]
    fixed = _fixed_owners(task, rows, owners, rights, values)
    sizes = np.bincount(owners, minlength=num_owners).astype(np.float64)
    owner = assign_owners(expected, sizes, fixed, choices.label[value_run])
    return _draw_rows(
        task, rows, owners, _Owned(owner, values, value_run, _raise(by_bin, owner, choices.label[value_run]))
    )


def _raise(by_bin: FloatArray, owner: IntArray, bins: IntArray) -> FloatArray:
    """Return by how much, in logarithms, a value weighs more with its owner: the rows it loses elsewhere come here.

    `by_bin` holds the expected rows of owners (lines) in bins; values of a bin gain alike.
    """
    here = by_bin[np.maximum(owner, 0), bins]
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.log(by_bin.sum(axis=0)[bins] / here)
    return np.where(np.isfinite(gain), gain, 0.0)


def _fill_bins(share: FloatArray, owner: IntArray, bins: IntArray) -> FloatArray:
    """Return by how much, in logarithms, a value weighs more among the values of a bin that one owner has.

    They have all of the bin then: its rows come to it as often as if it had no owners.
    """
    size = int(bins.max(initial=0)) + 1
    place = np.maximum(owner, 0) * size + bins
    held = np.bincount(place, weights=np.where(owner >= 0, share, 0.0))[place]
    with np.errstate(divide="ignore"):
        return np.where(held > 0, -np.log(held), 0.0)


@dataclass(frozen=True)
class _Owned:
    """Values with their owners, the runs they stand in, and what is added to their log weights.

    Where owners are `told`, by maps, rows have a value of theirs even where the model, which may be wrong, has none.
    With `wanted`, values share out the rows of their owner in proportion to it, whatever the model expects of them.
    """

    owner: IntArray
    values: IntArray
    run: IntArray
    gain: FloatArray
    told: bool = False
    wanted: FloatArray | None = None


def _draw_rows(task: Task, rows: IntArray, owners: IntArray, owned: _Owned) -> IntArray:
    """Draw the rows of each owner among its values, or null as often as the model has it."""
    choices = task.choices
    result = np.full(len(rows), DEAD, dtype=np.int64)
    by_owner, by_value = stable_order(owners), stable_order(owned.owner)
    num_owners = int(owners.max()) + 1
    row_ends = np.searchsorted(owners, np.arange(num_owners + 1), sorter=by_owner)
    value_ends = np.searchsorted(owned.owner, np.arange(num_owners + 1), sorter=by_value)
    gain = choices.log_share(owned.values, owned.run) + owned.gain
    for each in range(num_owners):
        mine = by_owner[row_ends[each] : row_ends[each + 1]]
        held = by_value[value_ends[each] : value_ends[each + 1]]
        codes = owned.values[held]
        used, context = distinct_values(choices.context[rows[mine]])
        weight = choices.log_weight[used[:, None], choices.label[owned.run[held]][None, :]] + gain[held][None, :]
        if owned.wanted is not None:
            weight += _to_want(weight, np.bincount(context, minlength=len(used)), owned.wanted[held])
        if owned.told:
            weight = np.where(np.isfinite(weight).any(axis=1, keepdims=True), weight, gain[held][None, :])
        if choices.null_bin is not None:
            codes = np.append(codes, choices.starts[choices.label == choices.null_bin])
            weight = _beside_null(weight, choices.log_weight[used], choices.null_bin)
        if len(codes) and len(mine):
            # Contexts of fewer rows than values cannot follow their shares one by one, but all together they can.
            together = len(mine) < len(used) * len(codes)
            among = np.zeros(len(mine), dtype=np.int64) if together else None
            place = draw_places(context, weight, task.rng, among=among)
            result[mine] = np.where(place < 0, DEAD, codes[place])
    return result


def _to_want(weight: FloatArray, counts: IntArray, wanted: FloatArray) -> FloatArray:
    """Return by how much, in logarithms, values weigh more so that rows (`counts` of each line) have what is wanted."""
    gain = np.zeros(weight.shape[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        for _ in range(_SCALINGS):
            step = np.log(wanted / (counts @ normalised(weight + gain)))
            gain += np.where(np.isfinite(step), step, 0.0)
    return gain


def _beside_null(weight: FloatArray, log_weight: FloatArray, null_bin: int) -> FloatArray:
    """Return the weights of values, brought to the chance of not being null, and that of null as the last column."""
    null = normalised(log_weight)[:, [null_bin]]
    with np.errstate(divide="ignore"):
        values = np.log(normalised(weight)) + np.log1p(-null)
        return np.concatenate([values, np.log(null)], axis=1)


def _fixed_owners(
    task: Task, rows: IntArray, owners: IntArray, rights: tuple[str, ...], values: IntArray
) -> IntArray | None:
    """Return the owners that public maps give: the owner itself where all rights are mapped and it occurs."""
    name = task.step.attribute
    maps = [task.references[(name,), right] for right in rights if ((name,), right) in task.references]
    if not maps:
        return None
    first = np.unique(owners, return_index=True)[1]
    agree = np.ones((len(first), len(values)), dtype=np.bool_)
    known = np.zeros(len(values), dtype=np.bool_)
    for each in maps:
        found = each.find({name: values})
        known |= found >= 0
        mine = task.columns[each.right][rows[first]]
        null = task.judge.is_null(each.right, mine)
        agree &= (mine[:, None] == found[None, :]) | (found < 0)[None, :] | null[:, None]
    return np.where(~known, Owner.NOBODY, np.where(agree.any(axis=0), np.argmax(agree, axis=0), Owner.FORBIDDEN))

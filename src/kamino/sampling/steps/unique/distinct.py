"""Values that all differ within each part: exact for small parts, mixed by random swaps for large ones."""

from __future__ import annotations

import enum

import numpy as np

from kamino.arrays import FloatArray, IntArray, stable_order
from kamino.sampling.codes.choices import Choices
from kamino.sampling.codes.stratified import normalised
from kamino.sampling.partners import DEAD

#: So many values for so many items of a part are drawn exactly.
EXACT_VALUES = 12
EXACT_ITEMS = 600
_ROUNDS = 20
_SWEEPS = 60
_SWEEP_WORK = 4_000_000
_LARGE_PART = 200
# Domains up to this size are listed to find values that are still free.
_LISTED = 1 << 22


class Place(enum.IntEnum):
    """What an item gets in place of a value: nothing, because all are used, or null."""

    NOTHING_LEFT = -1
    NULL = -2


def draw_distinct(choices: Choices, parts: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw a code for each item (a line of `choices.context`), all different within a part; null may repeat.

    Items for which no value is left are `DEAD`.
    """
    num_items, num_codes = len(parts), int(choices.width.sum())
    null = _null_code(choices)
    if num_codes - (null is not None) <= EXACT_VALUES and num_items <= EXACT_ITEMS:
        return _draw_exact(choices.by_code(), parts, null, rng)
    codes = _draw_apart(choices, parts, null, rng)
    # Fewer sweeps for very many items, whose values rarely clash.
    are_alike = len(choices.log_weight) == 1
    for _ in range(int(np.clip(_SWEEP_WORK // max(1, num_items), 4, _SWEEPS))):
        if not are_alike:
            _swap(codes, choices, parts, rng)
        _redraw(codes, choices, parts, null, rng)
    return _shuffled(codes, parts, rng) if are_alike else codes


def _shuffled(codes: IntArray, parts: IntArray, rng: np.random.Generator) -> IntArray:
    """Put the values of each part in random order: what all swaps lead to where items are alike to the model."""
    order, result = rng.permutation(len(codes)), np.empty_like(codes)
    result[stable_order(parts)] = codes[order[stable_order(parts[order])]]
    return result


def _null_code(choices: Choices) -> int | None:
    if choices.null_bin is None:
        return None
    return int(choices.starts[choices.label == choices.null_bin][0])


def _draw_exact(choices: Choices, parts: IntArray, null: int | None, rng: np.random.Generator) -> IntArray:
    """Draw part by part, item by item, weighing each value by how well the others can still be served."""
    codes = np.full(len(parts), DEAD, dtype=np.int64)
    probability = normalised(choices.log_weight)
    values = np.flatnonzero(choices.starts != (-1 if null is None else null))
    nulls = np.zeros(len(probability)) if null is None else probability[:, choices.starts == null][:, 0]
    for part in np.unique(parts):
        items = rng.permutation(np.flatnonzero(parts == part))
        own = probability[choices.context[items]][:, values]
        place = _subset_draw(own, nulls[choices.context[items]], rng)
        drawn = np.append(choices.starts[values], DEAD)[np.where(place >= 0, place, -1)]
        codes[items] = np.where(place == Place.NULL, DEAD if null is None else null, drawn)
    return codes


def _subset_draw(own: FloatArray, nulls: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw the place of a value, or a `Place`, for items in turn. Sums run over the sets of used values."""
    num_items, num_values = own.shape
    room = num_items if nulls.any() else min(num_items, num_values)
    sets = np.arange(1 << num_values)
    ahead = np.ones((room + 1, len(sets)))
    for item in range(room - 1, -1, -1):
        total = nulls[item] * ahead[item + 1]
        for value in range(num_values):
            free = (sets >> value) & 1 == 0
            total[free] += own[item, value] * ahead[item + 1][sets[free] | (1 << value)]
        ahead[item] = total / max(total.max(), 1e-300)
    result = np.full(num_items, Place.NOTHING_LEFT, dtype=np.int64)
    used = 0
    for item in range(room):
        free_value = np.array([(used >> value) & 1 == 0 for value in range(num_values)], dtype=np.bool_)
        after = ahead[item + 1][used | (1 << np.arange(num_values))] if num_values else np.zeros(0)
        weight = np.append(np.where(free_value, own[item] * after, 0.0), nulls[item] * ahead[item + 1][used])
        if weight.sum() <= 0:
            continue
        place = int(np.searchsorted(np.cumsum(weight), rng.random() * weight.sum(), side="right"))
        place = min(place, num_values)
        result[item] = Place.NULL if place == num_values else place
        used |= 0 if place == num_values else 1 << place
    return result


def _repeats(codes: IntArray, parts: IntArray, null: int | None) -> IntArray:
    """Return the items that hold a value that an item before them in the part holds; dead ones included."""
    order = stable_order(parts, codes)
    same = (codes[order][1:] == codes[order][:-1]) & (parts[order][1:] == parts[order][:-1])
    bad = np.zeros(len(codes), dtype=np.bool_)
    bad[order[1:][same]] = True
    if null is not None:
        bad &= codes != null
    return np.flatnonzero(bad | (codes == DEAD))


def _draw_apart(choices: Choices, parts: IntArray, null: int | None, rng: np.random.Generator) -> IntArray:
    """Draw freely, then again wherever a value repeats; at last hand out what is still free."""
    codes = choices.draw(rng)
    for _ in range(_ROUNDS):
        bad = _repeats(codes, parts, null)
        if len(bad) == 0:
            return codes
        codes[bad] = choices.draw(rng, bad, independent=True)
    bad = _repeats(codes, parts, null)
    codes[bad] = DEAD
    if int(choices.width.sum()) <= _LISTED:
        _hand_out(codes, bad, choices, parts, null, rng)
    else:
        for _ in range(100 * _ROUNDS):
            codes[bad] = choices.draw(rng, bad, independent=True)
            bad = _repeats(codes, parts, null)
            if len(bad) == 0:
                break
        codes[bad] = DEAD
    return codes


def _hand_out(
    codes: IntArray, bad: IntArray, choices: Choices, parts: IntArray, null: int | None, rng: np.random.Generator
) -> None:
    """Give the items left over random free values of their part, then null if it is allowed."""
    listed = choices.by_code().starts
    listed = listed[listed != (-1 if null is None else null)]
    order = np.argsort(parts, kind="stable")
    for part in np.unique(parts[bad]):
        low, high = np.searchsorted(parts, [part, part + 1], sorter=order)
        used = codes[order[low:high]]
        free = rng.permutation(np.setdiff1d(listed, used))
        mine = bad[parts[bad] == part]
        served = mine[: len(free)]
        codes[served] = free[: len(served)]
        if null is not None:
            codes[mine[len(served) :]] = null


def _swap(codes: IntArray, choices: Choices, parts: IntArray, rng: np.random.Generator) -> None:
    """Let random pairs of one part exchange their values, by the rule of Metropolis."""
    shuffled = rng.permutation(len(codes))
    order = shuffled[stable_order(parts[shuffled])]
    first, second = order[0 : len(order) - 1 : 2], order[1::2]
    fit = (parts[first] == parts[second]) & (codes[first] != DEAD) & (codes[second] != DEAD)
    first, second = first[fit], second[fit]
    gain = _gain(choices, codes, first, second)
    yes = np.log(rng.random(len(first))) < gain
    codes[first[yes]], codes[second[yes]] = codes[second[yes]], codes[first[yes]]


def _gain(choices: Choices, codes: IntArray, first: IntArray, second: IntArray) -> FloatArray:
    """The logarithm by which two items are likelier with each other's values; not a number where neither can be.

    How likely a value is in its bin is the same before and after, so bins alone decide.
    """
    one, other = (choices.bins_of(codes[items])[0] for items in (first, second))

    def weight(items: IntArray, bins: IntArray) -> FloatArray:
        return np.where(bins < 0, -np.inf, choices.log_weight[choices.context[items], bins])

    with np.errstate(invalid="ignore"):  # two that have what they cannot have, and could not have each other's, stay
        return weight(first, other) + weight(second, one) - (weight(first, one) + weight(second, other))


def _redraw(codes: IntArray, choices: Choices, parts: IntArray, null: int | None, rng: np.random.Generator) -> None:
    """Let one item of each part draw anew, and some more of large parts; it keeps the draw if nobody holds it.

    Drawing from an item's own law and keeping what is free leaves the joint law as it is. Several at once could get in
    each other's way, which is rare among many values and does not happen to one alone.
    """
    shuffled = rng.permutation(len(codes))
    _, first = np.unique(parts[shuffled], return_index=True)
    chosen = rng.random(len(codes)) < np.where(np.bincount(parts)[parts] > _LARGE_PART, 0.1, 0.0)
    chosen[shuffled[first]] = True
    items = np.flatnonzero(chosen & (codes != DEAD))
    drawn = choices.draw(rng, items, independent=True)
    everyone = np.concatenate([codes, drawn])
    taken = np.zeros(len(everyone), dtype=np.bool_)
    taken[_repeats(everyone, np.concatenate([parts, parts[items]]), null)] = True
    keep = ~taken[len(codes) :]
    codes[items[keep]] = drawn[keep]

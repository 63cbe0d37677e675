"""Which maps of dependencies were learned: from the model and the noise of what was released alone.

A hard dependency X -> y gives every x, a value or a combination of values, one y. Whether it is the y of the original
is estimated from what is public: the model says how much of the rows of x it gives to their likeliest y; the ledger
says how much noise the counts had that tell of it. A count of n rows stays the largest of K cells with noise sigma with
probability E[Phi(n / sigma + z) ^ (K - 1)], z standard normal: more than that is nobody's knowledge, however sure the
model is. Where x was measured together with y, that is the estimate. Where only parts of X were, the model puts them
together, and what it gives to the likeliest y is right about as often; rows of a group agree, which makes the draw a
little surer than that. Values that share a bin of the model share what is known of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from kamino.arrays import FloatArray, IntArray
from kamino.constraints import DenialConstraint, print_constraint
from kamino.constraints.analysis.classify import dependency_of
from kamino.constraints.language.printer import print_name
from kamino.late_imports import special_function
from kamino.model import MarginalModel
from kamino.pipeline.fitted import Fitted
from kamino.schema import Categorical

# Of these shares a map is called learned, and learned in part.
LEARNED, IN_PART = 0.9, 0.5
#: The true share lies within so much of the expected one, for at least 90 of 100 maps.
WITHIN = 0.2
# Wider domains than this are not gone through: noise hides their maps anyway. Nor are larger tables of bins.
_MOST_VALUES, _MOST_CELLS = 1_000_000, 2_000_000
# Of what a group adds to the share of the likeliest value, by the noise at most, so much comes true; values of one bin
# are told apart by the sizes of groups, better than by chance. Both from runs on made-up maps of six kinds.
_AGREED, _TOLD_APART = 0.25, 1 / 3
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


def expected_right(fitted: Fitted, constraint: DenialConstraint) -> float | None:
    """The expected share of rows whose right side is the likeliest one of the original; None where it is not known.

    A reference table makes it 1, and so does a part of the left side that the right side follows. Where the pair was
    not measured, it is what chance gives.

    Guarantees:
        It is near the true share.  [test_expected_shares_of_maps_are_near_the_true_ones]
        It is within `WITHIN` for 90 of 100 maps of many kinds.  [test_expected_shares_hold_for_maps_of_many_kinds]
        Rows of which the left side is only known to be another are right by chance.  [test_other_has_no_map]
    """
    dependency = dependency_of(constraint) if constraint.is_hard else None
    if dependency is None or any(name not in fitted.codec.attributes for name in constraint.attributes):
        return None
    left, right = tuple(sorted(dependency.left)), dependency.right
    if (left, right) in fitted.references:
        return 1.0
    model = fitted.model
    if not isinstance(model, MarginalModel):
        return None
    if any((each.left, each.right) == (*left, right) for each in model.maps):
        return 1.0
    if fitted.codec[right].size > _MOST_VALUES:
        return 0.0
    values = model.marginal((right,))
    chance = float((values**2).sum())
    sigma = _sigma(fitted, left, right)
    if sigma is None or any(fitted.codec[name].size > _MOST_VALUES for name in left):
        return chance
    sides = [_left_side(fitted, model, name) for name in left]
    cells = math.prod(len(side.alone) for side in sides) * model.node(right).cells.map.bins
    if cells > _MOST_CELLS:
        return chance
    return min(1.0, max(chance, _share(model, sides, right, sigma, chance)))


@dataclass(frozen=True, kw_only=True, eq=False)
class _LeftSide:
    """One attribute of a left side in the bins of the model.

    alone: the share of a bin that its typical value has, 1 where it has one value. other: the share of `other` in it.
    """

    name: str
    alone: FloatArray
    other: FloatArray


def _left_side(fitted: Fitted, model: MarginalModel, name: str) -> _LeftSide:
    owners, code_map = model.marginal((name,)), model.node(name).cells.map
    bin_of = code_map(np.arange(len(owners), dtype=np.int64))
    part = _part_of(owners, _sums(bin_of, owners, code_map.bins)[bin_of])
    anything, other = _code_of_other(fitted, name), np.zeros(code_map.bins)
    if anything is not None:  # stands for many values, of which each had a right side of its own
        other[bin_of[anything]] = part[anything]
    return _LeftSide(name=name, alone=_sums(bin_of, part**2, code_map.bins), other=other)


def _share(
    model: MarginalModel, sides: Sequence[_LeftSide], right: str, sigma: tuple[float, bool], chance: float
) -> float:
    """The expected share of rows whose right side is that of the original."""
    noise, together = sigma
    right_map, values = model.node(right).cells.map, model.marginal((right,))
    joint = np.asarray(model.bin_marginal((*(side.name for side in sides), right))).reshape(-1, right_map.bins)
    rows = joint.sum(axis=1)
    given = _part_of(joint, rows[:, None])
    alone = reduce(np.multiply.outer, [side.alone for side in sides]).ravel()
    others = 1 - reduce(np.multiply.outer, [1 - side.other for side in sides]).ravel()
    most = chance_of_largest(model.num_rows * rows * alone, noise, right_map.bins)
    likeliest = given.max(axis=1)
    found = most if together else np.minimum(likeliest + _AGREED * np.maximum(most - likeliest, 0.0), most)
    # Of values that share a bin, the groups are dealt out as often as the model has each right side.
    in_bin = chance_of_largest(model.num_rows * rows, noise, right_map.bins)
    bin_of = right_map(np.arange(len(values), dtype=np.int64))
    of_bin = _sums(bin_of, values, right_map.bins)
    dealt = np.minimum((given**2).sum(axis=1), in_bin) * in_bin + (1 - in_bin) * float((of_bin**2).sum())
    inside = float((values * _part_of(values, of_bin[bin_of]) ** _TOLD_APART).sum())
    told = (alone * found + (1 - alone) * dealt) * inside
    return float((rows * ((1 - others) * told + others * chance)).sum())


def _sums(bins: IntArray, parts: FloatArray, count: int) -> FloatArray:
    """The sum of the parts in each bin."""
    return np.asarray(np.bincount(bins, weights=parts, minlength=count), dtype=np.float64)


def _part_of(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Parts of wholes; 0 of those that are nothing."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(whole > 0, part / whole, 0.0), dtype=np.float64)


def _code_of_other(fitted: Fitted, name: str) -> int | None:
    """The code of the category that stands for anything else; None where there is none."""
    attribute = fitted.schema[name]
    if not isinstance(attribute, Categorical) or attribute.other is None:
        return None
    return list(attribute.categories).index(attribute.other)


def _sigma(fitted: Fitted, left: Sequence[str], right: str) -> tuple[float, bool] | None:
    """The noise of the counts that tell of a map, and whether all its attributes were measured together.

    All releases count that hold the right side and, if some hold all of the left side, all of that; else any part of
    it. None where there is none. An interaction, which is measured in other units than counts, tells as much of them as
    its noise multiplier says. What is measured of more attributes is summed over the others.
    """
    counts = [entry for entry in fitted.ledger["entries"] if entry["kind"] == "counts"]
    some = [each for each in counts if right in each["attributes"] and set(left) & set(each["attributes"])]
    every = [each for each in some if set(left) <= set(each["attributes"])]
    used, model = every or some, fitted.model
    if not used or not isinstance(model, MarginalModel):
        return None
    if any(not each["sigma"] for each in used):
        return 0.0, bool(every)
    unit = next(each["sensitivity"] for each in counts if len(each["attributes"]) == 1)
    weight = 0.0
    for each in used:
        told = [name for name in each["attributes"] if name in left or name == right]
        cells = math.prod(model.node(name).cells.map.bins for name in told)
        noise = each["noise_multiplier"] * unit * math.sqrt(max(1.0, math.prod(each["shape"]) / cells))
        weight += noise**-2
    return float(weight**-0.5), bool(every)


def chance_of_largest(counts: FloatArray, sigma: float, cells: int) -> FloatArray:
    """The probability that a count stays the largest of `cells`, the others being 0, once all have noise `sigma`.

    >>> chance_of_largest(np.array([0.0, 100.0]), 5.0, 2).round(3).tolist()
    [0.5, 1.0]
    """
    if sigma == 0:
        return np.ones(len(counts))
    log_ndtr = special_function("log_ndtr")
    shown, place = np.unique(np.round(counts / sigma, 2), return_inverse=True)
    powers = np.exp((cells - 1) * log_ndtr(shown[:, None] + _NODES[None, :]))
    return np.asarray((powers @ _WEIGHTS / _WEIGHTS.sum())[place], dtype=np.float64)


def _has_other(fitted: Fitted, constraint: DenialConstraint) -> str:
    dependency = dependency_of(constraint)
    left = sorted(dependency.left) if dependency is not None else []
    names = [print_name(name) for name in left if _code_of_other(fitted, name) is not None]
    return f" ({', '.join(names)}: other stands for many values, and has one right side)" if names else ""


def map_notes(fitted: Fitted, constraints: Iterable[DenialConstraint]) -> tuple[str, ...]:
    """A line for each dependency whose map was not learned, or in part only."""
    notes = []
    for constraint in constraints:
        share = expected_right(fitted, constraint)
        if share is None or share >= LEARNED:
            continue
        how = "was not learned" if share < IN_PART else "was learned in part"
        others = _has_other(fitted, constraint)
        notes.append(
            f"{print_constraint(constraint)}: the map {how}: about {share:.0%} of the rows (give or take "
            f"{100 * WITHIN:.0f} in 100) have the right side that goes with their left side in the original{others}. "
            "Give it as a public table (using FILE), or do not rely on it"
        )
    return tuple(notes)

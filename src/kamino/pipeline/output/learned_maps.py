"""Which maps of dependencies were learned: from the noise of what was released alone.

A hard dependency x -> y gives every x one y. Whether it is the y of the original depends on how far the counts of the
pair stand out of their noise. For a value x with n rows, all of which have one y, its cell is the largest of K cells
with noise sigma with probability E[Phi(n / sigma + z) ^ (K - 1)], z standard normal. All of it is public: n from the
released distribution, sigma from the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from kamino.arrays import FloatArray
from kamino.constraints import DenialConstraint, print_constraint
from kamino.constraints.analysis.classify import dependency_of
from kamino.constraints.language.printer import print_name
from kamino.late_imports import special_function
from kamino.model import MarginalModel
from kamino.pipeline.fitted import Fitted
from kamino.schema import Categorical

# Of these shares a map is called learned, and learned in part.
LEARNED, IN_PART = 0.9, 0.5
# Wider domains than this are not gone through: noise hides their maps anyway.
_MOST_VALUES = 1_000_000
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


def expected_right(fitted: Fitted, constraint: DenialConstraint) -> float | None:
    """The expected share of rows whose right side is the likeliest one of the original; None where it is not known.

    A reference table makes it 1, and so does a part of the left side that the right side follows. Where the pair was
    not measured, it is what chance gives.

    Guarantees:
        It is near the true share.  [test_expected_shares_of_maps_are_near_the_true_ones]
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
    if len(left) > 1 or fitted.codec[left[0]].size > _MOST_VALUES:
        return chance
    sigma = _sigma(fitted, {left[0], right})
    if sigma is None:
        return chance
    learned, owners = _learned(model, left[0], right, values, sigma), model.marginal((left[0],))
    anything = _code_of_other(fitted, left[0])
    if anything is not None:  # stands for many values, of which each had a right side of its own
        learned[anything] = chance
    return max(chance, float((owners * learned).sum()))


def _code_of_other(fitted: Fitted, name: str) -> int | None:
    """The code of the category that stands for anything else; None where there is none."""
    attribute = fitted.schema[name]
    if not isinstance(attribute, Categorical) or attribute.other is None:
        return None
    return list(attribute.categories).index(attribute.other)


def _sigma(fitted: Fitted, names: set[str]) -> float | None:
    """The noise of the counts of a pair, all releases that hold both together; None where there is none.

    An interaction, which is measured in other units than counts, tells as much of them as its noise multiplier says.
    What is measured of more attributes than the two is summed over the others.
    """
    counts = [entry for entry in fitted.ledger["entries"] if entry["kind"] == "counts"]
    both = [entry for entry in counts if names <= set(entry["attributes"])]
    if not both or not isinstance(fitted.model, MarginalModel):
        return None
    if any(not entry["sigma"] for entry in both):
        return 0.0
    unit = next(entry["sensitivity"] for entry in counts if len(entry["attributes"]) == 1)
    cells = math.prod(fitted.model.node(name).cells.map.bins for name in names)
    noise = [
        entry["noise_multiplier"] * unit * math.sqrt(max(1.0, math.prod(entry["shape"]) / cells)) for entry in both
    ]
    return float(sum(each**-2 for each in noise) ** -0.5)


def _learned(model: MarginalModel, left: str, right: str, values: FloatArray, sigma: float) -> FloatArray:
    """For each value of the left side, how likely its rows get the right side of the original."""
    owners = model.marginal((left,))
    bin_of = model.node(left).cells.map(np.arange(len(owners), dtype=np.int64))
    in_bin = np.bincount(bin_of, weights=owners)[bin_of]
    right_map = model.node(right).cells.map
    right_bin = right_map(np.arange(len(values), dtype=np.int64))
    of_bin = np.bincount(right_bin, weights=values, minlength=right_map.bins)[right_bin]
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = np.where(in_bin > 0, owners / in_bin, 0.0)
        inside = float(np.where(of_bin > 0, values**2 / of_bin, 0.0).sum())
    found = chance_of_largest(model.num_rows * owners, sigma, right_map.bins)
    return np.asarray(found * alone * inside, dtype=np.float64)


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
            f"{print_constraint(constraint)}: the map {how}: about {share:.0%} of the rows have the right side that "
            f"goes with their left side in the original{others}. Give it as a public table (using FILE), or do not "
            "rely on it"
        )
    return tuple(notes)

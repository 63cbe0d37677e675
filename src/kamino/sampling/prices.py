"""What one violation of a soft constraint costs, from its weight."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from kamino.constraints import DenialConstraint
from kamino.constraints.tree import Kind


class PerViolation(float):
    """A weight for each violation, as in the paper: exp(-w |V|). A plain number is for violations over rows."""


Weights: TypeAlias = Mapping[DenialConstraint, float]


def price_of(constraint: DenialConstraint, weights: Weights, num_rows: int) -> float:
    """Return what one violation costs in a table of `num_rows` rows.

    A weight that stands in the constraint is that price, as in the paper: exp(-w |V|), and so is one that is
    `PerViolation`. A weight that was found by matching is for the number of violating pairs over the number of rows:
    exp(-w |V| / n). A row's partners among n rows grow with n, so their share of the rows does not: the same weight
    gives the same rate at any size.

    Guarantees:
        A weight found on a few rows holds for many.  [test_weights_do_not_depend_on_size]
        The paper's weights are the price itself.  [test_prices_say_what_weights_mean]
    """
    if constraint.strength.kind is Kind.WEIGHTED:
        return constraint.strength.weight or 0.0
    weight = weights.get(constraint, 0.0)
    if isinstance(weight, PerViolation) or constraint.is_unary:
        return float(weight)
    return weight / num_rows

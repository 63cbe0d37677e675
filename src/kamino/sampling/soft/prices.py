"""What one violation of a soft constraint costs, from its weight."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kamino.constraints import DenialConstraint
from kamino.constraints.tree import Kind


class Per(enum.Enum):
    """What a weight is multiplied by."""

    VIOLATION = "violation"
    VIOLATIONS_OVER_ROWS = "violations over rows"


@dataclass(frozen=True)
class Weight:
    """The weight w of a soft constraint: a table with violations V among n rows is exp(-w |V|) times as likely, as in
    the paper, or exp(-w |V| / n).

    A row's partners among n rows grow with n, so their share of the rows does not: a weight over rows gives the same
    rate at any size.
    """

    value: float
    per: Per = Per.VIOLATIONS_OVER_ROWS


Weights: TypeAlias = Mapping[DenialConstraint, Weight]


def price_of(constraint: DenialConstraint, weights: Weights, num_rows: int) -> float:
    """Return what one violation costs in a table of `num_rows` rows.

    A weight that stands in the constraint is that price, as in the paper.

    Guarantees:
        A weight found on a few rows holds for many.  [test_weights_do_not_depend_on_size]
        The paper's weights are the price itself.  [test_prices_say_what_weights_mean]
    """
    if constraint.strength.kind is Kind.WEIGHTED:
        return constraint.strength.weight or 0.0
    weight = weights.get(constraint)
    if weight is None:
        return 0.0
    per_violation = weight.per is Per.VIOLATION or constraint.is_unary
    return weight.value if per_violation else weight.value / num_rows

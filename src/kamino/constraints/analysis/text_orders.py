"""Constraints that order text: '10/23/64' comes before '9/1/64', which is seldom what was meant."""

from __future__ import annotations

from collections.abc import Iterable

from kamino.constraints.tree import Comparison, DenialConstraint
from kamino.constraints.types import ValueType, ValueTypes


def text_order_notes(constraints: Iterable[DenialConstraint], types: ValueTypes) -> tuple[str, ...]:
    """A line for each constraint that asks which of two texts is the smaller one.

    Guarantees:
        Orders of numbers and dates are not named.  [test_ordering_text_is_warned_of]
    """
    notes: dict[str, None] = {}
    for constraint in constraints:
        for predicate in constraint.predicates:
            if not isinstance(predicate, Comparison) or not predicate.op.is_order:
                continue
            names = sorted({column.name for column in predicate.columns if types.get(column.name) is ValueType.TEXT})
            if names:
                notes[
                    f"{constraint.place}: compares text ({', '.join(names)}): '10/23/64' < '9/1/64', and '10' < '9'; "
                    "declare a date (with its format) or a number, if it is one"
                ] = None
    return tuple(notes)

"""Rules that are counted but not drawn yet: refused before anything is spent."""

from __future__ import annotations

from kamino.constraints import Constraints, print_constraint
from kamino.constraints.language.printer import print_derivation, print_rule
from kamino.errors import SamplingError


def refuse_undrawable(constraints: Constraints) -> None:
    """Refuse what no step of sampling draws; `kamino check` counts it.

    Guarantees:
        Nothing is spent before that is said.  [test_what_is_not_drawn_is_refused_before_spending]

    Raises:
        SamplingError: one line that names the first such rule and its place.
    """
    for rule in constraints.group_rules:
        raise _error(rule.place, print_rule(rule), "a rule on groups of rows")
    for derivation in constraints.derivations:
        raise _error(derivation.place, print_derivation(derivation), "a derived column")
    for constraint in constraints:
        if constraint.has_terms and not (constraint.is_unary and constraint.is_hard):
            raise _error(
                constraint.place,
                print_constraint(constraint),
                "a rule on computed terms of several rows, or a soft one,",
            )


def _error(place: object, text: str, what: str) -> SamplingError:
    return SamplingError(
        f"{place}: found {what}, which is counted, and not drawn yet: {text}. Take it out of the rules of "
        "this run, or put what it asks into a schema"
    )

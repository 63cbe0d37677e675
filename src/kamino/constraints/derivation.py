"""A derived column: `name := term`, computed from the other values of its row, never measured and never drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kamino.constraints.tree import NOWHERE, Column, Place
from kamino.errors import ConstraintError

if TYPE_CHECKING:
    from kamino.constraints.terms.term import Term


@dataclass(frozen=True)
class Derivation:
    """Column `target` holds the value of `term` in every row.

    `kamino.constraints.terms.evaluation.evaluate(derivation.term, columns)` computes it.
    """

    target: str
    term: Term
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.target in self.reads:
            raise ConstraintError(
                f"found '{self.target}' on both sides of ':=', expected it to be computed from others"
            )

    @property
    def reads(self) -> tuple[str, ...]:
        """The attributes it is computed from, each once."""
        return tuple(dict.fromkeys(column.name for column in self.term.columns))

    @property
    def column(self) -> Column:
        """The column it makes."""
        return Column(self.target, place=self.place)


def in_order(derivations: tuple[Derivation, ...]) -> tuple[Derivation, ...]:
    """The derivations so that each comes after those it is computed from.

    Raises:
        ConstraintError: two of one column, or a circle.
    """
    by_target: dict[str, Derivation] = {}
    for each in derivations:
        if each.target in by_target:
            raise _error(each, f"found a second derivation of '{each.target}', expected one")
        by_target[each.target] = each
    found: dict[str, Derivation] = {}
    waiting = dict(by_target)
    while waiting:
        ready = [each for each in waiting.values() if not any(name in waiting for name in each.reads)]
        if not ready:
            circle = ", ".join(f"'{name}'" for name in waiting)
            raise _error(next(iter(waiting.values())), f"found derivations in a circle: {circle}; expected none")
        for each in ready:
            found[each.target] = waiting.pop(each.target)
    return tuple(found.values())


def _error(derivation: Derivation, message: str) -> ConstraintError:
    at = derivation.place
    return ConstraintError(message, source=at.source, line=at.line, column=at.column)

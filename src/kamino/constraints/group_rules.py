"""Rules on groups of rows: how many there are, what they add up to, numbers without a gap; and on several rows."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from kamino.constraints.tree import HARD, NOWHERE, Column, Kind, Place, Predicate, Strength
from kamino.errors import ConstraintError

if TYPE_CHECKING:
    from kamino.constraints.terms.term import Term

Bound = int | Decimal


class Measure(enum.Enum):
    """What is found of the rows of a group. All but `ROWS` pass over nulls."""

    ROWS = "count"
    DISTINCT = "distinct"
    SUM = "sum"
    LEAST = "least"
    MOST = "most"
    MEAN = "mean"
    GAPLESS = "gapless"


@dataclass(frozen=True, kw_only=True)
class GroupRule:
    """In each group of rows with equal `per`, what is found of `term` where `where` is true lies from `low` to `high`.

    Rows without a value in `per` belong to no group; without `per`, all rows are one. `GAPLESS` says that the numbers
    are `low`, `low` + 1, … without a gap and each once; from any number where `low` is None.
    """

    measure: Measure
    term: Term | None = None
    per: tuple[str, ...] = ()
    where: Term | None = None
    low: Bound | None = None
    high: Bound | None = None
    strength: Strength = HARD
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        if (self.measure is Measure.ROWS) != (self.term is None):
            raise ConstraintError("found a count of a term or another measure of none; expected count, or sum(term)")
        if self.measure is not Measure.GAPLESS and self.low is None and self.high is None:
            raise ConstraintError("found no bound of a group, expected '= 1', '<= 7' or 'between 1 and 7'")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise ConstraintError(f"found bounds from {self.low} to {self.high}, which no group can keep")

    def columns(self) -> Iterator[Column]:
        """Every column that it reads."""
        yield from (Column(name) for name in self.per)
        for term in (self.term, self.where):
            if term is not None:
                yield from term.columns

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes it reads, each once."""
        return tuple(dict.fromkeys(column.name for column in self.columns()))

    @property
    def is_hard(self) -> bool:
        """Whether it must hold without exception."""
        return self.strength.kind is Kind.HARD


@dataclass(frozen=True, kw_only=True)
class RowsRule:
    """No three or more different rows `t1`, `t2`, `t3`, … make every predicate true."""

    predicates: tuple[Predicate, ...]
    strength: Strength = HARD
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        numbers = {column.tuple for column in self.columns()}
        if numbers != set(range(1, len(numbers) + 1)) or len(numbers) < 3:
            raise ConstraintError("found tuple variables with a gap, expected t1, t2, t3 and so on")
        object.__setattr__(self, "predicates", tuple(dict.fromkeys(self.predicates)))

    def columns(self) -> Iterator[Column]:
        """Every column, in the order of the text."""
        for predicate in self.predicates:
            yield from predicate.columns

    @property
    def tuples(self) -> int:
        """Of how many rows it speaks."""
        return max(column.tuple for column in self.columns())

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes it reads, each once."""
        return tuple(dict.fromkeys(column.name for column in self.columns()))

    @property
    def is_hard(self) -> bool:
        """Whether it must hold without exception."""
        return self.strength.kind is Kind.HARD

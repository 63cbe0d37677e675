"""The tree a constraint is: a conjunction of predicates over one or two tuples that must never hold.

A table violates a denial constraint where some row `t1` (or some pair of different rows `t1`, `t2`) makes every
predicate true. A comparison with null is not true, so it violates nothing.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, TypeGuard

from kamino.errors import ConstraintError

if TYPE_CHECKING:
    from kamino.constraints.terms.term import Term

MOST_TUPLES = 6
"""Of one constraint: the work of looking for rows that break it grows with every one."""

ConstantValue = bool | int | Decimal | str | date | datetime


class Operator(enum.Enum):
    """A comparison. `negated` is its complement among non-null values, `mirrored` swaps the two sides."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    @property
    def negated(self) -> Operator:
        """The operator that is true exactly where this one is false."""
        return _NEGATED[self]

    @property
    def mirrored(self) -> Operator:
        """The operator that says the same with its sides swapped."""
        return _MIRRORED[self]

    @property
    def is_order(self) -> bool:
        """Whether the operator needs an order of the values."""
        return self not in (Operator.EQ, Operator.NE)


_NEGATED = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.LE: Operator.GT,
    Operator.GT: Operator.LE,
    Operator.GE: Operator.LT,
}
_MIRRORED = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}


@dataclass(frozen=True)
class Place:
    """Where in a text something stands; lines and columns count from 1."""

    source: str = "<text>"
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}"


NOWHERE = Place()


@dataclass(frozen=True)
class Column:
    """Attribute `name` of tuple variable `t{tuple}`."""

    name: str
    tuple: int = 1
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.tuple <= MOST_TUPLES:
            raise ConstraintError(f"found tuple variable t{self.tuple}; only t1 to t{MOST_TUPLES} can be used")
        if not self.name:
            raise ConstraintError("found an empty attribute name; expected at least one character")
        _refuse_line_breaks(self.name)

    @property
    def columns(self) -> ReadColumns:
        """Itself, as the columns that a term reads."""
        return (self,)


def _refuse_line_breaks(text: str) -> None:
    """One constraint stands on one line, so nothing in it may hold a line break."""
    if "\n" in text or "\r" in text:
        raise ConstraintError("found a line break inside a name or a text; a constraint stands on one line")


ReadColumns = tuple[Column, ...]


@dataclass(frozen=True)
class Constant:
    """A value written in the constraint. Equal constants have equal values of one type.

    A fraction is kept as it is written, as a `Decimal`: 0.1 means one tenth, whatever it is compared with.
    """

    value: ConstantValue
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.value, float):
            object.__setattr__(self, "value", Decimal(repr(self.value)))
        if isinstance(self.value, Decimal):
            if not self.value.is_finite():
                raise ConstraintError(f"found the constant {self.value}; a constant must be finite")
            if self.value == self.value.to_integral_value() and self.value.as_tuple().exponent == 0:
                object.__setattr__(self, "value", int(self.value))
        if isinstance(self.value, str):
            _refuse_line_breaks(self.value)

    @property
    def columns(self) -> tuple[Column, ...]:
        """None: a constant reads no column."""
        return ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True)
class Comparison:
    """`left op right`; true only where both sides are not null."""

    left: Column
    op: Operator
    right: Column | Constant

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns it reads, left first."""
        return (self.left, self.right) if isinstance(self.right, Column) else (self.left,)


@dataclass(frozen=True)
class NullTest:
    """`column is null`, or `column is not null` where `negated`."""

    column: Column
    negated: bool = False

    @property
    def columns(self) -> tuple[Column, ...]:
        """The column it reads, as a tuple."""
        return (self.column,)


@dataclass(frozen=True)
class TermTest:
    """`left op right` of two terms that are more than a column and a constant; true only where both have a value.

    Each side reads one tuple. A term that is true or false is tested as `left = true`, or `left != true` if negated.
    """

    left: Term
    op: Operator
    right: Term

    def __post_init__(self) -> None:
        for side in (self.left, self.right):
            if len({column.tuple for column in side.columns}) > 1:
                raise ConstraintError(
                    "found a term over two tuples; expected each side of a comparison to read one, such as "
                    "t1.a + 5 < t2.a"
                )

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns it reads, left first."""
        return (*self.left.columns, *self.right.columns)


Predicate = Comparison | NullTest | TermTest


def plain_comparison(predicate: Predicate) -> TypeGuard[Comparison]:
    """Whether the predicate compares a column with a column or a constant, as those ask who match on columns."""
    return isinstance(predicate, Comparison)


class Kind(enum.Enum):
    """How strongly a constraint binds."""

    HARD = "hard"
    SOFT = "soft"
    WEIGHTED = "weighted"


@dataclass(frozen=True)
class Strength:
    """Hard, soft with a weight to be found, or soft with a given weight."""

    kind: Kind = Kind.HARD
    weight: float | None = None

    def __post_init__(self) -> None:
        if (self.kind is Kind.WEIGHTED) != (self.weight is not None):
            raise ConstraintError("a weight belongs to a weighted constraint, and only to one")
        if self.weight is not None and not (math.isfinite(self.weight) and self.weight >= 0):
            raise ConstraintError(f"found weight {self.weight}; a weight is a finite number, zero or more")


HARD = Strength()
SOFT = Strength(kind=Kind.SOFT)


@dataclass(frozen=True, kw_only=True)
class DenialConstraint:
    """The predicates never all hold: `not (p1 and p2 and ...)`.

    `reference` is the path of a public table that holds the map of a functional dependency.

    Guarantees:
        At least one predicate, none twice, and a constraint on one tuple speaks of `t1`.  [test_tree_invariants]
    """

    predicates: tuple[Predicate, ...]
    strength: Strength = HARD
    reference: str | None = None
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.predicates:
            raise ConstraintError("found a constraint without predicates; write at least one")
        object.__setattr__(self, "predicates", tuple(dict.fromkeys(self.predicates)))
        if self.reference is not None:
            _refuse_line_breaks(self.reference)
        tuples = {column.tuple for column in self.columns()}
        if tuples - {1, 2}:
            raise ConstraintError(f"found tuple variable t{max(tuples)}; only t1 and t2 can be used here")
        if tuples == {2}:
            raise ConstraintError("found only t2; a constraint on one tuple speaks of t1")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once: constraints are looked up far more often than they are made."""
        return hash((self.predicates, self.strength, self.reference))

    def __getstate__(self) -> dict[str, object]:
        # Hashes of texts differ from process to process.
        return {each.name: self.__dict__[each.name] for each in fields(self)}

    def columns(self) -> Iterator[Column]:
        """Every column, in the order of the text, with repeats."""
        for predicate in self.predicates:
            yield from predicate.columns

    @cached_property
    def attributes(self) -> tuple[str, ...]:
        """The attributes it reads, each once, in the order of the text."""
        return tuple(dict.fromkeys(column.name for column in self.columns()))

    @cached_property
    def is_unary(self) -> bool:
        """Whether it speaks of single rows."""
        return all(column.tuple == 1 for column in self.columns())

    @property
    def has_terms(self) -> bool:
        """Whether a side of some comparison is more than a column or a constant."""
        return any(isinstance(predicate, TermTest) for predicate in self.predicates)

    @property
    def is_hard(self) -> bool:
        """Whether it must hold without exception."""
        return self.strength.kind is Kind.HARD

    def with_predicates(self, predicates: tuple[Predicate, ...]) -> DenialConstraint:
        """The same constraint with other predicates."""
        return replace(self, predicates=predicates)


def swapped(predicate: Predicate) -> Predicate:
    """The predicate with `t1` and `t2` exchanged, its own left side kept left."""
    match predicate:
        case Comparison(left=left, op=op, right=right):
            other = _swap_column(right) if isinstance(right, Column) else right
            return Comparison(_swap_column(left), op, other)
        case NullTest(column=column, negated=negated):
            return NullTest(_swap_column(column), negated)
        case TermTest(left=first, op=op, right=second):
            return TermTest(_swap_term(first), op, _swap_term(second))


def _swap_term(term: Term) -> Term:
    from kamino.constraints.terms.term import with_tuple

    return with_tuple(term, 3 - term.columns[0].tuple) if term.columns else term


def _swap_column(column: Column) -> Column:
    return replace(column, tuple=3 - column.tuple)


def oriented(predicate: Predicate) -> Predicate:
    """A cross-tuple comparison written with `t1` on the left; anything else unchanged."""
    match predicate:
        case Comparison(left=Column(tuple=2) as left, op=op, right=Column(tuple=1) as right):
            return Comparison(right, op.mirrored, left)
        case TermTest(left=left, op=op, right=right) if [c.tuple for c in predicate.columns][:1] == [2] and is_cross(
            predicate
        ):
            return TermTest(right, op.mirrored, left)
        case _:
            return predicate


def is_cross(predicate: Predicate) -> bool:
    """Whether the predicate compares `t1` with `t2`."""
    return len({column.tuple for column in predicate.columns}) == 2

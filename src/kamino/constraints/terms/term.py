"""A term: an attribute, a constant, or a function of terms, with a value for each row.

A function of null is null, but for `coalesce`, the null test and the logic of three values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from kamino.constraints.terms.term_functions import FUNCTIONS
from kamino.constraints.tree import (
    NOWHERE,
    Column,
    Comparison,
    Constant,
    NullTest,
    Place,
    Predicate,
    TermTest,
)
from kamino.errors import ConstraintError
from kamino.limits import MAX_DEPTH


@dataclass(frozen=True)
class Apply:
    """A function of terms, by its name in `FUNCTIONS`."""

    function: str
    arguments: tuple[Term, ...]
    place: Place = field(default=NOWHERE, compare=False, repr=False)

    def __post_init__(self) -> None:
        known = FUNCTIONS.get(self.function)
        if known is None:
            raise ConstraintError(f"found the function '{self.function}', expected one of {', '.join(FUNCTIONS)}")
        if not known.least <= len(self.arguments) <= known.most:
            raise ConstraintError(
                f"found {len(self.arguments)} arguments of '{self.function}', expected {known.counts}"
            )

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns it reads, in the order of the text, with repeats."""
        return tuple(column for argument in self.arguments for column in argument.columns)

    @property
    def depth(self) -> int:
        """How many functions stand within each other."""
        return 1 + max((each.depth for each in self.arguments if isinstance(each, Apply)), default=0)


Term = Column | Constant | Apply


def walk(term: Term) -> Iterator[Term]:
    """The term and everything in it, outermost first."""
    yield term
    if isinstance(term, Apply):
        for argument in term.arguments:
            yield from walk(argument)


def with_tuple(term: Term, number: int) -> Term:
    """The term as one of another tuple variable."""
    match term:
        case Column():
            return replace(term, tuple=number)
        case Apply():
            return replace(term, arguments=tuple(with_tuple(each, number) for each in term.arguments))
        case _:
            return term


def renamed(term: Term, to: Callable[[Column], Column]) -> Term:
    """The term with other columns in the place of its own."""
    match term:
        case Column():
            return to(term)
        case Apply():
            return replace(term, arguments=tuple(renamed(each, to) for each in term.arguments))
        case _:
            return term


def renamed_predicate(predicate: Predicate, to: Callable[[Column], Column]) -> Predicate:
    """A predicate of any kind with other columns in the place of its own.

    Guarantees:
        Renaming there and back gives the same.  [test_renaming_there_and_back_is_nothing]
    """
    match predicate:
        case NullTest(column=column, negated=negated):
            return NullTest(to(column), negated)
        case Comparison(left=left, op=op, right=Column() as right):
            return Comparison(to(left), op, to(right))
        case Comparison(left=left):
            return replace(predicate, left=to(left))
        case TermTest(left=first, op=op, right=second):
            return TermTest(renamed(first, to), op, renamed(second, to))


def refuse_depth(term: Term) -> None:
    """Refuse functions too deep within each other, which would end the stack of some later walk."""
    level = [term]
    for _ in range(MAX_DEPTH):
        level = [each for outer in level if isinstance(outer, Apply) for each in outer.arguments]
        if not level:
            return
    raise ConstraintError(f"found more than {MAX_DEPTH} functions within each other, expected fewer")

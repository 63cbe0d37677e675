"""Lines of the form `t1&t2&EQ(t1.A,t2.A)&IQ(t1.B,t2.B)`, as older tools write them."""

from __future__ import annotations

import re

from kamino.constraints.language.lexer import error_at
from kamino.constraints.language.parser import speak_of_t1
from kamino.constraints.tree import (
    HARD,
    SOFT,
    Column,
    Comparison,
    Constant,
    DenialConstraint,
    Kind,
    Operator,
    Place,
    Strength,
)
from kamino.errors import ConstraintError
from kamino.limits import MAX_NAME_CHARS, cut, number_problem, read_number

_OPERATORS = {
    "EQ": Operator.EQ,
    "IQ": Operator.NE,
    "LT": Operator.LT,
    "GT": Operator.GT,
    "LTE": Operator.LE,
    "GTE": Operator.GE,
}
_PREFIX = re.compile(r"\s*(?:(soft)\s*:|weight\s+(\S+?)\s*:)?\s*", re.IGNORECASE)
_START = re.compile(r"t(\d+)\s*(?=&)", re.IGNORECASE)
_PREDICATE = re.compile(r"\s*(\w+)\s*\(")
_QUOTED = r"\"(?:[^\"]|\"\")*\"|'(?:[^']|'')*'"
# Without possessive repeats, a run of spaces takes time that grows with its square.
_OPERAND = re.compile(
    rf"\s*+(?:t(\d+)\.(?:({_QUOTED})\s*+|([^,()&]++))(?=[,)])|({_QUOTED})\s*+(?=[,)])|([^,()&]++)(?=[,)]))"
)
_TUPLE = re.compile(r"\s*t(\d+)\s*(?=&|$)", re.IGNORECASE)
_COMMENT = re.compile(r"\s*(#.*)?$")


def is_legacy(text: str) -> bool:
    """Whether a line is of this form."""
    prefix = _PREFIX.match(text)
    return bool(prefix and _START.match(text, prefix.end()))


def parse_legacy(text: str, *, source: str, line: int) -> tuple[DenialConstraint, ...]:
    """The one constraint such a line states."""
    reader = _Reader(text, source, line)
    return (reader.constraint(),)


class _Reader:
    """A cursor over the characters of one line."""

    def __init__(self, text: str, source: str, line: int) -> None:
        self._text, self._source, self._line = text, source, line
        self._position = 0

    def _place(self, position: int | None = None) -> Place:
        at = self._position if position is None else position
        return Place(self._source, self._line, at + 1)

    def constraint(self) -> DenialConstraint:
        strength = self._strength()
        place = self._place()
        predicates: list[Comparison] = []
        while True:
            if tuple_variable := _TUPLE.match(self._text, self._position):
                self._number(tuple_variable.group(1), tuple_variable.start(1) - 1)
                self._position = tuple_variable.end()
            else:
                predicates.append(self._predicate())
            if _COMMENT.match(self._text, self._position):
                break
            if self._text[self._position : self._position + 1] != "&":
                raise self._unexpected("'&' or the end of the line")
            self._position += 1
        if not predicates:
            raise self._unexpected("a predicate such as EQ(t1.A,t2.A)")
        return DenialConstraint(predicates=speak_of_t1(tuple(predicates)), strength=strength, place=place)

    def _strength(self) -> Strength:
        prefix = _PREFIX.match(self._text)
        assert prefix is not None, "the prefix pattern matches the empty text"
        self._position = prefix.end()
        if prefix.group(1):
            return SOFT
        if prefix.group(2):
            try:
                return Strength(kind=Kind.WEIGHTED, weight=float(prefix.group(2)))
            except ValueError:
                raise error_at(
                    self._place(prefix.start(2)),
                    f"found weight '{cut(prefix.group(2))}', expected a finite number, zero or more",
                ) from None
        return HARD

    def _predicate(self) -> Comparison:
        head = _PREDICATE.match(self._text, self._position)
        if head is None:
            raise self._unexpected("a predicate such as EQ(t1.A,t2.A)")
        op = _OPERATORS.get(head.group(1).upper())
        if op is None:
            raise error_at(
                self._place(head.start(1)),
                f"found operator '{cut(head.group(1))}', expected one of {', '.join(_OPERATORS)}",
            )
        self._position = head.end()
        left = self._operand()
        self._take(",")
        right = self._operand()
        self._take(")")
        if isinstance(left, Column):
            return Comparison(left, op, right)
        if isinstance(right, Column):
            return Comparison(right, op.mirrored, left)
        raise error_at(self._place(head.start(1)), "found a comparison of two constants, expected an attribute")

    def _operand(self) -> Column | Constant:
        found = _OPERAND.match(self._text, self._position)
        if found is None:
            raise self._unexpected("an operand such as t1.A, 5 or 'text'")
        number, quoted_name, name, quoted, bare = found.groups()
        place = self._place(found.start(1) - 1 if number else max(found.start(4), found.start(5)))
        self._position = found.end()
        if number:
            attribute = _unquoted(quoted_name) if quoted_name else name.strip()
            if len(attribute) > MAX_NAME_CHARS:
                raise error_at(place, f"found a name of {len(attribute)} characters, expected at most {MAX_NAME_CHARS}")
            try:
                return Column(attribute, self._number(number, found.start(1) - 1), place)
            except ConstraintError as problem:
                raise error_at(place, problem.message) from None
        return Constant(_unquoted(quoted), place) if quoted else self._bare(bare.strip(), place)

    def _bare(self, text: str, place: Place) -> Constant:
        problem = number_problem(text)
        if problem:
            raise error_at(place, problem)
        try:
            return Constant(read_number(text), place)
        except ValueError:
            shown = cut(text)
            raise error_at(
                place, f"found '{shown}', expected t1.{shown}, t2.{shown}, a number, or a text in quotes"
            ) from None

    def _number(self, digits: str, position: int) -> int:
        if digits not in ("1", "2"):
            raise error_at(
                self._place(position),
                f"found tuple variable t{cut(digits)}, expected t1 or t2: a constraint speaks of at most two tuples",
            )
        return int(digits)

    def _take(self, character: str) -> None:
        if self._text[self._position : self._position + 1] != character:
            raise self._unexpected(f"'{character}'")
        self._position += 1

    def _unexpected(self, expected: str) -> ConstraintError:
        rest = self._text[self._position :].strip()
        found = f"'{rest[:20]}'" if rest else "the end of the line"
        return error_at(self._place(), f"found {found}, expected {expected}")


def _unquoted(text: str) -> str:
    quote = text[0]
    return text[1:-1].replace(quote * 2, quote)

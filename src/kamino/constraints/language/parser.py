"""One line of the constraint language to denial constraints.

[soft: | weight W:]  a, b -> c, d
                     key (a, b)
                     check (expression)
                     not (expression)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from kamino.constraints.language.expressions import And, Expression, Not, Or, alternatives
from kamino.constraints.language.lexer import Token, error_at, tokenize
from kamino.constraints.language.predicates import PredicateParser
from kamino.constraints.tree import (
    HARD,
    SOFT,
    Column,
    Comparison,
    DenialConstraint,
    Kind,
    Operator,
    Place,
    Predicate,
    Strength,
    swapped,
)
from kamino.errors import ConstraintError
from kamino.limits import MAX_DEPTH


def parse_line(text: str, *, source: str, line: int) -> tuple[DenialConstraint, ...]:
    """The constraints one line states; none for a blank line or a comment.

    A line states several where it has several attributes right of `->`, or an expression with alternatives.
    """
    tokens = tokenize(text, source=source, line=line)
    if tokens[0].kind == "end":
        return ()
    return _LineParser(tokens).statement()


class _LineParser(PredicateParser):
    """Recursive descent over the tokens of one line."""

    is_dependency = False
    depth = 0

    def statement(self) -> tuple[DenialConstraint, ...]:
        start = self.peek().place
        strength = self._strength()
        found = tuple(self._body())
        reference = self._reference() if self.peek().keyword == "using" else None
        self.expect_end()
        made = tuple(_constraint(predicates, strength, start) for predicates in found)
        return tuple(replace(constraint, reference=reference) for constraint in made)

    def _reference(self) -> str:
        """The path after `using`: a plain file name, or anything in quotes."""
        place = self.advance().place
        if not self.is_dependency:
            raise error_at(place, "found 'using', which belongs to a dependency such as 'zip -> city using zips.csv'")
        token = self.peek()
        if token.kind in ("string", "quoted"):
            return self.advance().text
        parts = []
        while self.peek().kind in ("name", "number") or (self.peek().kind == "punct" and self.peek().text == "."):
            parts.append(self.advance().text)
        if not parts:
            raise error_at(token.place, f"found {token.describe()}, expected the path of a table; put it in quotes")
        return "".join(parts)

    def _strength(self) -> Strength:
        first, second = self.peek(), self.peek(1)
        if first.keyword == "soft" and second.text == ":":
            self.advance(2)
            return SOFT
        if first.keyword == "weight" and second.kind == "number":
            self.advance(2)
            self.expect(":", "after the weight")
            weight = float(Decimal(second.text))
            try:
                return Strength(kind=Kind.WEIGHTED, weight=weight)
            except ConstraintError as problem:
                raise error_at(second.place, problem.message) from None
        return HARD

    def _body(self) -> Iterable[tuple[Predicate, ...]]:
        first, second = self.peek(), self.peek(1)
        opens = second.kind == "punct" and second.text == "("
        if first.keyword == "key" and opens:
            return self._key()
        if first.keyword in ("check", "not") and opens:
            return self._denied(first)
        if first.kind in ("name", "quoted"):
            return self._dependencies()
        raise error_at(first.place, f"found {first.describe()}, expected {_STATEMENTS}")

    def _key(self) -> Iterable[tuple[Predicate, ...]]:
        self.advance(2)
        names = self.names()
        self.expect(")", "to close the key")
        return (tuple(_equal(name) for name in names),)

    def _denied(self, first: Token) -> Iterable[tuple[Predicate, ...]]:
        self.advance(2)
        inner = self._or()
        self.expect(")", f"to close '{first.keyword} ('")
        expression = Not(inner) if first.keyword == "check" else inner
        try:
            found = alternatives(expression)
        except ConstraintError as problem:
            raise error_at(first.place, problem.message) from None
        self.require_qualified()
        return found

    def _dependencies(self) -> Iterable[tuple[Predicate, ...]]:
        left = self.names()
        arrow = self.peek()
        if arrow.kind != "arrow":
            raise error_at(arrow.place, f"found {arrow.describe()}, expected '->' or ','; or {_STATEMENTS}")
        self.advance()
        right = self.names()
        self.is_dependency = True
        equal = tuple(_equal(name) for name in left)
        return [(*equal, Comparison(replace(name, tuple=1), Operator.NE, replace(name, tuple=2))) for name in right]

    def _or(self) -> Expression:
        return self._joined("or", Or)

    def _joined(self, word: str, node: type[And] | type[Or]) -> Expression:
        operand = self._negation if word == "and" else lambda: self._joined("and", And)
        parts = [operand()]
        while self.peek().keyword == word:
            self.advance()
            parts.append(operand())
        return parts[0] if len(parts) == 1 else node(tuple(parts))

    def _negation(self) -> Expression:
        token = self.peek()
        is_not, opens = token.keyword == "not", token.kind == "punct" and token.text == "("
        if not (is_not or opens):
            return self.predicate()
        if self.depth >= MAX_DEPTH:
            raise error_at(token.place, f"found more than {MAX_DEPTH} levels of parentheses and 'not', expected fewer")
        self.advance()
        self.depth += 1
        inner: Expression = Not(self._negation()) if is_not else self._or()
        self.depth -= 1
        if opens:
            self.expect(")", "to close the parenthesis")
        return inner


_STATEMENTS = "'a -> b', 'key (a)', 'check (...)' or 'not (...)'"


def _equal(name: Column) -> Comparison:
    return Comparison(replace(name, tuple=1), Operator.EQ, replace(name, tuple=2))


def _constraint(predicates: tuple[Predicate, ...], strength: Strength, place: Place) -> DenialConstraint:
    return DenialConstraint(predicates=speak_of_t1(predicates), strength=strength, place=place)


def speak_of_t1(predicates: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
    """The same predicates, with `t2` renamed to `t1` where only `t2` is named."""
    tuples = {column.tuple for predicate in predicates for column in predicate.columns}
    return tuple(swapped(predicate) for predicate in predicates) if tuples == {2} else predicates

"""One line of the constraint language to what it states.

[soft: | weight W:]  a, b -> c, d [where expression]
                     key (term, term) [nulls equal] [where expression]
                     check (expression) [where expression]
                     not (expression)
                     if expression then expression, expression iff expression, a + b = c
                     sum(term) per (a, b) [where expression] = 100, and other rules on groups
name := term
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeVar

from kamino.constraints.derivation import Derivation
from kamino.constraints.group_rules import GroupRule, RowsRule
from kamino.constraints.language.expressions import And, Expression, Not, Or, alternatives, as_term
from kamino.constraints.language.grouped import group_rule_parser
from kamino.constraints.language.lexer import Token, error_at, tokenize
from kamino.constraints.language.predicates import PredicateParser
from kamino.constraints.terms.canonical_terms import FALSE, TRUE, compared, is_true
from kamino.constraints.terms.term import Apply, Term, with_tuple
from kamino.constraints.terms.term_functions import FUNCTIONS
from kamino.constraints.tree import (
    HARD,
    SOFT,
    Column,
    Comparison,
    DenialConstraint,
    Kind,
    NullTest,
    Operator,
    Place,
    Predicate,
    Strength,
    TermTest,
    swapped,
)
from kamino.errors import ConstraintError

Statement = DenialConstraint | Derivation | GroupRule | RowsRule


def parse_line(text: str, *, source: str, line: int) -> tuple[Statement, ...]:
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

    def statement(self) -> tuple[Statement, ...]:
        start = self.peek().place
        if self.peek().kind in ("name", "quoted") and self.peek(1).kind == "define":
            return (self._derivation(),)
        strength = self._strength()
        group_rule = group_rule_parser(self)
        if group_rule is not None:
            found_rule = group_rule(self, strength, start)
            self.expect_end()
            return found_rule
        found = tuple(self._body())
        reference = self._reference() if self.peek().keyword == "using" else None
        self.expect_end()
        made = tuple(_constraint(predicates, strength, start) for predicates in found)
        return tuple(
            replace(each, reference=reference) if isinstance(each, DenialConstraint) and reference is not None else each
            for each in made
        )

    def _derivation(self) -> Derivation:
        target = self.name()
        self.advance()
        term = self.term()
        self.expect_end()
        self.require_one_tuple()
        return located(target.place, lambda: Derivation(target.name, term, target.place))

    def require_one_tuple(self) -> None:
        """Fail where a statement about single rows names a tuple variable."""
        if self._tuples:
            raise error_at(self.peek().place, "found a tuple variable, expected attributes by their names alone")

    def _reference(self) -> str:
        """The path after `using`: a plain file name, or anything in quotes."""
        place = self.advance().place
        if not self.is_dependency:
            raise error_at(place, "found 'using', which belongs to a dependency such as 'zip -> city using zips.csv'")
        token = self.peek()
        if token.kind in ("string", "quoted"):
            return self.advance().text
        parts = []
        while self.peek().kind in ("name", "number") or (
            self.peek().kind in ("punct", "arith") and self.peek().text in (".", "/", "-")
        ):
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
        if first.keyword == "if" or self._is_expression():
            return self._said(first)
        if first.kind in ("name", "quoted"):
            return self._dependencies()
        raise error_at(first.place, f"found {first.describe()}, expected {_STATEMENTS}")

    def _is_expression(self) -> bool:
        """Whether the line starts as a test of attributes, without `check` around it."""
        first, second = self.peek(), self.peek(1)
        if first.kind in ("number", "arith") or (first.kind == "punct" and first.text == "("):
            return True
        if first.kind not in ("name", "quoted"):
            return False
        if second.kind == "number" and second.text[0] in "+-":
            return True
        if first.kind == "name" and first.keyword not in _OPENERS and self.is_punct("(", 1):
            return first.text.lower() in FUNCTIONS
        return second.kind in ("op", "arith", "match") or second.keyword in _TESTS

    def _said(self, first: Token) -> Iterable[tuple[Predicate, ...]]:
        """A rule as people say it: `if P then Q`, `P iff Q`, `a + b = c`."""
        expression = self.expression()
        return self._alternatives(Not(self._conditioned(expression)), first)

    def _conditioned(self, expression: Expression) -> Expression:
        """The expression, of which `where` says in which rows it is to hold."""
        if self.peek().keyword != "where":
            return expression
        self.advance()
        return Or((Not(self.expression()), expression))

    def _key(self) -> Iterable[tuple[Predicate, ...]]:
        self.advance(2)
        terms = [self._key_part()]
        while self.is_punct(","):
            self.advance()
            terms.append(self._key_part())
        self.expect(")", "to close the key")
        if self._tuples:
            self.require_one_tuple()
        nulls_equal = self.is_word("nulls")
        if nulls_equal:
            self.advance()
            if not self.is_word("equal"):
                raise error_at(self.peek().place, f"found {self.peek().describe()}, expected 'equal' after 'nulls'")
            self.advance()
        parts: list[Expression] = [_equal_terms(term, nulls_equal=nulls_equal) for term in terms]
        where = self._where_of_pairs()
        if not nulls_equal:
            return ((*(each for part in parts for each in part), *where),)  # type: ignore[union-attr]
        return tuple((*each, *where) for each in alternatives(And(tuple(parts))))

    def _key_part(self) -> Term:
        """An attribute, or a term that is more than a name."""
        simple = self.peek(1).text in (",", ")") or self.peek().kind in ("end", "punct")
        return self.name() if simple and not self.is_punct("(") else self.term()

    def _where_of_pairs(self) -> tuple[Predicate, ...]:
        """What `where` asks of both rows of a pair."""
        if self.peek().keyword != "where":
            return ()
        self.advance()
        return asked_of_both(self.expression())

    def _denied(self, first: Token) -> Iterable[tuple[Predicate, ...]]:
        self.advance(2)
        inner = self.expression()
        self.expect(")", f"to close '{first.keyword} ('")
        expression = Not(self._conditioned(inner)) if first.keyword == "check" else inner
        return self._alternatives(expression, first)

    def _alternatives(self, expression: Expression, first: Token) -> Iterable[tuple[Predicate, ...]]:
        self.require_qualified()
        if self._tuples - {1}:
            return located(first.place, lambda: alternatives(expression))
        return located(first.place, lambda: denials(expression))

    def _dependencies(self) -> Iterable[tuple[Predicate, ...]]:
        left = self.names()
        arrow = self.peek()
        if arrow.kind != "arrow":
            raise error_at(arrow.place, f"found {arrow.describe()}, expected '->' or ','; or {_STATEMENTS}")
        self.advance()
        right = self.names()
        self.is_dependency = True
        where = self._where_of_pairs()
        equal = tuple(_equal(name) for name in left)
        return [
            (*equal, Comparison(replace(name, tuple=1), Operator.NE, replace(name, tuple=2)), *where) for name in right
        ]


_STATEMENTS = "'a -> b', 'key (a)', 'check (...)' or 'not (...)'"
_OPENERS = ("key", "check", "not", "weight", "soft")
_TESTS = ("is", "in", "between", "like", "ilike", "not", "iff", "when")
Made = TypeVar("Made")


def located(place: Place, make: Callable[[], Made]) -> Made:
    """What is made; an error of its making gets the place."""
    try:
        return make()
    except ConstraintError as problem:
        raise problem if problem.line else error_at(place, problem.message) from None


def denials(expression: Expression) -> tuple[tuple[Predicate, ...], ...]:
    """What single rows must not do: conjunctions, or one test of a term where these would be too many.

    Guarantees:
        In length proportional to that of the expression.  [test_conditional_rules_cost_their_length]
    """
    try:
        return alternatives(expression)
    except ConstraintError:
        whole = as_term(expression)
        if isinstance(whole, Apply) and whole.function == "not":
            return ((TermTest(whole.arguments[0], Operator.EQ, FALSE),),)
        return ((TermTest(whole, Operator.EQ, TRUE),),)


def asked_of_both(expression: Expression) -> tuple[Predicate, ...]:
    """Predicates that are true where the expression is true of both rows of a pair."""
    found = alternatives(expression)
    one = found[0] if len(found) == 1 else (is_true(as_term(expression)),)
    return (*one, *(swapped(each) for each in one))


def _equal_terms(term: Term, *, nulls_equal: bool) -> Any:
    """That a term is equal in two rows, as predicates; as an expression where nulls are equal."""
    same = compared(with_tuple(term, 1), Operator.EQ, with_tuple(term, 2))
    if not nulls_equal:
        return (same,)
    if isinstance(term, Column):
        both: tuple[Predicate, ...] = tuple(NullTest(replace(term, tuple=number)) for number in (1, 2))
    else:
        both = tuple(TermTest(Apply("is_null", (with_tuple(term, n),)), Operator.EQ, TRUE) for n in (1, 2))
    return Or((same, And(both)))


def _equal(name: Column) -> Comparison:
    return Comparison(replace(name, tuple=1), Operator.EQ, replace(name, tuple=2))


def _constraint(predicates: tuple[Predicate, ...], strength: Strength, place: Place) -> DenialConstraint | RowsRule:
    if max((column.tuple for predicate in predicates for column in predicate.columns), default=1) > 2:
        return located(place, lambda: RowsRule(predicates=predicates, strength=strength, place=place))
    return DenialConstraint(predicates=speak_of_t1(predicates), strength=strength, place=place)


def speak_of_t1(predicates: tuple[Predicate, ...]) -> tuple[Predicate, ...]:
    """The same predicates, with `t2` renamed to `t1` where only `t2` is named."""
    tuples = {column.tuple for predicate in predicates for column in predicate.columns}
    return tuple(swapped(predicate) for predicate in predicates) if tuples == {2} else predicates

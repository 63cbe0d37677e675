"""Single predicates and the cursor over tokens they are read with."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from kamino.constraints.language.expressions import And, Expression, Not, Or
from kamino.constraints.language.lexer import Token, error_at
from kamino.constraints.tree import Column, Comparison, Constant, ConstantValue, NullTest, Operator, Place
from kamino.limits import cut, read_number

_OPERATORS = {op.value: op for op in Operator} | {"<>": Operator.NE, "==": Operator.EQ}
_RESERVED = frozenset({"and", "or", "not", "is", "null", "true", "false", "between", "in"})


class PredicateParser:
    """A cursor over one line's tokens that can read names, operands and predicates."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._position = 0
        self._bare: list[Column] = []
        self._tuples: set[int] = set()

    def peek(self, ahead: int = 0) -> Token:
        """The token `ahead` of the cursor; the end token once past the end."""
        return self._tokens[min(self._position + ahead, len(self._tokens) - 1)]

    def advance(self, count: int = 1) -> Token:
        """Move on, giving the token that was under the cursor."""
        token = self.peek()
        self._position += count
        return token

    def expect(self, text: str, why: str) -> Token:
        """Take the punctuation or keyword `text`, or fail saying `why` it belongs there."""
        token = self.peek()
        if token.kind in ("quoted", "string", "end") or token.text.lower() != text:
            raise error_at(token.place, f"found {token.describe()}, expected '{text}' {why}")
        return self.advance()

    def expect_end(self) -> None:
        """Fail unless the line ends here."""
        token = self.peek()
        if token.kind != "end":
            raise error_at(token.place, f"found {token.describe()}, expected the end of the line")

    def names(self) -> list[Column]:
        """One or more attribute names, separated by commas."""
        found = [self._name()]
        while self.peek().kind == "punct" and self.peek().text == ",":
            self.advance()
            found.append(self._name())
        return found

    def _name(self) -> Column:
        token = self.peek()
        if token.kind not in ("name", "quoted"):
            raise error_at(
                token.place,
                f"found {token.describe()}, expected an attribute name; "
                "names that are not plain words stand in double quotes",
            )
        self.advance()
        return _column(token.text, 1, token.place)

    def require_qualified(self) -> None:
        """Fail where a statement about two tuples has a name without `t1.` or `t2.`."""
        if 2 in self._tuples and self._bare:
            column = self._bare[0]
            raise error_at(
                column.place,
                f"found '{column.name}' without a tuple variable in a constraint on two tuples, "
                f"expected t1.{column.name} or t2.{column.name}",
            )

    def predicate(self) -> Expression:
        """One comparison, null test, `between` or `in`."""
        left = self._operand()
        token = self.peek()
        if token.keyword == "is":
            return self._null_test(left)
        if token.keyword in ("between", "in") or (token.keyword == "not" and self.peek(1).keyword in _RANGES):
            return self._range(left)
        if token.kind != "op":
            raise error_at(
                token.place,
                f"found {token.describe()}, expected one of = != < <= > >=, 'is null', 'between' or 'in'",
            )
        self.advance()
        return _comparison(left, _OPERATORS[token.text], self._operand(), token.place)

    def _null_test(self, left: Column | Constant) -> NullTest:
        place = self.advance().place
        negated = self.peek().keyword == "not"
        if negated:
            self.advance()
        self.expect("null", "after 'is'")
        if isinstance(left, Constant):
            raise error_at(place, "found a null test of a constant, expected an attribute before 'is'")
        return NullTest(left, negated)

    def _range(self, left: Column | Constant) -> Expression:
        negated = self.peek().keyword == "not"
        if negated:
            self.advance()
        word = self.advance()
        found = self._between(left, word) if word.keyword == "between" else self._in(left, word)
        return Not(found) if negated else found

    def _between(self, left: Column | Constant, word: Token) -> Expression:
        low = self._operand()
        self.expect("and", "between the two bounds")
        high = self._operand()
        return And(
            (
                _comparison(left, Operator.GE, low, word.place),
                _comparison(left, Operator.LE, high, word.place),
            )
        )

    def _in(self, left: Column | Constant, word: Token) -> Expression:
        self.expect("(", "after 'in'")
        parts = [_comparison(left, Operator.EQ, self._operand(), word.place)]
        while self.peek().kind == "punct" and self.peek().text == ",":
            self.advance()
            parts.append(_comparison(left, Operator.EQ, self._operand(), word.place))
        self.expect(")", "to close the list")
        return Or(tuple(parts))

    def _operand(self) -> Column | Constant:
        token = self.peek()
        match token.kind:
            case "number":
                self.advance()
                return Constant(read_number(token.text), token.place)
            case "string":
                self.advance()
                return Constant(token.text, token.place)
            case "name" if token.keyword in ("true", "false"):
                self.advance()
                return Constant(token.keyword == "true", token.place)
            case "name" if token.keyword in ("date", "timestamp") and self.peek(1).kind == "string":
                self.advance()
                return self._moment(token)
            case "name" | "quoted" if self._is_dot(1):
                return self._qualified()
            case "name" if token.keyword == "null":
                raise error_at(token.place, "found a comparison with null, which is never true; use 'is null'")
            case "name" | "quoted" if token.kind == "quoted" or token.keyword not in _RESERVED:
                self.advance()
                column = _column(token.text, 1, token.place)
                self._bare.append(column)
                return column
        raise error_at(token.place, f"found {token.describe()}, expected an attribute or a constant")

    def _is_dot(self, ahead: int) -> bool:
        token = self.peek(ahead)
        return token.kind == "punct" and token.text == "."

    def _qualified(self) -> Column:
        variable = self.advance()
        if variable.keyword not in ("t1", "t2"):
            raise error_at(
                variable.place,
                f"found tuple variable '{cut(variable.text)}', expected t1 or t2: a constraint speaks of at most two "
                "tuples; put a name with a dot in double quotes",
            )
        self.advance()
        token = self.peek()
        if token.kind not in ("name", "quoted"):
            raise error_at(token.place, f"found {token.describe()}, expected an attribute name after the dot")
        self.advance()
        number = int(variable.keyword[1])
        self._tuples.add(number)
        return _column(token.text, number, token.place)

    def _moment(self, kind: Token) -> Constant:
        token = self.advance()
        try:
            value: ConstantValue = (
                date.fromisoformat(token.text) if kind.keyword == "date" else datetime.fromisoformat(token.text)
            )
        except ValueError:
            example = "2024-02-29" if kind.keyword == "date" else "2024-02-29 12:30:00"
            raise error_at(
                token.place, f"found '{cut(token.text)}', expected a {kind.keyword} such as '{example}'"
            ) from None
        return Constant(value, token.place)


_RANGES = ("between", "in")


def _column(name: str, number: int, place: Place) -> Column:
    if not name:
        raise error_at(place, "found an empty attribute name, expected at least one character")
    return Column(name, number, place)


def _comparison(left: Column | Constant, op: Operator, right: Column | Constant, place: Place) -> Comparison:
    if isinstance(left, Column):
        return Comparison(left, op, right)
    if isinstance(right, Column):
        return Comparison(right, op.mirrored, left)
    raise error_at(place, "found a comparison of two constants, expected an attribute on one side")

"""Expressions: terms, tests of them, and what joins these, read by precedence."""

from __future__ import annotations

from datetime import date, datetime

from kamino.constraints.language.cursor import Cursor
from kamino.constraints.language.expressions import And, Expression, Not, Or
from kamino.constraints.language.lexer import Token, error_at
from kamino.constraints.terms.canonical_terms import applied, compared, is_true
from kamino.constraints.terms.term import Apply, Term
from kamino.constraints.terms.term_functions import FUNCTIONS
from kamino.constraints.tree import Column, Constant, ConstantValue, NullTest, Operator
from kamino.errors import ConstraintError
from kamino.limits import MAX_DEPTH, cut, read_number

_OPERATORS = {op.value: op for op in Operator} | {"<>": Operator.NE, "==": Operator.EQ}
_RESERVED = frozenset({"and", "or", "not", "is", "null", "true", "false", "between", "in"})
_TERMS = (Column, Constant, Apply)
_SUMS = {"+": "add", "-": "subtract", "||": "concat"}
_PRODUCTS = {"*": "multiply", "/": "divide", "%": "mod"}
_PATTERNS = {"~": "matches", "~*": "imatches", "like": "like", "ilike": "ilike"}
_SPELLINGS = {
    "least": "min",
    "greatest": "max",
    "ceiling": "ceil",
    "char_length": "length",
    "substring": "substr",
    "isodow": "weekday",
}
_AFTER_NOT = ("between", "in", "like", "ilike")

Node = Expression | Term


class PredicateParser(Cursor):
    """Reads expressions and terms, each function one level of precedence, loosest first."""

    depth = 0

    def expression(self) -> Expression:
        """What is true or false of rows."""
        place = self.peek().place
        return self._truth(self._iff(), place)

    def term(self) -> Term:
        """What has a value in each row."""
        token = self.peek()
        return self._value(self._sum(), token)

    def _truth(self, node: Node, place: object = None) -> Expression:
        """The node as something that is true or false."""
        if isinstance(node, Apply) and FUNCTIONS[node.function].gives is not None and _is_test(node):
            return is_true(node)
        if isinstance(node, _TERMS):
            token = self.peek()
            raise error_at(
                token.place,
                f"found {token.describe()}, expected one of = != < <= > >=, 'is null', 'between' or 'in'",
            )
        return node

    def _value(self, node: Node, token: Token) -> Term:
        """The node as a value."""
        if isinstance(node, _TERMS):
            return node
        raise error_at(token.place, f"found a test at {token.describe()}, expected an attribute or a constant")

    def _iff(self) -> Node:
        first = self._implies()
        while self.peek().keyword == "iff":
            place = self.advance().place
            first = _same_truth(self._truth(first, place), self._truth(self._implies(), place))
        return first

    def _implies(self) -> Node:
        if self.peek().keyword == "if":
            self._deeper()
            self.advance()
            condition = self.expression()
            self.expect("then", "after the condition of 'if'")
            found: Expression = Or((Not(condition), self._truth(self._implies())))
            if self.peek().keyword == "else":
                self.advance()
                found = And((found, Or((condition, self._truth(self._implies())))))
            self.depth -= 1
            return found
        first = self._joined("or")
        if self.peek().keyword == "implies":
            self.advance()
            return Or((Not(self._truth(first)), self._truth(self._implies())))
        return first

    def _joined(self, word: str) -> Node:
        operand = self._negation if word == "and" else lambda: self._joined("and")
        first = operand()
        if self.peek().keyword != word:
            return first
        parts = [self._truth(first)]
        while self.peek().keyword == word:
            self.advance()
            parts.append(self._truth(operand()))
        return And(tuple(parts)) if word == "and" else Or(tuple(parts))

    def _deeper(self) -> None:
        token = self.peek()
        if self.depth >= MAX_DEPTH:
            raise error_at(token.place, f"found more than {MAX_DEPTH} levels of parentheses and 'not', expected fewer")
        self.depth += 1

    def _negation(self) -> Node:
        if self.peek().keyword != "not":
            return self._comparison()
        self._deeper()
        self.advance()
        found = Not(self._truth(self._negation()))
        self.depth -= 1
        return found

    def _comparison(self) -> Node:
        start = self.peek()
        left = self._sum()
        token = self.peek()
        is_equality = token.text in ("=", "==", "!=", "<>") and self.peek(1).kind != "number"
        if token.kind == "op" and not isinstance(left, _TERMS) and is_equality:
            self.advance()
            same = _same_truth(left, self._truth(self._sum()))
            return same if token.text in ("=", "==") else Not(same)
        if token.kind == "op" and isinstance(left, _TERMS):
            self.advance()
            other = self.peek()
            right = self._value(self._sum(), other)
            return self._compared(self._value(left, start), _OPERATORS[token.text], right, token)
        if token.keyword == "is":
            return self._is(self._value(left, start))
        negated = token.keyword == "not" and self.peek(1).keyword in _AFTER_NOT
        if negated or token.keyword in _AFTER_NOT or token.kind == "match":
            if negated:
                self.advance()
            found = self._postfix(self._value(left, start))
            return Not(found) if negated else found
        return left

    def _compared(self, left: Term, op: Operator, right: Term, token: Token) -> Expression:
        """A comparison; that of a distance between two tuples is one of each direction."""
        match left, op:
            case Apply(function="abs", arguments=(inner,)), (Operator.LT | Operator.LE | Operator.GT | Operator.GE) if (
                len({column.tuple for column in inner.columns}) > 1
            ):
                ends = (
                    self._compared(inner, op, right, token),
                    self._compared(applied("negate", inner), op, right, token),
                )
                return And(ends) if op in (Operator.LT, Operator.LE) else Or(ends)
        try:
            return compared(left, op, right, token.place)
        except ConstraintError as problem:
            raise error_at(token.place, problem.message) from None

    def _is(self, left: Term) -> Expression:
        place = self.advance().place
        negated = self.peek().keyword == "not"
        if negated:
            self.advance()
        if self.is_word("distinct"):
            return self._distinct(left, negated)
        if self.peek().keyword in ("true", "false"):
            wanted = self.advance().keyword == "true"
            same = self._compared(left, Operator.EQ, Constant(wanted), self.peek())
            known = Not(_null_test(left))
            return Not(And((known, same))) if negated else And((known, same))
        self.expect("null", "after 'is'")
        if isinstance(left, Constant):
            raise error_at(place, "found a null test of a constant, expected an attribute before 'is'")
        return Not(_null_test(left)) if negated and isinstance(left, Apply) else _null_test(left, negated)

    def _distinct(self, left: Term, negated: bool) -> Expression:
        """`is distinct from`, where nulls are equal to each other and to nothing else."""
        token = self.advance()
        self.expect("from", "after 'is distinct'")
        right = self._value(self._sum(), token)
        one, other = _null_test(left), _null_test(right) if right.columns else Constant(value=False)
        if isinstance(other, Constant):
            differs: Expression = Or((one, And((Not(one), self._compared(left, Operator.NE, right, token)))))
        else:
            alone = Or((And((one, Not(other))), And((Not(one), other))))
            known = And((Not(one), Not(other), self._compared(left, Operator.NE, right, token)))
            differs = Or((alone, known))
        return Not(differs) if negated else differs

    def _postfix(self, left: Term) -> Expression:
        token = self.advance()
        if token.keyword == "between":
            return self._between(left, token)
        if token.keyword == "in":
            return self._in(left, token)
        spelled = token.text.lower().removeprefix("!")
        other = self.peek()
        pattern = self._value(self._sum(), other)
        if isinstance(left, Constant) or not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
            raise error_at(other.place, "found no text, expected an attribute and a pattern in single quotes")
        found = is_true(applied(_PATTERNS[spelled], left, pattern, place=token.place))
        return Not(found) if token.text.startswith("!") else found

    def _between(self, left: Term, word: Token) -> Expression:
        low = self._value(self._sum(), word)
        self.expect("and", "between the two bounds")
        high = self._value(self._sum(), word)
        return And((self._compared(left, Operator.GE, low, word), self._compared(left, Operator.LE, high, word)))

    def _in(self, left: Term, word: Token) -> Expression:
        self.expect("(", "after 'in'")
        listed = [self._listed()]
        while self.is_punct(","):
            self.advance()
            listed.append(self._listed())
        self.expect(")", "to close the list")
        if isinstance(left, Apply) and all(isinstance(each, Constant) for each in listed):
            return is_true(Apply("in", (left, *listed), word.place))
        return Or(tuple(self._compared(left, Operator.EQ, each, word) for each in listed))

    def _listed(self) -> Term:
        token = self.peek()
        return self._value(self._sum(), token)

    def _sum(self) -> Node:
        start = self.peek()
        left = self._product()
        while True:
            token = self.peek()
            if token.kind == "arith" and token.text in _SUMS:
                self.advance()
                other = self.peek()
                right = self._value(self._product(), other)
                left = applied(_SUMS[token.text], self._value(left, start), right, place=token.place)
            elif token.kind == "number" and token.text[0] in "+-" and isinstance(left, _TERMS):
                left = applied("add", left, self._value(self._product(), token), place=token.place)
            else:
                return left

    def _product(self) -> Node:
        start = self.peek()
        left = self._unary()
        while self.peek().kind == "arith" and self.peek().text in _PRODUCTS:
            token = self.advance()
            other = self.peek()
            right = self._value(self._unary(), other)
            left = applied(_PRODUCTS[token.text], self._value(left, start), right, place=token.place)
        return left

    def _unary(self) -> Node:
        token = self.peek()
        if token.kind != "arith" or token.text not in ("-", "+"):
            return self._primary()
        self._deeper()
        self.advance()
        inner = self._value(self._unary(), token)
        self.depth -= 1
        return inner if token.text == "+" else applied("negate", inner, place=token.place)

    def _primary(self) -> Node:
        token = self.peek()
        if token.kind == "punct" and token.text == "(":
            self._deeper()
            self.advance()
            found = self._iff()
            self.depth -= 1
            self.expect(")", "to close the parenthesis")
            return found
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
            case "name" | "quoted" if self.is_punct(".", 1):
                return self.qualified()
            case "name" if token.keyword == "case" and self.peek(1).keyword == "when":
                return self._case()
            case "name" if self.is_punct("(", 1) and token.keyword not in _RESERVED:
                return self._function()
            case "name" if token.keyword == "null":
                raise error_at(token.place, "found a comparison with null, which is never true; use 'is null'")
            case "name" | "quoted" if token.kind == "quoted" or token.keyword not in _RESERVED:
                return self.bare()
        raise error_at(token.place, f"found {token.describe()}, expected an attribute or a constant")

    def _function(self) -> Term:
        token = self.advance()
        spelled = token.text.lower()
        name = _SPELLINGS.get(spelled, spelled)
        if name not in FUNCTIONS or (FUNCTIONS[name].symbol is not None and name not in ("concat", "mod")):
            raise error_at(token.place, f"found the function '{cut(token.text)}', {_nearest(spelled)}")
        self._deeper()
        self.expect("(", "after a function")
        arguments = [self._listed()]
        while self.is_punct(","):
            self.advance()
            arguments.append(self._listed())
        self.expect(")", f"to close '{spelled} ('")
        self.depth -= 1
        try:
            return applied(name, *arguments, place=token.place)
        except ConstraintError as problem:
            raise error_at(token.place, problem.message) from None

    def _case(self) -> Term:
        """`case when P then a … else b end` as choices within each other; without `else`, null at last."""
        from kamino.constraints.language.expressions import as_term

        self.advance()
        branches: list[tuple[Term, Term]] = []
        while self.peek().keyword == "when":
            token = self.advance()
            condition = as_term(self.expression())
            self.expect("then", "after the condition of 'when'")
            branches.append((condition, self._value(self._sum(), token)))
        token = self.peek()
        self.expect("else", "in a 'case'")
        found = self._value(self._sum(), token)
        self.expect("end", "to close 'case'")
        for condition, value in reversed(branches):
            found = applied("choose", condition, value, found, place=token.place)
        return found

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


def _is_test(term: Apply) -> bool:
    from kamino.constraints.types import ValueType

    return FUNCTIONS[term.function].gives is ValueType.BOOLEAN


def _null_test(term: Term, negated: bool = False) -> Expression:
    if isinstance(term, Column):
        return NullTest(term, negated)
    return is_true(applied("is_null", term))


def _same_truth(first: Expression, second: Expression) -> Expression:
    """Both true or both false."""
    return And((Or((Not(first), second)), Or((first, Not(second)))))


def _nearest(spelled: str) -> str:
    """What to write instead of a function that there is not."""
    import difflib

    callable_ones = [name for name, function in FUNCTIONS.items() if function.symbol is None]
    near = difflib.get_close_matches(spelled, callable_ones, n=1)
    return f"did you mean '{near[0]}'?" if near else f"expected one of {', '.join(callable_ones)}"

"""The cursor over the tokens of one line, and the names that it reads."""

from __future__ import annotations

from collections.abc import Sequence

from kamino.constraints.language.lexer import Token, error_at
from kamino.constraints.tree import MOST_TUPLES, Column, Place
from kamino.limits import cut

_VARIABLES = tuple(f"t{number}" for number in range(1, MOST_TUPLES + 1))


class Cursor:
    """A cursor over one line's tokens that reads names and attributes of tuple variables."""

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

    def is_punct(self, text: str, ahead: int = 0) -> bool:
        """Whether the token there is this punctuation, not a text that looks like it."""
        token = self.peek(ahead)
        return token.kind in ("punct", "arith") and token.text == text

    def is_word(self, word: str, ahead: int = 0) -> bool:
        """Whether the token there is this word, in any case, outside quotes."""
        token = self.peek(ahead)
        return token.kind == "name" and token.text.lower() == word

    def names(self) -> list[Column]:
        """One or more attribute names, separated by commas."""
        found = [self.name()]
        while self.is_punct(","):
            self.advance()
            found.append(self.name())
        return found

    def name(self) -> Column:
        """One attribute name."""
        token = self.peek()
        if token.kind not in ("name", "quoted"):
            raise error_at(
                token.place,
                f"found {token.describe()}, expected an attribute name; "
                "names that are not plain words stand in double quotes",
            )
        self.advance()
        return _column(token.text, 1, token.place)

    def bare(self) -> Column:
        """An attribute without a tuple variable, which a constraint on several tuples must not have."""
        column = self.name()
        self._bare.append(column)
        return column

    def require_qualified(self) -> None:
        """Fail where a statement about several tuples has a name without `t1.` or `t2.`."""
        if self._tuples - {1} and self._bare:
            column = self._bare[0]
            raise error_at(
                column.place,
                f"found '{column.name}' without a tuple variable in a constraint on two tuples, "
                f"expected t1.{column.name} or t2.{column.name}",
            )

    def qualified(self) -> Column:
        """An attribute of a tuple variable, such as `t1.age`."""
        variable = self.advance()
        if variable.text.lower() not in _VARIABLES or variable.kind != "name":
            raise error_at(
                variable.place,
                f"found tuple variable '{cut(variable.text)}', expected t1 or t2: a constraint speaks of at most "
                f"{MOST_TUPLES} tuples; put a name with a dot in double quotes",
            )
        self.advance()
        token = self.peek()
        if token.kind not in ("name", "quoted"):
            raise error_at(token.place, f"found {token.describe()}, expected an attribute name after the dot")
        self.advance()
        number = int(variable.text[1:])
        self._tuples.add(number)
        return _column(token.text, number, token.place)


def _column(name: str, number: int, place: Place) -> Column:
    if not name:
        raise error_at(place, "found an empty attribute name, expected at least one character")
    return Column(name, number, place)

"""Text to tokens, each with its place."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kamino.constraints.tree import Place
from kamino.errors import ConstraintError
from kamino.limits import MAX_NAME_CHARS, cut, number_problem

_IN_EXPRESSIONS = {"and", "or", "not", "is", "null", "true", "false", "between", "in", "date", "timestamp", "t1", "t2"}
_AT_THE_START = {"key", "check", "soft", "weight", "using"}
_IN_RULES = {"if", "then", "else", "iff", "implies", "where", "like", "ilike", "case", "when", "end", "per"}
KEYWORDS = frozenset(_IN_EXPRESSIONS | _AT_THE_START | _IN_RULES)

# A plain name may hold inner hyphens only between letters or digits ("education-num"), never before ">".
_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>\#.*)
  | (?P<arrow>->)
  | (?P<define>:=)
  | (?P<match>!?~\*?)
  | (?P<op><=|>=|!=|<>|==|=|<|>)
  | (?P<dots>\.\.)
  | (?P<number>[+-]?(?:\d+\.(?!\.)\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?(?![\w]))
  | (?P<name>[^\W\d]\w*(?:-\w+)*)
  | (?P<quoted>"(?:[^"]|"")*")
  | (?P<string>'(?:[^']|'')*')
  | (?P<arith>\|\||-(?!\s+>)|[+*/%])
  | (?P<punct>[(),.:])
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, kw_only=True)
class Token:
    """A piece of text: `kind` is a group name of the pattern, `text` its value without quotes."""

    kind: str
    text: str
    place: Place

    @property
    def keyword(self) -> str:
        """The lower-case keyword this token may stand for, or an empty string."""
        lower = self.text.lower()
        return lower if self.kind == "name" and lower in KEYWORDS else ""

    def describe(self) -> str:
        """The token as an error message shows it."""
        return "the end of the line" if self.kind == "end" else f"'{cut(self.text)}'"


def tokenize(text: str, *, source: str, line: int) -> tuple[Token, ...]:
    """The tokens of one line, closed by an `end` token."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        place = Place(source, line, position + 1)
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(text, position, place)
        kind = match.lastgroup or ""
        if kind not in ("space", "comment"):
            tokens.append(_checked(Token(kind=kind, text=_unquote(kind, match.group()), place=place)))
        position = match.end()
    tokens.append(Token(kind="end", text="", place=Place(source, line, len(text.rstrip()) + 1)))
    return tuple(tokens)


def _checked(token: Token) -> Token:
    """The token, unless it is a number or a name beyond the limits."""
    problem = number_problem(token.text) if token.kind == "number" else ""
    if token.kind in ("name", "quoted") and len(token.text) > MAX_NAME_CHARS:
        problem = f"found a name of {len(token.text)} characters, expected at most {MAX_NAME_CHARS}"
    if problem:
        raise error_at(token.place, problem)
    return token


def _unquote(kind: str, text: str) -> str:
    if kind == "quoted":
        return text[1:-1].replace('""', '"')
    if kind == "string":
        return text[1:-1].replace("''", "'")
    return text


def _unreadable(text: str, position: int, place: Place) -> ConstraintError:
    found = text[position]
    if found in "\"'":
        return error_at(place, f"found an opening {found} that is never closed; add the closing {found}")
    return error_at(
        place,
        f"found {found!r}, expected a name, a number, a 'text' or an operator; "
        "put a name with special characters in double quotes",
    )


def error_at(place: Place, message: str) -> ConstraintError:
    """A constraint error that carries `place`."""
    return ConstraintError(message, source=place.source, line=place.line, column=place.column)

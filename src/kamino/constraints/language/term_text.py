"""Terms back to text, with no more parentheses than needed."""

from __future__ import annotations

import re
from datetime import date, datetime

from kamino.constraints.language.lexer import KEYWORDS
from kamino.constraints.terms.term import Apply, Term
from kamino.constraints.terms.term_functions import FUNCTIONS
from kamino.constraints.tree import Column, Constant

# `end` closes a `case`, which is never written; elsewhere it is a name, and a usual one.
_QUOTED = KEYWORDS - {"end"}
_PLAIN = re.compile(r"[^\W\d]\w*(?:-\w+)*")
_LEVELS = {
    **dict.fromkeys(("or",), 1),
    **dict.fromkeys(("and",), 2),
    **dict.fromkeys(("not",), 3),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "in", "is_null", "like", "ilike", "matches", "imatches"), 4),
    **dict.fromkeys(("add", "subtract", "concat"), 5),
    **dict.fromkeys(("multiply", "divide", "mod"), 6),
    **dict.fromkeys(("negate",), 7),
}
_ATOM = 8


def print_name(name: str) -> str:
    """An attribute name, in double quotes unless it is a plain word."""
    if _PLAIN.fullmatch(name) and name.lower() not in _QUOTED:
        return name
    return '"' + name.replace('"', '""') + '"'


def print_term(term: Term, *, bare: bool = True, level: int = 0) -> str:
    """The term as text; in parentheses where it binds less than what stands around it."""
    match term:
        case Column(name=name, tuple=number):
            return print_name(name) if bare else f"t{number}.{print_name(name)}"
        case Constant():
            return print_constant(term)
        case Apply():
            text = _applied(term, bare)
            return f"({text})" if _LEVELS.get(term.function, _ATOM) < level else text


def print_constant(constant: Constant) -> str:
    """A constant as it is written."""
    value = constant.value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime):
        return f"timestamp '{value.isoformat(sep=' ')}'"
    if isinstance(value, date):
        return f"date '{value.isoformat()}'"
    return str(value)


def _applied(term: Apply, bare: bool) -> str:
    name, arguments = term.function, term.arguments
    own = _LEVELS.get(name, _ATOM)

    def shown(argument: Term, level: int) -> str:
        return print_term(argument, bare=bare, level=level)

    def truth(argument: Term, level: int) -> str:
        """What stands where something true or false does: a column is written as a test of it."""
        return f"{shown(argument, 5)} = true" if isinstance(argument, Column) else shown(argument, level)

    match name, arguments:
        case (("and" | "or"), _):
            return f" {name} ".join(truth(each, own + 1) for each in arguments)
        case "not", (Apply(function="is_null", arguments=(inner,)),):
            return f"{shown(inner, 5)} is not null"
        case "not", (Apply(function="in" | "like" | "ilike" | "matches" | "imatches") as inner,):
            return print_negated(inner, bare=bare)
        case "not", (inner,):
            return f"not {truth(inner, own)}"
        case "is_null", (inner,):
            return f"{shown(inner, 5)} is null"
        case "in", (first, *rest):
            return f"{shown(first, 5)} in ({', '.join(shown(each, 5) for each in rest)})"
        case "negate", (inner,):
            return f"-{shown(inner, _ATOM)}" if not isinstance(inner, Constant) else f"-({shown(inner, 0)})"
        case "choose", (condition, chosen, other):
            return f"case when {truth(condition, 0)} then {shown(chosen, 5)} else {shown(other, 5)} end"
    symbol = FUNCTIONS[name].symbol
    if symbol is None:
        return f"{name}({', '.join(shown(each, 0) for each in arguments)})"
    first, second = arguments
    inner_level = 5 if own == 4 else own
    return f"{shown(first, inner_level)} {symbol} {shown(second, 5 if own == 4 else own + 1)}"


def print_negated(term: Apply, *, bare: bool) -> str:
    """A test of a term that must not be true."""
    match term.function, term.arguments:
        case "is_null", (inner,):
            return f"{print_term(inner, bare=bare, level=5)} is not null"
        case "in", (first, *rest):
            listed = ", ".join(print_term(each, bare=bare, level=5) for each in rest)
            return f"{print_term(first, bare=bare, level=5)} not in ({listed})"
        case (("like" | "ilike" as name), (first, pattern)):
            return f"{print_term(first, bare=bare, level=5)} not {name} {print_term(pattern, bare=bare)}"
        case (("matches" | "imatches"), (first, pattern)):
            symbol = FUNCTIONS[term.function].symbol
            return f"{print_term(first, bare=bare, level=5)} !{symbol} {print_term(pattern, bare=bare)}"
    return f"not {print_term(term, bare=bare, level=3)}"

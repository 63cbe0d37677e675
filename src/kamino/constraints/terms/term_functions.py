"""The functions of terms: how each is written, what it takes and what it gives."""

from __future__ import annotations

from dataclasses import dataclass

from kamino.constraints.types import ValueType

NUMBERS = frozenset({ValueType.NUMBER})
TEXTS = frozenset({ValueType.TEXT})
BOOLEANS = frozenset({ValueType.BOOLEAN})
MOMENTS = frozenset({ValueType.DATE, ValueType.TIMESTAMP, ValueType.ZONED})
ANYTHING = NUMBERS | TEXTS | BOOLEANS | MOMENTS
MOST_ARGUMENTS = 20_000
"""Of one function: a list of values is one function, and a line holds no more."""


@dataclass(frozen=True, kw_only=True)
class Function:
    """What a function takes, argument by argument (the last kind repeats), and what it gives.

    `gives` None is the type of the first argument. `symbol` is how it is written between two arguments.
    """

    takes: tuple[frozenset[ValueType], ...]
    gives: ValueType | None
    least: int
    most: int
    symbol: str | None = None

    @property
    def counts(self) -> str:
        """How many arguments it takes, in words."""
        if self.most == MOST_ARGUMENTS:
            return f"at least {self.least}"
        return str(self.least) if self.least == self.most else f"{self.least} to {self.most}"


def _of(
    gives: ValueType | None,
    *takes: frozenset[ValueType],
    least: int | None = None,
    most: int | None = None,
    symbol: str | None = None,
) -> Function:
    least = len(takes) if least is None else least
    return Function(takes=takes, gives=gives, least=least, most=len(takes) if most is None else most, symbol=symbol)


_N, _T, _B, _D = ValueType.NUMBER, ValueType.TEXT, ValueType.BOOLEAN, ValueType.DATE
_ANY = MOST_ARGUMENTS

FUNCTIONS: dict[str, Function] = {
    # Numbers. A moment and a number of days add up to a moment; two moments differ by days.
    "add": _of(None, NUMBERS | MOMENTS, NUMBERS, symbol="+"),
    "subtract": _of(None, NUMBERS | MOMENTS, NUMBERS | MOMENTS, symbol="-"),
    "multiply": _of(_N, NUMBERS, NUMBERS, symbol="*"),
    "divide": _of(_N, NUMBERS, NUMBERS, symbol="/"),
    "mod": _of(_N, NUMBERS, NUMBERS, symbol="%"),
    "negate": _of(_N, NUMBERS),
    "abs": _of(_N, NUMBERS),
    "sign": _of(_N, NUMBERS),
    "floor": _of(_N, NUMBERS),
    "ceil": _of(_N, NUMBERS),
    "round": _of(_N, NUMBERS, NUMBERS, least=1),
    "power": _of(_N, NUMBERS, NUMBERS),
    "min": _of(None, NUMBERS | MOMENTS, least=1, most=_ANY),
    "max": _of(None, NUMBERS | MOMENTS, least=1, most=_ANY),
    "number": _of(_N, ANYTHING),
    # Parts of moments, and what lies between two.
    "year": _of(_N, MOMENTS),
    "quarter": _of(_N, MOMENTS),
    "month": _of(_N, MOMENTS),
    "week": _of(_N, MOMENTS),
    "day": _of(_N, MOMENTS),
    "weekday": _of(_N, MOMENTS),
    "yearday": _of(_N, MOMENTS),
    "hour": _of(_N, MOMENTS),
    "minute": _of(_N, MOMENTS),
    "second": _of(_N, MOMENTS),
    "date": _of(_D, MOMENTS | TEXTS),
    "days": _of(_N, MOMENTS, MOMENTS),
    "months": _of(_N, MOMENTS, MOMENTS),
    "years": _of(_N, MOMENTS, MOMENTS),
    "start_of": _of(_D, TEXTS, MOMENTS),
    # Text.
    "length": _of(_N, TEXTS),
    "bytes": _of(_N, TEXTS),
    "lower": _of(_T, TEXTS),
    "upper": _of(_T, TEXTS),
    "trim": _of(_T, TEXTS),
    "ltrim": _of(_T, TEXTS),
    "rtrim": _of(_T, TEXTS),
    "left": _of(_T, TEXTS, NUMBERS),
    "right": _of(_T, TEXTS, NUMBERS),
    "substr": _of(_T, TEXTS, NUMBERS, NUMBERS, least=2),
    "replace": _of(_T, TEXTS, TEXTS, TEXTS),
    "concat": _of(_T, TEXTS, TEXTS, symbol="||"),
    "text": _of(_T, ANYTHING),
    "item": _of(_T, TEXTS, TEXTS, NUMBERS),
    "items": _of(_N, TEXTS, TEXTS),
    # Tests of text.
    "like": _of(_B, TEXTS, TEXTS, symbol="like"),
    "ilike": _of(_B, TEXTS, TEXTS, symbol="ilike"),
    "matches": _of(_B, TEXTS, TEXTS, symbol="~"),
    "imatches": _of(_B, TEXTS, TEXTS, symbol="~*"),
    "starts_with": _of(_B, TEXTS, TEXTS),
    "ends_with": _of(_B, TEXTS, TEXTS),
    "contains": _of(_B, TEXTS, TEXTS),
    "each_in": _of(_B, TEXTS, TEXTS, TEXTS, least=3, most=_ANY),
    "items_differ": _of(_B, TEXTS, TEXTS),
    "has_item": _of(_B, TEXTS, TEXTS, TEXTS),
    # Of anything.
    "coalesce": _of(None, ANYTHING, least=1, most=_ANY),
    "nullif": _of(None, ANYTHING, ANYTHING),
    "choose": _of(None, BOOLEANS, ANYTHING, ANYTHING),
    # Logic of three values.
    "and": _of(_B, BOOLEANS, least=1, most=_ANY),
    "or": _of(_B, BOOLEANS, least=1, most=_ANY),
    "not": _of(_B, BOOLEANS),
    "is_null": _of(_B, ANYTHING),
    "in": _of(_B, ANYTHING, least=2, most=_ANY),
    "eq": _of(_B, ANYTHING, ANYTHING, symbol="="),
    "ne": _of(_B, ANYTHING, ANYTHING, symbol="!="),
    "lt": _of(_B, ANYTHING, ANYTHING, symbol="<"),
    "le": _of(_B, ANYTHING, ANYTHING, symbol="<="),
    "gt": _of(_B, ANYTHING, ANYTHING, symbol=">"),
    "ge": _of(_B, ANYTHING, ANYTHING, symbol=">="),
}

COMPARING = ("eq", "ne", "lt", "le", "gt", "ge")
"""Functions that compare two terms; what they take is checked pair by pair."""
UNITS = ("year", "quarter", "month", "week", "day", "hour")
"""Of which `start_of` gives the start."""

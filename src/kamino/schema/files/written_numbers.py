"""Numbers in text as people write them: with signs of currencies, thousands, percent, decimal commas, parentheses.

What one text says follows from it and a style, which is public. Whole columns are looked at for the owner of a table,
and where domains are trusted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any

import pyarrow as pa

from kamino.errors import SchemaError
from kamino.schema.attribute import Source
from kamino.schema.attributes import Categorical, Integer, Real
from kamino.schema.files.names import looks_like_code
from kamino.schema.files.value_lists import VALUE_LISTS
from kamino.schema.numbers import DEFAULT_DECIMALS, STYLES, Style
from kamino.schema.schema import Schema
from kamino.schema.spelling import NUMBER

# No number that people write is longer.
_LONGEST = 64
_SPACES = " \u00a0\u202f\u2009"
_SIGNS = {".": re.escape("."), ",": re.escape(","), " ": f"[{_SPACES}]", "'": "['\u2019]"}
# Signs of currencies, and their codes: three other letters before digits are those of a code or a number plate.
_MONEY = r"[$\u00a2-\u00a5\u058f\u060b\u09f2\u0e3f\u17db\u20a0-\u20c0\ufdfc]|(?:US|CA|AU|NZ|A|R)\$|" + "|".join(
    VALUE_LISTS["currency-codes"]
)


@cache
def _pattern(style: str) -> re.Pattern[str]:
    """What numbers of a style look like; a sign between thousands may be left out, but never misplaced."""
    thousands, point = _SIGNS[style[1]], _SIGNS[style[5]]
    whole = rf"[0-9]+|[0-9]{{1,3}}(?:{thousands}[0-9]{{2,3}})*{thousands}[0-9]{{3}}"
    number = rf"(?P<whole>{whole})?(?:{point}(?P<part>[0-9]*))?"
    sign, money, gap = r"[-+\u2212]", rf"(?:{_MONEY})", f"[{_SPACES}]?"
    return re.compile(
        rf"(?P<open>\()?(?P<before>{sign})?{gap}{money}?{gap}(?P<inner>{sign})?{number}{gap}(?:{money}|%)?{gap}"
        rf"(?P<behind>{sign})?(?P<close>\))?"
    )


def plain_number(text: str, style: str) -> str | None:
    """The plain spelling of a number that is written in a style; None for any other text.

    A number in parentheses is negative; a percent sign is dropped, so that 12.5% becomes 12.5.

    >>> plain_number("$1,234.50", "1,234.5"), plain_number("(1.234,5 €)", "1.234,5"), plain_number("12.5 %", "1,234.5")
    ('1234.50', '-1234.5', '12.5')
    >>> plain_number("12,34", "1,234.5") is None
    True
    """
    text = text.strip()
    if len(text) > _LONGEST:
        return None
    found = _pattern(style).fullmatch(text)
    if found is None or not (found["whole"] or found["part"]) or bool(found["open"]) != bool(found["close"]):
        return None
    signs = [found[name] for name in ("before", "inner", "behind") if found[name]]
    if len(signs) + bool(found["open"]) > 1:
        return None
    digits = re.sub(r"[^0-9]", "", found["whole"] or "").lstrip("0") or "0"
    is_negative = found["open"] is not None or (bool(signs) and signs[0] != "+")
    return f"{'-' if is_negative else ''}{digits}{'.' + found['part'] if found['part'] else ''}"


#: Words that stand for nothing where a column is one of numbers; in a column of texts NA may be a country.
NULL_WORDS = (
    "NA", "N/A", "n/a", "na", "#N/A", "<NA>", "NaN", "nan", "NULL", "Null", "null", "None", "none", "nil", "-", "--",
    "?", ".", "#VALUE!", "#DIV/0!", "missing", "Missing",
)  # fmt: skip
# A column is one of numbers if at most this part of its other cells is none, as where types are found within the
# budget.
_ODD = 0.01


def with_numbers(schema: Schema, table: pa.Table, *, trust_domain: bool = False, styles: bool = False) -> Schema:
    """A drafted schema with numbers in place of texts nearly all of which are numbers; what is none becomes null.

    With `styles`, numbers as people write them count too, and words for nothing are told: the schema then says how
    cells are written, which is found by looking at them.

    Guarantees:
        A few odd cells make no category of a number.  [test_a_few_odd_cells_make_no_category]
        Codes and texts stay what they are.  [test_codes_stay_codes]
    """
    for name, attribute in schema.attributes.items():
        is_text = pa.types.is_string(table.schema.field(name).type)
        if not is_text or not isinstance(attribute, Categorical) or looks_like_code(name):
            continue
        number = _number_of(count_texts(table.column(name)), styles=styles)
        if number is not None:
            schema = schema.with_attribute(name, _attribute(number[0], number[1], trust_domain=trust_domain))
    return schema


Said = dict[str, object]


def read_as_numbers(counts: Mapping[str, int]) -> Said | None:
    """How the texts of a column are written, if it is one of numbers, for a schema to say; else None.

    >>> read_as_numbers({"$1,234.50": 2, "NA": 1, "$7": 1})
    {'written': '1,234.5', 'nulls': ('NA',)}
    """
    found = _number_of(counts, styles=True)
    return None if found is None else found[0]


def count_texts(column: pa.ChunkedArray) -> dict[str, int]:
    """How often each value of a column occurs, as text."""
    found = column.cast(pa.string()).combine_chunks().value_counts()
    pairs = zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True)
    return {text: count for text, count in pairs if text is not None}


def _number_of(counts: Mapping[str, int], *, styles: bool) -> tuple[Said, list[Decimal]] | None:
    """How the numbers of a column are written, and which there are; None where it is no column of numbers."""
    words = [text for text in counts if styles and text.strip() in NULL_WORDS]
    others = {text: count for text, count in counts.items() if text not in words}
    total = sum(others.values())
    for style in (None, *(STYLES if styles else ())):
        plain = {text: _plain(text, style) for text in others}
        read = sum(count for text, count in others.items() if plain[text] is not None)
        if total and total - read <= _ODD * total:
            said: Said = {} if style is None else {"written": style}
            if words:
                said["nulls"] = tuple(sorted({text.strip() for text in words}))
            return said, [Decimal(each) for each in plain.values() if each is not None]
    return None


def _plain(text: str, style: Style | None) -> str | None:
    """A text as a number; leading zeros and plus signs, which a number would lose, make it none."""
    if style is None:
        return text if re.match(NUMBER, text) and math.isfinite(float(text)) else None
    return None if re.match(r"\s*(?:\+|0[0-9])", text) else plain_number(text, style)


def _attribute(said: Said, numbers: list[Decimal], *, trust_domain: bool) -> Integer | Real:
    exponents = [int(each.normalize().as_tuple().exponent) for each in numbers]
    decimals = min(DEFAULT_DECIMALS, max(0, *(-each for each in exponents)))
    fields: dict[str, Any] = {"nullable": True, **said}
    number: Integer | Real = Real(**fields, decimals=decimals) if decimals else Integer(**fields)
    if not trust_domain:
        return number
    low, high = min(numbers), max(numbers)
    ends: dict[str, Any] = {"min": low, "max": high} if decimals else {"min": int(low), "max": int(high)}
    try:
        return number.with_domain(source=Source.ASSERTED, **ends)
    except SchemaError:  # too wide to be numbered
        return number

"""What the name of a column says of it: codes that are no quantities, and ranges that are usual.

A name is public, so nothing here reads a cell. What a name says is a proposal: it is told, and a schema overrides it.

>>> looks_like_code("provider_number"), looks_like_code("AreaCode"), looks_like_code("number_of_rooms")
(True, True, False)
>>> proposed_range("age", Integer())
(0, 120)
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pyarrow as pa

from kamino.schema.attribute import Source
from kamino.schema.attributes import Attribute, Date, Datetime, Integer, Real
from kamino.schema.schema import Schema

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# Words that make a name one of codes wherever they stand; those that do as the last word; and those before a "number".
_CODES = frozenset(
    re.findall(
        r"[a-z0-9]+",
        """
        zip zipcode zipcodes postcode postal plz phone telephone fax mobile ssn npi ein iban bic isbn issn ean gtin upc
        sku mrn vin fips icd icd9 icd10 cpt drg naics barcode uuid guid orcid msisdn imei
        """,
    )
)
_LAST = frozenset({"id", "ids", "code", "codes", "key"})
_NUMBERED = frozenset(
    re.findall(
        r"[a-z]+",
        """
        provider account card policy invoice order customer client patient member employee student license licence
        registration serial reference case ticket flight tail passport tax vat phone routing admission encounter
        episode claim prescription accession specimen chart booking shipment contract loan transaction receipt
        """,
    )
)
_NUMBERS = frozenset({"number", "no", "nr", "num", "nbr"})
_KEYS = re.compile(r"[a-z]{3,}key$")

_AMOUNTS = frozenset(
    re.findall(
        r"[a-z]+",
        """
        price prices cost costs amount amounts salary wage wages income revenue turnover fee fees payment payments
        balance total subtotal sum budget spend expense expenses charge charges paid pay rent discount percent pct rate
        usd eur gbp chf dollars euros
        """,
    )
)

# Ranges by the last word of a name that has one.
_RANGES: dict[str, tuple[int, int]] = {
    "age": (0, 120),
    "percent": (0, 100),
    "percentage": (0, 100),
    "pct": (0, 100),
    "year": (1900, 2100),
    "yr": (1900, 2100),
    "month": (1, 12),
    "weekday": (0, 7),
    "hour": (0, 24),
    "minute": (0, 60),
    "latitude": (-90, 90),
    "lat": (-90, 90),
    "longitude": (-180, 180),
    "lon": (-180, 180),
    "lng": (-180, 180),
}
# Made-up addresses, of a domain that is nobody's.
EMAILS = "person{}@example.org"
_NUMBERS_BY_DEFAULT = (0, 1_000)
_DATES_BY_DEFAULT = (dt.date(1900, 1, 1), dt.date(2099, 12, 31))


def words_of(name: str) -> tuple[str, ...]:
    """Return the words of a name: `AreaCode`, `area_code` and `area code` have the same."""
    return tuple(word.lower() for word in _WORD.findall(name))


def looks_like_amount(name: str) -> bool:
    """Tell whether the last word of a name is that of an amount, which people write with a currency or thousands.

    >>> looks_like_amount("TotalCost"), looks_like_amount("cost_center")
    (True, False)
    """
    words = words_of(name)
    return bool(words) and words[-1] in _AMOUNTS


def looks_like_code(name: str) -> bool:
    """Tell whether a name is that of codes or identifiers, whose digits are no quantity."""
    words = words_of(name)
    if not words:
        return False
    last = words[-1] if not words[-1].isdigit() or len(words) == 1 else words[-2]
    numbered = len(words) > 1 and last in _NUMBERS and bool(_NUMBERED.intersection(words))
    return bool(_CODES.intersection(words)) or last in _LAST or numbered or _KEYS.fullmatch(last) is not None


def key_pattern(name: str) -> str | None:
    """The pattern of made-up values for a text column whose name is that of uuids or email addresses; else None.

    >>> key_pattern("customer_email"), key_pattern("RowGuid"), key_pattern("city")
    ('person{}@example.org', 'uuid', None)
    """
    words = words_of(name)
    if {"uuid", "guid"}.intersection(words) or name.lower().endswith(("uuid", "guid")):
        return "uuid"
    return EMAILS if words and ({"email", "emails"}.intersection(words) or words[-2:] == ("e", "mail")) else None


def proposed_range(name: str, attribute: Attribute) -> tuple[int, int] | None:
    """Return the range that a number of this name usually has; None for a name that says nothing."""
    words = words_of(name)
    if not words or not isinstance(attribute, Integer | Real):
        return None
    return _RANGES.get(words[-1])


def usual_range(name: str, attribute: Attribute) -> tuple[Any, Any]:
    """Return the range that stands for one that could not be found: by the name, or by the type alone.

    Guarantees:
        It is never 0 to 1, and every type can hold it.  [test_a_range_that_is_not_found_is_the_usual_one]
    """
    if isinstance(attribute, Date):
        return _DATES_BY_DEFAULT
    if isinstance(attribute, Datetime):
        first, last = (dt.datetime(day.year, day.month, day.day) for day in _DATES_BY_DEFAULT)
        return first, last
    low, high = proposed_range(name, attribute) or _NUMBERS_BY_DEFAULT
    return max(low, _least(attribute)), min(high, _most(attribute))


def with_usual_ranges(schema: Schema) -> Schema:
    """Return the schema with the ranges that names suggest, as declared, where it has none."""
    for name in schema.missing_domains:
        usual = proposed_range(name, schema[name])
        if usual is not None:
            low, high = usual
            schema = schema.with_domain(name, source=Source.DECLARED, min=low, max=high)
    return schema


def _least(attribute: Attribute) -> int:
    return 0 if pa.types.is_unsigned_integer(attribute.arrow_type) else -128


def _most(attribute: Attribute) -> int:
    kind = attribute.arrow_type
    if pa.types.is_integer(kind) and kind.bit_width == 8:
        return 255 if pa.types.is_unsigned_integer(kind) else 127
    if pa.types.is_decimal(kind):
        return int(10 ** max(0, kind.precision - kind.scale)) - 1
    return 2**15 - 1

"""How much text is read: the limits on rules, schemas, metadata, queries and certificates, each with its reason.

A text beyond a limit is refused in one line, before the work that would take long or fail. Rules and schemas are
written by people, and no honest one is near these numbers. Tables have no such limits.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

MAX_FILE_BYTES = 4 * 2**20
"""Of one file of text: a schema that lists half a million short categories. More is a table given by mistake."""

MAX_TEXT_BYTES = 16 * 2**20
"""Of one text in memory: a model file may hold a schema that is longer than any that people write."""

MAX_LINE_CHARS = 2**14
"""Of one line of rules: a list of a thousand values. Some patterns take time that grows with the square of this."""

MAX_CONSTRAINTS = 2_000
"""Of one rule file, once each line is multiplied out: what can still be compared with each other in seconds."""

MAX_DEPTH = 50
"""Of parentheses, negations and YAML levels within each other: far below what Python's stack holds."""

MAX_DIGITS = 400
"""Of one number: the largest double has 309, the longest decimal column 76."""

MAX_EXPONENT = 400
"""Of a number's size as a power of ten, either way: doubles end at 308; 1e999999999 would fill the memory."""

MAX_ATTRIBUTES = 10_000
"""Of one schema: more columns than any table that can be modelled."""

MAX_VALUES = 1_000_000
"""Of one list of categories."""

MAX_NODES = 3_000_000
"""Of one YAML text once its aliases are written out: ten of ten of ten make a short text endless."""

MAX_NAME_CHARS = 1_000
"""Of an attribute's name: looking for a similar name takes time that grows with the square of this."""

MAX_FAULTS = 50
"""That one answer lists: nobody mends more at once, and each may search for a similar name."""

MAX_QUERY_CHARS = 100_000
"""Of one SQL query: a list of ten thousand identifiers."""

MAX_UNIT_ROWS = 10**9
"""Kept of one privacy unit: noise grows with it, and drowns everything long before."""

MAX_LEDGER_BYTES = 2**30
"""Of one durable ledger: a million charges."""

MAX_LEDGER_LINES = 2_000_000
"""Of one durable ledger."""

MAX_LEDGER_LINE_BYTES = 2**21
"""Of one line of a durable ledger: a release that names ten thousand attributes."""

MAX_RELEASE_BYTES = 3 * 2**27
"""Of one stored release: twenty-five million counts, as text that is sealed."""

MAX_RELEASES_BYTES = 3 * 2**29
"""Of all stored releases of one run."""

MAX_COUNT = 10**12
"""Of how often one event happens: far more steps than any training has."""

MAX_CERTIFICATE_BYTES = 32 * 2**20
"""Of one certificate: it holds a schema and a ledger of thousands of releases."""

MAX_ITEMS = 4_000_000
"""Of the values in one certificate: a list of JSON takes sixty bytes and more in memory for two in the file."""

MAX_ENTRIES = 200_000
"""Of one ledger: more releases than any budget can be divided into usefully."""

MAX_KEY_BYTES = 2**14
"""Of the file of a key."""

# Without possessive repeats, digits that end in something else take time that grows with their square.
_NUMBER = re.compile(r"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE]([-+]?\d++))?")
_SHOWN = 60


def number_problem(text: str) -> str:
    """Say why the text of a number is too long or too large to be read, or return `""`.

    >>> number_problem("1e999999999")
    'found a number beyond 1e400, expected at most that'
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return ""
    exponent = match.group(1) or "0"
    if len(text) - len(exponent) > MAX_DIGITS + 4:
        return f"found a number of {len(text)} characters, expected at most {MAX_DIGITS} digits"
    if len(exponent) > 6 or not _within(Decimal(text.strip())):
        return f"found a number beyond 1e{MAX_EXPONENT}, expected at most that"
    return ""


def size_problem(number: Decimal) -> str:
    """Say why a finite number is too long or too large to be computed with, or return `""`."""
    if len(number.as_tuple().digits) > MAX_DIGITS:
        return f"found a number of more than {MAX_DIGITS} digits, expected fewer"
    return "" if _within(number) else f"found a number beyond 1e{MAX_EXPONENT}, expected at most that"


def read_number(text: str) -> int | Decimal:
    """Read a number: an integer where it is spelled as one.

    Raises:
        ValueError: it is none, or beyond the limits; the text says what was found and expected.
    """
    problem = number_problem(text)
    if problem:
        raise ValueError(problem)
    try:
        return int(text) if text.strip().lstrip("+-").isdecimal() else Decimal(text)
    except (InvalidOperation, ValueError):
        raise ValueError(f"found {cut(text)!r}, expected a number") from None


def text_problem(text: str) -> str:
    """Say why a text is too large to be read, or return `""`."""
    # A character has at most four bytes, so most texts need not be encoded to be measured.
    if len(text) * 4 <= MAX_TEXT_BYTES or len(text.encode("utf-8", "surrogatepass")) <= MAX_TEXT_BYTES:
        return ""
    return f"found more than {MAX_TEXT_BYTES // 2**20} MiB of text, expected less; is this a table?"


def cut(text: str) -> str:
    """The text as a message shows it: its beginning, if it is long."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _within(number: Decimal) -> bool:
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or not number:
        return not isinstance(exponent, int) or abs(exponent) <= MAX_EXPONENT
    return abs(number.adjusted()) <= MAX_EXPONENT and abs(exponent) <= 2 * MAX_EXPONENT

"""Every error Kamino raises on purpose, in one tree.

    KaminoError
    ├── InputError                a table, file or query cannot be read or written
    │   └── KeywordError          a keyword that is not known; also a `TypeError`
    ├── SchemaError               a schema is wrong in itself, or does not fit the table
    ├── ConstraintError           one constraint is wrong; carries the place in the text
    │   └── UnknownAttributeError names an attribute the schema does not have
    ├── ConstraintErrors          all that is wrong in one constraint file
    ├── PrivacyError              a budget, event or mechanism parameter that makes no sense
    │   └── BudgetError           a charge that would go over the budget, or a run over a policy
    ├── LedgerError               a durable ledger cannot be used: unreadable, changed, or of another run
    ├── ModelError                a tuple model cannot be built, saved or loaded
    ├── CancelledError            somebody stopped a job
    └── SamplingError             no table can satisfy the constraints

A message says what was found, what would be right and what to do. No message holds a value of a private table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

# What a terminal obeys or does not show: control characters, line and paragraph separators, marks that turn the
# direction of text, invisible spaces, halves of pairs.
_HIDDEN = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u2069\\ufeff\\ufff9-\\ufffb\\ud800-\\udfff\\U000e0000-\\U000e007f]"
)


def visible(text: str, *, keep: str = "") -> str:
    r"""The text as it is safe to print: what a terminal would obey is shown as an escape, but for `keep`.

    >>> print(visible("a\x1b[31mb\n"))
    a\x1b[31mb\n

    Guarantees:
        Nothing that a terminal obeys is left.  [test_nothing_a_terminal_obeys_is_printed]
    """
    return _HIDDEN.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def visible_json(text: str) -> str:
    """A text of JSON as it is safe to print, which means the same: what is hidden in it stands in strings only."""
    return _HIDDEN.sub(lambda found: found[0] if found[0] == "\n" else json.dumps(found[0])[1:-1], text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


class KaminoError(ValueError):
    """The root of all errors raised on purpose; also a `ValueError`. Its text is safe to print.

    `advice` is what the text was made of, where there is something to do: a code, what it is about, and remedies.
    """

    advice: Any = None

    def __str__(self) -> str:
        return visible(super().__str__(), keep="\n")


class KaminoWarning(UserWarning):
    """Something that a user of Python should hear of and may go on with: a weak promise, a column that was lost."""


class InputError(KaminoError):
    """A table, file, query or option cannot be used as given."""


class KeywordError(InputError, TypeError):
    """A keyword is given that is not known."""


class SchemaError(KaminoError):
    """A schema is wrong in itself, or does not fit the table."""


class ConstraintError(KaminoError):
    """One constraint is wrong. `str()` starts with `source:line:column:` where these are known."""

    def __init__(self, message: str, *, source: str = "", line: int = 0, column: int = 0) -> None:
        self.message = message
        self.source = source
        self.line = line
        self.column = column
        place = f"{source or '<text>'}:{line}:{column}: " if line else ""
        super().__init__(place + message)


class UnknownAttributeError(ConstraintError):
    """A constraint names an attribute that the schema does not have."""


class ConstraintErrors(KaminoError):
    """Everything that is wrong in one constraint file, one line for each, in the order of the text."""

    def __init__(self, errors: Sequence[ConstraintError]) -> None:
        self.errors = tuple(sorted(errors, key=lambda error: (error.line, error.column)))
        super().__init__("\n".join(str(error) for error in self.errors))


class PrivacyError(KaminoError):
    """A budget, an event or a mechanism was given a parameter that makes no sense."""


class BudgetError(PrivacyError):
    """A charge would go over the budget, or a run over a policy. Nothing was drawn."""


class LedgerError(KaminoError):
    """A durable ledger, or the stored releases of a run, cannot be used as they are."""


class ModelError(KaminoError):
    """A tuple model cannot be built, saved or loaded."""


class SamplingError(KaminoError):
    """No table of the asked size can satisfy the constraints, or none was found."""


class CancelledError(KaminoError):
    """Somebody stopped a job before its next release."""

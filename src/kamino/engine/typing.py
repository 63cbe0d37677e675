"""Types of text columns, found within the budget: a CSV file says nothing of types but by its cells."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kamino.privacy import Gate, multiplier_for
from kamino.privacy.private import PrivateTable, open_table
from kamino.schema import Attribute, Boolean, Categorical, Date, Datetime, Integer, Real, Schema, spelling

# From the narrowest spelling to the widest; a cell counts for the first that fits.
_SPELLINGS = (
    ("boolean", spelling.BOOLEAN),
    ("integer", spelling.INTEGER),
    ("real", spelling.NUMBER_OR_NOT),
    ("date", spelling.DATE),
    ("datetime", spelling.LOCAL_TIME),
)
_KINDS = (*(name for name, _ in _SPELLINGS), "text", "empty")
# A type is taken if at most this part of the cells is spelled otherwise, beyond what the noise may make.
TOLERANCE = 0.01
_DEVIATIONS = 4.0
SPELLINGS = "how cells are spelled"


def num_spellings() -> int:
    """Return how many kinds of spelling are told apart."""
    return len(_KINDS)


def discover_types(private: PrivateTable, gate: Gate, *, mu_squared: float) -> Schema:
    """Return a schema without domains for a table of text: names as they are, types from noisy counts of spellings.

    What is spelled otherwise than its column's type becomes null later. With too few rows to tell, a column is text.

    Guarantees:
        The types depend on the table through the gate only.  [test_replay_passes_for_types]
    """
    table = open_table(private)
    multiplier = multiplier_for(mu_squared / table.num_columns)
    sigma = gate.counts_sigma(multiplier)
    attributes: dict[str, Attribute] = {}
    for name in table.column_names:
        counts = gate.release_counts(
            _count_spellings(table.column(name)),
            what=SPELLINGS,
            attributes=(name,),
            noise_multiplier=multiplier,
        )
        attributes[name] = _attribute(dict(zip(_KINDS, counts.tolist(), strict=True)), sigma)
    return Schema(attributes=attributes)


def _count_spellings(column: pa.ChunkedArray) -> NDArray[np.int64]:
    values = column.combine_chunks().value_counts()
    texts, counts = values.field("values"), np.asarray(values.field("counts"))
    found = np.zeros(len(_KINDS), dtype=np.int64)
    left = np.ones(len(texts), dtype=np.bool_)
    for place, (_, pattern) in enumerate(_SPELLINGS):
        fits = np.asarray(pc.fill_null(pc.match_substring_regex(texts, pattern), False)).astype(np.bool_) & left
        found[place] = counts[fits].sum()
        left &= ~fits
    empty = np.asarray(texts.is_null()).astype(np.bool_)
    found[-1] = counts[empty].sum()
    found[-2] = counts[left & ~empty].sum()
    return found


def _attribute(counts: dict[str, int], sigma: float) -> Attribute:
    """The narrowest type that nearly all cells are spelled as."""
    filled = max(0, sum(count for kind, count in counts.items() if kind != "empty"))
    families: tuple[tuple[tuple[str, ...], Attribute], ...] = (
        (("boolean",), Boolean(nullable=True)),
        (("integer",), Integer(nullable=True)),
        (("integer", "real"), Real(nullable=True)),
        (("date",), Date(nullable=True)),
        (("date", "datetime"), Datetime(nullable=True)),
    )
    for kinds, attribute in families:
        others = filled - sum(counts[kind] for kind in kinds)
        slack = _DEVIATIONS * sigma * math.sqrt(len(_KINDS))
        if filled > 2 * slack and others <= TOLERANCE * filled + slack:
            return attribute
    return Categorical(nullable=True)

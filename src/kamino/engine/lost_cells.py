"""What found domains lose: cells that lie outside, are no category, or cannot be read, counted with noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.engine.finding_policy import FINDING
from kamino.engine.ticks import ends_of, read_numbers
from kamino.privacy import Gate, Sensitivity
from kamino.privacy.discrete_gaussian import scale_for
from kamino.privacy.private import PrivateTable, open_parts
from kamino.schema import Attribute, Boolean, Categorical, Key, Schema, attribute_codec
from kamino.schema.dtypes import is_text

LOST = "cells that the domains found do not hold"
UNREADABLE = "cells of dates that cannot be read, or lie outside"
_MOST_KINDS = 2


@dataclass(frozen=True, kw_only=True)
class Lost:
    """The noisy shares of a column's cells that a domain does not hold. Every field may be published.

    outside: moved to an end of the range, or to `other`. unreadable: not of the column's type, and so null. within: how
    far from the truth each may be, in 95 of 100 columns.
    """

    outside: float
    unreadable: float
    within: float

    @property
    def share(self) -> float:
        """The share of cells that are lost, one way or the other."""
        return min(1.0, self.outside + self.unreadable)


def num_lost_cells(num_columns: int) -> int:
    """Return how many numbers `release_lost` releases, at most."""
    return num_columns * _MOST_KINDS


@dataclass(frozen=True, kw_only=True)
class NoisyLost:
    """The noisy numbers of lost cells of some columns, by kind, and the scale of the noise. May be published."""

    counts: Mapping[tuple[str, str], int]
    sigma: float

    def shares(self, about_rows: float) -> dict[str, Lost]:
        """The numbers as shares of the rows there are, about."""
        rows = max(1.0, about_rows)
        within = min(1.0, FINDING.told_deviations * self.sigma / rows)
        found: dict[str, dict[str, float]] = {}
        for (name, kind), count in self.counts.items():
            share = found.setdefault(name, dict.fromkeys(("outside", "unreadable"), 0.0))
            share[kind] = float(np.clip(count / rows, 0, 1))
        return {name: Lost(**share, within=within) for name, share in found.items()}


def release_lost(
    private: PrivateTable,
    schema: Schema,
    names: Sequence[str],
    gate: Gate,
    *,
    noise_multiplier: float,
    what: str = LOST,
) -> NoisyLost:
    """Count the lost cells of some columns, in one release: a cell counts once at most, so a row once for each column.

    Guarantees:
        A row moves the counts by no more than is declared.
        [test_found_domains_stay_within_their_sensitivity_at_the_ends_of_types]
        The shares are those of the table, but for noise.  [test_lost_cells_are_told]
    """
    row = Sensitivity.of_histogram(len(names))
    types = private.without_rows().schema
    kinds = [(name, kind) for name in names for kind in _kinds(schema[name], types.field(name).type)]
    counts = np.zeros(len(kinds), dtype=np.int64)
    for part in open_parts(private, names):
        lost = {name: count_lost(part.column(name), name, schema[name]) for name in names}
        counts += np.array([lost[name][kind] for name, kind in kinds], dtype=np.int64)
    noisy = gate.release_counts(
        counts,
        what=what,
        attributes=tuple(names),
        noise_multiplier=noise_multiplier,
        sensitivity=row,
    )
    deviation = gate.deviation(noise_multiplier, gate.sensitivity(row))
    sigma = scale_for(deviation) if deviation else 0.0
    return NoisyLost(counts=dict(zip(kinds, noisy.tolist(), strict=True)), sigma=sigma)


def _kinds(attribute: Attribute, kind: pa.DataType) -> tuple[str, ...]:
    """What a column can lose: by its type, which is public."""
    if isinstance(attribute, Categorical):
        return ("outside",)
    if isinstance(attribute, Boolean):
        return ("unreadable",)
    return ("outside", "unreadable") if is_text(kind) else ("outside",)


def count_lost(column: pa.ChunkedArray, name: str, attribute: Attribute) -> dict[str, int]:
    """Count the cells outside the domain and those that cannot be read; null and NaN are neither."""
    match attribute:
        case Key():
            return {"outside": 0, "unreadable": 0}
        case Categorical():
            plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            codec = attribute_codec(
                name, Categorical(values=_listed(attribute), nullable=True, source=attribute.source)
            )
            return {"outside": _missing(codec.encode(plain), codec, plain), "unreadable": 0}
        case Boolean():
            codec = attribute_codec(name, Boolean(nullable=True))
            return {"outside": 0, "unreadable": _missing(codec.encode(column), codec, column)}
        case _:
            numbers = read_numbers(column, name, attribute)
            low, high = ends_of(name, attribute)
            outside = int(np.count_nonzero((numbers.values < low) | (numbers.values > high)))
            return {"outside": outside, "unreadable": numbers.unreadable}


def _listed(attribute: Categorical) -> list[Any]:
    """The categories that were found: `other` is none."""
    return [value for value in attribute.categories if value != attribute.other]


def _missing(codes: NDArray[np.int64], codec: Any, column: pa.ChunkedArray) -> int:
    """How many cells became null that were not."""
    return int(np.count_nonzero(codes == codec.null_code)) - int(column.null_count)

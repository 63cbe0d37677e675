"""Public maps of functional dependencies: a table that says which value goes with which."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kamino.errors import SamplingError
from kamino.sampling.codes.comparing import Codes, Columns
from kamino.sampling.codes.grouping import join_keys
from kamino.schema import Codec

if TYPE_CHECKING:
    from kamino.model.parts import KnownMap

# Maps of wider left sides are not spelled out value by value.
_MOST_SPELLED = 1 << 21


@dataclass(frozen=True, kw_only=True, eq=False)
class ReferenceMap:
    """The codes of `left` in a public table and the code of `right` that goes with each.

    Of a map that was `learned` from releases, left sides that it does not know do not occur.
    """

    left: tuple[str, ...]
    right: str
    left_codes: Mapping[str, Codes]
    right_codes: Codes
    learned: bool = False

    @property
    def num_entries(self) -> int:
        """How many combinations of the left side the map knows."""
        return len(self.right_codes)

    def find(self, columns: Columns) -> Codes:
        """Return the code of the right side for each row, or -1 where the map does not know the left side."""
        num_rows = len(columns[self.left[0]])
        together = [np.concatenate([self.left_codes[name], columns[name]]) for name in self.left]
        keys = join_keys(together)
        known, wanted = keys[: self.num_entries], keys[self.num_entries :]
        found = np.full(int(keys.max(initial=-1)) + 1, -1, dtype=np.int64)
        found[known] = self.right_codes
        return found[wanted] if num_rows else np.zeros(0, np.int64)


def known_of(reference: ReferenceMap, codec: Codec) -> KnownMap | None:
    """Return a public map as a model reads it; None where its left side has several attributes, or very many values."""
    from kamino.model.parts import KnownMap

    if len(reference.left) > 1 or codec[reference.left[0]].size > _MOST_SPELLED:
        return None
    (left,) = reference.left
    values = np.full(codec[left].size, -1, dtype=np.int64)
    values[reference.left_codes[left]] = reference.right_codes
    starts = np.flatnonzero(np.append(True, np.diff(values) != 0))
    return KnownMap(left=left, right=reference.right, starts=starts, values=values[starts])


def reference_of(known: KnownMap, codec: Codec) -> ReferenceMap:
    """Return a map that a model knows as a reference: what it says nothing of does not occur, or hardly ever."""
    codes = np.arange(codec[known.left].num_values, dtype=np.int64)
    values = known(codes)
    return ReferenceMap(
        left=(known.left,),
        right=known.right,
        left_codes={known.left: codes[values >= 0]},
        right_codes=values[values >= 0],
        learned=True,
    )


def read_reference(codec: Codec, left: tuple[str, ...], right: str, table: pa.Table) -> ReferenceMap:
    """Read a public map from a table with the columns `left` and `right`.

    Values outside the schema's domains are left out, since no row can hold them.

    Raises:
        SamplingError: a column is missing, or one left side has two right sides.
    """
    missing = [name for name in (*left, right) if name not in table.column_names]
    if missing:
        raise SamplingError(
            f"the reference table of {', '.join(left)} -> {right} has no column {', '.join(missing)}; "
            "give a table with one column for each attribute of the dependency."
        )
    codes = {name: _exact_codes(codec, name, table.column(name)) for name in (*left, right)}
    inside = np.logical_and.reduce([codes[name] >= 0 for name in codes])
    codes = {name: column[inside] for name, column in codes.items()}
    keys = join_keys([codes[name] for name in left])
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if np.any(codes[right] != codes[right][first][inverse]):
        raise SamplingError(
            f"the reference table of {', '.join(left)} -> {right} gives two values of {right} for one left side; "
            "expected one row for each left side."
        )
    return ReferenceMap(
        left=left,
        right=right,
        left_codes={name: codes[name][first] for name in left},
        right_codes=codes[right][first],
    )


def _exact_codes(codec: Codec, name: str, column: pa.ChunkedArray) -> Codes:
    """Return the code of each value, -1 for null and for what is not in the domain."""
    known = codec[name]
    encoded = column.combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.chunks)
    found = [known.code_of(value) for value in encoded.dictionary.to_pylist()]
    table = np.array([-1 if code is None or code == known.null_code else code for code in found] + [-1], np.int64)
    places = encoded.indices.cast(pa.int64()).fill_null(len(table) - 1)
    return np.asarray(table[places.to_numpy(zero_copy_only=False)], np.int64)

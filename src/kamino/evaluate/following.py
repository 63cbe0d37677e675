"""How many rows of a table follow a public map: `zip -> city using zips.csv` says which city goes with which zip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, kw_only=True)
class Following:
    """Rows of one table beside one map. `known`: rows whose left side the map has; `contradicting`: of these, rows with
    another right side than the map's. A null on either side contradicts nothing, and does not follow.
    """

    rows: int
    known: int
    following: int
    contradicting: int

    @property
    def share(self) -> float:
        """The part of all rows that have a left side of the map and the right side that goes with it."""
        return self.following / self.rows if self.rows else 1.0

    def __add__(self, other: Following) -> Following:
        """The rows of two parts of a table together."""
        return Following(
            rows=self.rows + other.rows,
            known=self.known + other.known,
            following=self.following + other.following,
            contradicting=self.contradicting + other.contradicting,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data for certificates and machines."""
        return {
            "rows_known": self.known,
            "rows_following": self.following,
            "rows_contradicting": self.contradicting,
            "share_following": self.share,
        }


def count_following(table: pa.Table, left: tuple[str, ...], right: str, reference: pa.Table) -> Following:
    """Count the rows of `table` that follow a map with the same names and types of columns.

    Guarantees:
        Agrees with looking each row up.  [test_following_agrees_with_looking_up]

    >>> rows = pa.table({"zip": [1, 1, 2, 3], "city": ["A", "B", "A", "C"]})
    >>> count_following(rows, ("zip",), "city", pa.table({"zip": [1, 2], "city": ["A", "A"]}))
    Following(rows=4, known=3, following=2, contradicting=1)
    """
    kinds = {name: _plain(table.schema.field(name).type) for name in (*left, right)}
    keys = [f"left{i}" for i in range(len(left))]
    rows = pa.table(
        {
            **{key: table.column(name).cast(kinds[name]) for key, name in zip(keys, left, strict=True)},
            "right": table.column(right).cast(kinds[right]),
        }
    )
    wanted = pa.table(
        {
            **{key: reference.column(name).cast(kinds[name]) for key, name in zip(keys, left, strict=True)},
            "expected": reference.column(right).cast(kinds[right]),
        }
    )
    wanted = wanted.drop_null().group_by(wanted.column_names, use_threads=False).aggregate([])
    joined = rows.join(wanted, keys=keys, join_type="inner")
    same = np.asarray(pc.fill_null(pc.equal(joined.column("right"), joined.column("expected")), False))
    present = np.asarray(joined.column("right").is_valid())
    return Following(
        rows=table.num_rows,
        known=joined.num_rows,
        following=int(same.sum()),
        contradicting=int((present & ~same).sum()),
    )


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind

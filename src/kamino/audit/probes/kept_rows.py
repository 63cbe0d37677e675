"""Which rows of a unit are kept: never more than planned, whatever the unit's name is and however the table is read.

Compared with a choice that is written down plainly: of the rows of each value the first so many, in an order that only
the coins know. That order is looked at too: it is another one for other coins, and no other unit changes it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kamino.audit.probes.probe import Probe
from kamino.errors import PrivacyError
from kamino.privacy import Budget, Gate, PrivacyUnit

_MOST = 3
_OWNERS: dict[str, list[Any]] = {
    "numbers": [0.0, -0.0, 1.5, 2.5, None],
    "whole numbers": [0, -1, 2**40, 7, None],
    "texts": ["", "a", "b", "é", None],
    "dates": [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31), dt.date(1, 1, 1), None],
}
_ROWS = 10


@dataclass(frozen=True, kw_only=True)
class _Parts:
    """A table that is read in parts of a few rows."""

    table: pa.Table
    is_ordered: bool = True

    @property
    def schema(self) -> pa.Schema:
        return self.table.schema

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        chosen = self.table if names is None else self.table.select(list(names))
        for start in range(0, max(chosen.num_rows, 1), 4):
            yield chosen.slice(start, 4)


class _Coins:
    """A source of noise of which only the coins are asked for."""

    mark = ""

    def __init__(self, coins: bytes) -> None:
        self._coins = coins

    def coins(self) -> bytes:
        return self._coins


def unit_problems() -> Iterator[str]:
    """Tell of which units more rows were kept than planned, or others than should be."""
    for name, owners in _OWNERS.items():
        yield from _of_type(name, owners)
    yield from _not_chosen()


def _not_chosen() -> Iterator[str]:
    """Ask for a release before the rows of units are chosen, which must fail."""
    gate = Gate(Budget(epsilon=1.0, delta=1e-6), unit=PrivacyUnit(column="who", max_rows=_MOST))
    with contextlib.suppress(PrivacyError):
        gate.release_counts(np.arange(3), what="counts", attributes=("n",), noise_multiplier=20.0)
        yield "a release was made before the rows of units were chosen"


def _of_type(name: str, owners: list[Any]) -> Iterator[str]:
    column = [owner for _ in range(_ROWS) for owner in owners]
    table = pa.table({"who": pa.array(column), "n": range(len(column))})
    kept = _kept(table, b"a" * 32)
    counts = Counter(owner for owner, _ in kept)
    # Zeros of both signs are one number, and so one unit.
    if counts != Counter(dict.fromkeys(set(owners), _MOST)):
        yield f"of a unit among {name} other rows are kept than {_MOST} of each"
    if kept != _kept(table, b"a" * 32, in_parts=True):
        yield f"of units among {name} other rows are kept when a table is read in parts"
    if all(kept == _kept(table, bytes([coin]) * 32) for coin in range(3)):
        yield f"of units among {name} the same rows are kept with any coins"
    first = owners[-2]
    without = table.filter(pa.array([owner is None or owner != first for owner in column]))
    if [row for row in kept if row[0] is None or row[0] != first] != _kept(without, b"a" * 32):
        yield f"the rows of one unit among {name} decide which rows of others are kept"


def _kept(table: pa.Table, coins: bytes, *, in_parts: bool = False) -> list[tuple[Any, int]]:
    gate = Gate(
        Budget(epsilon=1.0, delta=1e-6),
        unit=PrivacyUnit(column="who", max_rows=_MOST),
        noise=_Coins(coins),  # type: ignore[arg-type]
    )
    chosen = gate.select_rows(_Parts(table=table) if in_parts else table)
    rows = pa.concat_tables(chosen.parts()) if in_parts else chosen
    return list(zip(rows.column("who").to_pylist(), rows.column("n").to_pylist(), strict=True))


UNITS = Probe(
    name="rows of a unit",
    does="Rows of units of all types are chosen, in memory and in parts: no more than planned, by the coins alone.",
    cannot="Databases and clusters, which choose by the same hashes; tests run them.",
    search=unit_problems,
)

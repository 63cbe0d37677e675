"""A reader under trial with odd rows: how a source is made of cells, and what is seen of it when it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from kamino.io import read_table
from kamino.io.frame_types import kind_of

# The cells of each column, from the first row to the last.
Cells = Mapping[str, Sequence[Any]]


@dataclass(frozen=True)
class Seen:
    """What a reader gives: a table, and all else that is public from then on, such as the kind of frame."""

    table: pa.Table
    public: Any = None

    @cached_property
    def rows(self) -> list[str]:
        """Each row as a text, in which NaN equals itself."""
        return [repr(row) for row in zip(*(column.to_pylist() for column in self.table.columns), strict=True)]


def read_privately(source: object) -> Seen:
    """Read a source as a run does that trusts nothing."""
    table = read_table(source, private=True)
    return Seen(table, kind_of(source, table.schema))


@dataclass(frozen=True, kw_only=True)
class Column:
    """The cells of one column of a reader: those of ordinary rows, and odd ones.

    beside: the odd ones that may be among other cells which stay as they are, if these are not all.
    """

    plain: Sequence[Any]
    odd: Sequence[Any]
    beside: Sequence[Any] | None = None


@dataclass(frozen=True, kw_only=True)
class OddReader:
    """A reader under trial.

    columns: what a table may be made of; each one tried has a few of them.
    make: makes a source of cells, for which it may use the folder; what it raises says that there is no such source.
    read: reads the source.
    anywhere: whether an odd row may stand before others; where False, it is the last.
    share: how often it is tried, beside others.
    cost: how many rows of others could be tried in the time that one of these takes.
    """

    name: str
    columns: Mapping[str, Column]
    make: Callable[[Cells, Path], Any]
    read: Callable[[Any], Seen] = read_privately
    anywhere: bool = True
    share: int = 1
    cost: int = 1

"""Tables that are not held in memory: they are read part by part, as often as somebody asks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import pyarrow as pa


@runtime_checkable
class Parts(Protocol):
    """A table that is read part by part. Every pass gives the same rows, in at least one part, which may be empty."""

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns: the same for every part."""
        ...

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns, by default all, part by part."""
        ...


@runtime_checkable
class TableParts(Parts, Protocol):
    """A table in parts that says whether its rows come in the same order every time.

    Where `is_ordered`, parts are cut at the same rows and rows come in the same order, whichever columns are asked for.
    """

    @property
    def is_ordered(self) -> bool:
        """Whether the rows of two passes can be told apart by their places."""
        ...

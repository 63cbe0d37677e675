"""Private rows as types of their own: what holds them shows names and types of columns, and nothing else.

A table is sealed where it is read, and opened where noisy answers are made of it: in `kamino.engine` and in
`kamino.privacy`. Everything else may pass it on and ask the gate.

>>> import pyarrow as pa
>>> private = PrivateTable(pa.table({"age": [21, 30], "city": ["Rome", "Oslo"]}))
>>> private
PrivateTable(age, city)
>>> private.without_rows().num_rows
0

Guarantees:
    Opening one anywhere else fails `make check`.  [test_a_snippet_that_opens_a_private_table_fails_the_check]
    No module of another package names what opens them.  [test_private_rows_are_opened_in_their_packages_only]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.errors import PrivacyError
from kamino.schema import CodedTable
from kamino.schema.table_parts import TableParts


@runtime_checkable
class RemoteParts(TableParts, Protocol):
    """A table in parts on other machines, which can be counted there. What they count is as private as its rows."""

    def count(
        self, work: Callable[[pa.Table], list[NDArray[np.int64]]], names: Sequence[str]
    ) -> list[NDArray[np.int64]]:
        """Let `work` count parts of the named columns where they are, and add up what it gives for all of them."""
        ...

    def keep_lowest(
        self, hashes: Callable[[pa.Table], tuple[NDArray[np.uint64], NDArray[np.uint64]]], max_rows: int
    ) -> TableParts:
        """The rows of each unit with the lowest hashes: `hashes` gives two numbers for a unit and one for a row."""
        ...


@runtime_checkable
class CodeParts(Protocol):
    """The codes of a table that is not held in memory, part by part."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        ...

    def parts(self, names: Sequence[str] | None = None) -> Iterator[CodedTable]:
        """Give the codes of the named columns, by default all, part by part; at least one part."""
        ...


class _Sealed:
    """What both kinds have in common: no text, no copy and no file shows what is inside."""

    __slots__ = ("_sealed",)

    def __init__(self, rows: Any, kind: type, parts: type) -> None:
        if not isinstance(rows, kind) and (isinstance(rows, _Sealed) or not isinstance(rows, parts)):
            raise PrivacyError(f"found a {type(rows).__name__} to seal; expected a {kind.__name__}.")
        self._sealed: Any = rows

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, which are public."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.names)})"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError(f"a {type(self).__name__} is not to be saved or sent; save the fitted model instead.")


class PrivateTable(_Sealed):
    """A private table as it was read. Names and types of its columns are public; values and number of rows are not.

    Guarantees:
        Neither its text nor a copy shows a row.  [test_sealed_rows_do_not_show]
    """

    __slots__ = ()

    def __init__(self, table: pa.Table | TableParts) -> None:
        super().__init__(table, pa.Table, TableParts)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, which are public."""
        return tuple(self._sealed.schema.names)

    @property
    def is_streamed(self) -> bool:
        """Whether it is read part by part instead of being held in memory. What is released does not depend on it."""
        return not isinstance(self._sealed, pa.Table)

    def without_rows(self) -> pa.Table:
        """Return an empty table with the same columns, for whoever needs names and types.

        Guarantees:
            Neither metadata nor dictionaries come along.  [test_columns_without_rows_hold_no_value]
        """
        fields = [pa.field(field.name, field.type, nullable=field.nullable) for field in self._sealed.schema]
        return pa.schema(fields).empty_table()


class PrivateCodes(_Sealed):
    """The codes of a private table. The names of its columns are public; codes and number of rows are not.

    Guarantees:
        Neither its text nor a copy shows a row.  [test_sealed_rows_do_not_show]
    """

    __slots__ = ()

    def __init__(self, coded: CodedTable | CodeParts) -> None:
        super().__init__(coded, CodedTable, CodeParts)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, which are public."""
        return tuple(self._sealed.columns if isinstance(self._sealed, CodedTable) else self._sealed.names)

    @property
    def is_streamed(self) -> bool:
        """Whether they are made part by part instead of being held in memory."""
        return not isinstance(self._sealed, CodedTable)


def open_table(private: PrivateTable) -> pa.Table:
    """Return the rows, all of them. For `kamino.engine` and `kamino.privacy` only, as all that opens private rows:
    whatever leaves these went through the gate.
    """
    rows = open_rows(private)
    return rows if isinstance(rows, pa.Table) else pa.concat_tables(rows.parts())


def open_rows(private: PrivateTable) -> pa.Table | TableParts:
    """Return the rows as they are held: a table, or what reads one part by part."""
    if not isinstance(private, PrivateTable):
        raise PrivacyError(f"found a {type(private).__name__}; expected a PrivateTable, so wrap it: PrivateTable(...).")
    rows: pa.Table | TableParts = private._sealed
    return rows


def open_parts(private: PrivateTable, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Return the rows part by part, of the named columns only: one part if the table is in memory."""
    rows = open_rows(private)
    if isinstance(rows, pa.Table):
        yield rows if names is None else rows.select(list(names))
        return
    yield from rows.parts(names)


def open_codes(private: PrivateCodes) -> CodedTable:
    """Return the codes, all of them."""
    held = _held_codes(private)
    if isinstance(held, CodedTable):
        return held
    parts = list(held.parts())
    columns = {name: np.concatenate([part[name] for part in parts]) for name in held.names}
    return CodedTable(columns=columns, num_rows=sum(part.num_rows for part in parts))


def open_code_parts(private: PrivateCodes, names: Sequence[str] | None = None) -> Iterator[CodedTable]:
    """Return the codes part by part, of the named columns only: one part if they are in memory."""
    held = _held_codes(private)
    if not isinstance(held, CodedTable):
        yield from held.parts(names)
        return
    wanted = held.columns if names is None else {name: held[name] for name in names}
    yield CodedTable(columns=wanted, num_rows=held.num_rows)


def open_code_source(private: PrivateCodes) -> CodedTable | CodeParts:
    """Return the codes as they are held: a table, or what gives them part by part."""
    return _held_codes(private)


def _held_codes(private: PrivateCodes) -> CodedTable | CodeParts:
    if not isinstance(private, PrivateCodes):
        raise PrivacyError(f"found a {type(private).__name__}; expected PrivateCodes, so wrap it: PrivateCodes(...).")
    held: CodedTable | CodeParts = private._sealed
    return held

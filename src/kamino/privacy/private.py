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

from typing import Any, NoReturn

import pyarrow as pa

from kamino.errors import PrivacyError
from kamino.schema import CodedTable


class _Sealed:
    """What both kinds have in common: no text, no copy and no file shows what is inside."""

    __slots__ = ("_sealed",)

    def __init__(self, rows: Any, kind: type) -> None:
        if not isinstance(rows, kind):
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

    def __init__(self, table: pa.Table) -> None:
        super().__init__(table, pa.Table)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, which are public."""
        return tuple(self._sealed.column_names)

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

    def __init__(self, coded: CodedTable) -> None:
        super().__init__(coded, CodedTable)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, which are public."""
        return tuple(self._sealed.columns)


def open_table(private: PrivateTable) -> pa.Table:
    """Return the rows. For `kamino.engine` and `kamino.privacy` only: whatever leaves these went through the gate."""
    if not isinstance(private, PrivateTable):
        raise PrivacyError(f"found a {type(private).__name__}; expected a PrivateTable, so wrap it: PrivateTable(...).")
    return private._sealed


def open_codes(private: PrivateCodes) -> CodedTable:
    """Return the codes. For `kamino.engine` and `kamino.privacy` only: whatever leaves these went through the gate."""
    if not isinstance(private, PrivateCodes):
        raise PrivacyError(f"found a {type(private).__name__}; expected PrivateCodes, so wrap it: PrivateCodes(...).")
    coded: CodedTable = private._sealed
    return coded

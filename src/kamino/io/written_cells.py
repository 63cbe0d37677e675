"""Cells as people write them: numbers with currency signs, thousands, percent or decimal commas, and words for nothing.

How a cell is read follows from that cell and from what is public: options of reading, or the schema. A number is
brought to its plain spelling, and a word for nothing to null; any other cell stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from kamino.errors import InputError
from kamino.schema.dtypes import is_text
from kamino.schema.files.messages import did_you_mean
from kamino.schema.files.written_numbers import plain_number
from kamino.schema.numbers import STYLES
from kamino.schema.table_parts import TableParts

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class WrittenCells:
    """How cells are written, beside what every reader knows. Every field is public.

    nulls: texts that stand for nothing, in all columns; nulls_of: those of a column; numbers: the style of a column.

    Guarantees:
        How a cell is read follows from that cell alone.  [test_no_row_decides_how_others_are_read]
        A run that reads so releases through the gate only.  [test_replay_passes_for_cells_as_people_write_them]
    """

    nulls: tuple[str, ...] = ()
    nulls_of: tuple[tuple[str, tuple[str, ...]], ...] = ()
    numbers: Pairs = ()

    def __bool__(self) -> bool:
        return bool(self.nulls or self.nulls_of or self.numbers)

    def read(self, table: pa.Table) -> pa.Table:
        """The table with plain numbers and nulls in place of cells that are written so."""
        for place, field in enumerate(table.schema):
            change = self._change(field.name)
            if change is None:
                continue
            column = table.column(place)
            read = _of_texts(column, change) if is_text(field.type) else _of_values(column, self._empty(field.name))
            table = table.set_column(place, self._field(field), read)
        return table

    def refuse_unknown(self, names: Sequence[str]) -> None:
        """Refuse ways of writing of a column that is not read.

        Raises:
            InputError: there is no such column.
        """
        for name, _ in (*self.nulls_of, *self.numbers):
            if name not in names:
                raise InputError(
                    f"found no column {name!r} in the table, whose cells are said to be written in some way."
                    f"{did_you_mean(name, names)} Columns: {', '.join(names)}"
                )

    def schema_of(self, schema: pa.Schema) -> pa.Schema:
        """The schema of a table that was read; a column may hold nulls wherever a word stands for nothing."""
        return pa.schema([self._field(field) for field in schema])

    def _field(self, field: pa.Field) -> pa.Field:
        return field.with_nullable(field.nullable or bool(self._empty(field.name)))

    def _empty(self, name: str) -> tuple[str, ...]:
        return (*self.nulls, *dict(self.nulls_of).get(name, ()))

    def _change(self, name: str) -> Callable[[str], str | None] | None:
        """What becomes of a text of a column; None where all stay."""
        empty, style = frozenset(self._empty(name)), dict(self.numbers).get(name)
        if not empty and style is None:
            return None

        def changed(text: str) -> str | None:
            if text.strip() in empty:
                return None
            plain = None if style is None else plain_number(text, style)
            return text if plain is None else plain

        return changed


#: Cells as every reader knows them.
PLAIN = WrittenCells()


def _of_texts(column: pa.ChunkedArray, change: Callable[[str], str | None]) -> pa.ChunkedArray:
    """Each text as it is read; each different one is read once a chunk."""
    chunks = []
    for chunk in column.chunks:
        coded = chunk.dictionary_encode()
        texts = pa.array([change(text) for text in coded.dictionary.to_pylist()], chunk.type)
        chunks.append(texts.take(coded.indices))
    return pa.chunked_array(chunks, column.type)


def _of_values(column: pa.ChunkedArray, empty: tuple[str, ...]) -> pa.ChunkedArray:
    """The numbers of a column that has a type, with null in place of those that stand for nothing, such as -999."""
    for text in empty:
        token = _as_value(text, column.type)
        if token is not None:
            is_token = pc.fill_null(pc.equal(column, token), False)
            column = pc.if_else(is_token, pa.scalar(None, column.type), column)
    return column


@lru_cache(maxsize=256)
def _as_value(text: str, kind: pa.DataType) -> pa.Scalar | None:
    """A token as a value of a type of numbers; None where it is none."""
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return None
    try:
        return pa.scalar(text, pa.string()).cast(kind)
    except pa.ArrowInvalid:
        return None


@dataclass(frozen=True, kw_only=True, eq=False)
class WrittenParts:
    """A table that is read part by part, with its cells read as they are written.

    Guarantees:
        The rows are those of the table read as a whole.  [test_written_cells_are_read_alike_in_parts]
    """

    source: TableParts
    cells: WrittenCells

    def __post_init__(self) -> None:
        self.cells.refuse_unknown(self.source.schema.names)

    @property
    def schema(self) -> pa.Schema:
        """Names and types of the columns."""
        return self.cells.schema_of(self.source.schema)

    @property
    def is_ordered(self) -> bool:
        """Whether rows come in the same order each time."""
        return self.source.is_ordered

    def __repr__(self) -> str:
        return repr(self.source)

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns part by part; at least one part."""
        return (self.cells.read(part) for part in self.source.parts(names))


def checked_nulls(given: object, *, what: str) -> tuple[str, ...]:
    """Words for nothing, as somebody gave them: one text, or several."""
    listed = (given,) if isinstance(given, str) else given
    if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
        raise InputError(f"found {what} of type {type(given).__name__}; expected texts, such as ('NA', '-')")
    return tuple(dict.fromkeys(each.strip() for each in listed if each.strip()))


def checked_styles(given: Mapping[str, str] | Pairs) -> Pairs:
    """Styles of numbers by column, as somebody gave them.

    Raises:
        InputError: there is no such style.
    """
    pairs = tuple(given.items()) if isinstance(given, Mapping) else tuple(given)
    for name, style in pairs:
        if style not in STYLES:
            raise InputError(
                f"found the style {style!r} for the numbers of {name!r}; expected an example of how they are written: "
                f"{', '.join(map(repr, STYLES))}"
            )
    return pairs

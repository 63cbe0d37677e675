"""Families of rows: what hangs on each row of a root table, and samples of it with so many rows for each family.

A *level* is a table below the root, seen from its families: each row of a level's sample is one root row, one chosen
row of each table on the path to the level, and, for siblings, two different rows of the last. Which rows are chosen
follows from keyed hashes of their content: from a family and the coins alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from kamino.arrays import IntArray
from kamino.constraints import DenialConstraint
from kamino.constraints.counting.count import violations_per_row
from kamino.engine.sealed_tables import with_types
from kamino.privacy.private import PrivateTable, open_table
from kamino.schema import Key, Schema
from kamino.schema.coding.value_hashes import hash_values, mix
from kamino.schema.dtypes import is_text

#: No row.
NONE = -1


@dataclass(frozen=True, kw_only=True)
class OwnedTable:
    """How a table hangs on another: its columns `by`, which name a row of `owner` by the columns `to`."""

    owner: str
    by: tuple[str, ...]
    to: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ColumnOf:
    """A column of a sample: `column` of the chosen row of `table`; of the second sibling with `second`."""

    table: str
    column: str
    second: bool = False


@dataclass(frozen=True, kw_only=True)
class CountOf:
    """A column of a sample: how many rows of `child` the chosen row of `table` owns, or how many meet a condition.

    `where` are denial constraints, of which the rows that count break at least one; none: all count.
    """

    table: str
    child: str
    where: tuple[DenialConstraint, ...] = ()
    second: bool = False


@dataclass(frozen=True, kw_only=True)
class MeetsOf:
    """A column of a sample: whether the chosen row of `table` breaks one of the denial constraints `where`."""

    table: str
    where: tuple[DenialConstraint, ...]
    second: bool = False


@dataclass(frozen=True, kw_only=True)
class PublicOf:
    """A column of a sample: `values[i]` where the columns of the chosen row are the i-th of `keys`; public both."""

    table: str
    columns: tuple[str, ...]
    keys: pa.Table = field(repr=False)
    values: pa.Array = field(repr=False)
    second: bool = False


SampleColumn = ColumnOf | CountOf | MeetsOf | PublicOf


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Which rows of a level are wanted, and which columns: `rows` for each family that has some.

    `path` are the tables from the root to the level; `beside` others that an owner on the path owns, of which one row
    is chosen as well, or none where there is none. With `pairs`, two different rows of the last table.
    """

    path: tuple[str, ...]
    columns: Mapping[str, SampleColumn]
    rows: int
    pairs: bool = False
    beside: tuple[str, ...] = ()


class Families:
    """The tables of a private database with the rows of each owner. Private: shows nothing of them.

    Guarantees:
        What a family has in a sample follows from the family and the coins alone.  [test_a_family_depends_on_itself]
        One family more or less is `rows` rows of a sample more or less.  [test_one_family_moves_its_own_rows]
        Rows that name no owner hang on nothing.  [test_orphans_hang_on_nothing]
        Where owners share a key, what names it hangs on each of them.  [test_doubled_keys_move_no_other_family]
    """

    __slots__ = ("_content", "_ids", "_links", "_order", "_owned", "_root", "_typed")

    def __init__(
        self,
        private: Mapping[str, PrivateTable],
        schemas: Mapping[str, Schema],
        owned: Mapping[str, OwnedTable],
        coins: bytes,
    ) -> None:
        self._root = next(name for name in private if name not in owned)
        self._owned = dict(owned)
        raw = {name: open_table(each) for name, each in private.items()}
        self._typed = {name: _typed(private[name], schemas[name]) for name in private}
        keys = {name: _keys_of(name, owned) for name in private}
        words = {
            (name, columns): _words(raw[name], schemas[name], columns, coins)
            for name in private
            for columns in (*keys[name], *((owned[name].by,) if name in owned else ()))
        }
        self._content = {
            name: _content(self._typed[name], [w.words for (t, _), w in words.items() if t == name], coins)
            for name in private
        }
        # Owners are known by the number of their key, so that two with one key change nothing of each other.
        self._ids, self._links = {}, {}
        for name, link in owned.items():
            self._ids[name], self._links[name] = _linked(words[name, link.by], words[link.owner, link.to])
        self._order = {name: _in_order(self._links[name], self._content[name]) for name in owned}

    def __repr__(self) -> str:
        return f"Families({self._root}, {', '.join(self._owned)})"

    def __reduce__(self) -> Any:
        raise TypeError("families hold private rows and are not copied or saved")

    def sample(self, wanted: Sample) -> PrivateTable:
        """The rows of a level, as a sealed table with the wanted columns."""
        places, second = self._choose(wanted)
        arrays = {}
        for name, column in wanted.columns.items():
            rows = second if column.second else places[column.table]
            arrays[name] = self._column(column, rows)
        return PrivateTable(pa.table(arrays))

    def _column(self, column: SampleColumn, rows: IntArray) -> pa.Array:
        absent = rows < 0
        taken = np.where(absent, 0, rows)
        match column:
            case ColumnOf():
                values = self._typed[column.table].column(column.column).combine_chunks()
            case CountOf():
                values = pa.array(self._counts(column))
            case MeetsOf():
                values = pa.array(self._meets(column.table, column.where))
            case PublicOf():
                values = self._looked_up(column)
        if len(values) == 0:
            return pa.nulls(len(rows), values.type)
        return values.take(pa.array(taken, mask=absent))

    def _counts(self, column: CountOf) -> IntArray:
        link, counted = self._links[column.child], np.ones(len(self._links[column.child]), dtype=np.bool_)
        if column.where:
            counted = self._meets(column.child, column.where)
        return self._by_owner(column.child, np.bincount(link[(link >= 0) & counted]))

    def _by_owner(self, child: str, counts: IntArray) -> IntArray:
        """For each row of the owner of a table, the count of its key."""
        ids = self._ids[child]
        padded = np.zeros(max(int(ids.max(initial=NONE)) + 1, len(counts), 1), dtype=np.int64)
        padded[: len(counts)] = counts
        return np.where(ids >= 0, padded[np.maximum(ids, 0)], 0)

    def _meets(self, table: str, where: Sequence[DenialConstraint]) -> NDArray[np.bool_]:
        typed = self._typed[table]
        found = np.zeros(typed.num_rows, dtype=np.bool_)
        for constraint in where:
            found |= violations_per_row(typed, constraint) > 0
        return found

    def _looked_up(self, column: PublicOf) -> pa.Array:
        typed = self._typed[column.table]
        own = _plain_words([typed.column(name) for name in column.columns])
        keys = _plain_words([column.keys.column(i) for i in range(column.keys.num_columns)])
        return column.values.take(pc.index_in(own, value_set=keys))

    def _choose(self, wanted: Sample) -> tuple[dict[str, IntArray], IntArray]:
        """The chosen row of each table of a sample, and the second sibling; one entry for each row of the sample."""
        able = self._able(wanted.path, pairs=wanted.pairs)
        roots = np.flatnonzero(able[self._root])
        turns = np.repeat(np.arange(wanted.rows), len(roots))
        places = {self._root: np.tile(roots, wanted.rows)}
        second = np.full(len(turns), NONE, dtype=np.int64)
        for name in wanted.path[1:]:
            rows = places[self._owned[name].owner]
            last = wanted.pairs and name == wanted.path[-1]
            turn = 2 * (turns // 2) + turns % 2 if last else turns
            places[name] = self._child(name, able[name], rows, turn)
            if last:
                second = self._child(name, able[name], rows, 2 * (turns // 2) + 1 - turns % 2)
        for name in wanted.beside:
            all_ = np.ones(len(self._links[name]), dtype=np.bool_)
            places[name] = self._child(name, all_, places[self._owned[name].owner], turns)
        return places, second

    def _able(self, path: Sequence[str], *, pairs: bool) -> dict[str, NDArray[np.bool_]]:
        """Which rows of each table of a path own, at last, a row of the last table; two of them for pairs."""
        found = {path[-1]: np.ones(self._typed[path[-1]].num_rows, dtype=np.bool_)}
        for name, owner in list(zip(path[1:], path[:-1], strict=True))[::-1]:
            link = self._links[name]
            counted = self._by_owner(name, np.bincount(link[(link >= 0) & found[name]]))
            found[owner] = counted >= (2 if pairs and name == path[-1] else 1)
        return found

    def _child(self, name: str, able: NDArray[np.bool_], owners: IntArray, turns: IntArray) -> IntArray:
        """The child of each owner whose turn it is, in the order of their hashes, round and round; `NONE` for none."""
        order = self._order[name]
        order = order[able[order]]
        link = self._links[name][order]
        ids = self._ids[name]
        held = np.where(owners < 0, NONE, ids[np.maximum(owners, 0)] if len(ids) else NONE)
        start, end = np.searchsorted(link, held, side="left"), np.searchsorted(link, held, side="right")
        count = end - start
        place = start + turns % np.maximum(count, 1)
        has = (count > 0) & (held >= 0)
        if not len(order):
            return np.full(len(owners), NONE, dtype=np.int64)
        return np.where(has, order[np.where(has, place, 0)], NONE)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Words:
    """The hashes of some columns of each row, and whether one of these is null. Private."""

    words: NDArray[np.uint64]
    null: NDArray[np.bool_]


def _typed(private: PrivateTable, schema: Schema) -> pa.Table:
    """The columns that carry data, with the types and within the domains of the schema."""
    names = [name for name in schema.names if not isinstance(schema[name], Key)]
    rows = open_table(private)
    if not names:
        # A table without data still has rows.
        return pa.table({"": pa.nulls(rows.num_rows)})
    some = Schema(attributes={name: schema[name] for name in names})
    return open_table(with_types(PrivateTable(rows.select(names)), some))


def _keys_of(name: str, owned: Mapping[str, OwnedTable]) -> tuple[tuple[str, ...], ...]:
    """The columns by which the rows of a table are named by others."""
    return tuple(dict.fromkeys(link.to for link in owned.values() if link.owner == name))


def _words(table: pa.Table, schema: Schema, columns: Sequence[str], coins: bytes) -> _Words:
    key = hashlib.blake2b(b"key", key=coins).digest()
    words, null = np.zeros((table.num_rows, 2), dtype=np.uint64), np.zeros(table.num_rows, dtype=np.bool_)
    for name in columns:
        column = _brought(table.column(name), pa.types.is_integer(schema[name].arrow_type))
        found = hash_values(column, key)
        words = np.stack([mix(words[:, i] + found[:, i]) for i in (0, 1)], axis=1)
        null |= np.asarray(column.is_null(), dtype=np.bool_)
    return _Words(words=words, null=null)


def _brought(column: pa.ChunkedArray, whole: bool) -> pa.ChunkedArray:
    """A column of keys, as whole numbers where it holds some in another form; what cannot be read is null."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not whole or pa.types.is_integer(column.type):
        return column
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    values = pa.array([_whole(value) for value in coded.dictionary.to_pylist()], pa.int64())
    return pa.chunked_array([values.take(coded.indices)])


def _whole(text: str | None) -> int | None:
    if text is None:
        return None
    bare = text.strip().removesuffix(".0")
    digits = bare.removeprefix("-")
    return int(bare) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def _plain_words(columns: Sequence[pa.ChunkedArray]) -> pa.Array:
    """The values of some columns as one binary value for each row; equal where all of them are."""
    key = bytes(range(64))
    size = len(columns[0])
    words = np.zeros((size, 2), dtype=np.uint64)
    for column in columns:
        whole = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        plain = whole.cast(pa.int64()) if pa.types.is_integer(whole.type) else whole
        plain = plain.cast(pa.string()) if is_text(plain.type) else plain
        words = np.stack([mix(words[:, i] + hash_values(plain, key)[:, i]) for i in (0, 1)], axis=1)
    return _binary(words)


def _binary(words: NDArray[np.uint64]) -> pa.Array:
    return pa.Array.from_buffers(pa.binary(16), len(words), [None, pa.py_buffer(np.ascontiguousarray(words).tobytes())])


def _content(typed: pa.Table, keys: Sequence[NDArray[np.uint64]], coins: bytes) -> NDArray[np.uint64]:
    """A keyed hash of the whole content of each row."""
    rows = np.zeros(typed.num_rows, dtype=np.uint64)
    for name in sorted(typed.column_names):
        key = hashlib.blake2b(b"row " + name.encode(), key=coins).digest()
        rows = mix(rows ^ hash_values(typed.column(name), key)[:, 0])
    for i, words in enumerate(keys):
        rows = mix(rows ^ words[:, 0] ^ np.uint64(i))
    return rows


def _linked(child: _Words, parent: _Words) -> tuple[IntArray, IntArray]:
    """The number of the key of each owner, and the number of the key that each row names; `NONE` for none."""
    coded = _binary(parent.words).dictionary_encode()
    ids = np.where(parent.null, NONE, np.asarray(coded.indices, dtype=np.int64))
    place = pc.index_in(_binary(child.words), value_set=coded.dictionary)
    named = np.asarray(place.fill_null(NONE), dtype=np.int64)
    # A key that is null in part is none, though its parts have hashes.
    real = np.zeros(len(coded.dictionary) + 1, dtype=np.bool_)
    real[ids[ids >= 0]] = True
    return ids, np.where(child.null | ~real[named], NONE, named)


def _in_order(link: IntArray, content: NDArray[np.uint64]) -> IntArray:
    """The rows that hang on something, by their owner and then by their hash."""
    order = np.lexsort((content, link))
    return order[link[order] >= 0]

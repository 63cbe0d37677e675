"""Try the place where a table will go, before anything is spent: rows of the real names and types, taken back again.

What a database or a file makes of names, types and values follows from the schema alone: two names that it takes for
one, a name that it cuts, a type that it does not have, a value that it gives back as another. All of it is found with a
few made-up rows: the ends of each range, and values of each list.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from kamino.errors import InputError
from kamino.io.atomic import staged, telling_what_failed
from kamino.io.databases.catalogue import Catalogue
from kamino.io.databases.storing import MADE_BY, DatabaseTable
from kamino.io.normalise import normalise_table
from kamino.io.write import check_table_path, stage_parts
from kamino.pipeline.output.writing import stage_in_database, time_decimals
from kamino.schema import Attribute, Categorical, Key, Schema, attribute_codec
from kamino.schema.files.names import usual_range
from kamino.schema.files.written_dates import written_dates
from kamino.schema.keys import make_keys, places_of

# Values of one attribute that are tried; of a longer list, so many that are spread over it.
_MOST_TRIED = 1_000
# What stands for the texts that will be found within the budget.
_FOUND_TEXT = "other"


def try_target(
    path: str | os.PathLike[str], schema: Schema | None, names: Sequence[str], catalogue: Catalogue | None
) -> None:
    """Raise an `InputError` if a table of this schema, or of text columns where none is known, cannot go to `path`.

    Guarantees:
        What cannot be written is refused before anything is spent.  [test_a_target_is_tried_before_anything_is_spent]
        What is tried is taken back.  [test_a_trial_leaves_nothing]
    """
    known = schema if schema is not None else Schema(attributes={name: Categorical(nullable=True) for name in names})
    known = with_usual_domains(known)
    rows = normalise_table(trial_rows(known), where=str(path))
    target = DatabaseTable.of(path)
    if target is not None:
        with stage_in_database(target, rows.schema, known, catalogue) as table:
            table.write(iter([rows]))
            back = table.read()
            table.settle(MADE_BY)
        _refuse_changed(str(target), rows, back, empty_is_null=False)
        return
    output = Path(path)
    check_table_path(output)
    with staged(output) as file, telling_what_failed(output):
        back = stage_parts(iter([rows]), file, decimals=time_decimals(known), dates=written_dates(known))
    # An empty text and no text are the same in a file of text.
    _refuse_changed(str(output), rows, back, empty_is_null=True)


def trial_rows(schema: Schema) -> pa.Table:
    """Rows with values of every domain, those at its ends among them; where one is to be found, of a usual one."""
    schema = with_usual_domains(schema)
    places = places_of(schema.attributes)
    keys = {name: each for name, each in schema.attributes.items() if isinstance(each, Key)}
    most = min([_MOST_TRIED, *((each.capacity or _MOST_TRIED) // places[name][1] for name, each in keys.items())])
    tried = {name: _tried(name, each, most) for name, each in schema.attributes.items() if name not in keys}
    num_rows = max((len(values) for values in tried.values()), default=1)
    for name, key in keys.items():
        place, among = places[name]
        tried[name] = make_keys(key, min(num_rows, most), place=place, among=among)
    return pa.table({name: _around(tried[name], num_rows) for name in schema})


def with_usual_domains(schema: Schema) -> Schema:
    """Return the schema with a usual domain for each attribute whose own is to be found: how it is written follows."""
    found = {
        name: each if isinstance(each, Key) or each.has_domain else _with_usual_domain(name, each)
        for name, each in schema.attributes.items()
    }
    return replace(schema, attributes=found)


def _around(values: pa.Array, num_rows: int) -> pa.Array:
    return values.take(pa.array([row % len(values) for row in range(num_rows)], pa.int64()))


def _tried(name: str, attribute: Attribute, most: int) -> pa.Array:
    """At most so many values of an attribute: its ends, the longest text, a null, and others between them."""
    codec = attribute_codec(name, attribute)
    codes = {0, codec.num_values - 1, codec.size - 1}
    if isinstance(attribute, Categorical) and attribute.categories:
        categories = attribute.categories
        codes.add(max(range(codec.num_values), key=lambda code: len(str(categories[code]).encode())))
    between = max(0, min(codec.size, most) - len(codes))
    codes |= {(place + 1) * codec.size // (between + 1) for place in range(between)}
    return codec.decode(sorted(code for code in codes if 0 <= code < codec.size)[:most])


def _with_usual_domain(name: str, attribute: Attribute) -> Attribute:
    if isinstance(attribute, Categorical):
        return attribute.with_domain(values=[0] if attribute.holds_integers else [_FOUND_TEXT])
    low, high = usual_range(name, attribute)
    return attribute.with_domain(min=low, max=high)


def _refuse_changed(place: str, rows: pa.Table, back: pa.Table, *, empty_is_null: bool) -> None:
    changed = [
        name
        for name in rows.column_names
        if name not in back.column_names or not _is_same(rows.column(name), back.column(name), empty_is_null)
    ]
    if changed:
        listed = ", ".join(f"'{name}'" for name in changed)
        raise InputError(
            f"{place}: found that values of {listed} would not come back as they are written there; expected a place "
            "that keeps them. Give the column another dtype or other values in the schema, or write to a Parquet file. "
            "Nothing was spent"
        )


def _is_same(written: pa.ChunkedArray, back: pa.ChunkedArray, empty_is_null: bool) -> bool:
    """Whether a column came back; the rows of a database have no order."""
    try:
        plain = back.cast(written.type)
    except pa.ArrowInvalid:
        return False
    if empty_is_null and pa.types.is_string(written.type):
        written, plain = pc.fill_null(written, ""), pc.fill_null(plain, "")
    expected, found = (pc.value_counts(column).to_pylist() for column in (written, plain))
    return sorted(map(str, expected)) == sorted(map(str, found))

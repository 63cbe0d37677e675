"""Columns that name rows rather than describe them: they are left out of distances, ranges and models.

Identifiers that were made up, as they should be, would be as far off as can be if they were compared by value. Two
halves of the true table would be too, which would excuse everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kamino.constraints import ConstraintClass, Constraints, classify
from kamino.evaluate.measure.statistics import describe, find_faults
from kamino.schema import Key, Schema
from kamino.schema.dtypes import is_text

KEY = "a key"
MADE_UP = "ids that were made up"
OWN_TEXT = "a text of which every true row has its own"


def find_identifiers(
    true: pa.Table, constraints: Constraints = Constraints(), schema: Schema | None = None
) -> dict[str, str]:
    """The columns of a true table that are identifiers, and why each is one; none where every column would be.

    A column is one where a `key` constraint names it alone, where the schema of the synthetic table says that its
    values were made up, or where it is text and no value occurs twice.

    >>> table = pa.table({"id": [7, 8], "name": ["Ann", "Bo"], "age": [30, 31]})
    >>> find_identifiers(table, Constraints.parse("key (id)"))
    {'id': 'a key', 'name': 'a text of which every true row has its own'}
    """
    keys = _named_by_keys(constraints)
    made_up = _made_up(schema)
    found = {}
    for name in true.column_names:
        if name in keys:
            found[name] = KEY
        elif name in made_up:
            found[name] = MADE_UP
        elif _is_own_text(true.column(name)):
            found[name] = OWN_TEXT
    return found if len(found) < true.num_columns else {}


def declared_identifiers(schema: Schema, constraints: Constraints = Constraints()) -> dict[str, str]:
    """The identifiers that a schema and constraints tell of, without a look at any table.

    Where every attribute would be one, those that a model knows are none.
    """
    declared = _made_up(schema)
    keys = declared | _named_by_keys(constraints)
    chosen = keys if any(name not in keys for name in schema.names) else declared
    return {name: KEY for name in schema.names if name in chosen}


def compared_columns(table: pa.Table, identifiers: Mapping[str, str]) -> list[str]:
    """The columns that are no identifiers, in the table's order."""
    return [name for name in table.column_names if name not in identifiers]


def identifier_rows(
    identifiers: Mapping[str, str], true: pa.Table | None, synthetic: pa.Table, types: Mapping[str, pa.DataType]
) -> list[dict[str, Any]]:
    """What a report says of each identifier. Holds no value of one: extremes would be two of them.

    Without a true table there is only the synthetic side, and a key that is not there is left out.
    """
    rows = []
    for name in (each for each in identifiers if each in synthetic.column_names):
        one, two = None if true is None else true.column(name), synthetic.column(name)
        faults = None if one is None else find_faults(one, two)
        rows.append(
            {
                "name": name,
                "why": identifiers[name],
                "type": {"true": str(types[name]), "synthetic": str(two.type)},
                "type_fits": faults is None or faults.type_fits,
                "new_nulls": faults is not None and faults.new_nulls,
                "recurring": None if one is None else _recurring(one, two),
                "true": None if one is None else _counts(one),
                "synthetic": _counts(two),
            }
        )
    return rows


def line_about(rows: Sequence[Mapping[str, Any]]) -> str:
    """One line that names the identifiers, says why each was left out, and whether true ones came back.

    >>> line_about([{"name": "id", "why": "a key", "recurring": None}])
    'left out as identifiers: id (a key)'
    >>> line_about([{"name": "badge", "why": "a key", "recurring": 3}])
    'left out as identifiers: badge (a key; 3 true ones occur in the synthetic table)'
    """
    return "left out as identifiers: " + ", ".join(f"{row['name']} ({row['why']}{_came_back(row)})" for row in rows)


def _came_back(row: Mapping[str, Any]) -> str:
    count = row["recurring"]
    if not count:
        return ""
    return f"; {count:,} true {'one occurs' if count == 1 else 'ones occur'} in the synthetic table"


def _recurring(true: pa.ChunkedArray, synthetic: pa.ChunkedArray) -> int | None:
    """How many true texts occur in the synthetic column; None for numbers, which made-up keys may meet by chance.

    Guarantees:
        True identifiers that came back are counted, not shown.  [test_true_identifiers_that_came_back_are_counted]
    """
    if not (_is_text(true) and _is_text(synthetic)):
        return None
    wanted = pc.unique(true.cast(pa.string())).drop_null()
    return int(pc.sum(pc.is_in(wanted, value_set=pc.unique(synthetic.cast(pa.string())))).as_py() or 0)


def _made_up(schema: Schema | None) -> set[str]:
    return set() if schema is None else {name for name, each in schema.attributes.items() if isinstance(each, Key)}


def _named_by_keys(constraints: Constraints) -> set[str]:
    """The attributes that a key constraint names alone."""
    return {c.attributes[0] for c in constraints if classify(c) is ConstraintClass.KEY and len(c.attributes) == 1}


def _is_text(column: pa.ChunkedArray) -> bool:
    return is_text(column.type.value_type if pa.types.is_dictionary(column.type) else column.type)


def _is_own_text(column: pa.ChunkedArray) -> bool:
    values = len(column) - column.null_count
    return _is_text(column) and values > 1 and pc.count_distinct(column.cast(pa.string())).as_py() == values


def _counts(column: pa.ChunkedArray) -> dict[str, Any]:
    found = describe(column)
    return {"nulls": found.nulls, "null_share": found.null_share, "distinct": found.distinct}

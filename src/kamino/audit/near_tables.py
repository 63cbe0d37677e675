"""Neighbours of a table, the extreme ones included, and tables that are none.

Neighbours differ in one unit, as the relation of the run says: their releases may move by the declared sensitivity.
Strangers have the same columns and nothing else in common: given its releases, a run must not notice them either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.privacy import Neighbours, PrivacyUnit
from kamino.testing.replay import remove_row, replace_row
from kamino.testing.strangers import odd_cells, strangers

# A table of more rows is not made ten times as long.
_LONG = 100_000


def near_tables(table: pa.Table, relation: Neighbours, unit: PrivacyUnit) -> Mapping[str, pa.Table]:
    """Return neighbours of a table under a relation, by name: without a unit, and with extreme ones.

    Guarantees:
        Each differs in one unit.  [test_near_tables_differ_in_one_unit]
    """
    if unit.column is not None:
        return dict(_near_units(table, relation, unit, unit.column))
    if relation is Neighbours.REPLACE:
        if not table.num_rows:
            return {}
        return {
            f"the first row replaced by {name}": replace_row(table, 0, row.to_pylist()[0])
            if name != "odd cells"
            else pa.concat_tables([row, table.slice(1)])
            for name, row in _rows(table)
        }
    near = {f"with {name}": pa.concat_tables([table, row]) for name, row in _rows(table)}
    if table.num_rows:
        near["without the first row"] = remove_row(table, 0)
        near["without the last row"] = remove_row(table, table.num_rows - 1)
    return near


def strange_tables(table: pa.Table) -> Mapping[str, pa.Table]:
    """Return tables that are no neighbours, by name."""
    made = dict(strangers(table)) if table.num_rows else {"odd cells": _like(table, odd=True)}
    if table.num_rows > _LONG:
        del made["ten times as long"]
    if table.num_rows:
        made["half as long"] = table.slice(0, table.num_rows // 2)
        made["other counts"] = other_counts(table)
    return made


def other_counts(table: pa.Table) -> pa.Table:
    """Return a table with the values of each column in turn: every value occurs, about equally often."""
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        values = column.unique()
        columns[name] = values.take(pa.array(np.arange(table.num_rows) % len(values)))
    return pa.table(columns, schema=table.schema)


def _near_units(
    table: pa.Table, relation: Neighbours, unit: PrivacyUnit, column: str
) -> Iterator[tuple[str, pa.Table]]:
    """Tables without the unit of the first row, and with a new one, whose value is null, of few and of many rows."""
    owners = table.column(column)
    gone = table
    if table.num_rows:
        gone = table.filter(pc.fill_null(pc.not_equal(owners, owners[0]), True))
        if owners[0].is_valid and relation is Neighbours.ADD_REMOVE:
            yield "without the unit of the first row", gone
    if owners.null_count:
        return
    base = table if relation is Neighbours.ADD_REMOVE else gone
    place = table.column_names.index(column)
    for name, row in _rows(table):
        nobody = row.set_column(place, table.schema.field(place), pa.nulls(1, owners.type))
        yield f"with a unit of {name}", pa.concat_tables([base, *[nobody] * unit.max_rows])
        if name == "a row of highest values":
            yield "with a unit of many rows", pa.concat_tables([base, *[nobody] * (10 * unit.max_rows)])


def _rows(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Rows that move much: nulls, ends of the table's columns in several mixtures, ends of types."""
    yield "a row of nulls", pa.table({f.name: pa.nulls(1, f.type) for f in table.schema}, schema=table.schema)
    yield "odd cells", _like(table, odd=True)
    if table.num_rows:
        yield "a row of highest values", _ends(table, lambda place: False)
        yield "a row of lowest values", _ends(table, lambda place: True)
        yield "high and low values in turn", _ends(table, lambda place: place % 2 == 1)
        yield "low and high values in turn", _ends(table, lambda place: place % 2 == 0)


def _like(table: pa.Table, *, odd: bool) -> pa.Table:
    make = odd_cells if odd else lambda kind, size: pa.nulls(size, kind)
    return pa.table({field.name: make(field.type, 1) for field in table.schema}, schema=table.schema)


def _ends(table: pa.Table, low: object) -> pa.Table:
    columns = {}
    for place, name in enumerate(table.column_names):
        column = table.column(name)
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        try:
            ends = pc.min_max(plain)
            end = ends["min" if low(place) else "max"]  # type: ignore[operator]
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            end = plain[0]
        columns[name] = pa.array([end.as_py()], plain.type).cast(column.type)
    return pa.table(columns, schema=table.schema)

"""From codes to tables: values, made-up keys, what names the owner, and what follows from formulas."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from kamino.arrays import IntArray
from kamino.databases.drawing import DrawnTable
from kamino.databases.family_layout import Layout, free_columns
from kamino.databases.fitting_levels import FittedDatabase
from kamino.databases.formula_lines import Joins, evaluate, quoted
from kamino.databases.sql_checks import identified
from kamino.schema import Attribute, Codec, Key, Real, Schema
from kamino.schema.database import ForeignKey
from kamino.schema.keys import keys_of


def make_tables(
    fitted: FittedDatabase, drawn: Mapping[str, DrawnTable], *, first: Mapping[str, int] | None = None
) -> dict[str, pa.Table]:
    """The tables of drawn families, with all columns of the schema; keys are numbered from `first`.

    Guarantees:
        Every key that is not null names a row.  [test_random_databases_hold]
        Keys of rows differ.  [test_random_databases_hold]
    """
    start = first or {}
    made: dict[str, pa.Table] = {}
    database = fitted.layout.database
    for name in database.private:
        made[name] = _table(fitted, name, drawn, made, start.get(name, 1))
    return _with_formulas(fitted, drawn, made)


def _table(
    fitted: FittedDatabase, name: str, drawn: Mapping[str, DrawnTable], made: Mapping[str, pa.Table], first: int
) -> pa.Table:
    table, rows = fitted.layout.database[name], drawn[name]
    owner = table.owner
    by = dict(zip(owner.columns, owner.to, strict=True)) if owner is not None else {}
    arrays = {}
    for column, attribute in table.known.attributes.items():
        whole = f"{name}.{column}"
        if column in by and owner is not None:
            values = made[owner.references].column(by[column]).combine_chunks()
            arrays[column] = values.take(pa.array(rows.owner)) if rows.num_rows else values.slice(0, 0)
        elif whole in rows.columns:
            arrays[column] = _decoded(whole, fitted.attributes[whole], rows.columns[whole])
        elif isinstance(attribute, Key):
            arrays[column] = keys_of(attribute, range(first, first + rows.num_rows))
        else:
            arrays[column] = pa.nulls(rows.num_rows, attribute.arrow_type)
    return pa.table(arrays)


def _decoded(name: str, attribute: Attribute, codes: IntArray) -> pa.Array:
    codec = Codec(Schema(attributes={name: attribute}))
    return codec[name].decode(codes)


def _with_formulas(
    fitted: FittedDatabase, drawn: Mapping[str, DrawnTable], made: Mapping[str, pa.Table]
) -> dict[str, pa.Table]:
    """The tables with derived columns, and keys that are chosen by others, in their places."""
    if not fitted.layout.formulas and not fitted.layout.matched:
        return dict(made)
    found = dict(made)
    shown: dict[str, pa.Table] = dict(fitted.layout.public)
    for name, rows in drawn.items():
        numbers = {"__row": pa.array(np.arange(rows.num_rows)), "__owner": pa.array(rows.owner)}
        shown[name] = pa.table({**dict(zip(made[name].column_names, made[name].columns, strict=True)), **numbers})
    for compiled in fitted.layout.formulas:
        formula = compiled.formula
        attribute = fitted.layout.database[formula.table].known[formula.column]
        values = _typed(evaluate(compiled, shown), attribute)
        for tables in (found, shown):
            table = tables[formula.table]
            place = table.column_names.index(formula.column)
            tables[formula.table] = table.set_column(place, formula.column, values)
    for key in fitted.layout.matched:
        table = found[key.table]
        for column, values in chosen_rows(fitted.layout, key, shown).items():
            place = table.column_names.index(column)
            attribute = fitted.layout.database[key.table].known[column]
            table = table.set_column(place, column, values.cast(attribute.arrow_type, safe=False))
        found[key.table] = table
    return found


def chosen_rows(layout: Layout, key: ForeignKey, tables: Mapping[str, pa.Table]) -> dict[str, pa.Array]:
    """A public row for each row of a table, among those that keep all checks with it: the columns that name it.

    Rows for which there is none have null.
    """
    import duckdb

    database, own, other = layout.database, quoted(key.table), quoted(key.references)
    free = free_columns(key, database)
    to = dict(zip(key.columns, key.to, strict=True))
    same = [f"{own}.{quoted(c)} = {other}.{quoted(to[c])}" for c in key.columns if c not in free]
    checks = [c for c in layout.rules.checks if c.table == key.table and key.references in c.tables]
    joins = Joins(database, key.table)
    for check in checks:
        for name in check.tables:
            if name != key.references:
                joins.reach(name)
    on = " and ".join((*same, *(f"({identified(c.sql)})" for c in checks))) or "true"
    firsts = ", ".join(f"arg_min({other}.{quoted(to[c])}, {other}.__order) as {quoted(c)}" for c in free)
    with duckdb.connect() as db:
        db.execute("set threads to 1")
        for name, table in tables.items():
            if name == key.references:
                order = np.random.default_rng(0).permutation(table.num_rows)
                table = table.append_column("__order", pa.array(order))
            db.register(name, table)
        query = (
            f"select {own}.__row as r, {firsts} from {own}{joins.sql()} left join {other} on {on} group by 1 order by 1"
        )
        found = db.sql(query).to_arrow_table()
    return {c: found.column(c).combine_chunks() for c in free}


def _typed(values: pa.Array, attribute: Attribute) -> pa.Array:
    """What a formula gave, in the type of its column."""
    if isinstance(attribute, Real):
        numbers = np.round(
            np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)), attribute.decimals
        )
        return pa.array(numbers, mask=np.isnan(numbers)).cast(attribute.arrow_type, safe=False)
    return values.cast(attribute.arrow_type, safe=False)

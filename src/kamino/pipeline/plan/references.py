"""Public tables that hold the map of a dependency: `zip -> city using zips.csv`. Checked before any release."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.constraints import Constraints, DenialConstraint, print_constraint
from kamino.constraints.analysis.classify import dependency_of
from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.csv import read_csv
from kamino.io.infer import infer_column
from kamino.limits import cut
from kamino.schema import Attribute, Key, Schema, attribute_codec

Dependency = tuple[tuple[str, ...], str]
References = Mapping[Dependency, pa.Table]


def read_references(constraints: Constraints, *, folder: Path) -> dict[Dependency, pa.Table]:
    """Read the reference tables that dependencies name, each checked by itself; paths start at `folder`.

    Needs no schema: cells of a CSV file stay text. Rows without a value on either side say nothing and are left out.

    Raises:
        InputError: a file cannot be read, lacks a column or a row, or gives two right sides for one left side.

    Guarantees:
        A reference that cannot be used is refused before anything is spent.  [test_bad_references_cost_nothing]
    """
    found: dict[Dependency, pa.Table] = {}
    for constraint in constraints:
        if constraint.reference is None:
            continue
        dependency = dependency_of(constraint)
        if dependency is None:
            raise InputError(f"{constraint.place}: a reference table belongs to a functional dependency")
        if not constraint.is_hard:
            raise InputError(
                f"{constraint.place}: found a reference table for a soft dependency, which would not be used; "
                "make the dependency hard, or leave `using` out"
            )
        key = tuple(sorted(dependency.left)), dependency.right
        if key in found:
            raise InputError(f"{constraint.place}: found two reference tables for one dependency; expected one")
        found[key] = _read(folder / constraint.reference, *key, constraint)
    return found


def _read(path: Path, left: tuple[str, ...], right: str, constraint: DenialConstraint) -> pa.Table:
    """The columns of a dependency in a public table, each left side once."""
    is_csv = path.name.lower().endswith(".csv") and path.is_file()
    try:
        table = read_csv(path, as_text=True) if is_csv else read_table(path)
    except InputError as problem:
        raise InputError(f"{constraint.place}: {problem}") from None
    names = (*left, right)
    missing = [name for name in names if name not in table.column_names]
    if missing:
        raise InputError(
            f"{path}: found no column {', '.join(missing)}; expected a column for each attribute of "
            f"{print_constraint(constraint)}"
        )
    rows = table.select(list(names)).drop_null().group_by(list(names), use_threads=False).aggregate([])
    if not rows.num_rows:
        raise InputError(f"{path}: found no row with a value for each of {', '.join(names)}; expected one or more")
    _refuse_two_values(path, rows, left, right)
    return rows


def _refuse_two_values(path: Path, rows: pa.Table, left: tuple[str, ...], right: str) -> None:
    counts = rows.group_by(list(left), use_threads=False).aggregate([(right, "count"), (right, "min"), (right, "max")])
    twice = counts.filter(pc.greater(counts.column(f"{right}_count"), 1)).slice(0, 1).to_pylist()
    if twice:
        side = ", ".join(f"{name} = {_shown(twice[0][name])}" for name in left)
        raise InputError(
            f"{path}: found two values of {right} for {side}: {_shown(twice[0][f'{right}_min'])} and "
            f"{_shown(twice[0][f'{right}_max'])}; expected one for each left side"
        )


def typed_references(references: References, schema: Schema, constraints: Constraints) -> dict[Dependency, pa.Table]:
    """The reference tables with the types of a schema, each checked against the domains that are known.

    A left side that no row can have is left out later. A right side outside its domain is refused: rows with that left
    side could not follow.

    Raises:
        InputError: a value has another type, a right side lies outside its domain, or no left side lies inside.
    """
    files = {_key(c): c.reference for c in constraints if c.reference is not None and dependency_of(c) is not None}
    found = {}
    for (left, right), table in references.items():
        if (left, right) not in files:
            continue  # made-up keys satisfy the dependency, and nothing is looked up
        file = str(files[left, right])
        names = (*left, right)
        typed = pa.table({n: as_declared(table.column(n), n, schema[n], file=file) for n in names})
        if all(schema[name].has_domain and not isinstance(schema[name], Key) for name in names):
            _refuse_outside(typed, left, right, schema, file)
        found[left, right] = typed
    return found


def typed_like(references: References, table: pa.Table, constraints: Constraints) -> dict[Dependency, pa.Table]:
    """The reference tables with the types of a table's columns, to count its rows beside them."""
    files = {_key(c): c.reference for c in constraints if c.reference is not None}
    found = {}
    for (left, right), reference in references.items():
        kinds = {name: table.schema.field(name).type for name in (*left, right)}
        found[left, right] = pa.table(
            {n: _as_type(reference.column(n), n, kind, file=str(files[left, right])) for n, kind in kinds.items()}
        )
    return found


def as_declared(column: pa.ChunkedArray, name: str, attribute: Attribute, *, file: str) -> pa.ChunkedArray:
    """A public column with the type that its attribute has in the schema."""
    return _as_type(column, name, attribute.arrow_type, file=file)


def _as_type(column: pa.ChunkedArray, name: str, kind: pa.DataType, *, file: str) -> pa.ChunkedArray:
    wanted = _stored(kind)
    try:
        if column.type == wanted:
            return column
        if pa.types.is_string(wanted) or pa.types.is_large_string(wanted):
            return column.cast(wanted)
        return (infer_column(column) if pa.types.is_string(column.type) else column).cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(
            f"{file}: found values of {name} that are not of type {wanted}, which {name} has; correct the file, or "
            f"declare {name} as another type"
        ) from None


def inside_domain(column: pa.ChunkedArray, name: str, attribute: Attribute) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Whether each public value lies in an attribute's domain."""
    codec = attribute_codec(name, attribute)
    distinct = column.combine_chunks().dictionary_encode()
    if isinstance(distinct, pa.ChunkedArray):
        distinct = pa.concat_arrays(distinct.chunks)
    known = [value is not None and codec.code_of(value) is not None for value in distinct.dictionary.to_pylist()]
    places = distinct.indices.to_numpy(zero_copy_only=False)
    return np.array(known, dtype=np.bool_)[places] if len(places) else np.zeros(0, dtype=np.bool_)


def _refuse_outside(table: pa.Table, left: tuple[str, ...], right: str, schema: Schema, file: str) -> None:
    usable = np.logical_and.reduce([inside_domain(table.column(name), name, schema[name]) for name in left])
    if not usable.any():
        raise InputError(
            f"{file}: found no left side inside the domain of {', '.join(left)}; expected values that rows can have"
        )
    lost = np.flatnonzero(usable & ~inside_domain(table.column(right), right, schema[right]))
    if len(lost):
        row = table.slice(int(lost[0]), 1).to_pylist()[0]
        side = ", ".join(f"{name} = {_shown(row[name])}" for name in left)
        count = f"{len(lost):,} left side{'' if len(lost) == 1 else 's'}"
        raise InputError(
            f"{file}: found {count} whose {right} lies outside its domain, such as {_shown(row[right])} for {side}; "
            f"expected values of the domain. Widen the domain of {right} in the schema, or correct the file"
        )


def _key(constraint: DenialConstraint) -> Dependency:
    dependency = dependency_of(constraint)
    assert dependency is not None, "asked for dependencies only"
    return tuple(sorted(dependency.left)), dependency.right


def _shown(value: object) -> str:
    return cut(str(value))


def to_json(references: References) -> list[dict[str, Any]]:
    """Reference tables as plain data, each value as text."""
    return [
        {
            "left": list(left),
            "right": right,
            "columns": {name: table.column(name).cast(pa.string()).to_pylist() for name in (*left, right)},
        }
        for (left, right), table in references.items()
    ]


def from_json(document: list[dict[str, Any]], schema: Schema) -> dict[Dependency, Any]:
    """Read what `to_json` made."""
    return {
        (tuple(each["left"]), each["right"]): pa.table(
            {
                name: pa.array(values, pa.string()).cast(_stored(schema[name].arrow_type))
                for name, values in each["columns"].items()
            }
        )
        for each in document
    }


def _stored(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind

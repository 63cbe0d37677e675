"""Public tables that hold the map of a dependency: `zip -> city using zips.csv`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from kamino.constraints import Constraints
from kamino.constraints.analysis.classify import dependency_of
from kamino.errors import InputError
from kamino.io import read_table
from kamino.io.csv import read_csv
from kamino.schema import Schema

Dependency = tuple[tuple[str, ...], str]
References = Mapping[Dependency, pa.Table]


def load_references(constraints: Constraints, schema: Schema, *, folder: Path) -> dict[Dependency, Any]:
    """Read the reference tables that hard dependencies name, with the types of the schema; paths start at `folder`."""
    types = pa.schema([(name, schema[name].arrow_type) for name in schema])
    found = {}
    for constraint in constraints:
        if constraint.reference is None or not constraint.is_hard:
            continue
        dependency = dependency_of(constraint)
        if dependency is None:
            raise InputError(f"{constraint.place}: a reference table belongs to a functional dependency")
        found[tuple(sorted(dependency.left)), dependency.right] = _read(folder / constraint.reference, types)
    return found


def _read(path: Path, types: pa.Schema) -> pa.Table:
    if path.name.lower().endswith(".csv") and path.is_file():
        return read_csv(path, types=types)
    return read_table(path)


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
                name: pa.array(values, pa.string()).cast(schema[name].arrow_type)
                for name, values in each["columns"].items()
            }
        )
        for each in document
    }

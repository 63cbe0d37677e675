"""Domains that public reference tables supply, for both sides of their dependency: what they list costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kamino.io.infer import infer_column
from kamino.pipeline.plan.references import References, as_declared, inside_domain
from kamino.schema import Attribute, Categorical, Key, Schema, Source, draft_schema

# Whole numbers that fill less of their range than this are a list of categories, such as postal codes.
_DENSE = 0.5


def with_reference_domains(schema: Schema, references: References, *, types_were_found: bool = False) -> Schema:
    """The schema with a domain from the reference tables wherever one is missing there.

    A declared type stays. With `types_were_found`, the public file knows the type better than noisy counts do. A
    domain that was taken from the private table on the user's word gets what the map leads to besides.

    Guarantees:
        Both sides of a reference need no search for their domains.  [test_references_supply_domains]
    """
    for name, column in _columns(references):
        if name not in schema or schema[name].has_domain or isinstance(schema[name], Key):
            continue
        attribute = schema[name]
        found = _by_itself(column) if types_were_found else _of_type(column, name, attribute)
        schema = schema.with_attribute(name, found)
    for (left, right), table in references.items():
        names = (*left, right)
        if all(name in schema and schema[name].has_domain for name in names):
            schema = _widened(schema, left, right, table)
    return schema


def _columns(references: References) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Each attribute of the references with all values that any of them lists."""
    found: dict[str, list[pa.Array]] = {}
    for table in references.values():
        for name in table.column_names:
            found.setdefault(name, []).extend(table.column(name).chunks)
    for name, chunks in found.items():
        kinds = {chunk.type for chunk in chunks}
        yield name, pa.chunked_array(chunks if len(kinds) == 1 else [chunk.cast(pa.string()) for chunk in chunks])


def _by_itself(column: pa.ChunkedArray) -> Attribute:
    """An attribute of the type that the public values have, with their domain."""
    typed = infer_column(column) if pa.types.is_string(column.type) else column
    if pa.types.is_integer(typed.type):
        ends = pc.min_max(typed)
        values = sorted(pc.unique(typed).to_pylist())
        if len(values) < _DENSE * (ends["max"].as_py() - ends["min"].as_py() + 1):
            return Categorical(values=values, nullable=True)
    drafted = draft_schema(pa.table({"value": typed}), trust_domain=True)["value"]
    if not drafted.has_domain:
        return Categorical(values=sorted(pc.unique(column.cast(pa.string())).to_pylist()), nullable=True)
    return type(drafted)(**{**drafted.fields(), "nullable": True, "source": Source.DECLARED})


def _of_type(column: pa.ChunkedArray, name: str, attribute: Attribute) -> Attribute:
    """The attribute with the domain of public values, which must have its type."""
    typed = as_declared(column, name, attribute, file="the reference table")
    return attribute.with_domain(source=Source.DECLARED, **_domain(attribute, typed))


def _domain(attribute: Attribute, typed: pa.ChunkedArray) -> dict[str, Any]:
    if isinstance(attribute, Categorical):
        return {"values": sorted(pc.unique(typed).to_pylist())}
    ends = pc.min_max(typed)
    return {"min": ends["min"].as_py(), "max": ends["max"].as_py()}


def _widened(schema: Schema, left: tuple[str, ...], right: str, table: pa.Table) -> Schema:
    """The schema with the right sides that left sides of its domain lead to, if that domain was only asserted."""
    attribute = schema[right]
    if attribute.source is not Source.ASSERTED or isinstance(attribute, Key):
        return schema
    typed = {n: as_declared(table.column(n), n, schema[n], file="the reference table") for n in (*left, right)}
    usable = np.logical_and.reduce([inside_domain(typed[name], name, schema[name]) for name in left])
    lost = typed[right].filter(pa.array(usable & ~inside_domain(typed[right], right, attribute)))
    if not len(lost):
        return schema
    if isinstance(attribute, Categorical):
        values = [*(attribute.values or ()), *sorted(pc.unique(lost).to_pylist())]
        return schema.with_attribute(right, attribute.with_domain(source=Source.ASSERTED, values=values))
    ends = pc.min_max(lost)
    low, high = getattr(attribute, "min", None), getattr(attribute, "max", None)
    wider = {"min": min(low, ends["min"].as_py()), "max": max(high, ends["max"].as_py())}
    return schema.with_attribute(right, attribute.with_domain(source=Source.ASSERTED, **wider))

"""The public domain of a table, as every peer is given it."""

from __future__ import annotations

import json
from dataclasses import asdict

from bench.peers.exchange import Column
from kamino.schema import Categorical, Integer, Real, Schema


def describe(schema: Schema) -> tuple[Column, ...]:
    """The domain of every attribute of a schema that declares all of them."""
    return tuple(_column(name, schema) for name in schema)


def _column(name: str, schema: Schema) -> Column:
    attribute = schema[name]
    match attribute:
        case Categorical(values=values) if values is not None:
            texts = tuple(str(value) for value in values)
            return Column(name=name, kind="category", nullable=attribute.nullable, values=texts)
        case Integer(min=low, max=high) if low is not None and high is not None:
            return Column(name=name, kind="integer", nullable=attribute.nullable, lower=float(low), upper=float(high))
        case Real(min=low, max=high, decimals=decimals) if low is not None and high is not None:
            return Column(
                name=name,
                kind="real",
                nullable=attribute.nullable,
                lower=float(low),
                upper=float(high),
                decimals=decimals,
            )
    raise ValueError(f"found {name}, a {attribute.type} attribute; peers are given categories, integers and reals only")


def domain_text(schema: Schema) -> str:
    """The description as JSON."""
    return json.dumps([asdict(column) for column in describe(schema)])

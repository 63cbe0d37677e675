"""Tools for the owner of a private table, in Python: what they say is computed from the table and is not private."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kamino.constraints import value_types
from kamino.evaluate.as_declared import as_declared
from kamino.evaluate.checking import TableCheck, check_table
from kamino.evaluate.report.document import internal_report
from kamino.evaluate.report.page import render_page
from kamino.io import Reading, is_untyped, read_table
from kamino.pipeline.inputs import ConstraintsInput, SchemaInput, constraints_from, schema_from
from kamino.schema.files import draft
from kamino.schema.files.date_formats import with_formats
from kamino.schema.files.written_numbers import with_numbers
from kamino.schema.schema import Schema

_PLAIN = Reading()


def draft_schema(
    table: object, *, trust_domain: bool = False, keys: Collection[str] = (), reading: Reading = _PLAIN
) -> Schema:
    """A schema to start from, as `kamino init` drafts it: names and types, without domains.

    Args:
        table: a frame, a path or the URL of a database.
        trust_domain: take values and ranges from the table too. Say this only if they are public.
        keys: columns of identifiers, whose values are made up.
        reading: how the table is read.

    >>> import pyarrow as pa
    >>> draft_schema(pa.table({"age": [31, 45]}))["age"].type
    'integer'
    """
    rows = read_table(table, reading=reading)
    untyped = is_untyped(table)
    schema = draft.draft_schema(rows, trust_domain=trust_domain, keys=keys, codes=True, looks=untyped)
    if not untyped:
        return schema
    return with_numbers(with_formats(schema, rows, trust_domain=trust_domain), rows, trust_domain=trust_domain)


def check(
    table: object, constraints: ConstraintsInput, *, schema: SchemaInput = None, reading: Reading = _PLAIN
) -> TableCheck:
    """Count the violations of each constraint in a table, exactly, as `kamino check` does.

    >>> import pyarrow as pa
    >>> found = check(pa.table({"zip": ["1", "1"], "city": ["A", "B"]}), "zip -> city")
    >>> found.is_clean, found.checks[0].violations
    (False, 1)
    """
    declared = schema_from(schema)
    rows = read_table(table, reading=reading.with_cells(declared))
    rows = rows if declared is None else as_declared(rows, declared)
    return check_table(rows, constraints_from(constraints).bind(value_types(rows)))


@dataclass(frozen=True, kw_only=True)
class Score:
    """How near a synthetic table is to the true one, from 0 to 1, with its parts.

    columns, pairs: one less the mean total variation of single columns and of pairs of them; rules: the part of the
    hard constraints that hold, None where there are none. value: the mean of these. chance: what the same score is
    between two random halves of the true table. No table that is drawn anew should be expected to be nearer.
    """

    value: float
    columns: float
    pairs: float
    rules: float | None
    chance: float | None

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        rules = "" if self.rules is None else f", hard constraints {self.rules:.3f}"
        chance = "" if self.chance is None else f"; two halves of the true table: {self.chance:.3f}"
        return f"{self.value:.3f} (columns {self.columns:.3f}, pairs {self.pairs:.3f}{rules}){chance}"


@dataclass(frozen=True, kw_only=True)
class Report:
    """A comparison of a synthetic table with the true one, for the owner of the true one.

    document: all numbers, as `kamino report --json` prints them.
    """

    document: dict[str, Any]

    @property
    def level(self) -> str:
        """The verdict: good, fair or poor."""
        return str(self.document["verdict"]["level"])

    @property
    def reasons(self) -> tuple[str, ...]:
        """What of the table is not good."""
        return tuple(f"{each['text']}: {each['level']}" for each in self.document["verdict"]["reasons"])

    @property
    def score(self) -> Score:
        """One number with its parts."""
        return _score(self.document)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page, which needs no network."""
        Path(path).write_text(render_page(self.document), encoding="utf-8")

    def __str__(self) -> str:
        return "\n".join([f"{self.level.capitalize()}. {self.score}", *(f"  {each}" for each in self.reasons)])

    def __repr__(self) -> str:
        return f"<Report: {self.level}, {self.score.value:.3f}>"

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{_quoted(render_page(self.document))}" width="100%" height="600"></iframe>'


def report(
    true: object,
    synthetic: object,
    constraints: ConstraintsInput = None,
    *,
    schema: SchemaInput = None,
    reading: Reading = _PLAIN,
) -> Report:
    """Compare a synthetic table with the true one, as `kamino report` does. For the owner: nothing of it is private.

    >>> import pyarrow as pa
    >>> same = pa.table({"zip": ["1", "2"], "city": ["A", "A"]})
    >>> report(same, same, "zip -> city").level
    'good'
    """
    declared = schema_from(schema)
    one, two = read_table(true, reading=reading.with_cells(declared)), read_table(synthetic)
    two = two.select([name for name in two.column_names if reading.reads(name)])
    if declared is not None:
        one, two = as_declared(one, declared), as_declared(two, declared)
    rules = constraints_from(constraints).bind(value_types(one))
    document = internal_report(one, two, rules, schema=declared)
    return Report(document={**document, "sources": {"true": "the true table", "synthetic": "The synthetic table"}})


def score(
    true: object,
    synthetic: object,
    constraints: ConstraintsInput = None,
    *,
    schema: SchemaInput = None,
    reading: Reading = _PLAIN,
) -> Score:
    """One number for how near a synthetic table is to the true one, with its parts. For the owner of the true one.

    >>> import pyarrow as pa
    >>> same = pa.table({"zip": ["1", "2"], "city": ["A", "A"]})
    >>> score(same, same).value
    1.0
    """
    return report(true, synthetic, constraints, schema=schema, reading=reading).score


def _score(document: dict[str, Any]) -> Score:
    by_order = {each["order"]: each for each in document["marginals"]}
    single = by_order.get(1, {"mean": 0.0, "halves": None})
    pairs = by_order.get(2, single)
    verdict = document["verdict"]
    rules = 1 - (verdict["broken"] + verdict["uncounted"]) / verdict["hard"] if verdict["hard"] else None
    parts = [1 - single["mean"], 1 - pairs["mean"], *([] if rules is None else [rules])]
    halves = (single["halves"], pairs["halves"])
    chance = None
    if None not in halves:
        known = [1 - halves[0], 1 - halves[1], *([] if rules is None else [1.0])]
        chance = sum(known) / len(known)
    return Score(value=sum(parts) / len(parts), columns=parts[0], pairs=parts[1], rules=rules, chance=chance)


def _quoted(page: str) -> str:
    return page.replace("&", "&amp;").replace('"', "&quot;")

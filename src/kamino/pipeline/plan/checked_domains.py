"""Domains that a database declares by its checks: `size in ('S', 'M')` lists values, `n between 1 and 5` is a range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from kamino.constraints import Constraints
from kamino.constraints.tree import Comparison, Constant, DenialConstraint, Operator
from kamino.errors import ConstraintError
from kamino.pipeline.plan.public_domains import with_public_domains
from kamino.schema import Attribute, Integer, Key, Schema, Source, draft_schema

if TYPE_CHECKING:
    from kamino.io.databases.catalogue import Catalogue

# A range of more values than this says what is possible, not what there is: it is found instead.
_MOST_VALUES = 1_000


def with_checks(
    declared: Mapping[str, Attribute], catalogue: Catalogue | None, columns: pa.Schema
) -> dict[str, Attribute]:
    """What a database declares of columns, with the domains that its checks give to those without one.

    A check that cannot be read, or that is about several columns, gives none.

    Guarantees:
        Lists of values and narrow ranges of whole numbers are domains.  [test_checks_of_a_database_are_domains]
    """
    if catalogue is None or not catalogue.checks:
        return dict(declared)
    drafted = draft_schema(pa.Table.from_batches([], schema=columns))
    schema = Schema(attributes={**drafted.attributes, **declared})
    checks = tuple(each for text in catalogue.checks for each in _read(text, catalogue.dialect))
    made = _with_ranges(with_public_domains(schema, Constraints(checks), ()), checks)
    changed = {name: each for name, each in made.attributes.items() if each != schema[name]}
    return {**declared, **{name: each for name, each in changed.items() if not isinstance(each, Key)}}


def _read(text: str, dialect: str) -> tuple[DenialConstraint, ...]:
    from kamino.constraints.language.ddl import parse_check  # sqlglot is slow to import

    try:
        return parse_check(text, dialect=dialect)
    except ConstraintError:
        return ()


def _with_ranges(schema: Schema, checks: Iterable[DenialConstraint]) -> Schema:
    """The schema with a range for each whole number of which checks bound both ends."""
    ends: dict[str, dict[str, int]] = {}
    for check in checks:
        match check.predicates:
            case (Comparison(op=op, right=Constant(value=int() as value)) as only,) if not isinstance(value, bool):
                # What is denied is beyond the end.
                side = {
                    Operator.LT: ("min", 0),
                    Operator.LE: ("min", 1),
                    Operator.GT: ("max", 0),
                    Operator.GE: ("max", -1),
                }
                if op in side and check.is_unary:
                    which, step = side[op]
                    ends.setdefault(only.left.name, {})[which] = value + step
    for name, found in ends.items():
        attribute = schema.attributes.get(name)
        is_open = isinstance(attribute, Integer) and not attribute.has_domain and len(found) == 2
        if is_open and 0 <= found["max"] - found["min"] < _MOST_VALUES:
            schema = schema.with_domain(name, source=Source.DECLARED, **found)
    return schema

"""Table schemas of Frictionless (alone or in a package) and JSON Schema of rows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from kamino.constraints.language.expressions import And, Expression, Not, Or
from kamino.constraints.terms.canonical_terms import compared
from kamino.constraints.tree import Column, Operator
from kamino.contracts.contract import Contract, Draft
from kamino.contracts.properties import add_key, add_properties
from kamino.contracts.rule_forms import holds, in_values, null_test, unique, value_of
from kamino.errors import ConstraintError


def contract_from_table_schema(document: Any, *, source: str = "<schema>", table: str = "data") -> Contract:
    """Read a table schema of Frictionless, a data package, or a JSON Schema whose objects are rows.

    Guarantees:
        What is not carried over is listed.  [test_table_schemas_are_read]
    """
    draft = Draft(source)
    if not isinstance(document, Mapping):
        draft.leave(table, "the document", "it is no mapping")
        return draft.contract()
    resources = document.get("resources")
    if isinstance(resources, list):
        for place, resource in enumerate(resources, start=1):
            schema = resource.get("schema") if isinstance(resource, Mapping) else None
            if isinstance(schema, Mapping):
                _fields(draft, str(resource.get("name") or f"table{place}"), schema)
    elif isinstance(document.get("fields"), list):
        _fields(draft, str(document.get("name") or table), document)
    else:
        _json_schema(draft, str(document.get("title") or table), _rows(document))
    return draft.contract()


def _fields(draft: Draft, table: str, schema: Mapping[str, Any]) -> None:
    for place, each in enumerate(schema.get("fields") or [], start=1):
        if not isinstance(each, Mapping) or "name" not in each:
            continue
        constraints = each.get("constraints") or {}
        facts = {"type": each.get("type"), "format": each.get("format"), **constraints}
        add_properties(draft, table, str(each["name"]), facts, place, whole_pattern=True)
    key = schema.get("primaryKey")
    if key:
        add_key(draft, table, [key] if isinstance(key, str) else [str(each) for each in key], f"primaryKey: {key}", 0)
    for names in schema.get("uniqueKeys") or []:
        listed = [names] if isinstance(names, str) else [str(each) for each in names]
        draft.add(table, partial(unique, [Column(name) for name in listed]), f"uniqueKeys: {names}")
    for key in schema.get("foreignKeys") or []:
        there = key.get("reference") or {}
        columns = key.get("fields") or []
        targets = there.get("fields") or []
        draft.refer(
            table,
            [columns] if isinstance(columns, str) else columns,
            str(there.get("resource") or table),
            [targets] if isinstance(targets, str) else targets,
            f"foreignKeys: {key}",
        )


def _rows(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of one row: of an array, that of its items."""
    items = document.get("items")
    return items if document.get("type") == "array" and isinstance(items, Mapping) else document


def _json_schema(draft: Draft, table: str, schema: Mapping[str, Any]) -> None:
    required = set(schema.get("required") or []) if isinstance(schema.get("required"), list) else set()
    for place, (name, each) in enumerate((schema.get("properties") or {}).items(), start=1):
        facts = dict(each) if isinstance(each, Mapping) else {}
        facts.pop("required", None)
        nullable = isinstance(facts.get("type"), list) and "null" in facts["type"]
        add_properties(draft, table, str(name), {**facts, "required": name in required and not nullable}, place)
        for key in ("anyOf", "oneOf", "allOf", "$ref", "items", "properties"):
            if key in facts:
                draft.leave(table, f"{name}: {key}", "schemas within schemas are not followed", place)
    for name, others in (schema.get("dependentRequired") or schema.get("dependencies") or {}).items():
        if isinstance(others, list):
            test = Or((null_test(Column(str(name))), And(tuple(Not(null_test(Column(str(o)))) for o in others))))
            draft.add(table, partial(holds, test), f"dependentRequired: {name}: {others}")
    for number, part in enumerate([schema, *(schema.get("allOf") or [])]):
        if isinstance(part, Mapping) and "if" in part:
            draft.add(table, partial(_conditional, part), f"if {part['if']} then {part.get('then')}", number)


def _conditional(part: Mapping[str, Any]) -> tuple[Any, ...]:
    condition = _test(part["if"])
    found = []
    if "then" in part:
        found.append(Or((Not(condition), _test(part["then"]))))
    if "else" in part:
        found.append(Or((condition, _test(part["else"]))))
    return tuple(s for each in found for s in holds(each))


def _test(schema: Any) -> Expression:
    """A schema of rows as an expression; of constants, lists and what is required."""
    parts: list[Expression] = [Not(null_test(Column(str(name)))) for name in schema.get("required") or []]
    for name, facts in (schema.get("properties") or {}).items():
        known = [key for key in facts if key not in ("type", "title", "description")]
        for key in known:
            column, value = Column(str(name)), facts[key]
            match key:
                case "const":
                    parts.append(compared(column, Operator.EQ, value_of(value)))
                case "enum":
                    parts.append(in_values(column, value))
                case "minimum":
                    parts.append(compared(column, Operator.GE, value_of(value)))
                case "maximum":
                    parts.append(compared(column, Operator.LE, value_of(value)))
                case _:
                    raise ConstraintError(f"its condition has '{key}'")
    if not parts:
        raise ConstraintError("its condition says nothing of values")
    return And(tuple(parts)) if len(parts) > 1 else parts[0]

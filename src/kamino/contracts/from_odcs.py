"""Data contracts: the Open Data Contract Standard (version 3) and the data contract specification."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from typing import Any

from kamino.constraints.group_rules import Measure
from kamino.constraints.language.expressions import Not
from kamino.constraints.language.parser import Statement
from kamino.constraints.tree import Column
from kamino.contracts.breaking_queries import rule_of_query
from kamino.contracts.contract import Contract, Draft
from kamino.contracts.properties import add_key, add_properties
from kamino.contracts.rule_forms import between, grouped, holds, in_values, matches, not_null, null_test, unique
from kamino.errors import ConstraintError
from kamino.limits import cut

_LIMITS = ("mustBe", "mustNotBe", "mustBeGreaterThan", "mustBeGreaterOrEqualTo", "mustBeLessThan",
           "mustBeLessOrEqualTo", "mustBeBetween", "mustNotBeBetween")  # fmt: skip
_VARIABLE = re.compile(r"\$\{(\w+)\}|\{(model|table|field|column)\}")


def contract_from_odcs(document: Any, *, source: str = "<contract>", today: date | None = None) -> Contract:
    """Read a data contract: its properties, keys, quality rules and references.

    Guarantees:
        A quality rule that is not carried over is listed.  [test_data_contracts_are_read]
    """
    draft = Draft(source)
    if not isinstance(document, Mapping):
        return draft.contract()
    for table, model in _models(document):
        _model(draft, table, model, today)
    return draft.contract()


def _models(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    models = document.get("models")
    if isinstance(models, Mapping):
        yield from ((str(name), model) for name, model in models.items() if isinstance(model, Mapping))
    for each in document.get("schema") or []:
        if isinstance(each, Mapping):
            yield str(each.get("name") or each.get("physicalName") or "data"), each


def _model(draft: Draft, table: str, model: Mapping[str, Any], today: date | None) -> None:
    fields = model.get("fields")
    listed = list(fields.items()) if isinstance(fields, Mapping) else []
    listed += [(str(p.get("name")), p) for p in model.get("properties") or [] if isinstance(p, Mapping)]
    keys: list[tuple[int, str]] = []
    for place, (name, facts) in enumerate(listed, start=1):
        if isinstance(facts, Mapping):
            _field(draft, table, str(name), facts, place, today, keys)
    names = [name for _, name in sorted(keys, key=lambda each: each[0])]
    if names:
        add_key(draft, table, names, f"primaryKey: {', '.join(names)}", 0)
    elif model.get("primaryKey"):
        found = model["primaryKey"]
        add_key(draft, table, [found] if isinstance(found, str) else list(found), f"primaryKey: {found}", 0)
    for quality in model.get("quality") or []:
        _quality(draft, table, None, quality, today)
    for relation in model.get("relationships") or []:
        _relation(draft, table, None, relation)


def _field(
    draft: Draft,
    table: str,
    name: str,
    facts: Mapping[str, Any],
    line: int,
    today: date | None,
    keys: list[tuple[int, str]],
) -> None:
    options = facts.get("logicalTypeOptions") or {}
    given = {k: v for k, v in {**facts, **options}.items() if k not in ("primaryKey", "primary", "logicalTypeOptions")}
    given["type"] = facts.get("logicalType") or facts.get("type")
    if str(given.get("format") or "").replace("-", "").isupper() or "yy" in str(given.get("format") or ""):
        given.pop("format")
    if facts.get("primaryKey") is True or facts.get("primary") is True:
        keys.append((int(facts.get("primaryKeyPosition") or len(keys) + 1), name))
    add_properties(draft, table, name, given, line)
    references = facts.get("references")
    if isinstance(references, str):
        _refer(draft, table, [name], references)
    for relation in [*(references if isinstance(references, list) else []), *(facts.get("relationships") or [])]:
        _relation(draft, table, name, relation)
    for quality in facts.get("quality") or []:
        _quality(draft, table, name, quality, today)


def _refer(draft: Draft, table: str, columns: list[str], target: str) -> None:
    there, _, column = target.replace("/", ".").rpartition(".")
    draft.refer(table, columns, there.split(".")[-1], [column], f"{', '.join(columns)}: references: {target}")


def _relation(draft: Draft, table: str, name: str | None, relation: Any) -> None:
    if not isinstance(relation, Mapping) or not relation.get("to"):
        draft.leave(table, cut(str(relation)), "it names no target")
        return
    targets = relation["to"] if isinstance(relation["to"], list) else [relation["to"]]
    own = relation.get("from") or name
    columns = [str(each).split(".")[-1] for each in (own if isinstance(own, list) else [own])]
    there = {str(each).rpartition(".")[0].split(".")[-1] for each in targets}
    draft.refer(
        table,
        columns,
        there.pop(),
        [str(each).split(".")[-1] for each in targets],
        cut(json.dumps(relation, default=str)),
    )


def _quality(draft: Draft, table: str, column: str | None, quality: Any, today: date | None) -> None:
    text = cut(f"{column + ': ' if column else ''}{json.dumps(quality, default=str)}")
    if not isinstance(quality, Mapping):
        draft.leave(table, text, "it is no mapping")
        return
    kind = str(quality.get("type") or ("sql" if "query" in quality else "library"))
    soft = str(quality.get("severity") or "").lower() in ("info", "warning", "warn", "low", "minor")
    soft = soft or (str(quality.get("unit") or "") == "percent" and not _demands_none(quality))
    if kind == "sql":
        draft.add(table, lambda: _of_query(table, column, quality, today), text, soft=soft)
    elif kind in ("library", "custom") and (quality.get("metric") or quality.get("rule")):
        draft.add(table, lambda: _of_metric(column, quality), text, soft=soft)
    elif kind == "custom":
        draft.add(table, lambda: _custom(column, quality), text, soft=soft)
    elif kind == "text":
        draft.leave(table, text, "it is prose")
    else:
        draft.leave(table, text, f"quality of type '{kind}' is not known here")


def _demands_none(quality: Mapping[str, Any]) -> bool:
    """Whether no row may break it."""
    return (
        quality.get("mustBe") == 0
        or quality.get("mustBeLessThan") == 1
        or quality.get("mustBeLessOrEqualTo") == 0
        or not any(key in quality for key in _LIMITS)
    )


def _of_query(table: str, column: str | None, quality: Mapping[str, Any], today: date | None) -> Iterable[Statement]:
    if not _demands_none(quality):
        raise ConstraintError("its query computes a statistic")
    names = {"model": table, "table": table, "object": table, "field": column or "", "column": column or "",
             "property": column or ""}  # fmt: skip
    query = _VARIABLE.sub(
        lambda found: names.get(found.group(1) or found.group(2), ""), str(quality.get("query") or "")
    )
    found = rule_of_query(query, dialect=quality.get("dialect"), today=today)
    return found.statements


def _of_metric(column: str | None, quality: Mapping[str, Any]) -> Iterable[Statement]:
    metric = str(quality.get("metric") or quality.get("rule"))
    arguments = quality.get("arguments") or {}
    if metric == "rowCount":
        return grouped(Measure.ROWS, (), **_bounds(quality))
    listed = arguments.get("properties") or ([] if column is None else [column])
    columns = [Column(str(each).split(".")[-1]) for each in listed]
    if not columns:
        raise ConstraintError("it names no column")
    soft_enough = _demands_none(quality) or str(quality.get("unit") or "") == "percent"
    if not soft_enough:
        raise ConstraintError("it allows for some rows by their number")
    match metric:
        case "nullValues":
            return tuple(s for each in columns for s in not_null(each))
        case "duplicateValues" | "duplicateCount":
            return unique(columns)
        case "missingValues":
            values = arguments.get("missingValues") or []
            tests = [Not(in_values(columns[0], values))] if any(v is not None for v in values) else []
            return (*not_null(columns[0]), *(s for each in tests for s in holds(each)))
        case "invalidValues":
            return _valid(columns[0], {**quality, **arguments})
    raise ConstraintError(f"the metric '{metric}' is not known here")


def _valid(column: Column, facts: Mapping[str, Any]) -> Iterable[Statement]:
    found: list[Statement] = []
    if facts.get("validValues"):
        found += holds(in_values(column, facts["validValues"]))
    if facts.get("pattern"):
        found += holds(matches(column, str(facts["pattern"])))
    if not found:
        raise ConstraintError("it names no valid values")
    return found


def _bounds(quality: Mapping[str, Any]) -> dict[str, Any]:
    low = quality.get("mustBeGreaterOrEqualTo", quality.get("mustBe"))
    high = quality.get("mustBeLessOrEqualTo", quality.get("mustBe"))
    if "mustBeGreaterThan" in quality:
        low = quality["mustBeGreaterThan"] + 1
    if "mustBeLessThan" in quality:
        high = quality["mustBeLessThan"] - 1
    if "mustBeBetween" in quality:
        low, high = quality["mustBeBetween"]
    return {"low": low, "high": high}


def _custom(column: str | None, quality: Mapping[str, Any]) -> Iterable[Statement]:
    """Checks of other engines, of which those are read that say what a rule here says."""
    implementation = quality.get("implementation")
    if quality.get("engine") == "dqx" and isinstance(implementation, Mapping):
        check = implementation.get("check") or {}
        return _dqx(column, str(check.get("function")), check.get("arguments") or {}, implementation.get("filter"))
    if quality.get("engine") == "greatExpectations" and isinstance(implementation, Mapping):
        from kamino.contracts.gx_expectations import Expectation, expectation_statements

        arguments = {"column": column, **(implementation.get("kwargs") or {})}
        name = str(implementation.get("type") or implementation.get("expectation_type"))
        return expectation_statements(name, Expectation(arguments, None, lambda value: Column(str(value))))
    raise ConstraintError(f"checks of {quality.get('engine') or 'other engines'} are not known here")


def _dqx(column: str | None, name: str, arguments: Mapping[str, Any], condition: object) -> Iterable[Statement]:
    from kamino.contracts.from_expectations import condition_of

    named = arguments.get("column") or column
    if named is None and name != "is_unique":
        raise ConstraintError("it names no column")
    subject, where = Column(str(named or "x")), condition_of(condition)
    match name:
        case "is_not_null":
            return not_null(subject, where)
        case "is_null":
            return holds(null_test(subject), where)
        case "is_in_list":
            return holds(in_values(subject, arguments.get("allowed") or []), where)
        case "is_in_range":
            return holds(between(subject, arguments.get("min_limit"), arguments.get("max_limit")), where)
        case "is_not_less_than":
            return holds(between(subject, arguments.get("limit"), None), where)
        case "is_not_greater_than":
            return holds(between(subject, None, arguments.get("limit")), where)
        case "regex_match":
            return holds(matches(subject, str(arguments.get("regex"))), where)
        case "is_unique":
            return unique([Column(str(each)) for each in arguments.get("columns") or [named]], where)
        case "is_not_null_and_is_in_list":
            return (*not_null(subject, where), *holds(in_values(subject, arguments.get("allowed") or []), where))
    raise ConstraintError(f"the check '{name}' is not known here")

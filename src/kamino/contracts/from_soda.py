"""Checks of Soda: its files of `checks for TABLE:`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from kamino.constraints.group_rules import Measure
from kamino.constraints.language.expressions import Expression, Not
from kamino.constraints.language.parser import Statement
from kamino.constraints.terms.canonical_terms import compared
from kamino.constraints.tree import Column, Operator
from kamino.contracts.breaking_queries import rule_of_query
from kamino.contracts.contract import Contract, Draft
from kamino.contracts.from_expectations import condition_of
from kamino.contracts.gx_expectations import type_of_name
from kamino.contracts.rule_forms import (
    FORMATS,
    between,
    grouped,
    holds,
    in_values,
    length_between,
    matches,
    not_null,
    unique,
)
from kamino.errors import ConstraintError
from kamino.limits import cut, read_number

_CHECK = re.compile(
    r"^(?P<metric>\w+)\s*(?:\((?P<columns>[^)]*)\))?\s*(?:(?P<op>=|==|!=|<=|>=|<|>)\s*(?P<value>[-\d.]+)\s*%?|"
    r"(?P<between>between)\s+\(?(?P<low>[-\d.]+)\s*and\s*(?P<high>[-\d.]+)\)?)?\s*$"
)
_AVERAGES = {"min": Measure.LEAST, "max": Measure.MOST, "avg": Measure.MEAN, "sum": Measure.SUM}


def contract_from_soda(document: Any, *, source: str = "<checks>", today: date | None = None) -> Contract:
    """Read the checks of a file of Soda.

    Guarantees:
        A check that is not carried over is listed.  [test_soda_checks_are_read]
    """
    draft = Draft(source)
    for key, checks in (document if isinstance(document, Mapping) else {}).items():
        head = re.match(r"^checks for (?P<table>[^\s\[]+)(?P<part>\s*\[.*\])?$", str(key).strip())
        if head is None or not isinstance(checks, list):
            if str(key).startswith(("checks", "for each")):
                draft.leave("", str(key), "it is of another form")
            continue
        table = head.group("table").split(".")[-1]
        for place, check in enumerate(checks, start=1):
            if head.group("part"):
                draft.leave(table, cut(json.dumps(check, default=str)), "a check of one part of a table", place)
            else:
                _add(draft, table, check, place, today)
    return draft.contract()


def _add(draft: Draft, table: str, check: Any, line: int, today: date | None) -> None:
    text = cut(json.dumps(check, default=str))
    name, facts = (check, {}) if isinstance(check, str) else next(iter(check.items())) if check else ("", {})
    facts = facts if isinstance(facts, Mapping) else {}
    if name == "schema":
        _columns(draft, table, facts)
        return
    soft = "warn" in facts and "fail" not in facts

    def make() -> Iterable[Statement]:
        if name in ("failed rows", "failed_rows"):
            return _failed(facts, today)
        return _metric(str(name), facts)

    draft.add(table, make, text, line, soft=soft)


def _columns(draft: Draft, table: str, facts: Mapping[str, Any]) -> None:
    for level in ("fail", "warn"):
        asked = facts.get(level) or {}
        if not isinstance(asked, Mapping):
            continue
        for name in asked.get("when required column missing") or []:
            draft.column(table, str(name))
        for name, kind in (asked.get("when wrong column type") or {}).items():
            draft.column(table, str(name), type_of_name([str(kind)]))


def _failed(facts: Mapping[str, Any], today: date | None) -> Iterable[Statement]:
    if facts.get("fail condition"):
        condition = condition_of(facts["fail condition"])
        assert condition is not None
        return holds(Not(condition))
    return rule_of_query(str(facts.get("fail query") or ""), today=today).statements


def _metric(name: str, facts: Mapping[str, Any]) -> Iterable[Statement]:
    match = _CHECK.match(_with_threshold(name, facts))
    if match is None:
        raise ConstraintError("it is of a form that is not known here")
    metric = match.group("metric")
    columns = [each.strip() for each in (match.group("columns") or "").split(",") if each.strip()]
    where = condition_of(facts.get("filter"))
    none = match.group("op") in ("=", "==") and float(match.group("value")) == 0
    none = none or (match.group("op") == "<=" and float(match.group("value")) == 0)
    none = none or (match.group("op") == "<" and metric.endswith("count") and float(match.group("value")) == 1)
    if metric in ("missing_count", "missing_percent") and none:
        return _missing(Column(columns[0]), facts, where)
    if metric in ("duplicate_count", "duplicate_percent") and none:
        return unique([Column(each) for each in columns], where)
    if metric in ("invalid_count", "invalid_percent") and none:
        return _valid(Column(columns[0]), facts, where)
    if metric == "row_count":
        low, high = _bounds(match, whole=True)
        return grouped(Measure.ROWS, (), low=low, high=high, where=where)
    if metric in _AVERAGES and columns:
        if match.group("op") in ("<", ">"):
            column = Column(columns[0])
            op = {("min", ">"): Operator.GT, ("max", "<"): Operator.LT}.get((metric, match.group("op")))
            if op is None:
                raise ConstraintError("a statistic that must lie strictly beyond a bound")
            from kamino.constraints.tree import Constant

            return holds(compared(column, op, Constant(read_number(match.group("value")))), where)
        low, high = _bounds(match, whole=False)
        return grouped(_AVERAGES[metric], (), low=low, high=high, term=Column(columns[0]), where=where)
    raise ConstraintError("it says nothing of rows")


def _with_threshold(name: str, facts: Mapping[str, Any]) -> str:
    """`min(x)` with `fail: when < 0` as `min(x) >= 0`."""
    found = re.match(r"^when\s*(<=|>=|<|>|=)\s*([-\d.]+)$", str(facts.get("fail") or "").strip())
    if found is None or re.search(r"[<>=]", name):
        return name
    turned = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!="}[found.group(1)]
    return f"{name} {turned} {found.group(2)}"


def _missing(column: Column, facts: Mapping[str, Any], where: Expression | None) -> Iterable[Statement]:
    values = facts.get("missing values") or []
    more = holds(Not(in_values(column, values)), where) if any(each is not None for each in values) else ()
    return (*not_null(column, where), *more)


def _valid(column: Column, facts: Mapping[str, Any], where: Expression | None) -> Iterable[Statement]:
    tests: list[Expression] = []
    if facts.get("valid values"):
        tests.append(in_values(column, facts["valid values"]))
    if facts.get("invalid values"):
        tests.append(Not(in_values(column, facts["invalid values"])))
    if facts.get("valid regex") or facts.get("valid_regex"):
        tests.append(matches(column, str(facts.get("valid regex") or facts.get("valid_regex"))))
    if facts.get("valid format"):
        form = str(facts["valid format"])
        if form not in FORMATS:
            raise ConstraintError(f"the format '{form}' is not known here")
        tests.append(matches(column, FORMATS[form]))
    if "valid min" in facts or "valid max" in facts:
        tests.append(between(column, facts.get("valid min"), facts.get("valid max")))
    lengths = [facts.get(key) for key in ("valid length", "valid min length", "valid max length")]
    if any(each is not None for each in lengths):
        exact, low, high = lengths
        tests.append(length_between(column, exact if exact is not None else low, exact if exact is not None else high))
    if not tests:
        raise ConstraintError("it names no valid values")
    return tuple(s for test in tests for s in holds(test, where))


def _bounds(match: re.Match[str], *, whole: bool) -> tuple[Any, Any]:
    if match.group("between"):
        return read_number(match.group("low")), read_number(match.group("high"))
    if match.group("op") is None:
        raise ConstraintError("it has no threshold")
    value = read_number(match.group("value"))
    match match.group("op"):
        case "=" | "==":
            return value, value
        case ">=":
            return value, None
        case "<=":
            return None, value
        case ">" if whole:
            return value + 1, None
        case "<" if whole:
            return None, value - 1
    raise ConstraintError("its threshold cannot be kept")

"""Tests of dbt: a project folder, a schema file, or the manifest; of dbt itself, dbt_utils and dbt_expectations.

What dbt only warns of becomes a soft rule; what `where` leaves out is not asked. A test whose SQL is a macro of the
project's own is listed as left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from kamino.constraints.group_rules import GroupRule, Measure
from kamino.constraints.language.expressions import And, Expression, Not, as_term
from kamino.constraints.language.parser import Statement
from kamino.constraints.language.sql_expressions import SqlReader
from kamino.constraints.terms.canonical_terms import applied, compared
from kamino.constraints.terms.term import Term
from kamino.constraints.tree import Column, Comparison, Constant, DenialConstraint, Operator
from kamino.contracts.breaking_queries import rule_of_query
from kamino.contracts.contract import Contract, Draft
from kamino.contracts.gx_expectations import Expectation, expectation_statements, expected_columns, type_of_name
from kamino.contracts.jinja_texts import resolved
from kamino.contracts.rule_forms import between, grouped, holds, in_values, not_null, null_test, unique, value_of
from kamino.errors import ConstraintError, SchemaError
from kamino.limits import cut
from kamino.schema.files.yaml_text import load_yaml

Variables = Mapping[str, Any]


@dataclass
class _Project:
    draft: Draft
    variables: Variables = field(default_factory=dict)
    dialect: str | None = None
    today: date | None = None

    def text(self, value: object) -> str:
        return resolved(str(value), self.variables)

    def expression(self, text: object) -> Expression:
        return SqlReader(self.dialect, self.today).expression(self._parsed(self.text(text)))

    def term(self, value: object) -> Term:
        if isinstance(value, bool | int | float):
            return value_of(value)
        return SqlReader(self.dialect, self.today).term(self._parsed(self.text(value)))

    def _parsed(self, text: str) -> exp.Expr:
        try:
            return sqlglot.parse_one(text, read=self.dialect)
        except sqlglot.errors.SqlglotError:
            raise ConstraintError(f"its SQL cannot be read: {cut(text)}") from None


def contract_from_dbt(
    path: Path, *, dialect: str | None = None, today: date | None = None, variables: Variables | None = None
) -> Contract:
    """Read a project folder, one schema file, or a manifest.

    Guarantees:
        A test that is not carried over is listed.  [test_dbt_projects_are_read]
    """
    project = _Project(Draft(str(path)), dict(variables or {}), dialect, today)
    if path.is_dir():
        settings = path / "dbt_project.yml"
        if settings.exists():
            project.variables = {**_variables(settings.read_text(encoding="utf-8")), **project.variables}
        for file in sorted(path.rglob("*")):
            hidden = any(part in ("target", "dbt_packages", "node_modules", ".git") for part in file.parts)
            if hidden or not file.is_file() or file.name == "dbt_project.yml":
                continue
            if file.suffix in (".yml", ".yaml"):
                project.draft.source = str(file)
                _schema_file(project, file.read_text(encoding="utf-8"))
            elif file.suffix == ".sql" and "tests" in file.relative_to(path).parts:
                project.draft.source = str(file)
                _singular(project, file.read_text(encoding="utf-8"), file.stem)
    elif path.suffix == ".json":
        _manifest(project, json.loads(path.read_text(encoding="utf-8")))
    elif path.suffix == ".sql":
        _singular(project, path.read_text(encoding="utf-8"), path.stem)
    else:
        _schema_file(project, path.read_text(encoding="utf-8"))
    project.draft.source = str(path)
    return project.draft.contract()


def _variables(text: str) -> dict[str, Any]:
    document, _ = load_yaml(text, source="dbt_project.yml")
    found = document.get("vars") if isinstance(document, Mapping) else None
    flat: dict[str, Any] = {}
    for key, value in (found or {}).items():
        flat |= value if isinstance(value, Mapping) else {key: value}
    return flat


def _schema_file(project: _Project, text: str) -> None:
    try:
        document, _ = load_yaml(text, source=project.draft.source)
    except SchemaError as problem:
        project.draft.leave("", project.draft.source, f"it cannot be read ({problem})")
        return
    if not isinstance(document, Mapping):
        return
    lines = _Lines(text)
    models = [*(document.get("models") or []), *(document.get("seeds") or []), *(document.get("snapshots") or [])]
    for declared in document.get("sources") or []:
        models += list(declared.get("tables") or []) if isinstance(declared, Mapping) else []
    for model in models:
        if not isinstance(model, Mapping):
            continue
        table = str(model.get("name") or "")
        at = lines.after(table)
        for test in _tests(model):
            _add(project, table, None, test, lines.of(test, at))
        for column in model.get("columns") or []:
            if isinstance(column, Mapping) and column.get("name") is not None:
                _column(project, table, column, lines, lines.after(str(column["name"]), at))


def _column(project: _Project, table: str, column: Mapping[str, Any], lines: _Lines, at: int) -> None:
    name = str(column["name"])
    kind = column.get("data_type")
    project.draft.column(table, name, None if kind is None else type_of_name([str(kind)]))
    for test in _tests(column):
        _add(project, table, name, test, lines.of(test, at))
    for constraint in column.get("constraints") or []:
        if isinstance(constraint, Mapping):
            _declared(project, table, name, constraint, at)


def _declared(project: _Project, table: str, name: str, constraint: Mapping[str, Any], line: int) -> None:
    """A constraint of a model's contract."""
    kind, text = str(constraint.get("type") or ""), f"{name}: {json.dumps(dict(constraint), default=str)}"
    column = Column(name)
    makers: dict[str, Callable[[], Iterable[Statement]]] = {
        "not_null": lambda: not_null(column),
        "unique": lambda: unique([column]),
        "primary_key": lambda: (*not_null(column), *unique([column])),
        "check": lambda: holds(project.expression(constraint.get("expression"))),
    }
    if kind in makers:
        project.draft.add(table, makers[kind], text, line)
    else:
        project.draft.leave(table, text, "it is not known here", line)


def _tests(node: Mapping[str, Any]) -> list[Any]:
    return [*(node.get("tests") or []), *(node.get("data_tests") or [])]


class _Lines:
    """Where things stand in a text, found by their words in order."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()

    def after(self, name: str, start: int = 0) -> int:
        """The line of a name, from `start` on."""
        wanted = re.compile(rf"name:\s*['\"]?{re.escape(name)}['\"]?\s*$")
        return (
            next((n for n in range(max(start - 1, 0), len(self._lines)) if wanted.search(self._lines[n])), start - 1)
            + 1
        )

    def of(self, test: Any, start: int) -> int:
        """The line of a test after its column."""
        name = test if isinstance(test, str) else next((k for k in test if k not in _BESIDE), "") if test else ""
        lines = range(max(start - 1, 0), len(self._lines))
        return next((n for n in lines if name and name in self._lines[n]), max(start - 1, 0)) + 1


_BESIDE = ("name", "config", "description", "tags", "severity", "meta", "where", "enabled", "limit", "test_name",
           "arguments", "warn_if", "error_if", "fail_calc", "store_failures")  # fmt: skip


def _unfolded(test: Any) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """The name of a test, its arguments and its settings, in each of the ways dbt allows."""
    if isinstance(test, str):
        return test, {}, {}
    if not isinstance(test, Mapping):
        return "", {}, {}
    name = next((str(key) for key in test if key not in _BESIDE), str(test.get("test_name") or ""))
    inner = test.get(name)
    arguments = dict(inner) if isinstance(inner, Mapping) else {}
    beside = {key: value for key, value in test.items() if key != name}
    nested = arguments.pop("arguments", None) or beside.get("arguments")
    if isinstance(nested, Mapping):
        arguments |= nested
    settings: dict[str, Any] = {}
    for place in (beside.get("config"), arguments.pop("config", None), beside, arguments):
        if isinstance(place, Mapping):
            settings |= {k: place[k] for k in ("severity", "where", "error_if", "warn_if", "enabled") if k in place}
    for key in ("severity", "where", "error_if", "warn_if", "enabled", "name", "description", "meta", "tags"):
        arguments.pop(key, None)
    return name, arguments, settings


def _add(project: _Project, table: str, column: str | None, test: Any, line: int) -> None:
    name, arguments, settings = _unfolded(test)
    short = name.split(".")[-1]
    text = cut(f"{column + ': ' if column else ''}{json.dumps(test, default=str)}")
    if settings.get("enabled") is False:
        project.draft.leave(table, text, "it is not enabled", line)
        return
    if short in ("relationships", "relationships_where"):
        _relationship(project, table, column, arguments, settings, text, line)
        return
    given = {"column_name": column, "_sql": True, **arguments}
    columns = expected_columns(short, given)
    if columns is not None:
        for each, kind in columns:
            project.draft.column(table, each, kind)
        return
    note, soft = _softness(settings, arguments)

    def make() -> Iterable[Statement]:
        asked = [each for each in (settings.get("where"), arguments.get("row_condition")) if each]
        parts = [project.expression(each) for each in asked]
        where = None if not parts else parts[0] if len(parts) == 1 else And(tuple(parts))
        if short.startswith("expect_"):
            return expectation_statements(short, Expectation(given, where, project.term))
        reader = _TESTS.get(short)
        if reader is None:
            raise ConstraintError(f"the test '{short}' is not known here")
        return reader(project, column, arguments, where)

    project.draft.add(table, make, text, line, soft=soft, note=note)


def _softness(settings: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[str, bool]:
    if str(settings.get("severity") or "").lower() == "warn":
        return "dbt only warns of it", True
    limit = settings.get("error_if")
    if limit is not None and str(limit).replace(" ", "") not in (">0", "!=0", "<>0", ">=1"):
        return f"dbt allows for some rows: error_if {limit}", True
    return "", False


def _relationship(
    project: _Project,
    table: str,
    column: str | None,
    arguments: Mapping[str, Any],
    settings: Mapping[str, Any],
    text: str,
    line: int,
) -> None:
    target = re.search(r"['\"]([^'\"]+)['\"]\s*\)\s*(?:}})?\s*$", str(arguments.get("to") or ""))
    there = arguments.get("field")
    if target is None or column is None or there is None:
        project.draft.leave(table, text, "it names no table and column", line)
    elif settings.get("where") or arguments.get("from_condition") or arguments.get("to_condition"):
        project.draft.leave(table, text, "a reference of some rows only", line)
    else:
        project.draft.refer(table, [column], target.group(1), [str(there)], text, line)


def _singular(project: _Project, text: str, name: str) -> None:
    """A test that is a query of the rows that break it."""
    if re.search(r"{%-?\s*(test|macro)\b", text):
        project.draft.leave("", name, "a macro of the project, which is not run here", 1)
        return
    soft = re.search(r"severity\s*=\s*['\"]warn['\"]", text) is not None
    try:
        found = rule_of_query(resolved(text, project.variables), dialect=project.dialect, today=project.today)
    except ConstraintError as problem:
        project.draft.leave("", f"{name}: {' '.join(text.split())}", problem.message, 1)
        return
    project.draft.add(found.table, lambda: found.statements, name, 1, soft=soft)


def _manifest(project: _Project, document: Mapping[str, Any]) -> None:
    """The tests of a manifest, with the arguments that dbt has resolved."""
    for node in (document.get("nodes") or {}).values():
        if node.get("resource_type") != "test":
            continue
        metadata = node.get("test_metadata")
        table = str(node.get("attached_node") or "").split(".")[-1]
        settings = node.get("config") or {}
        if not metadata:
            _singular(project, str(node.get("compiled_code") or node.get("raw_code") or ""), str(node.get("name")))
            continue
        arguments = {k: v for k, v in (metadata.get("kwargs") or {}).items() if k not in ("model", "column_name")}
        name = ".".join(part for part in (metadata.get("namespace"), metadata.get("name")) if part)
        column = node.get("column_name") or (metadata.get("kwargs") or {}).get("column_name")
        _add(project, table, column, {name: {"arguments": arguments, "config": settings}}, 0)


Test = Callable[[_Project, str | None, Mapping[str, Any], Expression | None], Iterable[Statement]]


def _column_of(project: _Project, column: str | None, arguments: Mapping[str, Any]) -> Term:
    named = arguments.get("column_name") or column
    if named is None:
        raise ConstraintError("it names no column")
    text = str(named)
    return Column(text) if re.fullmatch(r"[\w .-]+", text) else project.term(text)


def _listed(arguments: Mapping[str, Any], *names: str) -> list[Any]:
    found = next((arguments[name] for name in names if name in arguments), None)
    if not isinstance(found, list) or not found:
        raise ConstraintError(f"it has no list '{names[0]}'")
    return found


def _values(project: _Project, arguments: Mapping[str, Any]) -> list[Any]:
    values = _listed(arguments, "values")
    quoted = arguments.get("quote", True)
    texts = [project.text(each) if isinstance(each, str) else each for each in values]
    if not quoted and any(isinstance(each, str) for each in texts):
        constants = [project.term(each) for each in texts]
        if not all(isinstance(each, Constant) for each in constants):
            raise ConstraintError("its values are computed")
        return [each.value for each in constants if isinstance(each, Constant)]
    return texts


def _expression_test(
    project: _Project, column: str | None, arguments: Mapping[str, Any], where: Expression | None
) -> Iterable[Statement]:
    text = str(arguments.get("expression") or "")
    if column is not None and re.match(r"\s*(=|!=|<|>|not\s+in|in\b|is\b|between\b|like\b|not\b)", text, re.IGNORECASE):
        text = f"{column} {text}"
    condition = arguments.get("condition")
    if condition is not None:
        extra = project.expression(condition)
        where = extra if where is None else And((where, extra))
    return holds(project.expression(text), where)


def _range_test(
    project: _Project, column: str | None, arguments: Mapping[str, Any], where: Expression | None
) -> Iterable[Statement]:
    low, high = (None if arguments.get(k) is None else project.term(arguments[k]) for k in ("min_value", "max_value"))
    strict = arguments.get("inclusive") is False
    subject = _column_of(project, column, arguments)
    return holds(between(subject, low, high, strict_low=strict, strict_high=strict), where)


def _combination(
    project: _Project, column: str | None, arguments: Mapping[str, Any], where: Expression | None
) -> Iterable[Statement]:
    terms = [_column_of(project, str(each), {}) for each in _listed(arguments, "combination_of_columns", "columns")]
    allowed = arguments.get("allowed_duplicates")
    if isinstance(allowed, int) and allowed > 0:
        names = [each.name for each in terms if isinstance(each, Column)]
        return grouped(Measure.ROWS, names, high=allowed + 1, where=where)
    return unique(terms, where)


def _ranges(
    project: _Project, column: str | None, arguments: Mapping[str, Any], where: Expression | None
) -> Iterable[Statement]:
    """Intervals that exclude each other, in each part; a gap between them where that is required."""
    gaps = str(arguments.get("gaps") or "allowed")
    if gaps == "not_allowed":
        raise ConstraintError("intervals that must follow each other without a gap")
    start, end = str(arguments.get("lower_bound_column")), str(arguments.get("upper_bound_column"))
    listed = arguments.get("partition_by") or []
    parts = [str(each).strip() for each in (listed if isinstance(listed, list) else str(listed).split(","))]
    op = Operator.LE if gaps == "required" else Operator.LT
    pairs = [Comparison(Column(name), Operator.EQ, Column(name, 2)) for name in parts if name]
    crossing = (Comparison(Column(start), op, Column(end, 2)), Comparison(Column(start, 2), op, Column(end)))
    order = Operator.LE if arguments.get("zero_length_range_allowed") else Operator.LT
    return (
        *holds(compared(Column(start), order, Column(end)), where),
        DenialConstraint(predicates=(*pairs, *crossing)),
    )


def _sequential(
    project: _Project, column: str | None, arguments: Mapping[str, Any], where: Expression | None
) -> Iterable[Statement]:
    subject = _column_of(project, column, arguments)
    part = str(arguments.get("datepart") or "")
    day = applied("days", Constant(date(1970, 1, 1)), subject)
    months = applied("add", applied("multiply", applied("year", subject), Constant(12)), applied("month", subject))
    term = {
        "": subject,
        "day": day,
        "hour": applied("multiply", day, Constant(24)),
        "month": months,
        "year": applied("year", subject),
    }.get(part)
    if term is None:
        raise ConstraintError(f"steps by {part}")
    interval = arguments.get("interval", 1)
    if interval != 1:
        term = applied("divide", term, Constant(interval))
    groups = tuple(str(each) for each in arguments.get("group_by_columns") or ())
    asked = None if where is None else as_term(where)
    return (GroupRule(measure=Measure.GAPLESS, term=term, per=groups, where=asked),)


def _not_empty(
    project: _Project, column: str | None, arguments: Mapping[str, Any], where: Expression | None
) -> Iterable[Statement]:
    subject = _column_of(project, column, arguments)
    trimmed = subject if arguments.get("trim_whitespace") is False else applied("trim", subject)
    return holds(compared(trimmed, Operator.NE, Constant("")), where)


_TESTS: dict[str, Test] = {
    "not_null": lambda p, c, a, w: not_null(_column_of(p, c, a), w),
    "is_null": lambda p, c, a, w: holds(null_test(_column_of(p, c, a)), w),
    "unique": lambda p, c, a, w: unique([_column_of(p, c, a)], w),
    "unique_where": lambda p, c, a, w: unique([_column_of(p, c, a)], w),
    "not_null_where": lambda p, c, a, w: not_null(_column_of(p, c, a), w),
    "accepted_values": lambda p, c, a, w: holds(in_values(_column_of(p, c, a), _values(p, a)), w),
    "not_accepted_values": lambda p, c, a, w: holds(Not(in_values(_column_of(p, c, a), _values(p, a))), w),
    "expression_is_true": _expression_test,
    "accepted_range": _range_test,
    "unique_combination_of_columns": _combination,
    "mutually_exclusive_ranges": _ranges,
    "sequential_values": _sequential,
    "not_empty_string": _not_empty,
    "at_least_one": lambda p, c, a, w: grouped(Measure.ROWS, (), low=1, where=Not(null_test(_column_of(p, c, a)))),
}

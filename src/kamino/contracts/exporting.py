"""Constraints for others to check: SQL, tests of dbt, quality rules of a data contract."""

from __future__ import annotations

from collections.abc import Callable

import yaml

from kamino.constraints import ConstraintClass, Constraints, DenialConstraint, classify
from kamino.constraints.analysis.classify import dependency_of
from kamino.constraints.group_rules import GroupRule, Measure
from kamino.constraints.language.expressions import And, Not, as_term
from kamino.constraints.language.printer import print_constraint, print_derivation, print_rule
from kamino.constraints.language.sql_text import sql_name, sql_term
from kamino.constraints.terms.canonical_terms import term_of
from kamino.constraints.terms.term import with_tuple
from kamino.constraints.tree import Comparison, NullTest, Operator, TermTest, swapped
from kamino.errors import ConstraintError

Exported = tuple[str, list[str]]


def exported(kind: str, rules: Constraints, table: str) -> Exported:
    """The text for the other side, and a line for each rule that it cannot say.

    Guarantees:
        What SQL says of rows is what is counted here.  [test_exported_checks_are_those_that_are_counted]
    """
    return EXPORTS[kind](rules, table)


def condition_of(constraint: DenialConstraint) -> str:
    """A rule on single rows as a condition of SQL that is not false where it holds.

    Raises:
        ConstraintError: a function of it has no name in SQL.
    """
    predicates = constraint.predicates
    return sql_term(as_term(Not(And(predicates) if len(predicates) > 1 else predicates[0])))


def _key_names(constraint: DenialConstraint) -> list[str] | None:
    if classify(constraint) is not ConstraintClass.KEY:
        return None
    return [predicate.columns[0].name for predicate in constraint.predicates]


def partial_key(constraint: DenialConstraint) -> tuple[list[str], str] | None:
    """The terms of a key over expressions or for some rows, and which rows; None for other rules on pairs."""
    across = [p for p in constraint.predicates if len({column.tuple for column in p.columns}) == 2]
    first = {p for p in constraint.predicates if {column.tuple for column in p.columns} == {1}}
    second = {swapped(p) for p in constraint.predicates if {column.tuple for column in p.columns} == {2}}
    terms = []
    for each in across:
        if not isinstance(each, Comparison | TermTest) or each.op is not Operator.EQ:
            return None
        if with_tuple(each.left, 1) != with_tuple(each.right, 1):
            return None
        terms.append(sql_term(with_tuple(each.left, 1)))
    if not terms or first != second:
        return None
    return terms, " AND ".join(sql_term(term_of(each)) for each in constraint.predicates if each in first)


def query_of(constraint: DenialConstraint, table: str) -> str:
    """A query of the rows, or pairs of rows, that break a rule."""
    if constraint.is_unary:
        return f"SELECT * FROM {sql_name(table)} WHERE NOT ({condition_of(constraint)})"
    dependency = dependency_of(constraint)
    if dependency is not None:
        left = ", ".join(sql_name(name) for name in sorted(dependency.left))
        known = " AND ".join(f"{sql_name(name)} IS NOT NULL" for name in sorted(dependency.left))
        return (
            f"SELECT {left} FROM {sql_name(table)} WHERE {known} GROUP BY {left} "
            f"HAVING COUNT(DISTINCT {sql_name(dependency.right)}) > 1"
        )
    names = _key_names(constraint)
    if names is not None:
        listed = ", ".join(map(sql_name, names))
        known = " AND ".join(f"{sql_name(name)} IS NOT NULL" for name in names)
        return f"SELECT {listed} FROM {sql_name(table)} WHERE {known} GROUP BY {listed} HAVING COUNT(*) > 1"
    key = partial_key(constraint)
    if key is not None:
        listed = ", ".join(key[0])
        known = " AND ".join([*(f"{term} IS NOT NULL" for term in key[0]), *([key[1]] if key[1] else [])])
        return f"SELECT {listed} FROM {sql_name(table)} WHERE {known} GROUP BY {listed} HAVING COUNT(*) > 1"
    raise ConstraintError("it compares rows of any kind with each other")


def _group_query(rule: GroupRule, table: str) -> str:
    per = ", ".join(map(sql_name, rule.per))
    where = "" if rule.where is None else f" FILTER (WHERE {sql_term(rule.where)})"
    functions = {Measure.ROWS: "COUNT(*)", Measure.SUM: "SUM({})", Measure.LEAST: "MIN({})", Measure.MOST: "MAX({})",
                 Measure.MEAN: "AVG({})", Measure.DISTINCT: "COUNT(DISTINCT {})"}  # fmt: skip
    if rule.measure not in functions:
        raise ConstraintError("numbers without a gap")
    measure = functions[rule.measure].format("" if rule.term is None else sql_term(rule.term)) + where
    tests = [f"{measure} < {rule.low}"] if rule.low is not None else []
    tests += [f"{measure} > {rule.high}"] if rule.high is not None else []
    known = " AND ".join(f"{sql_name(name)} IS NOT NULL" for name in rule.per)
    grouped = f" WHERE {known} GROUP BY {per}" if per else ""
    return f"SELECT {per or '1'} FROM {sql_name(table)}{grouped} HAVING {' OR '.join(tests)}"


def _queries(rules: Constraints, table: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Queries of what breaks rules, by the rules' text; and the rules that have none."""
    found: list[tuple[str, str]] = []
    left_out: list[str] = []
    for each in rules:
        try:
            found.append((print_constraint(each), query_of(each, table)))
        except ConstraintError as problem:
            left_out.append(f"{print_constraint(each)} ({problem.message})")
    for derivation in rules.derivations:
        text = print_derivation(derivation)
        try:
            name, term = sql_name(derivation.target), sql_term(derivation.term)
            found.append((text, f"SELECT * FROM {sql_name(table)} WHERE {name} IS DISTINCT FROM {term}"))
        except ConstraintError as problem:
            left_out.append(f"{text} ({problem.message})")
    for rule in rules.group_rules:
        try:
            if not isinstance(rule, GroupRule):
                raise ConstraintError("it speaks of three and more rows")
            found.append((print_rule(rule), _group_query(rule, table)))
        except ConstraintError as problem:
            left_out.append(f"{print_rule(rule)} ({problem.message})")
    return found, left_out


def _sql(rules: Constraints, table: str) -> Exported:
    lines: list[str] = []
    left_out: list[str] = []
    for each in rules:
        text = print_constraint(each)
        try:
            if not each.is_hard:
                raise ConstraintError("it is soft")
            key = None if each.is_unary or _key_names(each) is not None else partial_key(each)
            if key is not None:
                where = f" WHERE {key[1]}" if key[1] else ""
                lines.append(f"CREATE UNIQUE INDEX ON {sql_name(table)} ({', '.join(key[0])}){where};")
            else:
                lines.append(f"ALTER TABLE {sql_name(table)} {_added(each)};")
        except ConstraintError as problem:
            left_out.append(f"{text} ({problem.message})")
    left_out += [f"{print_rule(rule)} (a table declares no rule on groups)" for rule in rules.group_rules]
    for derivation in rules.derivations:
        name, term = sql_name(derivation.target), sql_term(derivation.term)
        lines.append(f"ALTER TABLE {sql_name(table)} ADD CHECK ({name} IS NOT DISTINCT FROM {term});")
    return "\n".join(lines) + "\n" * bool(lines), left_out


def _added(constraint: DenialConstraint) -> str:
    match constraint.predicates:
        case (NullTest(column=column, negated=False),):
            return f"ALTER COLUMN {sql_name(column.name)} SET NOT NULL"
    names = _key_names(constraint)
    if names is not None:
        return f"ADD UNIQUE ({', '.join(map(sql_name, names))})"
    if not constraint.is_unary:
        raise ConstraintError("a table declares no rule on pairs of rows but keys")
    return f"ADD CHECK ({condition_of(constraint)})"


def _dbt(rules: Constraints, table: str) -> Exported:
    """Tests of dbt itself where it has them; else dbt_utils' expression_is_true."""
    model: dict[str, object] = {"name": table}
    columns: dict[str, list[object]] = {}
    tests: list[object] = []
    left_out: list[str] = []
    for each in rules:
        severity = {} if each.is_hard else {"config": {"severity": "warn"}}
        names = _key_names(each)
        match each.predicates:
            case (NullTest(column=column, negated=False),):
                columns.setdefault(column.name, []).append({"not_null": severity} if severity else "not_null")
                continue
            case (Comparison(),) if names is not None and len(names) == 1:
                columns.setdefault(names[0], []).append({"unique": severity} if severity else "unique")
                continue
        try:
            if names is not None:
                tests.append({"dbt_utils.unique_combination_of_columns": {"combination_of_columns": names, **severity}})
            elif each.is_unary:
                tests.append({"dbt_utils.expression_is_true": {"expression": condition_of(each), **severity}})
            else:
                raise ConstraintError("dbt has no test of pairs of rows; write its query with kamino rules to odcs")
        except ConstraintError as problem:
            left_out.append(f"{print_constraint(each)} ({problem.message})")
    left_out += [f"{print_rule(rule)} (dbt has no test of groups)" for rule in rules.group_rules]
    for derivation in rules.derivations:
        expression = f"{sql_name(derivation.target)} IS NOT DISTINCT FROM {sql_term(derivation.term)}"
        tests.append({"dbt_utils.expression_is_true": {"expression": expression}})
    if tests:
        model["tests"] = tests
    model["columns"] = [{"name": name, "tests": listed} for name, listed in columns.items()]
    return yaml.safe_dump({"version": 2, "models": [model]}, sort_keys=False, allow_unicode=True), left_out


def _odcs(rules: Constraints, table: str) -> Exported:
    """Quality rules of the data contract standard: queries that count what breaks a rule."""
    found, left_out = _queries(rules, table)
    quality = [
        {"type": "sql", "description": text, "query": f"SELECT COUNT(*) FROM ({query}) AS broken", "mustBe": 0}
        for text, query in found
    ]
    document = {
        "apiVersion": "v3.0.2",
        "kind": "DataContract",
        "id": table,
        "version": "1.0.0",
        "status": "active",
        "schema": [{"name": table, "logicalType": "object", "quality": quality}],
    }
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True), left_out


EXPORTS: dict[str, Callable[[Constraints, str], Exported]] = {"sql": _sql, "dbt": _dbt, "odcs": _odcs}

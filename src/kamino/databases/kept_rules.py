"""Counting what a written database breaks: rules, keys that name no row, keys twice; in the tables as read back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from kamino.constraints import Constraints, count_violations
from kamino.constraints.tree import Column, Comparison, ConstantValue, NullTest, Predicate
from kamino.databases.family_layout import Layout
from kamino.databases.formula_lines import CompiledFormula, Joins, quoted
from kamino.databases.sql_checks import broken_query
from kamino.databases.table_rules import RowRule
from kamino.pipeline.plan.bound_schema import schema_types
from kamino.schema import Real
from kamino.schema.database import Role


@dataclass(frozen=True, kw_only=True)
class Broken:
    """How often each rule, foreign key and key is broken; by their texts."""

    rules: Mapping[str, int]
    orphans: Mapping[str, int]
    doubled: Mapping[str, int]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(sum(each.values()) for each in (self.rules, self.orphans, self.doubled))

    def lines(self) -> Iterator[str]:
        """What is broken, a line each."""
        for found in (self.rules, self.orphans, self.doubled):
            yield from (f"{text}: {count:,}" for text, count in found.items() if count)


def count_broken(layout: Layout, tables: Mapping[str, pa.Table]) -> Broken:
    """Count what tables break, private and public ones, with nothing but their values.

    Guarantees:
        It finds what brute force finds.  [test_broken_rules_are_counted]
    """
    import duckdb

    with duckdb.connect() as db:
        db.execute("set threads to 1")
        counter = _Counter(layout, {**layout.public, **tables}, db)
        return Broken(rules=counter.rules(), orphans=counter.orphans(), doubled=counter.doubled())


class _Counter:
    def __init__(self, layout: Layout, tables: Mapping[str, pa.Table], db: Any) -> None:
        self.layout, self.tables, self.db = layout, dict(tables), db
        self.database = layout.database
        for name, table in self.tables.items():
            db.register(f"_{name}", table)
            rows = (
                f"create table {quoted(name)} as select *, row_number() over () - 1 as __row from {quoted('_' + name)}"
            )
            db.execute(rows)
        for name in layout.database.private:
            self._own(name)

    def _own(self, name: str) -> None:
        """Give each row the number of its owner's, by the key as it was written."""
        owner = self.database[name].owner
        if owner is None:
            return
        same = " and ".join(f"c.{quoted(c)} = p.{quoted(p)}" for c, p in zip(owner.columns, owner.to, strict=True))
        self.db.execute(
            f"create or replace table {quoted(name)} as select c.*, p.__row as __owner from {quoted(name)} c "
            f"left join {quoted(owner.references)} p on {same}"
        )

    def _number(self, sql: str) -> int:
        return int(self.db.execute(f"select count(*) from ({sql})").fetchone()[0])

    def rules(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for text, count in self._counted():
            found[text] = found.get(text, 0) + count
        return found

    def _counted(self) -> Iterator[tuple[str, int]]:
        rules = self.layout.rules
        for row in rules.rows:
            yield row.text, self._number(self._row_query(row))
        for pair in rules.pairs:
            schema = self.database[pair.table].known
            (bound,) = Constraints((pair.constraint,)).bind(schema_types(schema))
            yield pair.text, count_violations(self.tables[pair.table], bound)
        for numbered in rules.numberings:
            own, column = quoted(numbered.table), quoted(numbered.column)
            yield (
                numbered.text,
                self._number(
                    f"select __owner from {own} group by __owner having min({column}) <> 1 "
                    f"or max({column}) <> count(*) "
                    f"or count(distinct {column}) <> count(*)"
                ),
            )
        for said in rules.cardinalities:
            counted = (
                f"select p.__row, count(c.__row) as n from {quoted(said.parent)} p left join {quoted(said.child)} c "
            )
            counted += "on c.__owner = p.__row group by 1"
            yield said.text, self._number(f"select 1 from ({counted}) where n < {said.least} or n > {said.most}")
        for each in rules.counts:
            child, wanted = quoted(each.child), f"p.{quoted(each.column)}"
            counted = "c.__row is not null" + (f" and ({_where(each.where)})" if each.where else "")
            yield (
                each.text,
                self._number(
                    f"select p.__row from {quoted(each.parent)} p left join {child} c on c.__owner = p.__row "
                    f"group by p.__row, {wanted} having count(*) filter (where {counted}) is distinct from {wanted}"
                ),
            )
        for check in rules.checks:
            yield check.text, self._number(broken_query(check, self.database))
        for compiled in self.layout.formulas:
            yield compiled.formula.text, self._number(self._formula_query(compiled))

    def _row_query(self, rule: RowRule) -> str:
        joins = Joins(self.database, rule.table)
        for name in rule.tables:
            joins.reach(name)
        where = " and ".join(_predicate(each) for each in rule.constraint.predicates)
        return f"select 1 from {quoted(rule.table)}{joins.sql()} where {where}"

    def _formula_query(self, compiled: CompiledFormula) -> str:
        formula = compiled.formula
        attribute = self.database[formula.table].known[formula.column]
        apart = "v.value is distinct from t.value"
        if isinstance(attribute, Real):
            half = f"{0.5001 * 10.0**-attribute.decimals!r} + 1e-9 * abs(v.value)"
            apart = f"(v.value is null) <> (t.value is null) or abs(v.value - t.value) > {half}"
        own = quoted(formula.table)
        values = compiled.query.replace("select ", f"select {own}.__row as r, ", 1)
        return (
            f"select 1 from ({values}) v join (select __row as r, {quoted(formula.column)} as value from {own}) t "
            f"on v.r = t.r where {apart}"
        )

    def orphans(self) -> dict[str, int]:
        found = {}
        for name in self.database.private:
            table = self.database[name]
            for key in table.foreign_keys:
                same = " and ".join(f"c.{quoted(c)} = p.{quoted(p)}" for c, p in zip(key.columns, key.to, strict=True))
                known = " and ".join(f"c.{quoted(c)} is not null" for c in key.columns)
                there = f"exists (select 1 from {quoted(key.references)} p where {same})"
                must = [c for c in key.columns if not table.known[c].nullable]
                null = " or ".join(f"c.{quoted(c)} is null" for c in must) or "false"
                found[str(key)] = self._number(
                    f"select 1 from {quoted(name)} c where ({known} and not {there}) or ({null})"
                )
        return found

    def doubled(self) -> dict[str, int]:
        found = {}
        for name, table in self.database.tables.items():
            if table.role is Role.PUBLIC or not table.key:
                continue
            names = ", ".join(map(quoted, table.key))
            null = " or ".join(f"{quoted(c)} is null" for c in table.key)
            twice = self._number(f"select {names} from {quoted(name)} group by {names} having count(*) > 1")
            found[f"{name}({', '.join(table.key)})"] = twice + self._number(
                f"select 1 from {quoted(name)} where {null}"
            )
        return found


def _where(text: str) -> str:
    """A condition of a count, on columns of the child, as DuckDB reads it."""
    import sqlglot
    from sqlglot import exp

    tree = sqlglot.parse_one(text, dialect="duckdb")
    for column in tree.find_all(exp.Column):
        column.set("table", exp.to_identifier("c"))
    return tree.sql(dialect="duckdb", identify=True)


def _predicate(predicate: Predicate) -> str:
    match predicate:
        case Comparison(left=left, op=op, right=right):
            other = _column(right) if isinstance(right, Column) else _literal(right.value)
            return f"{_column(left)} {'<>' if op.value == '!=' else op.value} {other}"
        case NullTest(column=column, negated=negated):
            return f"{_column(column)} is {'not ' if negated else ''}null"
        case _:
            raise AssertionError("arithmetic is a check of SQL")


def _column(column: Column) -> str:
    table, _, name = column.name.partition(".")
    return f"{quoted(table)}.{quoted(name)}"


def _literal(value: ConstantValue) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return format(value, "f") if isinstance(value, Decimal) else str(value)
        case datetime():
            return f"timestamp '{value.isoformat(sep=' ')}'"
        case date():
            return f"date '{value.isoformat()}'"
        case _:
            return "'" + value.replace("'", "''") + "'"

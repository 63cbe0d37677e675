"""Formulas of a database: columns that follow from others, from public rows, or from sums and counts of what hangs on.

lines.price = lines.quantity * parts.price
sum(lines.price * (1 - lines.discount)) = orders.total
orders.status = case when count(lines where status = 'O') = 0 then 'F' else 'P' end
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kamino.databases.table_rules import Formula, dotted
from kamino.errors import ConstraintError
from kamino.schema.database import Database, ForeignKey, Role
from kamino.schema.files.messages import did_you_mean

_OTHERS = re.compile(r"\s*(?:check|not|key|soft|weight)\b", re.I)
_AGGREGATE = re.compile(r"\b(sum|count|min|max|avg)\s*\(", re.I)
AGGREGATES = {"Sum": "sum", "Count": "count", "Min": "min", "Max": "max", "Avg": "avg"}
#: What an expression may be made of, as sqlglot names it.
ALLOWED = frozenset(
    [
        "Column",
        "Identifier",
        "Literal",
        "Boolean",
        "Null",
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Mod",
        "IntDiv",
        "Neg",
        "Paren",
        "Case",
        "If",
        "EQ",
        "NEQ",
        "LT",
        "LTE",
        "GT",
        "GTE",
        "And",
        "Or",
        "Not",
        "In",
        "Between",
        "Is",
        "Coalesce",
        "Round",
        "Abs",
        "Floor",
        "Ceil",
        "Cast",
        "TryCast",
        "DataType",
        "DataTypeParam",
        "Interval",
        "Var",
        "Concat",
        "DPipe",
        "Lower",
        "Upper",
        "Substring",
        "Greatest",
        "Least",
        "Star",
        "Tuple",
        "Date",
        "TsOrDsToDate",
        "Extract",
        "Year",
        "Month",
        "Day",
        "Null",
        "DPipe",
        "Pow",
        "Sqrt",
        "Sign",
    ]
) | frozenset(AGGREGATES)


def is_formula(text: str) -> bool:
    """Whether a line of rules is an equation of a column and an expression."""
    return _OTHERS.match(text) is None and "->" not in text and re.search(r"(?<![<>!=])=(?!=)", text) is not None


def read_formula(text: str, database: Database) -> Formula:
    """Read an equation, one side of which is a column.

    Raises:
        ConstraintError: it is no such equation, or reads what is not there.
    """
    equation = parsed(_with_where(text))
    if type(equation).__name__ != "EQ":
        raise ConstraintError(f"found {_kind(equation)}, expected an equation such as orders.total = sum(lines.net)")
    sides = [_bare(equation.left), _bare(equation.right)]
    targets = [(side, other) for side, other in (sides, sides[::-1]) if _is_column(side)]
    if not targets:
        raise ConstraintError("found no column alone on either side of =, expected one such as orders.total")
    (target, body), *_ = targets
    table, column = target.table, target.name
    _check_column(database, table, column)
    if database[table].role is Role.PUBLIC:
        raise ConstraintError(f"found a formula for the public table {table}, which stays as it is")
    if column in _names_of_keys(database, table):
        raise ConstraintError(f"found a formula for {table}.{column}, which is a key; expected another column")
    formula = Formula(table=table, column=column, sql=body.sql(dialect="duckdb"), text=text)
    compiled = compile_formula(formula, database)
    if dotted(table, column) in compiled.reads:
        raise ConstraintError(f"found {table}.{column} on both sides of =, expected it on one")
    return formula


@dataclass(frozen=True, kw_only=True)
class CompiledFormula:
    """A formula as a query of DuckDB that gives its value for each row of its table, in order; and what it reads.

    Tables are named as they are, with `__row` and, where they are owned, `__owner`: the number of the owner's row.
    """

    formula: Formula
    query: str
    reads: frozenset[str]
    tables: frozenset[str]


def compile_formula(formula: Formula, database: Database) -> CompiledFormula:
    """Write the query of a formula.

    Raises:
        ConstraintError: it reads a column that is not above, below or named by its table.
    """
    return _Compiler(formula, database).compiled()


class _Compiler:
    def __init__(self, formula: Formula, database: Database) -> None:
        self.formula, self.database = formula, database
        self.reads: set[str] = set()
        self.tables: set[str] = {formula.table}
        self.groups: list[str] = []

    def compiled(self) -> CompiledFormula:
        table = self.formula.table
        body = parsed(self.formula.sql)
        self._check(body)
        joins = Joins(self.database, table)
        value = self._with_groups(body, joins).sql(dialect="duckdb", identify=True)
        own = quoted(table)
        groups = "".join(f" left join ({group}) g{i} on g{i}.o = {own}.__row" for i, group in enumerate(self.groups))
        query = f"select {value} as value from {own}{joins.sql()}{groups} order by {own}.__row"
        self.tables |= set(joins.tables)
        return CompiledFormula(
            formula=self.formula, query=query, reads=frozenset(self.reads), tables=frozenset(self.tables)
        )

    def _check(self, body: Any) -> None:
        for node in body.walk():
            if type(node).__name__ not in ALLOWED:
                raise ConstraintError(
                    f"found {_kind(node)} in a formula, expected arithmetic, comparisons, case, sum, count, min, max "
                    "or avg of what hangs on the row"
                )

    def _with_groups(self, body: Any, joins: Joins) -> Any:
        """The expression with each aggregate as a column of a group, and every column found."""
        from sqlglot import exp

        def changed(node: Any) -> Any:
            if type(node).__name__ in AGGREGATES:
                return self._group(node)
            if isinstance(node, exp.Column):
                self._read(node, joins)
            return node

        copy = body.copy()
        if type(copy).__name__ in AGGREGATES:
            return self._group(copy)
        aggregates = [node for node in copy.walk() if type(node).__name__ in AGGREGATES]
        for node in aggregates:
            node.replace(self._group(node))
        for node in copy.find_all(exp.Column):
            if node.table not in {f"g{i}" for i in range(len(self.groups))}:
                changed(node)
        return copy

    def _group(self, node: Any) -> Any:
        """Add the grouped query of one aggregate; return the column that stands for it."""
        from sqlglot import exp

        names = [each.table for each in node.find_all(exp.Column) if each.table]
        alone = [each for each in node.find_all(exp.Column) if not each.table]
        counted = [each.name for each in alone if each.name in self.database.tables]
        children = set(self.database.children(self.formula.table))
        child = next((name for name in (*counted, *names) if name in children), None)
        if child is None:
            raise ConstraintError(
                f"found {node.sql()}, expected an aggregate of a table that is owned by {self.formula.table}: "
                f"{', '.join(sorted(children)) or 'it has none'}"
            )
        inside, joins = node.copy(), Joins(self.database, child)
        for column in list(inside.find_all(exp.Column)):
            if not column.table and column.name == child:
                column.replace(exp.Literal.number(1))
            elif not column.table:
                column.set("table", exp.to_identifier(child))
        for column in inside.find_all(exp.Column):
            self._read(column, joins)
        self.tables |= {*joins.tables, child}
        own, kind = quoted(child), AGGREGATES[type(node).__name__]
        value = inside.sql(dialect="duckdb", identify=True)
        self.groups.append(f"select {own}.__owner as o, {value} as a from {own}{joins.sql()} group by 1")
        found = exp.column("a", table=f"g{len(self.groups) - 1}")
        return exp.Coalesce(this=found, expressions=[exp.Literal.number(0)]) if kind in ("sum", "count") else found

    def _read(self, column: Any, joins: Joins) -> None:
        if not column.table:
            column.set("table", _identifier(self.formula.table))
        _check_column(self.database, column.table, column.name)
        joins.reach(column.table)
        if self.database[column.table].role is not Role.PUBLIC:
            self.reads.add(dotted(column.table, column.name))


class Joins:
    """How owners and public rows are joined to the rows of one table."""

    def __init__(self, database: Database, table: str) -> None:
        self.database, self.table = database, table
        self.tables: dict[str, str] = {}

    def reach(self, name: str) -> None:
        """Join a table, and those that lead to it."""
        if name == self.table or name in self.tables:
            return
        path = self.database.path(self.table)
        if name in path:
            for child, owner in list(zip(path[1:], path[:-1], strict=True))[::-1]:
                on = f"{quoted(owner)}.__row = {quoted(child)}.__owner"
                self.tables.setdefault(owner, f" left join {quoted(owner)} on {on}")
                if owner == name:
                    return
        key = self.key_to(name, path)
        self.reach(key.table)
        pairs = zip(key.columns, key.to, strict=True)
        on = " and ".join(f"{quoted(key.table)}.{quoted(c)} = {quoted(name)}.{quoted(t)}" for c, t in pairs)
        self.tables[name] = f" left join {quoted(name)} on {on}"

    def key_to(self, name: str, path: tuple[str, ...]) -> ForeignKey:
        """The one foreign key from a table of the path to a public one."""
        keys = [k for each in path for k in self.database[each].foreign_keys if k.references == name]
        if len(keys) != 1 or self.database[name].role is not Role.PUBLIC:
            raise ConstraintError(
                f"found {name} in a formula of {self.table}, expected a table above it, or one it names by one key"
            )
        return keys[0]

    def sql(self) -> str:
        """The joins, after the table itself."""
        return "".join(self.tables.values())


def evaluate(compiled: CompiledFormula, tables: Mapping[str, Any]) -> Any:
    """The values of a formula, one for each row of its table, as an Arrow array."""
    import duckdb

    with duckdb.connect() as db:
        db.execute("set threads to 1")
        for name in compiled.tables:
            db.register(name, tables[name])
        return db.sql(compiled.query).to_arrow_table().column("value").combine_chunks()


def in_order(formulas: tuple[Formula, ...], database: Database) -> tuple[CompiledFormula, ...]:
    """The formulas, each after those that it reads.

    Raises:
        ConstraintError: they go in a circle.
    """
    left = [compile_formula(each, database) for each in formulas]
    done: list[CompiledFormula] = []
    while left:
        open_ = {dotted(each.formula.table, each.formula.column) for each in left}
        ready = [each for each in left if not each.reads & open_]
        if not ready:
            raise ConstraintError(
                f"found formulas that go in a circle: {'; '.join(each.formula.text for each in left)}"
            )
        done += ready
        left = [each for each in left if each not in ready]
    return tuple(done)


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def _identifier(name: str) -> Any:
    from sqlglot import exp

    return exp.to_identifier(name, quoted=True)


def _with_where(text: str) -> str:
    """The line with `sum(x where c)` as `sum(case when c then x end)`."""
    place = 0
    while (match := _AGGREGATE.search(text, place)) is not None:
        end = _closing(text, match.end())
        inside = text[match.end() : end]
        parts = re.split(r"\bwhere\b", inside, maxsplit=1, flags=re.I)
        if len(parts) == 2:
            inside = f"case when {parts[1].strip()} then {parts[0].strip()} end"
            text = f"{text[: match.end()]}{inside}{text[end:]}"
        place = match.end()
    return text


def _closing(text: str, start: int) -> int:
    depth = 1
    for place in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    raise ConstraintError("found an opening parenthesis that is never closed; add the closing one")


def parsed(text: str) -> Any:
    """The tree of an expression of SQL."""
    import sqlglot
    from sqlglot.errors import SqlglotError

    try:
        return sqlglot.parse_one(text, dialect="duckdb")
    except SqlglotError:
        raise ConstraintError("found a line that is neither a rule nor a formula; see docs/databases.md") from None


def _bare(node: Any) -> Any:
    while type(node).__name__ == "Paren":
        node = node.this
    return node


def _is_column(node: Any) -> bool:
    return type(node).__name__ == "Column" and bool(node.table)


def _kind(node: Any) -> str:
    return type(node).__name__.lower()


def _check_column(database: Database, table: str, column: str) -> None:
    if table not in database.tables:
        known = database.tables
        raise ConstraintError(f"found no table {table!r}.{did_you_mean(table, known)} Tables: {', '.join(known)}")
    schema = database[table].schema
    if schema is not None and column not in schema:
        raise ConstraintError(f"found no column {column!r} in {table}.{did_you_mean(column, schema)}")


def _names_of_keys(database: Database, table: str) -> Iterator[str]:
    yield from database[table].key if len(database[table].key) == 1 else ()
    for key in database[table].foreign_keys:
        yield from key.columns

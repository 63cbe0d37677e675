"""Files of SQL: tables, keys, checks, unique indexes, domains, enums, generated columns, references.

Statements that declare nothing of rows (indexes that are not unique, views, grants, data, functions) are passed over.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial

import sqlglot
from sqlglot import exp

from kamino.constraints.derivation import Derivation
from kamino.constraints.language.parser import Statement
from kamino.constraints.language.sql_expressions import SqlReader
from kamino.constraints.terms.term import Term
from kamino.constraints.tree import Column, Comparison, Constant, DenialConstraint, Operator
from kamino.constraints.types import ValueType
from kamino.contracts.contract import Contract, Draft
from kamino.contracts.rule_forms import between, holds, in_values, length_between, not_null, unique
from kamino.contracts.sql_statements import SqlStatement, split_statements
from kamino.errors import ConstraintError
from kamino.limits import cut

_DECLARES = re.compile(r"^\s*(CREATE|ALTER)\b", re.IGNORECASE)
_PASSED_OVER = re.compile(
    r"^\s*(CREATE|ALTER)\s+(OR\s+REPLACE\s+)?(TEMP(ORARY)?\s+)?(MATERIALIZED\s+)?"
    r"(VIEW|FUNCTION|PROCEDURE|TRIGGER|SEQUENCE|SCHEMA|EXTENSION|DATABASE|ROLE|USER|PUBLICATION|EVENT|AGGREGATE|"
    r"OPERATOR|RULE|POLICY|COLLATION|CAST|DEFAULT|LANGUAGE|INDEX|SERVER|TEXT|SUBSCRIPTION|STATISTICS)\b",
    re.IGNORECASE,
)
_DOMAIN = re.compile(r"^\s*CREATE\s+DOMAIN\s+(?P<name>[\w.\"]+)\s+(AS\s+)?(?P<rest>.*)$", re.IGNORECASE | re.DOTALL)
_VIRTUAL = re.compile(r"(GENERATED\s+ALWAYS\s+AS\s*\(.*?\))\s*VIRTUAL\b", re.IGNORECASE | re.DOTALL)
_UNIQUE_KEY = re.compile(r"\bUNIQUE\s+KEY\s*\(", re.IGNORECASE)
_NULLS_SAME = re.compile(r"\s+NULLS\s+NOT\s+DISTINCT\b", re.IGNORECASE)
_SILENT = (
    exp.DefaultColumnConstraint,
    exp.CommentColumnConstraint,
    exp.AutoIncrementColumnConstraint,
    exp.CollateColumnConstraint,
    exp.CharacterSetColumnConstraint,
    exp.OnUpdateColumnConstraint,
    exp.EncodeColumnConstraint,
    exp.GeneratedAsIdentityColumnConstraint,
    exp.IndexColumnConstraint,
    exp.InvisibleColumnConstraint,
    exp.TitleColumnConstraint,
)


@dataclass
class _File:
    """What is known while a file is read: its domains and enums come before or after the tables that use them."""

    draft: Draft
    dialect: str | None
    today: date | None
    enums: dict[str, tuple[str, ...]] = field(default_factory=dict)
    domains: dict[str, exp.ColumnDef] = field(default_factory=dict)
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def reader(self, table: str) -> SqlReader:
        known = {name: kind for name, kind in self.draft.tables.get(table, {}).items() if kind is not None}
        return SqlReader(self.dialect, self.today, known)


def contract_from_sql(
    sql: str, *, source: str = "<sql>", dialect: str | None = None, today: date | None = None
) -> Contract:
    """Read all that a file of SQL declares of its tables.

    Guarantees:
        Keys of ALTER TABLE and CREATE UNIQUE INDEX are found.  [test_sql_files_are_read_whole]
        A statement that cannot be read spoils no other.  [test_sql_files_are_read_whole]
    """
    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    dialect = dialect or guess_dialect(sql)
    file = _File(Draft(source), dialect, today)
    statements = [each for each in split_statements(sql) if _DECLARES.match(each.text)]
    for types in (True, False):
        for statement in statements:
            if _is_type(statement) == types and not _is_silent(statement):
                _read(file, statement)
    return file.draft.contract()


def guess_dialect(sql: str) -> str | None:
    """The dialect that a file is written in, by what only that one writes."""
    marks = {
        "mysql": r"ENGINE\s*=|`\w+`|AUTO_INCREMENT",
        "tsql": r"\[\w+\]\.\[\w+\]|^\s*GO\s*$|NVARCHAR|IDENTITY\s*\(",
        "postgres": r"::\w|USING btree|\bONLY\b|\$\$|pg_catalog|\bserial\b|\bjsonb\b|\btimestamptz\b|~ '|~ E'",
    }
    for name, mark in marks.items():
        if re.search(mark, sql, re.IGNORECASE | re.MULTILINE):
            return name
    return "postgres"


def _is_type(statement: SqlStatement) -> bool:
    return re.match(r"^\s*CREATE\s+(TYPE|DOMAIN)\b", statement.text, re.IGNORECASE) is not None


def _is_silent(statement: SqlStatement) -> bool:
    is_unique = re.match(r"^\s*CREATE\s+UNIQUE\b", statement.text, re.IGNORECASE) is not None
    return not is_unique and _PASSED_OVER.match(statement.text) is not None


def _parsed(text: str, dialect: str | None) -> exp.Expr:
    try:
        found = sqlglot.parse_one(text, read=dialect)
    except (sqlglot.errors.SqlglotError, RecursionError) as problem:
        first = (getattr(problem, "errors", None) or [{}])[0]
        raise ConstraintError(f"it cannot be read ({first.get('description', 'syntax error')})") from None
    if isinstance(found, exp.Command):
        raise ConstraintError("it cannot be read")
    return found


def _read(file: _File, statement: SqlStatement) -> None:
    text, line = statement.text, statement.line
    try:
        domain = _DOMAIN.match(text)
        if domain is not None:
            _domain(file, domain)
            return
        nulls_same = _NULLS_SAME.search(text) is not None and text[:20].upper().startswith("CREATE UNIQUE")
        text = _UNIQUE_KEY.sub("UNIQUE (", _VIRTUAL.sub(r"\1 STORED", text))
        found = _parsed(_NULLS_SAME.sub("", text) if nulls_same else text, file.dialect)
        match found:
            case exp.Create(kind="TYPE"):
                _enum(file, found)
            case exp.Create(this=exp.Schema()):
                _table(file, found, text, line)
            case exp.Create(kind="INDEX") if found.args.get("unique"):
                _index(file, found, text, line, nulls_same=nulls_same)
            case exp.Alter():
                _alter(file, found, text, line)
    except ConstraintError as problem:
        file.draft.leave("", text, problem.message, line)


def _name(table: exp.Expr) -> str:
    found = table.find(exp.Table)
    return str((found or table).name)


def _enum(file: _File, found: exp.Create) -> None:
    kind = found.args.get("expression")
    values = tuple(str(each.this) for each in getattr(kind, "expressions", None) or [] if isinstance(each, exp.Literal))
    if values:
        file.enums[_name(found).lower()] = values


def _domain(file: _File, match: re.Match[str]) -> None:
    text = f"CREATE TABLE d (value {match.group('rest')})"
    schema = _parsed(text, file.dialect).this
    (definition,) = schema.expressions
    file.domains[match.group("name").split(".")[-1].strip('"').lower()] = definition


def value_type_of(kind: exp.Expr | None) -> ValueType | None:
    """The type of values of a column of SQL; None for what is none of those that can be compared here."""
    if kind is None or not isinstance(kind, exp.DataType):
        return None
    if kind.is_type("boolean", "bit"):
        return ValueType.BOOLEAN
    if kind.is_type(*exp.DataType.NUMERIC_TYPES):
        return ValueType.NUMBER
    if kind.is_type("timestamptz", "timestampltz"):
        return ValueType.ZONED
    if kind.is_type("date", "date32"):
        return ValueType.DATE
    if kind.is_type("timestamp", "datetime", "datetime2", "smalldatetime", "timestamp_ns", "timestampntz"):
        return ValueType.TIMESTAMP
    if kind.is_type(*exp.DataType.TEXT_TYPES, "uuid", "enum", "inet"):
        return ValueType.TEXT
    return None


def _table(file: _File, created: exp.Create, text: str, line: int) -> None:
    table, schema = _name(created), created.this
    for definition in schema.expressions:
        if isinstance(definition, exp.ColumnDef):
            kind = definition.args.get("kind")
            named = _named_type(kind)
            known = value_type_of(kind)
            if named in file.enums:
                known = ValueType.TEXT
            elif named in file.domains:
                known = value_type_of(file.domains[named].args.get("kind"))
            file.draft.column(table, definition.name, known)
    for definition in schema.expressions:
        here = _line_of(definition, text, line)
        if isinstance(definition, exp.ColumnDef):
            _column(file, table, definition, here)
        elif not isinstance(definition, (exp.Identifier, exp.Column, exp.LikeProperty, exp.IndexColumnConstraint)):
            for part in definition.expressions if isinstance(definition, exp.Constraint) else [definition]:
                _of_table(file, table, part, here)
    for inherited in created.find_all(exp.InheritsProperty):
        file.draft.leave(table, inherited.sql(dialect=file.dialect), "tables that inherit are not followed", line)


def _line_of(definition: exp.Expr, text: str, line: int) -> int:
    """The line of a column or constraint, by where its name stands first."""
    name = definition.name if isinstance(definition, (exp.ColumnDef, exp.Constraint)) else ""
    found = re.search(rf"^\W*(?:CONSTRAINT\s+)?[\"`\[]?{re.escape(name)}\b", text, re.MULTILINE | re.IGNORECASE)
    return line if not name or found is None else line + text.count("\n", 0, found.end())


def _named_type(kind: exp.Expr | None) -> str:
    if not isinstance(kind, exp.DataType):
        return ""
    named = kind.args.get("kind")
    text = named.name if isinstance(named, exp.Expr) else str(named or "")
    return text.split(".")[-1].strip('"').lower()


def _column(file: _File, table: str, definition: exp.ColumnDef, line: int) -> None:
    name, kind = definition.name, definition.args.get("kind")
    column = Column(name)
    shown = f"{name} {kind.sql(dialect=file.dialect) if kind is not None else ''}".strip()
    named = _named_type(kind)
    values = file.enums.get(named) or _enum_values(kind)
    if values:
        file.draft.add(table, lambda: holds(in_values(column, values)), f"{shown} (enum)", line)
    if named in file.domains:
        _column_constraints(file, table, file.domains[named], name, line, f"{shown}: ")
        _sized(file, table, column, file.domains[named].args.get("kind"), f"{shown}", line)
    elif not values:
        _sized(file, table, column, kind, shown, line)
    _column_constraints(file, table, definition, name, line, f"{name}: ")


def _enum_values(kind: exp.Expr | None) -> tuple[str, ...]:
    if isinstance(kind, exp.DataType) and kind.is_type("enum"):
        return tuple(str(each.this) for each in kind.expressions if isinstance(each, exp.Literal))
    return ()


def _sized(file: _File, table: str, column: Column, kind: exp.Expr | None, text: str, line: int) -> None:
    """`varchar(20)` and `numeric(5, 2)` as the rules that they are."""
    if not isinstance(kind, exp.DataType):
        return
    sizes = [int(str(each.this.this)) for each in kind.expressions if isinstance(each, exp.DataTypeParam)
             and str(each.this.this).isdigit()]  # fmt: skip
    if kind.is_type(*exp.DataType.TEXT_TYPES) and len(sizes) == 1:
        file.draft.add(table, lambda: holds(length_between(column, None, sizes[0])), text, line)
    elif kind.is_type("decimal") and sizes:
        limit = Constant(10 ** (sizes[0] - (sizes[1] if len(sizes) > 1 else 0)))
        low = Constant(-int(str(limit.value)))
        file.draft.add(table, lambda: holds(between(column, low, limit, strict_low=True, strict_high=True)), text, line)


def _key_of(column: Column) -> tuple[DenialConstraint, ...]:
    return (*not_null(column), *unique([column]))


def _column_constraints(file: _File, table: str, definition: exp.ColumnDef, name: str, line: int, prefix: str) -> None:
    for constraint in definition.constraints:
        kind = constraint.kind if isinstance(constraint, exp.ColumnConstraint) else None
        text = prefix + constraint.sql(dialect=file.dialect)
        column = Column(name)
        match kind:
            case exp.PrimaryKeyColumnConstraint():
                file.keys[table] = (name,)
                file.draft.add(table, partial(_key_of, column), text, line)
            case exp.UniqueColumnConstraint():
                file.draft.add(table, partial(unique, [column]), text, line)
            case exp.NotNullColumnConstraint():
                if not kind.args.get("allow_null"):
                    file.draft.add(table, partial(not_null, column), text, line)
            case exp.CheckColumnConstraint():
                check = kind.this.copy()
                if prefix != f"{name}: ":
                    check = _of_value(check, name)
                file.draft.add(table, _check(file, table, check), text, line)
            case exp.Reference():
                _reference(file, table, (name,), kind, text, line)
            case exp.ComputedColumnConstraint() | exp.GeneratedAsRowColumnConstraint():
                file.draft.add(table, _generated(file, table, name, kind), text, line)
            case _ if isinstance(kind, _SILENT) or kind is None:
                continue
            case _:
                file.draft.leave(table, text, "it is not known here", line)


def _of_value(check: exp.Expr, name: str) -> exp.Expr:
    """The check of a domain, of the column that has it."""
    return check.transform(
        lambda node: exp.column(name) if isinstance(node, exp.Column) and node.name.lower() == "value" else node
    )


def _check(file: _File, table: str, node: exp.Expr) -> Callable[[], Iterable[Statement]]:
    return lambda: check_statements(node, file.reader(table))


def check_statements(node: exp.Expr, reader: SqlReader) -> tuple[DenialConstraint, ...]:
    """The constraints of one CHECK; one of parts joined by AND is each of them."""
    return holds(reader.expression(node))


def _generated(file: _File, table: str, name: str, kind: exp.Expr) -> Callable[[], Iterable[Statement]]:
    return lambda: (Derivation(name, file.reader(table).term(kind.this)),)


def _reference(file: _File, table: str, columns: Sequence[str], kind: exp.Expr, text: str, line: int) -> None:
    target = kind.this
    there = [each.name for each in target.expressions] if isinstance(target, exp.Schema) else []
    file.draft.refer(table, columns, _name(target), there, text, line)


def _names(parts: Iterable[exp.Expr]) -> tuple[str, ...]:
    return tuple(each.this.name if isinstance(each, exp.Ordered) else each.name for each in parts)


def _of_table(file: _File, table: str, part: exp.Expr, line: int) -> None:
    text = part.sql(dialect=file.dialect)
    match part:
        case exp.PrimaryKey():
            names = _names(part.expressions)
            file.keys[table] = names
            file.draft.add(
                table,
                lambda: (*(s for n in names for s in not_null(Column(n))), *unique([Column(n) for n in names])),
                text,
                line,
            )
        case exp.UniqueColumnConstraint():
            columns = part.this.expressions if isinstance(part.this, exp.Schema) else [part.this]
            nulls_same = bool(part.args.get("nulls"))
            listed = [Column(name) for name in _names(columns)]
            file.draft.add(table, lambda: unique(listed, nulls_equal=nulls_same), text, line)
        case exp.CheckColumnConstraint() | exp.Check():
            file.draft.add(table, _check(file, table, part.this), text, line)
        case exp.ForeignKey():
            reference = part.args.get("reference")
            if reference is None:
                file.draft.leave(table, text, "it names no table", line)
            else:
                _reference(file, table, _names(part.expressions), reference, text, line)
        case exp.ExcludeColumnConstraint():
            file.draft.add(table, lambda: _excluded(file, table, part), text, line)
        case exp.IndexColumnConstraint():
            return
        case _:
            file.draft.leave(table, text, "it is not known here", line)


def _excluded(file: _File, table: str, part: exp.Expr) -> Iterable[Statement]:
    """`EXCLUDE (room WITH =, tsrange(start, end) WITH &&)`: equal rooms, and no intervals that overlap."""
    predicates: list[Comparison] = []
    for each in part.this.args.get("columns") or []:
        column, sign = each.this, str(each.args["op"].name if hasattr(each.args["op"], "name") else each.args["op"])
        node = column.this if isinstance(column, exp.Ordered) else column
        if sign == "=" and isinstance(node, exp.Column):
            predicates.append(Comparison(Column(node.name), Operator.EQ, Column(node.name, 2)))
        elif sign == "&&" and isinstance(node, exp.Anonymous) and len(node.expressions) >= 2:
            start, end = (item.name for item in node.expressions[:2])
            predicates.append(Comparison(Column(start), Operator.LT, Column(end, 2)))
            predicates.append(Comparison(Column(start, 2), Operator.LT, Column(end)))
        else:
            raise ConstraintError(f"found '{cut(node.sql())} WITH {sign}', expected columns WITH = and ranges WITH &&")
    return (DenialConstraint(predicates=tuple(predicates)),)


def _index(file: _File, created: exp.Create, text: str, line: int, *, nulls_same: bool) -> None:
    index = created.this
    table = _name(index.args["table"])
    parameters = index.args["params"]
    where = parameters.args.get("where")

    def make() -> Iterable[Statement]:
        reader = file.reader(table)
        columns = parameters.args.get("columns") or []
        terms: list[Term] = [reader.term(each.this if isinstance(each, exp.Ordered) else each) for each in columns]
        asked = None if where is None else reader.expression(where.this)
        return unique(terms, asked, nulls_equal=nulls_same)

    file.draft.add(table, make, text, line)


def _alter(file: _File, found: exp.Alter, text: str, line: int) -> None:
    table = _name(found.this)
    for action in found.args.get("actions") or []:
        match action:
            case exp.AddConstraint():
                for constraint in action.expressions:
                    for part in constraint.expressions if isinstance(constraint, exp.Constraint) else [constraint]:
                        _of_table(file, table, part, line)
            case exp.AlterColumn() if action.args.get("allow_null") is False:
                column = Column(action.name)
                file.draft.add(table, partial(not_null, column), action.sql(dialect=file.dialect), line)
            case exp.ColumnDef():
                file.draft.column(table, action.name, value_type_of(action.args.get("kind")))
                _column(file, table, action, line)
            case exp.Drop() | exp.AlterRename() | exp.AlterColumn() | exp.RenameColumn():
                continue
            case exp.Command() | exp.AttachOption():
                continue
            case _ if _says_nothing(action):
                continue
            case _:
                file.draft.leave(table, action.sql(dialect=file.dialect), "it is not known here", line)


def _says_nothing(action: exp.Expr) -> bool:
    return isinstance(action, (exp.SetProperty, exp.AlterSet, exp.Var, exp.Property, exp.AddPartition))

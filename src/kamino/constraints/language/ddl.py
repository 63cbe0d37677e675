"""Constraints out of `CREATE TABLE`: primary key, unique, not null and check."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import sqlglot
from sqlglot import exp

from kamino.constraints.language.expressions import Not
from kamino.constraints.language.parser import denials
from kamino.constraints.language.sql_expressions import SqlReader
from kamino.constraints.tree import Column, Comparison, DenialConstraint, NullTest, Operator, Place
from kamino.errors import ConstraintError
from kamino.limits import MAX_CONSTRAINTS, MAX_TEXT_BYTES, cut


def parse_ddl(sql: str, *, dialect: str | None = None, source: str = "<ddl>") -> tuple[DenialConstraint, ...]:
    """The constraints of the one `CREATE TABLE` statement in `sql`, in the order of its text.

    Raises:
        ConstraintError: a CHECK that is no constraint here, or no such statement.
    """
    return _within_limits(sql, dialect, Place(source, 1, 1), None)


def split_ddl(
    sql: str, *, dialect: str | None = None, source: str = "<ddl>"
) -> tuple[tuple[DenialConstraint, ...], tuple[str, ...]]:
    """The same, and what of the statement is not taken over, as it stands there.

    Guarantees:
        Nothing that the table is declared to keep is passed over in silence.  [test_ddl_lists_what_is_not_taken_over]
    """
    left_out: list[str] = []
    found = _within_limits(sql, dialect, Place(source, 1, 1), left_out)
    return found, tuple(left_out)


def parse_check(text: str, *, dialect: str | None = None, source: str = "<check>") -> tuple[DenialConstraint, ...]:
    """The constraints of one CHECK, as a database writes its expression.

    >>> from kamino.constraints import print_constraint
    >>> print_constraint(*parse_check("((size)::text = ANY (ARRAY['S'::text, 'M'::text]))", dialect="postgres"))
    "not (size != 'S' and size != 'M')"
    """
    return parse_ddl(f"CREATE TABLE checked (CHECK ({text}))", dialect=dialect, source=source)


def _within_limits(
    sql: str, dialect: str | None, place: Place, left_out: list[str] | None
) -> tuple[DenialConstraint, ...]:
    if len(sql) > MAX_TEXT_BYTES // 16:
        raise _beyond(f"found more than {MAX_TEXT_BYTES // 16} characters of SQL", place)
    try:
        found = _read(sql, dialect, place, left_out)
    except RecursionError:
        raise _beyond("found expressions too deep within each other", place) from None
    if len(found) > MAX_CONSTRAINTS:
        raise _beyond(f"found more than {MAX_CONSTRAINTS} constraints", place)
    return found


def _beyond(found: str, place: Place) -> ConstraintError:
    return ConstraintError(f"{found}, expected fewer", source=place.source, line=place.line, column=place.column)


def _read(sql: str, dialect: str | None, place: Place, left_out: list[str] | None) -> tuple[DenialConstraint, ...]:
    """The constraints; with `left_out`, what is none is put there instead of raised or passed over."""
    table = _single_table(sql, dialect, place.source)
    found: list[DenialConstraint] = []
    for definition in table.expressions:
        is_column = isinstance(definition, exp.ColumnDef)
        name = f"{definition.name}: " if is_column else ""
        parts = [each for each in definition.constraints if _says_much(each)] if is_column else _parts(definition)
        for part in parts:
            try:
                made = list(_of_column(definition.name, part, place) if is_column else _of_table(part, place))
            except ConstraintError:
                if left_out is None:
                    raise
                made = []
            if not made and left_out is not None:
                left_out.append(f"{name}{cut(part.sql(dialect=dialect))}")
            found += made
    return tuple(dict.fromkeys(found))


def _says_much(constraint: exp.Expr) -> bool:
    """Whether it says anything of rows: that nulls are allowed, and comments, say nothing."""
    kind = constraint.kind if isinstance(constraint, exp.ColumnConstraint) else None
    allows = isinstance(kind, exp.NotNullColumnConstraint) and bool(kind.args.get("allow_null"))
    return not allows and not isinstance(kind, exp.CommentColumnConstraint)


def _parts(definition: exp.Expr) -> list[exp.Expr]:
    return list(definition.expressions) if isinstance(definition, exp.Constraint) else [definition]


def _single_table(sql: str, dialect: str | None, source: str) -> exp.Schema:
    try:
        logging.getLogger("sqlglot").setLevel(logging.ERROR)
        statements = [statement for statement in sqlglot.parse(sql, read=dialect) if statement is not None]
    except sqlglot.errors.SqlglotError as problem:
        first = (getattr(problem, "errors", None) or [{}])[0]
        raise ConstraintError(
            f"found SQL that cannot be read ({first.get('description', 'syntax error')}), expected CREATE TABLE",
            source=source,
            line=int(first.get("line") or 1),
            column=int(first.get("col") or 1),
        ) from None
    tables = [s for s in statements if isinstance(s, exp.Create) and isinstance(s.this, exp.Schema)]
    if len(tables) != 1:
        raise ConstraintError(
            f"found {len(tables)} CREATE TABLE statements with columns, expected one; pass the statement of one table",
            source=source,
            line=1,
            column=1,
        )
    schema = tables[0].this
    assert isinstance(schema, exp.Schema)
    return schema


def _of_column(name: str, constraint: exp.Expr, place: Place) -> Iterator[DenialConstraint]:
    # What is no constraint of a column, such as IN of a procedure's argument, has no kind.
    kind = constraint.kind if isinstance(constraint, exp.ColumnConstraint) else None
    if isinstance(kind, exp.PrimaryKeyColumnConstraint):
        yield _not_null(name, place)
        yield _key((name,), place)
    elif isinstance(kind, exp.UniqueColumnConstraint):
        yield _key((name,), place)
    elif isinstance(kind, exp.NotNullColumnConstraint) and not kind.args.get("allow_null"):
        yield _not_null(name, place)
    elif isinstance(kind, exp.CheckColumnConstraint):
        yield from _check(kind.this, place)


def _of_table(part: exp.Expr, place: Place) -> Iterator[DenialConstraint]:
    if isinstance(part, exp.PrimaryKey):
        names = tuple(column.name for column in part.expressions)
        yield from (_not_null(name, place) for name in names)
        yield _key(names, place)
    elif isinstance(part, exp.UniqueColumnConstraint):
        columns = part.this.expressions if isinstance(part.this, exp.Schema) else [part.this]
        yield _key(tuple(column.name for column in columns), place)
    elif isinstance(part, (exp.CheckColumnConstraint, exp.Check)):
        yield from _check(part.this, place)


def _not_null(name: str, place: Place) -> DenialConstraint:
    return DenialConstraint(predicates=(NullTest(Column(name)),), place=place)


def _key(names: tuple[str, ...], place: Place) -> DenialConstraint:
    predicates = tuple(Comparison(Column(name, 1), Operator.EQ, Column(name, 2)) for name in names)
    return DenialConstraint(predicates=predicates, place=place)


def _check(node: exp.Expr, place: Place) -> Iterator[DenialConstraint]:
    try:
        for predicates in denials(Not(SqlReader().expression(node))):
            yield DenialConstraint(predicates=predicates, place=place)
    except ConstraintError as problem:
        raise ConstraintError(
            f"found '{cut(node.sql())}' in a CHECK: {problem.message}; leave this CHECK out or write it otherwise",
            source=place.source,
            line=place.line,
            column=place.column,
        ) from None

"""Queries that give the rows that break a rule, as the rules that they are: tests of dbt, checks of Soda and ODCS."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import sqlglot
from sqlglot import exp

from kamino.constraints.group_rules import GroupRule, Measure
from kamino.constraints.language.expressions import And, Expression, Not, as_term
from kamino.constraints.language.parser import Statement
from kamino.constraints.language.sql_expressions import COMPARISONS, SqlReader
from kamino.constraints.terms.term import Term
from kamino.constraints.tree import Column, Constant, Operator
from kamino.contracts.rule_forms import never, null_test, unique
from kamino.errors import ConstraintError
from kamino.limits import cut

_MOST_STEPS = 30


@dataclass(frozen=True)
class QueryRule:
    """The table that a query reads and what must hold in it for the query to give no row."""

    table: str
    statements: tuple[Statement, ...]


def rule_of_query(sql: str, *, dialect: str | None = None, today: date | None = None) -> QueryRule:
    """The rule that a query of broken rows states.

    Raises:
        ConstraintError: it reads several tables, or computes what no rule of rows or groups here says.
    """
    try:
        found = sqlglot.parse_one(sql, read=dialect)
    except sqlglot.errors.SqlglotError:
        raise ConstraintError("its query cannot be read") from None
    if not isinstance(found, exp.Select):
        raise ConstraintError("its query is no single SELECT")
    reader = SqlReader(dialect, today)
    return _rule(_flat(found), reader)


def _flat(query: exp.Select) -> exp.Select:
    """The query with the queries it is made of put into it, where each only filters one table."""
    named = {each.alias: each.this for each in query.ctes}
    query = query.copy()
    query.set("with_", None)
    query.set("with", None)
    for _ in range(_MOST_STEPS):
        source = query.args.get("from_") or query.args.get("from")
        inner = source.this if source is not None else None
        if isinstance(inner, exp.Table) and inner.name in named:
            inside = named[inner.name]
        elif isinstance(inner, exp.Subquery):
            inside = inner.this
        else:
            return query
        if not isinstance(inside, exp.Select):
            raise ConstraintError("its query joins the rows of several queries")
        named |= {each.alias: each.this for each in inside.ctes}
        query = _merged(query, inside.copy())
    raise ConstraintError("its query is made of too many queries")


def _merged(outer: exp.Select, inner: exp.Select) -> exp.Select:
    plain_inner = not any(inner.args.get(part) for part in ("group", "having", "joins", "distinct", "limit", "qualify"))
    names = {each.alias_or_name: each.unalias() for each in inner.expressions if not each.is_star}
    if plain_inner:
        replaced = outer.transform(
            lambda node: names[node.name].copy() if isinstance(node, exp.Column) and node.name in names else node
        )
        assert isinstance(replaced, exp.Select)
        source = inner.args.get("from_") or inner.args.get("from")
        if source is None:
            raise ConstraintError("its query reads no table")
        key = "from_" if "from_" in replaced.args or "from_" in inner.args else "from"
        replaced.set(key, source)
        where = inner.args.get("where")
        if where is not None:
            replaced = replaced.where(where.this, copy=False)
        return replaced
    plain_outer = not any(outer.args.get(part) for part in ("group", "having", "joins", "distinct", "limit"))
    if not plain_outer or inner.args.get("joins"):
        raise ConstraintError("its query groups what is grouped already")
    where = outer.args.get("where")
    if where is not None:
        condition = where.this.transform(
            lambda node: names[node.name].copy() if isinstance(node, exp.Column) and node.name in names else node
        )
        inner = inner.having(condition, copy=False)
    return inner


def _rule(query: exp.Select, reader: SqlReader) -> QueryRule:
    source = query.args.get("from_") or query.args.get("from")
    if source is None or not isinstance(source.this, exp.Table) or query.args.get("joins"):
        raise ConstraintError("its query reads several tables")
    if query.find(exp.Subquery) or query.find(exp.Exists) or query.find(exp.Window) or query.args.get("qualify"):
        raise ConstraintError("its query compares rows with each other in a way that is not known here")
    where = query.args.get("where")
    condition = None if where is None else reader.expression(where.this)
    group, having = query.args.get("group"), query.args.get("having")
    if group is None and having is None:
        if query.find(exp.AggFunc) and not _is_count(query):
            raise ConstraintError("its query computes a statistic")
        if condition is None:
            raise ConstraintError("its query gives every row")
        return QueryRule(source.this.name, never(condition))
    if having is None:
        raise ConstraintError("its query gives every group")
    per = _per(query, group)
    return QueryRule(source.this.name, _having(having.this, per, condition, reader))


def _is_count(query: exp.Select) -> bool:
    return len(query.expressions) == 1 and isinstance(query.expressions[0].unalias(), exp.Count)


def _per(query: exp.Select, group: exp.Expr | None) -> tuple[str, ...]:
    names = []
    for each in group.expressions if group is not None else []:
        if isinstance(each, exp.Literal) and not each.is_string:
            each = query.expressions[int(str(each.this)) - 1].unalias()
        if not isinstance(each, exp.Column):
            raise ConstraintError("its groups are by a term")
        names.append(each.name)
    return tuple(names)


def _having(node: exp.Expr, per: tuple[str, ...], where: Expression | None, reader: SqlReader) -> tuple[Statement, ...]:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Or):
        return tuple(rule for part in node.flatten() for rule in _having(part, per, where, reader))
    if type(node) not in COMPARISONS:
        raise ConstraintError(f"its groups are asked for '{cut(node.sql())}'")
    op = COMPARISONS[type(node)]
    bound = reader.term(node.args["expression"])
    if not isinstance(bound, Constant) or isinstance(bound.value, bool) or not isinstance(bound.value, int | Decimal):
        raise ConstraintError("its groups are compared with no number")
    measure, term, asked = _measure(node.this, reader)
    where = asked if where is None else where if asked is None else And((where, asked))
    if measure is Measure.ROWS and op is Operator.GT and bound.value == 1 and per:
        return unique([Column(name) for name in per], where)
    low, high = _allowed(op, bound.value, whole=measure in (Measure.ROWS, Measure.DISTINCT))
    condition = None if where is None else as_term(where)
    return (GroupRule(measure=measure, term=term, per=per, where=condition, low=low, high=high),)


def _allowed(op: Operator, value: int | Decimal, *, whole: bool) -> tuple[int | Decimal | None, int | Decimal | None]:
    """The bounds of what is not `op value`."""
    step = 1 if whole and isinstance(value, int) else 0
    match op:
        case Operator.NE:
            return value, value
        case Operator.GT:
            return None, value
        case Operator.LT:
            return value, None
        case Operator.GE if step:
            return None, value - 1
        case Operator.LE if step:
            return value + 1, None
    raise ConstraintError("its groups must lie strictly beyond a bound")


def _measure(node: exp.Expr, reader: SqlReader) -> tuple[Measure, Term | None, Expression | None]:
    while isinstance(node, exp.Paren):
        node = node.this
    match node:
        case exp.Count(this=exp.Star()) | exp.Count(this=exp.Literal()):
            return Measure.ROWS, None, None
        case exp.Count(this=exp.Distinct() as distinct) if len(distinct.expressions) == 1:
            return Measure.DISTINCT, reader.term(distinct.expressions[0]), None
        case exp.Count(this=exp.Column() as column):
            return Measure.ROWS, None, Not(null_test(reader.term(column)))
        case exp.Sum():
            return Measure.SUM, reader.term(node.this), None
        case exp.Min():
            return Measure.LEAST, reader.term(node.this), None
        case exp.Max():
            return Measure.MOST, reader.term(node.this), None
        case exp.Avg():
            return Measure.MEAN, reader.term(node.this), None
    raise ConstraintError(f"its groups are asked for '{cut(node.sql())}'")

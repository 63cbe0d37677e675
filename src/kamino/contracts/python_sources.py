"""Rules that stand in Python: models and schemas of pandera, constraints of SDV. The code is read, never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from kamino.constraints.language.expressions import And, Expression, Not, Or
from kamino.constraints.language.parser import Statement
from kamino.constraints.terms.canonical_terms import applied, compared
from kamino.constraints.terms.term import Term
from kamino.constraints.tree import Column, Operator
from kamino.contracts.contract import Contract, Draft
from kamino.contracts.gx_expectations import type_of_name
from kamino.contracts.pandera_checks import check_statements
from kamino.contracts.rule_forms import holds, not_null, unique, value_of
from kamino.contracts.sdv_constraints import SDV_CLASSES, sdv_statements
from kamino.errors import ConstraintError
from kamino.limits import cut

_OPERATORS: dict[type[ast.cmpop], Operator] = {
    ast.Eq: Operator.EQ,
    ast.NotEq: Operator.NE,
    ast.Lt: Operator.LT,
    ast.LtE: Operator.LE,
    ast.Gt: Operator.GT,
    ast.GtE: Operator.GE,
}
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Mod: "mod",
}


def contract_from_python(text: str, *, source: str = "<python>", table: str = "data") -> Contract:
    """Read what a Python file declares with pandera or SDV.

    Guarantees:
        A check that is not carried over is listed with its line.  [test_python_sources_are_read]
    """
    draft = Draft(source)
    try:
        module = ast.parse(text)
    except SyntaxError as problem:
        draft.leave(table, source, f"it cannot be read ({problem.msg})", problem.lineno or 0)
        return draft.contract()
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            _model(draft, node)
        elif isinstance(node, ast.Dict):
            _columns(draft, table, node)
        elif isinstance(node, ast.Call) and _name(node.func) in SDV_CLASSES:
            _sdv(draft, table, node)
    return draft.contract()


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _sdv(draft: Draft, table: str, node: ast.Call) -> None:
    named = {each.arg: _literal(each.value) for each in node.keywords if each.arg}
    given = [_literal(each) for each in node.args]
    where = str(named.get("table_name") or table)
    text = ast.unparse(node)
    draft.add(where, lambda: sdv_statements(_name(node.func), given, named), text, node.lineno)


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        if isinstance(node, ast.List | ast.Tuple) and any(isinstance(each, ast.Starred) for each in node.elts):
            return _unpacked(node)
        return node


def _unpacked(node: ast.List | ast.Tuple) -> Any:
    """`[*"abc"]` as its letters."""
    found: list[Any] = []
    for each in node.elts:
        if isinstance(each, ast.Starred) and isinstance(each.value, ast.Constant) and isinstance(each.value.value, str):
            found += list(each.value.value)
        elif isinstance(each, ast.Constant):
            found.append(each.value)
        else:
            return node
    return found


def _model(draft: Draft, node: ast.ClassDef) -> None:
    """A class of fields, as `DataFrameModel` has them."""
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            called = part.value if isinstance(part.value, ast.Call) and _name(part.value.func) == "Field" else None
            if called is None and part.value is not None:
                continue
            draft.column(node.name, part.target.id, type_of_name([ast.unparse(part.annotation)]))
            facts = {} if called is None else {k.arg: _literal(k.value) for k in called.keywords if k.arg}
            name = str(facts.get("alias") or part.target.id)
            _facts(draft, node.name, name, facts, part.lineno, nullable=bool(facts.get("nullable", False)))
        elif isinstance(part, ast.FunctionDef) and part.decorator_list:
            _method(draft, node.name, part)


def _method(draft: Draft, table: str, node: ast.FunctionDef) -> None:
    """A check that is a method with one `return` of an expression of the frame's columns."""
    names = {_name(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list}
    if not names & {"dataframe_check", "check"}:
        return
    returned = node.body[-1]
    arguments = [each.arg for each in node.args.args]
    frame = arguments[-1] if arguments else ""
    text = f"{node.name}: {ast.unparse(returned)}"
    subject = None
    if "check" in names:
        decorated = next(d for d in node.decorator_list if _name(d.func if isinstance(d, ast.Call) else d) == "check")
        fields = [_literal(each) for each in decorated.args] if isinstance(decorated, ast.Call) else []
        subject = str(fields[0]) if len(fields) == 1 and isinstance(fields[0], str) else None

    def make() -> Iterable[Statement]:
        if not isinstance(returned, ast.Return) or returned.value is None:
            raise ConstraintError("a check that is code")
        return holds(_Python(frame, subject).expression(returned.value))

    draft.add(table, make, text, node.lineno)


def _columns(draft: Draft, table: str, node: ast.Dict) -> None:
    """A mapping of names to `Column(...)`, as `DataFrameSchema` has it; or of SDV's constraints as mappings."""
    literal = _literal(node)
    if isinstance(literal, Mapping) and isinstance(literal.get("constraint_class"), str):
        draft.add(
            str(literal.get("table_name") or table),
            lambda: sdv_statements(str(literal["constraint_class"]), [], literal.get("constraint_parameters") or {}),
            ast.unparse(node),
            node.lineno,
        )
        return
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(value, ast.Call) and _name(value.func) == "Column":
            _column(draft, table, str(key.value), value)


def _column(draft: Draft, table: str, name: str, node: ast.Call) -> None:
    kind = ast.unparse(node.args[0]) if node.args else ""
    draft.column(table, name, type_of_name([kind]))
    named = {each.arg: each.value for each in node.keywords if each.arg}
    checks = [*node.args[1:], *([named["checks"]] if "checks" in named else [])]
    facts = {key: _literal(value) for key, value in named.items() if key in ("unique", "nullable")}
    _facts(draft, table, name, facts, node.lineno, nullable=bool(facts.get("nullable", False)))
    for check in [c for each in checks for c in (each.elts if isinstance(each, ast.List | ast.Tuple) else [each])]:
        draft.add(table, partial(_check, name, check), f"{name}: {ast.unparse(check)}", check.lineno)


def _check(name: str, node: ast.expr) -> Iterable[Statement]:
    if not isinstance(node, ast.Call):
        raise ConstraintError("a check that is code")
    kind = _name(node.func)
    if kind == "Check":
        inner = node.args[0] if node.args else None
        if not isinstance(inner, ast.Lambda) or len(inner.args.args) != 1:
            raise ConstraintError("a check that is code")
        return holds(_Python("", name, inner.args.args[0].arg).expression(inner.body))
    values = [_literal(each) for each in node.args]
    named = {each.arg: _literal(each.value) for each in node.keywords if each.arg}
    return check_statements(name, kind, values, named)


_BESIDE = ("nullable", "unique", "coerce", "alias", "regex", "title", "description", "check_name", "raise_warning",
           "default", "dtype_kwargs", "metadata", "ignore_na", "n_failure_cases")  # fmt: skip


def _facts(draft: Draft, table: str, name: str, facts: Mapping[str, Any], line: int, *, nullable: bool) -> None:
    soft = facts.get("raise_warning") is True
    column = Column(name)
    if not nullable:
        draft.add(table, lambda: not_null(column), f"{name}: nullable=False", line, soft=soft)
    if facts.get("unique") is True:
        draft.add(table, lambda: unique([column]), f"{name}: unique=True", line, soft=soft)
    for key, value in facts.items():
        if key not in _BESIDE:
            text = f"{name}: {key}={value if not isinstance(value, ast.AST) else ast.unparse(value)}"
            given = dict(value) if isinstance(value, Mapping) else {}
            listed = [] if given else [value]
            make = partial(check_statements, name, key, listed, given)
            draft.add(table, make, cut(text), line, soft=soft)


class _Python:
    """Expressions of Python over a frame's columns, or over one column, element by element."""

    def __init__(self, frame: str, subject: str | None, element: str = "") -> None:
        self._frame, self._subject, self._element = frame, subject, element or frame

    def expression(self, node: ast.expr) -> Expression:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=rights):
                sides = [left, *rights]
                parts = [self._compared(a, op, b) for a, op, b in zip(sides, ops, rights, strict=False)]
                return And(tuple(parts)) if len(parts) > 1 else parts[0]
            case ast.BoolOp(op=ast.And(), values=values):
                return And(tuple(self.expression(each) for each in values))
            case ast.BoolOp(op=ast.Or(), values=values):
                return Or(tuple(self.expression(each) for each in values))
            case ast.BinOp(op=ast.BitAnd(), left=left, right=right):
                return And((self.expression(left), self.expression(right)))
            case ast.BinOp(op=ast.BitOr(), left=left, right=right):
                return Or((self.expression(left), self.expression(right)))
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=inner):
                return Not(self.expression(inner))
            case ast.Call(
                func=ast.Attribute(value=value, attr=("gt" | "ge" | "lt" | "le" | "eq" | "ne") as name), args=[other]
            ):
                op = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "=", "ne": "!="}[name]
                return compared(self.term(value), Operator(op), self.term(other))
            case ast.Call(func=ast.Attribute(attr="select"), args=[inner]):
                return self.expression(inner)
        raise ConstraintError("a check that is code")

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Expression:
        if isinstance(op, ast.In | ast.NotIn):
            from kamino.contracts.rule_forms import in_values

            values = _literal(right)
            if not isinstance(values, list | tuple | set):
                raise ConstraintError("a check that is code")
            test = in_values(self.term(left), list(values))
            return test if isinstance(op, ast.In) else Not(test)
        if type(op) not in _OPERATORS:
            raise ConstraintError("a check that is code")
        return compared(self.term(left), _OPERATORS[type(op)], self.term(right))

    def term(self, node: ast.expr) -> Term:
        match node:
            case ast.Name(id=name) if self._subject is not None and name == self._element:
                return Column(self._subject)
            case ast.Constant(value=value):
                return value_of(value)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return applied("negate", self.term(inner))
            case ast.BinOp(op=op, left=left, right=right) if type(op) in _ARITHMETIC:
                return applied(_ARITHMETIC[type(op)], self.term(left), self.term(right))
            case ast.Subscript(slice=ast.Constant(value=str() as name)):
                return Column(name)
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner == self._frame:
                return Column(name)
            case ast.Call(func=ast.Attribute(attr="col"), args=[ast.Constant(value=str() as name)]):
                return Column(name)
            case ast.Call(func=ast.Name(id="col"), args=[ast.Constant(value=str() as name)]):
                return Column(name)
            case ast.Call(func=ast.Name(id="len"), args=[inner]):
                return applied("length", self.term(inner))
            case ast.Call(func=ast.Name(id="abs"), args=[inner]):
                return applied("abs", self.term(inner))
            case ast.Call(func=ast.Attribute(value=ast.Attribute(value=inner, attr="str"), attr="len")):
                return applied("length", self.term(inner))
        raise ConstraintError("a check that is code")


def looks_like_rules(text: str) -> bool:
    """Whether a Python file declares anything that is read here."""
    return re.search(r"pandera|\bpa\.|sdv|" + "|".join(SDV_CLASSES), text) is not None

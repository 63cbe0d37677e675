"""Boolean expressions over predicates, and their disjunctive normal form."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from kamino.constraints.terms.canonical_terms import compared, is_true, operator_of, term_of
from kamino.constraints.terms.term import Apply, Term
from kamino.constraints.tree import Column, Comparison, Constant, NullTest, Operator, Predicate, TermTest
from kamino.errors import ConstraintError

MAX_ALTERNATIVES = 256


@dataclass(frozen=True)
class And:
    """All parts hold."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Or:
    """Some part holds."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Not:
    """The part is false; where it is unknown because of a null, so is this."""

    part: Expression


Expression = And | Or | Not | Comparison | NullTest | TermTest
Alternatives = tuple[tuple[Predicate, ...], ...]


def alternatives(expression: Expression) -> Alternatives:
    """The conjunctions of which at least one holds exactly where `expression` is true.

    Guarantees:
        True rows are the same under three-valued logic.  [test_alternatives_keep_truth]
    """
    found = _expand(expression, negated=False)
    possible = tuple(dict.fromkeys(each for each in found if not _never(each)))
    return possible or found


def _never(predicates: tuple[Predicate, ...]) -> bool:
    """Whether a conjunction asks an attribute to be null, and to have a value or compare with something as well."""
    null = {p.column for p in predicates if isinstance(p, NullTest) and not p.negated}
    known = {column for p in predicates if not isinstance(p, NullTest) for column in _strict_columns(p)}
    known |= {p.column for p in predicates if isinstance(p, NullTest) and p.negated}
    return bool(null & known)


def _strict_columns(predicate: Predicate) -> tuple[Column, ...]:
    return predicate.columns if isinstance(predicate, Comparison) else ()


def _expand(expression: Expression, *, negated: bool) -> Alternatives:
    match expression:
        case Not(part=part):
            return _expand(part, negated=not negated)
        case And(parts=parts) | Or(parts=parts):
            expanded = [_expand(part, negated=negated) for part in parts]
            if isinstance(expression, Or) != negated:
                return _limited([alternative for part in expanded for alternative in part])
            return _combine(expanded)
        case Comparison(left=left, op=op, right=right):
            return ((Comparison(left, op.negated if negated else op, right),),)
        case NullTest(column=column, negated=was):
            return ((NullTest(column, was != negated),),)
        case TermTest(left=left, op=op, right=right):
            return ((_settled(TermTest(left, op.negated if negated else op, right)),),)


def _settled(test: TermTest) -> Predicate:
    """A negated null test of a term is never unknown, so it is kept as a test that is true."""
    match test:
        case TermTest(left=Apply(function="not", arguments=(inner,)), op=op, right=Constant(value=True)):
            return _settled(TermTest(inner, op.negated, test.right))
        case _:
            return test


def as_term(expression: Expression) -> Term:
    """The expression as one term of three-valued logic, in length proportional to its own."""
    match expression:
        case Not(part=part):
            inner = as_term(part)
            return (
                inner.arguments[0] if isinstance(inner, Apply) and inner.function == "not" else Apply("not", (inner,))
            )
        case Comparison(left=left, op=Operator.EQ, right=Constant(value=True)):
            return left
        case Or(parts=parts) if (listed := _list_of_values(parts)) is not None:
            return listed
        case And(parts=parts) | Or(parts=parts):
            name = "and" if isinstance(expression, And) else "or"
            made = [as_term(part) for part in parts]
            flat = [a for each in made for a in (each.arguments if _is(each, name) else (each,))]  # type: ignore[union-attr]
            return Apply(name, tuple(flat))
        case _:
            return term_of(expression)


def _is(term: Term, name: str) -> bool:
    return isinstance(term, Apply) and term.function == name


def _list_of_values(parts: tuple[Expression, ...]) -> Term | None:
    """`a in (...)` where all parts say that one column equals a constant."""
    values, columns = [], set()
    for part in parts:
        match part:
            case Comparison(left=left, op=Operator.EQ, right=Constant() as right):
                columns.add(left)
                values.append(right)
            case _:
                return None
    return Apply("in", (columns.pop(), *values)) if len(columns) == 1 and len(values) > 1 else None


def expression_of(term: Term) -> Expression:
    """What a term of logic says, as an expression: the other way of `as_term`."""
    match term:
        case Column():
            return Comparison(term, Operator.EQ, Constant(True))
        case Apply(function="and", arguments=parts):
            return And(tuple(expression_of(part) for part in parts))
        case Apply(function="or", arguments=parts):
            return Or(tuple(expression_of(part) for part in parts))
        case Apply(function="not", arguments=(part,)):
            return Not(expression_of(part))
        case Apply(function="is_null", arguments=(Column() as column,)):
            return NullTest(column)
        case Apply(function="in", arguments=(Column() as column, *values)):
            return Or(tuple(Comparison(column, Operator.EQ, each) for each in values))  # type: ignore[arg-type]
        case Apply(function=name, arguments=(left, right)) if (op := operator_of(name)) is not None:
            return compared(left, op, right)
        case _:
            return is_true(term)


def _combine(parts: list[Alternatives]) -> Alternatives:
    size = 1
    for part in parts:
        size *= len(part)
        if size > MAX_ALTERNATIVES:
            raise _too_many()
    return _limited([sum(choice, start=()) for choice in product(*parts)])


def _limited(found: list[tuple[Predicate, ...]]) -> Alternatives:
    if len(found) > MAX_ALTERNATIVES:
        raise _too_many()
    return tuple(tuple(dict.fromkeys(alternative)) for alternative in found)


def _too_many() -> ConstraintError:
    return ConstraintError(
        f"found an expression with more than {MAX_ALTERNATIVES} alternatives once 'or' is multiplied out; "
        "split it into several constraints"
    )

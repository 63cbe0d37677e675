"""Tests of terms become columns: what a term is in each row is computed once, and then counted as columns are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kamino.constraints.language.term_text import print_term
from kamino.constraints.terms.evaluation import compared, values_of
from kamino.constraints.terms.exact import Numbers, on_one_scale
from kamino.constraints.terms.term import Term, with_tuple
from kamino.constraints.tree import Column, Comparison, Constant, DenialConstraint, Operator, Predicate, TermTest

if TYPE_CHECKING:
    from kamino.constraints.counting.ranks import RankedTable

TRUE = Constant(True)


def lowered(table: RankedTable, constraint: DenialConstraint) -> DenialConstraint:
    """The constraint on columns only, of which those that stand for terms are added to the table.

    Guarantees:
        Violations are those of the terms.  [test_terms_are_counted_exactly]
    """
    if not constraint.has_terms:
        return constraint
    return constraint.with_predicates(tuple(lowered_predicate(table, each) for each in constraint.predicates))


def lowered_predicate(table: RankedTable, predicate: Predicate) -> Predicate:
    """One predicate on columns only."""
    if not isinstance(predicate, TermTest):
        return predicate
    tuples = sorted({column.tuple for column in predicate.columns})
    if len(tuples) < 2:
        return Comparison(Column(_truths(table, predicate), tuples[0] if tuples else 1), Operator.EQ, TRUE)
    left, right = _ranked_together(table, predicate.left, predicate.right)
    first = predicate.left.columns[0].tuple
    second = predicate.right.columns[0].tuple
    return Comparison(Column(left, first), predicate.op, Column(right, second))


def _truths(table: RankedTable, test: TermTest) -> str:
    """The column that says where a test of one row is true."""
    one = TermTest(with_tuple(test.left, 1), test.op, with_tuple(test.right, 1))
    name = f"{print_term(one.left)} {one.op.value} {print_term(one.right)}"

    def make() -> Any:
        columns = table.columns({column.name for column in one.columns})
        return compared(values_of(one.left, columns), one.op, values_of(one.right, columns))

    return table.add_column(name, make)


def _ranked_together(table: RankedTable, left: Term, right: Term) -> tuple[str, str]:
    """Columns that compare as the two terms do, in any two rows."""
    left, right = with_tuple(left, 1), with_tuple(right, 1)
    texts = print_term(left), print_term(right)
    made: dict[str, Any] = {}

    def make(side: int) -> Any:
        if not made:
            columns = table.columns({column.name for term in (left, right) for column in term.columns})
            made["sides"] = _comparable(values_of(left, columns), values_of(right, columns))
        return made["sides"][side]

    names = [f"{text} beside {other}" for text, other in (texts, texts[::-1])]
    return table.add_column(names[0], lambda: make(0)), table.add_column(names[1], lambda: make(1))


def _comparable(left: Any, right: Any) -> tuple[Any, Any]:
    if not (isinstance(left, Numbers) and isinstance(right, Numbers)):
        # A column without a single value compares with anything, and is never equal.
        sides = [pa.nulls(len(each), pa.string()) if isinstance(each, Numbers) else each for each in (left, right)]
        return sides[0], sides[1]
    first, second, below = on_one_scale(left, right)
    if isinstance(below, int):
        values = np.concatenate([first, second])
    else:
        parts = [[each.fraction(row) or 0 for row in range(len(each))] for each in (left, right)]
        values = np.array([*parts[0], *parts[1]], dtype=object)
    if values.dtype == object:
        values = np.unique(values, return_inverse=True)[1] if len(values) else values.astype(np.int64)
    ends = len(first)
    one, other = values[:ends].astype(np.int64), values[ends:].astype(np.int64)
    return pa.array(one, mask=~left.valid), pa.array(other, mask=~right.valid)

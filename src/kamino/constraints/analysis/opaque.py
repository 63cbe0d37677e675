"""Tests of terms as comparisons of columns of their own, for reasoning that knows columns and constants.

What follows from that is true of the terms as well: a term has one value in a row, and where it is compared with truth,
it is not null. That two terms have something to do with each other is not seen.
"""

from __future__ import annotations

from functools import lru_cache

from kamino.constraints.language.term_text import print_term
from kamino.constraints.terms.term import Apply, Term
from kamino.constraints.tree import Column, Comparison, Constant, NullTest, Predicate, TermTest

MARK = "= "
"""Before the text of a term that stands for a column. A column of that name is no harm: the term's text differs."""


def opaque(predicate: Predicate) -> Comparison | NullTest:
    """A test of terms as a comparison of columns that stand for them; other predicates as they are."""
    if not isinstance(predicate, TermTest):
        return predicate
    left, right = _side(predicate.left), _side(predicate.right)
    if isinstance(left, Column):
        return Comparison(left, predicate.op, right)
    assert isinstance(right, Column), "a test of terms reads a column"
    return Comparison(right, predicate.op.mirrored, left)


@lru_cache(maxsize=4096)
def _side(term: Term) -> Column | Constant:
    if not isinstance(term, Apply):
        return term
    columns = term.columns
    return Column(MARK + print_term(term), columns[0].tuple) if columns else Column(MARK + print_term(term))

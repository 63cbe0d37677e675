"""Refusing what cannot hold together, before anything is spent on it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb, inf

from kamino.constraints import DenialConstraint, print_constraint
from kamino.errors import SamplingError
from kamino.sampling.codes.comparing import Judge
from kamino.sampling.feasible.existence import Answer, find_contradictions, find_table

# Up to this many sets are tried for the smallest one; beyond, one from which nothing can be left out is named.
_MAX_SETS = 400


def refuse_unsatisfiable(judge: Judge, constraints: Sequence[DenialConstraint], num_rows: int) -> float:
    """Raise a `SamplingError` if no table of `num_rows` rows satisfies the hard constraints.

    Returns up to how many rows that is so: `num_rows`, or any number where copies of a row are a table.

    Guarantees:
        What is refused has no solution; the set named has none either.  [test_refused_sets_are_unsatisfiable]
    """
    hard = [c for c in constraints if c.is_hard]
    found = find_table(judge, hard, num_rows, with_rows=False)
    if found.answer is Answer.NO:
        raise unsatisfiable(judge, hard, num_rows)
    return inf if found.any_size else num_rows


def unsatisfiable(judge: Judge, hard: Sequence[DenialConstraint], num_rows: int) -> SamplingError:
    """Return the error that names a smallest set without a solution."""
    named = smallest_clash(judge, hard, num_rows)
    texts = "; ".join(print_constraint(constraint) for constraint in named)
    what = "this constraint" if len(named) == 1 else "these constraints together"
    if all(constraint.is_unary for constraint in named):
        return SamplingError(
            f"no row over the schema's domains satisfies {what}: {texts}. "
            "Widen a domain, let an attribute be null, or drop or soften a constraint."
        )
    rows = f"{num_rows} {'row' if num_rows == 1 else 'rows'}"
    return SamplingError(
        f"no table of {rows} over the schema's domains satisfies {what}: {texts}. "
        "Ask for fewer rows, widen a domain, or drop or soften a constraint."
    )


def smallest_clash(judge: Judge, hard: Sequence[DenialConstraint], num_rows: int) -> tuple[DenialConstraint, ...]:
    """Return a smallest subset that no table satisfies; with very many constraints, one that cannot be thinned out."""
    known = find_contradictions(judge, hard)

    def is_impossible(some: Sequence[DenialConstraint]) -> bool:
        return find_table(judge, some, num_rows, contradictions=known, with_rows=False).answer is Answer.NO

    kept = list(hard)
    for constraint in list(kept):
        fewer = [c for c in kept if c is not constraint]
        if is_impossible(fewer):
            kept = fewer
    for size in range(1, len(kept)):
        if comb(len(hard), size) > _MAX_SETS:
            break
        for group in combinations(hard, size):
            if is_impossible(group):
                return group
    return tuple(kept)

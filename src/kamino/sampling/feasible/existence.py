"""Whether any table of a given size satisfies a set of hard constraints; and such a table, where one is found."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kamino.constraints import ConstraintClass, DenialConstraint, classify
from kamino.constraints.analysis.closure import determined
from kamino.constraints.analysis.contradictory import find_contradictory
from kamino.constraints.analysis.findings import Question
from kamino.sampling.codes.comparing import Codes, Judge, Mask
from kamino.sampling.feasible.clique import find_clique
from kamino.sampling.feasible.row_search import FoundRows, find_rows

# A graph of more rows than this is not searched.
_MAX_VERTICES = 3000
# A number of values that is never too small, for attributes that may be null: nulls do not clash.
_ENDLESS = 1 << 62


class Answer(enum.Enum):
    """Whether something exists."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, eq=False)
class Witness:
    """The answer, with rows over the constrained attributes where it is yes; `any_size` if it is for any number."""

    answer: Answer
    columns: dict[str, Codes]
    any_size: bool = False


def find_table(
    judge: Judge,
    constraints: Sequence[DenialConstraint],
    num_rows: int,
    *,
    contradictions: Sequence[frozenset[DenialConstraint]] = (),
    with_rows: bool = True,
) -> Witness:
    """Look for a table of `num_rows` rows that satisfies hard constraints.

    If some row may stand beside its own copy, copies of it are a table of any size. Otherwise all rows differ, and a
    table is a set of rows no two of which clash. `contradictions` are sets of checks that are known to contradict.
    Without `with_rows`, one row stands for a table of copies.

    Guarantees:
        A table it gives satisfies the constraints; "no" is never wrong.  [test_existence_agrees_with_brute_force]
        Whether a table exists is found without making it.  [test_planning_does_not_grow_with_the_rows]
    """
    if num_rows == 0 or not constraints:
        return Witness(answer=Answer.YES, columns={}, any_size=not constraints)
    if any(each.issubset(constraints) for each in contradictions):
        return Witness(answer=Answer.NO, columns={})
    repeatable = find_rows(judge, constraints, repeatable=num_rows > 1)
    if repeatable.num_rows:
        chosen = np.full(num_rows if with_rows else 1, repeatable.num_rows // 2, dtype=np.int64)
        return Witness(answer=Answer.YES, columns=repeatable.take(chosen), any_size=num_rows > 1)
    # What a row can be is only reasoned about where it could not be tried out.
    if not repeatable.complete and _nothing_is_left(judge, constraints):
        return Witness(answer=Answer.NO, columns={})
    if num_rows == 1:
        return Witness(answer=Answer.NO if repeatable.complete else Answer.UNKNOWN, columns={})
    if not repeatable.complete:
        return Witness(answer=_by_counting(judge, constraints, num_rows), columns={})
    return _all_different(judge, constraints, num_rows)


def _all_different(judge: Judge, constraints: Sequence[DenialConstraint], num_rows: int) -> Witness:
    found = find_rows(judge, constraints, repeatable=False)
    if found.num_rows < num_rows and (found.complete or _nothing_is_left(judge, constraints)):
        return Witness(answer=Answer.NO, columns={})
    counted = _by_counting(judge, constraints, num_rows)
    if counted is Answer.NO or found.num_rows > _MAX_VERTICES:
        return Witness(answer=counted, columns={})
    clique, certain = find_clique(_compatible(judge, constraints, found), num_rows)
    if clique is not None:
        return Witness(answer=Answer.YES, columns=found.take(np.array(clique, dtype=np.int64)))
    return Witness(answer=Answer.NO if certain and found.complete else Answer.UNKNOWN, columns={})


def _compatible(judge: Judge, constraints: Sequence[DenialConstraint], found: FoundRows) -> Mask:
    down = {name: codes[:, None] for name, codes in found.columns.items()}
    across = {name: codes[None, :] for name, codes in found.columns.items()}
    clash = np.zeros((found.num_rows, found.num_rows), dtype=np.bool_)
    for constraint in constraints:
        if not constraint.is_unary:
            clash |= judge.clashes(constraint, down, across)
    return ~clash


def _by_counting(judge: Judge, constraints: Sequence[DenialConstraint], num_rows: int) -> Answer:
    """Refuse more rows than keys leave room for."""
    return Answer.NO if most_rows(judge, constraints) < num_rows else Answer.UNKNOWN


def most_rows(judge: Judge, constraints: Sequence[DenialConstraint]) -> int:
    """Return more rows than which no key among hard constraints lets a table have.

    A key takes a row for each combination; attributes that others of the key determine do not count.

    Guarantees:
        Tables of so many rows and fewer may exist, larger ones do not.  [test_existence_agrees_with_brute_force]
    """
    # A null breaks a chain of dependencies, so only those between attributes without null are followed.
    firm = [c for c in constraints if all(judge.codec[name].null_code is None for name in c.attributes)]
    most = _ENDLESS
    for key in constraints:
        if key.is_unary or classify(key) is not ConstraintClass.KEY:
            continue
        capacity = 1
        counted: frozenset[str] = frozenset()
        sizes = {name: _num_allowed(judge, constraints, name) for name in key.attributes}
        for name in sorted(sizes, key=sizes.__getitem__):
            if name not in determined(counted, firm) or sizes[name] == _ENDLESS:
                counted |= {name}
                capacity *= sizes[name]
        most = min(most, capacity)
    return most


def find_contradictions(
    judge: Judge, constraints: Sequence[DenialConstraint]
) -> tuple[frozenset[DenialConstraint], ...]:
    """Return small sets of checks that no row satisfies, by reasoning on their predicates."""
    checked = tuple(c for c in constraints if c.is_unary)
    names = {name for c in checked for name in c.attributes}
    never_null = frozenset(name for name in names if judge.codec[name].null_code is None)
    findings = find_contradictory(Question(constraints=checked, not_null=never_null))
    return tuple(frozenset((each.constraint, *each.by)) for each in findings)


def _nothing_is_left(judge: Judge, constraints: Sequence[DenialConstraint]) -> bool:
    """Whether checks contradict each other, or leave an attribute without any value of its domain."""
    if find_contradictions(judge, constraints):
        return True
    checked = tuple(c for c in constraints if c.is_unary)
    names = sorted({name for c in checked for name in c.attributes})
    return any(_num_allowed(judge, checked, name) == 0 for name in names)


def _num_allowed(judge: Judge, constraints: Sequence[DenialConstraint], name: str) -> int:
    """Return how many values of one attribute its checks leave; so many that it does not matter if null is left."""
    codec = judge.codec[name]
    own = [c for c in constraints if c.is_unary and c.attributes == (name,)]
    if codec.size > 1 << 22:
        return codec.num_values if codec.null_code is None else _ENDLESS
    columns = {name: np.arange(codec.size, dtype=np.int64)}
    allowed = np.ones(codec.size, dtype=np.bool_)
    for constraint in own:
        allowed &= ~judge.violates(constraint, columns, columns)
    if codec.null_code is not None and allowed[codec.null_code]:
        return _ENDLESS
    return int(allowed.sum())

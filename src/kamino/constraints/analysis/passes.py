"""The analysis: a tuple of passes, each in its own file."""

from __future__ import annotations

from collections.abc import Iterable

from kamino.constraints.analysis.contradictory import find_contradictory
from kamino.constraints.analysis.duplicate import find_duplicates
from kamino.constraints.analysis.findings import Finding, Pass, Question
from kamino.constraints.analysis.implied import find_implied
from kamino.constraints.analysis.trivial import find_trivial
from kamino.constraints.tree import DenialConstraint

PASSES: tuple[Pass, ...] = (find_trivial, find_contradictory, find_duplicates, find_implied)


def analyse(constraints: Iterable[DenialConstraint], *, not_null: frozenset[str] = frozenset()) -> tuple[Finding, ...]:
    """Everything the passes find, pass by pass. `not_null` names attributes known to hold no null.

    Guarantees:
        The findings do not depend on a table.  [test_analysis_reads_no_table]
    """
    items = tuple(constraints)
    question = Question(constraints=items, not_null=not_null)
    return tuple(finding for apply in PASSES for finding in apply(question))

"""Faults in what is counted of a private table, and in how far a row is said to move it."""

from __future__ import annotations

from functools import partial

from kamino.audit import subjects
from kamino.audit.auditing import NEIGHBOURS
from kamino.engine import (
    MemoryMeasurer,
    closeness,
    group_sizes,
    lost_cells,
    memory,
    rates,
    suggesting,
    typing,
)
from kamino.planted.fault import Fault, edited

ENGINE_FAULTS = (
    Fault(
        name="distances of several marginals taken for one",
        wrong="A row is said to move the distances of all candidates as far as that of one.",
        plant=partial(edited, MemoryMeasurer, "scores", "root = math.sqrt(len(candidates))", "root = 1.0"),
        check=NEIGHBOURS,
        # With little noise many candidates are scored together.
        subject=partial(subjects.declared, epsilon=20.0),
    ),
    Fault(
        name="interactions taken for counts",
        wrong="A row is said to move an interaction, which is a count times its cells, by 1.",
        plant=partial(
            edited,
            memory,
            "interaction_sensitivity",
            "own = math.prod(a * (a - 1) for a in shape)",
            "return Sensitivity.of_histogram()",
        ),
        check=NEIGHBOURS,
        subject=partial(subjects.declared, epsilon=8.0),
    ),
    Fault(
        name="sizes of groups taken for counts of rows",
        wrong="A row more is said to move one size of groups; it moves two.",
        plant=partial(
            edited,
            group_sizes,
            "sensitivity_of_sizes",
            "Sensitivity(add_remove=math.sqrt(2), replace=math.sqrt(6))",
            "Sensitivity.of_histogram()",
        ),
        check=NEIGHBOURS,
        subject=subjects.grouped,
    ),
    Fault(
        name="rates of small groups in full",
        wrong="Violations in groups that are smaller than most count by their own pairs.",
        plant=partial(edited, rates, "_terms", "np.maximum(np.bincount(groups), top)", "np.bincount(groups)"),
        check=NEIGHBOURS,
        subject=partial(subjects.violating, epsilon=20.0),
    ),
    Fault(
        name="lost cells of several columns taken for one",
        wrong="A row is said to lose a cell of one column only.",
        plant=partial(
            edited, lost_cells, "release_lost", "Sensitivity.of_histogram(len(names))", "Sensitivity.of_histogram()"
        ),
        check=NEIGHBOURS,
        subject=subjects.found,
    ),
    Fault(
        name="spellings of several columns taken for one",
        wrong="A row is said to be counted once where the types of all columns are found.",
        plant=partial(
            edited, typing, "release_ways", "Sensitivity.of_histogram(len(names))", "Sensitivity.of_histogram()"
        ),
        check=NEIGHBOURS,
        subject=subjects.untyped,
    ),
    Fault(
        name="candidate constraints taken for one",
        wrong="A row is said to break one of all constraints that are tried.",
        plant=partial(edited, suggesting, "_moved", "add_remove=math.sqrt(max(count, 1))", "add_remove=1.0"),
        check=NEIGHBOURS,
        subject=subjects.suggesting,
    ),
    Fault(
        name="close dates taken for one pair",
        wrong="A row is said to have one pair of dates that lie close together.",
        plant=partial(edited, closeness, "share_close", "add_remove=root, replace=root", "add_remove=1.0, replace=1.0"),
        check=NEIGHBOURS,
        subject=subjects.close_dates,
    ),
)

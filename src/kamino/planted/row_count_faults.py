"""Faults in which the true number of rows stands where a noisy one should: in every use of a number of rows."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from kamino.audit import subjects
from kamino.audit.auditing import STRANGERS
from kamino.engine import discovery, neural_rows, rates, suggesting
from kamino.model.marginal import fit_marginal
from kamino.pipeline import fitting, weighing
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.output import certificate
from kamino.pipeline.program import finding_stages, model_stages
from kamino.planted.fault import Fault, Plant, all_of, edited, patched
from kamino.privacy import Gate

SEEN = [0]
"""The number of rows of the table of the last run."""
_TRUE = f"__import__({__name__!r}, fromlist=['SEEN']).SEEN[0]"


def _knowing(owner: Any, name: str, old: str, new: str) -> Plant:
    """Plant an edit in which TRUE is the number of rows of the table."""

    def plant() -> AbstractContextManager[None]:
        clean = Gate.select_rows

        def select(self: Gate, table: Any) -> Any:
            SEEN[0] = table.num_rows
            return clean(self, table)

        return all_of(patched(Gate, "select_rows", select), edited(owner, name, old, new.replace("TRUE", _TRUE)))

    return plant


ROW_COUNT_FAULTS = (
    Fault(
        name="the true number of rows as default",
        wrong="As many rows are drawn by default as the table has.",
        plant=_knowing(Fitted, "num_rows", "max(1, round(self.model.num_rows))", "TRUE"),
        check=STRANGERS,
        subject=subjects.declared,
    ),
    Fault(
        name="a number of rows without noise",
        wrong="The number of rows that decides how domains are found is the true one.",
        plant=_knowing(Gate, "release_row_count", "max(0, int(noisy[0]))", "num_rows"),
        check=STRANGERS,
        subject=subjects.found,
    ),
    Fault(
        name="the true number of rows in a model",
        wrong="A model file holds the number of rows of the table.",
        plant=_knowing(fit_marginal, "_measure_histograms", "Rows.by_all(rows).number", "float(TRUE)"),
        check=STRANGERS,
        subject=subjects.declared,
    ),
    Fault(
        name="ranges for the true number of rows",
        wrong="What noise can hide of a range is judged by the number of rows of the table.",
        plant=_knowing(discovery, "discover_domains", "about_rows=about_rows,", "about_rows=float(TRUE),"),
        check=STRANGERS,
        # With so little noise that it hides nothing, unless there are no rows.
        subject=partial(subjects.found, epsilon=40.0),
    ),
    Fault(
        name="shares of lost cells by the true number of rows",
        wrong="The shares of cells that domains do not hold are told of the number of rows of the table.",
        plant=_knowing(discovery, "discover_domains", "lost.shares(about_rows)", "lost.shares(float(TRUE))"),
        check=STRANGERS,
        subject=subjects.found,
    ),
    Fault(
        name="rates by the true number of rows",
        wrong="How many rows of a group a rate expects follows from the number of rows of the table.",
        plant=_knowing(rates, "release_rates", "round(model.num_rows)", "TRUE"),
        check=STRANGERS,
        subject=subjects.declared,
    ),
    Fault(
        name="a sample of a part of the true number of rows",
        wrong="How many rows the sample for weights has follows from the number of rows of the table.",
        plant=_knowing(weighing, "weigh", "num_rows, rate = model.num_rows,", "num_rows, rate = float(TRUE),"),
        check=STRANGERS,
        subject=partial(subjects.declared, weights="paper"),
    ),
    Fault(
        name="suggestions by the true number of rows",
        wrong="The rates of suggested constraints are told of the number of rows of the table.",
        plant=_knowing(
            suggesting, "_columns", "rows = max(2.0, float(made.values[0]))", "rows = max(2.0, float(num_rows))"
        ),
        check=STRANGERS,
        subject=subjects.suggesting,
    ),
    Fault(
        name="groups for the true number of rows",
        wrong="How many groups an id gets follows from the number of rows of the table.",
        plant=_knowing(model_stages, "_sizes_of_groups", "num_rows=num_rows)", "num_rows=float(TRUE))"),
        check=STRANGERS,
        subject=subjects.grouped,
    ),
    Fault(
        name="unreadable dates by the true number of rows",
        wrong="The share of dates that cannot be read is told of the number of rows of the table.",
        plant=_knowing(fitting, "_with_unreadable", "lost.shares(num_rows)", "lost.shares(float(TRUE))"),
        check=STRANGERS,
        subject=subjects.dated,
    ),
    Fault(
        name="a note on the true number of rows",
        wrong="Whether a certificate notes that noise is large follows from the number of rows of the table.",
        plant=_knowing(certificate, "_noise_notes", "about_rows=fitted.model.num_rows", "about_rows=float(TRUE)"),
        check=STRANGERS,
        subject=subjects.declared,
    ),
    Fault(
        name="an error with the true number of rows",
        wrong="That a table has too few rows is told with how many it has.",
        plant=_knowing(
            finding_stages.CountRows,
            "run",
            "refuse_too_few_rows(about, num_missing",
            "refuse_too_few_rows(TRUE, num_missing",
        ),
        check=STRANGERS,
        subject=subjects.refused,
    ),
    Fault(
        name="networks for the true number of rows",
        wrong="How networks of the neural backend are trained follows from the number of rows of the table.",
        plant=_knowing(neural_rows.NeuralRows, "count_rows", "return self._gate", "return TRUE + 0 * self._gate"),
        check=STRANGERS,
        subject=subjects.neural,
        neural=True,
    ),
)

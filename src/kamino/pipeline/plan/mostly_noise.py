"""Tables that would be mostly noise: told from the errors to expect, and refused where nothing else would be left.

The errors are those of `kamino plan`. They follow from the budget, the rows of a privacy unit and the domains; how many
rows there are is known from what was released, or from what was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from kamino.advice import Advice, Level, dropping, named, setting
from kamino.constraints.language.printer import print_name
from kamino.errors import InputError
from kamino.pipeline.plan.expectations import Accuracy, accuracy_of
from kamino.pipeline.plan.run_plan import RunPlan
from kamino.pipeline.plan.telling_policy import TELLING
from kamino.pipeline.settings import Settings

#: How the note of such a table begins.
MOSTLY_NOISE = "mostly noise"
_SHOWN = 6


def most_hidden(errors: Accuracy | None, *, part: float) -> tuple[str, ...]:
    """The columns of which noise hides a count of a part of all rows, if they are most of the columns; else none."""
    names = () if errors is None else errors.hidden_columns(part=part)
    return names if errors is not None and len(names) > TELLING.noisy_columns * len(errors.columns) else ()


def refuse_noise(plan: RunPlan, about_rows: float) -> None:
    """Refuse to go on where counts of most columns may be off by all rows there are, unless told to.

    A run whose domains are all declared learns the number of rows with its counts, and tells then what they are worth.

    Guarantees:
        It looks at released numbers only, before the rest of the budget is spent.  [test_a_table_of_noise_is_refused]
    """
    errors = accuracy_of(plan.for_rows(max(1, round(about_rows))))
    names = most_hidden(errors, part=TELLING.hopeless_count)
    if plan.settings.anyway or errors is None or not names:
        return
    raise Advice.of(
        "table-of-noise",
        f"found about {errors.rows:,} rows (a noisy number), and counts of {len(names)} of {len(errors.columns)} "
        f"columns ({_listed(names)}) that may be off by as many: the table would be noise. ",
        *(less_noise(plan.settings), ", or say ", setting("anyway"), " to go on"),
        about=names,
    ).error(InputError)


def noisy_columns(errors: Accuracy | None) -> tuple[str, ...]:
    """The columns that make a table mostly noise; none for other tables."""
    return most_hidden(errors, part=TELLING.noisy_count)


def noise_note(errors: Accuracy | None, settings: Settings) -> str | None:
    """A sentence for a table that is mostly noise; None for others.

    Guarantees:
        Plan, output, certificate and release note say it.  [test_a_table_of_noise_is_told]
    """
    names = noisy_columns(errors)
    if errors is None or not names:
        return None
    return (
        f"{MOSTLY_NOISE}: of about {errors.rows:,} rows, counts of {len(names)} of {len(errors.columns)} columns "
        f"({_listed(names)}) may be off by a quarter of all rows or more: conclude nothing from them. "
        f"{less_noise(settings)}"
    )


def less_noise(settings: Settings) -> Advice:
    """What makes noise smaller."""
    of_each = f", keep fewer rows of each {print_name(settings.unit or '')} ("
    few = (of_each, named("max_rows"), ")") if settings.max_rows else ()
    return Advice.of(
        "much-noise", "Give a larger epsilon, leave columns out (", dropping(), ")", *few, level=Level.NOTE
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(print_name, names[:_SHOWN])) + (", ..." if len(names) > _SHOWN else "")

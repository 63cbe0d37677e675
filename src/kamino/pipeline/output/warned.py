"""What Python says aloud after a fit, beside notes: a promise that is weak, columns that were lost."""

from __future__ import annotations

from collections.abc import Iterator

from kamino.constraints.language.printer import print_name
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.output.release_mark import weak_promises
from kamino.schema import Categorical

# A column is lost if more than this part of its cells is.
_MOST = 0.5


def warnings_of(fitted: Fitted) -> tuple[str, ...]:
    """A line for each weak promise, and for each column most of which became `other` or null: from released facts only.

    Guarantees:
        Columns that were lost and weak budgets are told.  [test_python_warns_of_what_was_lost]
    """
    weak = (
        () if fitted.settings.accept else weak_promises(fitted.settings.epsilon, fitted.settings.delta, fitted.num_rows)
    )
    return (*weak, *_lost(fitted))


def _lost(fitted: Fitted) -> Iterator[str]:
    for name, lost in ({} if fitted.found is None else fitted.found.lost).items():
        if lost.share <= _MOST:
            continue
        is_category = isinstance(fitted.schema[name], Categorical)
        what = "became `other`, since few rows share a value" if is_category else "were lost"
        yield (
            f"{print_name(name)}: about {lost.share:.0%} of its cells {what}. Declare its values or its type in a "
            "schema (kamino.draft_schema), make it a key, or leave it out (Reading(drop=...))"
        )

"""A synthesizer as a notebook shows it: its parameters, its budget, its plan and what may surprise in the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from kamino.errors import KaminoError, visible

if TYPE_CHECKING:
    from kamino.pipeline.output.release_mark import Spent
    from kamino.pipeline.synthesizer import Synthesizer

_MOST_STEPS = 60


def synthesizer_html(synthesizer: Synthesizer) -> str:
    """The parameters; of a fit what it spent, how rows are drawn, and notes; without a fit, the plan if there is one.

    Guarantees:
        Nothing in it is run by a browser.  [test_a_notebook_shows_budget_plan_and_notes]
    """
    from kamino.pipeline.output.certificate import notes_of
    from kamino.pipeline.output.release_mark import spent_of_fit

    parts = [_table("Synthesizer", synthesizer.shown_params().items())]
    if synthesizer.is_fitted:
        fitted = synthesizer.fitted
        parts.append(_table("Budget, spent", _spent(spent_of_fit(fitted), fitted.ledger["epsilon"])))
        parts += [_steps(fitted.plan.to_json()), _notes(notes_of(fitted, fitted.num_rows))]
    elif synthesizer.schema is None:
        parts.append(_line("Not fitted. Without a schema there is no plan before the table is seen."))
    else:
        parts += _planned(synthesizer)
    return str(Markup("<div>{}</div>").format(Markup("").join(parts)))


def _planned(synthesizer: Synthesizer) -> list[Markup]:
    try:
        plan = synthesizer.plan()
    except KaminoError as problem:
        return [_line(f"Not fitted, and not to be planned: {problem}")]
    budget = plan.settings.budget
    facts = [("epsilon", f"{budget.epsilon:g}"), ("delta", f"{budget.delta:g}")]
    facts += [("unit", plan.settings.privacy_unit.describe()), ("releases", f"{len(plan.schedule)}, at least")]
    facts.append(("mark", plan.mark.told))
    found = plan.to_json()["sampling"]
    return [_table("Budget, not spent yet", facts), _steps(found) if found else Markup(""), _notes(plan.notes)]


def _spent(spent: Spent, budget: float | None) -> list[tuple[str, str]]:
    limit = "" if budget is None else f" of {budget:g}"
    return [
        ("epsilon", f"{spent.shown_epsilon}{limit}"),
        ("delta", f"{spent.delta:g}"),
        ("unit", spent.unit),
        ("releases", str(spent.releases)),
        ("mark", spent.told),
    ]


def _steps(sampling: dict[str, Any]) -> Markup:
    steps = sampling["steps"]
    rows = [
        (
            each.get("attribute") or ", ".join(each.get("last_of", ())),
            f"{each['kind']}: {'; '.join(each['constraints'])}",
        )
        for each in steps[:_MOST_STEPS]
    ]
    more = [("…", f"{len(steps) - _MOST_STEPS} more")] if len(steps) > _MOST_STEPS else []
    return _table("How rows are drawn", [(name, text.rstrip(": ")) for name, text in rows] + more)


def _notes(notes: Sequence[str]) -> Markup:
    return Markup("").join(_line(f"Note: {note}.") for note in notes)


def _table(title: str, rows: Iterable[tuple[str, str]]) -> Markup:
    cells = Markup("").join(Markup("<tr><th>{}</th><td>{}</td></tr>").format(_safe(n), _safe(v)) for n, v in rows)
    return Markup("<table><caption>{}</caption>{}</table>").format(title, cells)


def _line(text: str) -> Markup:
    return Markup("<p>{}</p>").format(_safe(text))


def _safe(text: str) -> Markup:
    return escape(visible(text))

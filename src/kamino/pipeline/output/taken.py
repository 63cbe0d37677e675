"""What each column was taken for, and why: its type, its domain, and how many cells that domain does not hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kamino.advice import Advice, drafting, setting
from kamino.constraints.language.printer import print_name
from kamino.engine.discovery import FoundDomains
from kamino.engine.lost_cells import Lost
from kamino.errors import InputError
from kamino.pipeline.plan.telling_policy import TELLING
from kamino.pipeline.settings import Settings
from kamino.schema import Attribute, Boolean, Categorical, Date, Datetime, Integer, Key, Schema, Source
from kamino.schema.files.names import looks_like_code

DECLARED = "declared in the schema"
_REMEDIES = (
    *("Declare domains in a schema (", drafting(), "), say ", setting("trust_domain"), " if they are public, give a "),
    *("larger epsilon, or say ", setting("anyway"), " to go on"),
)
_SHOWN = 6


def refuse_useless(found: FoundDomains, settings: Settings) -> None:
    """Refuse to go on where most columns are useless with the domains that were found, unless told to.

    Guarantees:
        It looks at released numbers only.  [test_replay_passes_for_a_table_that_is_refused]
    """
    names = found.schema.data_names
    useless = [name for name in names if name in found.lost and _is_useless(found, name)]
    if settings.anyway or len(useless) <= TELLING.useless * len(names):
        return
    shown = ", ".join(map(print_name, useless[:_SHOWN])) + (", ..." if len(useless) > _SHOWN else "")
    raise Advice.of(
        "no-useful-domain",
        f"found no useful domain for {len(useless)} of {len(names)} columns ({shown}): the noise hides their values, "
        "for want of rows or of epsilon. ",
        *_REMEDIES,
        about=useless,
    ).error(InputError)


def refuse_too_few_rows(about_rows: int, *, num_missing: int, num_columns: int, settings: Settings) -> None:
    """Refuse to look for most domains of a table in so few rows, of which only their noisy number is known so far."""
    if settings.anyway or num_missing <= TELLING.useless * num_columns:
        return
    of_columns = "1 column" if num_missing == 1 else f"{num_missing} columns"
    raise Advice.of(
        "too-few-rows",
        f"found about {about_rows:,} rows (a noisy number), too few to find the domains of {of_columns} "
        f"within epsilon {settings.epsilon:g}. ",
        *_REMEDIES,
    ).error(InputError)


def _is_useless(found: FoundDomains, name: str) -> bool:
    attribute = found.schema[name]
    empty = isinstance(attribute, Categorical) and all(value == attribute.other for value in attribute.categories)
    return empty or name in found.by_default or found.lost[name].share > TELLING.useless


def taken_columns(schema: Schema, found: FoundDomains | None) -> list[dict[str, Any]]:
    """A line for each column: what it was taken for, why, its domain, and the noisy shares of cells that are lost."""
    lines = []
    for name, attribute in schema.attributes.items():
        lost = found.lost.get(name) if found is not None else None
        lines.append(
            {
                "name": name,
                "taken_for": attribute.type,
                "why": _why(name, attribute, found),
                "domain": _domain(attribute),
                "lost": None if lost is None else lost_to_json(lost),
            }
        )
    return lines


def _why(name: str, attribute: Attribute, found: FoundDomains | None) -> str:
    if isinstance(attribute, Key) and attribute.repeats:
        return "an id that repeats; sizes of groups found within the budget"
    if isinstance(attribute, Key) or attribute.source is Source.DECLARED:
        return DECLARED
    shape = attribute.format if isinstance(attribute, Date | Datetime) else None
    if attribute.source is Source.ASSERTED and shape is not None:
        return f"its cells are written as {shape}; range of the table"
    if attribute.source is Source.ASSERTED:
        by_name = isinstance(attribute, Categorical) and attribute.holds_integers and looks_like_code(name)
        return "by its name, a code; values from the table" if by_name else "by type and values of the table"
    kind = "as its cells are written" if found is not None and found.types_found else "by the type of the column"
    kind = kind if shape is None else f"{kind}, {shape}"
    if found is not None and name in found.by_default:
        return f"{kind}; no range stood out, the usual one was taken"
    return kind if isinstance(attribute, Boolean) else f"{kind}; domain found within the budget"


def _domain(attribute: Any) -> str:
    if isinstance(attribute, Categorical):
        listed = [value for value in attribute.categories if value != attribute.other]
        count = "1 value" if len(listed) == 1 else f"{len(listed):,} values"
        return count if attribute.other is None else f"{count} and {attribute.other}"
    if isinstance(attribute, Key):
        return "made up, one for a group" if attribute.repeats else "made up"
    if isinstance(attribute, Boolean):
        return "true, false"
    apart = f", {attribute.step:,} apart" if isinstance(attribute, Integer) and attribute.step > 1 else ""
    return f"{_shown(attribute.min)} to {_shown(attribute.max)}{apart}"


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def column_notes(schema: Schema, found: FoundDomains | None) -> tuple[str, ...]:
    """A line for each column that is not what a reader may think it is.

    Guarantees:
        The noisy share of lost cells is told.  [test_lost_cells_are_told]
        A code that was read as a quantity is named.  [test_codes_read_as_quantities_are_named]
    """
    return (*_lost_notes(found), *_code_notes(schema))


def _lost_notes(found: FoundDomains | None) -> Iterator[str]:
    if found is None:
        return
    for name in found.by_default:
        yield (
            f"{print_name(name)}: no range stood out of the noise; the usual one of its name or type was taken, "
            f"{_domain(found.schema[name])}. Declare its domain in a schema"
        )
    for name, lost in found.lost.items():
        least = max(TELLING.lost_worth_a_note, lost.within)
        attribute = found.schema[name]
        what = "became other" if isinstance(attribute, Categorical) else f"lay outside {_domain(attribute)}"
        if lost.outside > least:
            yield f"{print_name(name)}: about {lost.outside:.1%} of its cells {what} (± {lost.within:.1%})"
        if lost.unreadable > least:
            yield (
                f"{print_name(name)}: about {lost.unreadable:.1%} of its cells cannot be read as {attribute.type}, and "
                f"became null (± {lost.within:.1%})"
            )


def _code_notes(schema: Schema) -> Iterator[str]:
    names = [
        name
        for name, attribute in schema.attributes.items()
        if isinstance(attribute, Integer) and attribute.source is not Source.DECLARED and looks_like_code(name)
    ]
    if names:
        yield (
            f"{', '.join(map(print_name, names))}: a code by the name, read as a quantity, so most values are made up. "
            "Declare its values in a schema (type: categorical), or declare it as `type: key`"
        )


def lost_to_json(lost: Lost) -> dict[str, float]:
    """The noisy shares as plain data."""
    return {"outside": lost.outside, "unreadable": lost.unreadable, "within": lost.within}


def found_to_json(found: FoundDomains | None) -> dict[str, Any]:
    """What is known of found domains, as plain data; empty where none was found."""
    if found is None:
        return {}
    return {
        "types_found": found.types_found,
        "by_default": list(found.by_default),
        "lost": {name: lost_to_json(lost) for name, lost in found.lost.items()},
    }

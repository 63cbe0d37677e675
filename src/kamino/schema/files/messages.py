"""Pydantic's findings as one line each: the place, what was found, what was expected."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kamino.limits import MAX_FAULTS, MAX_NAME_CHARS

_EXPECTED = {
    "int_type": "an integer",
    "bool_type": "true or false",
    "string_type": "text (in quotes, if it looks like a number)",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "mapping_type": "a mapping",
    "list_type": "a list",
    "tuple_type": "a list",
}
_KINDS = ("categorical", "integer", "real", "boolean", "date", "datetime", "key")

Place = tuple[str | int, ...]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ` Did you mean 'zip'?`, or `""` if nothing known is near `name`."""
    if len(str(name)) > MAX_NAME_CHARS:
        return ""
    by_lower = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(str(name).lower(), list(by_lower), n=1)
    return f" Did you mean {by_lower[near[0]]!r}?" if near else ""


def explain(
    error: ValidationError,
    *,
    place: str = "",
    position: Callable[[Place], str] = lambda _: "",
    fields: Mapping[str, Iterable[str]] | None = None,
) -> str:
    """Return everything wrong, one line each.

    Args:
        error: what pydantic found.
        place: starts each line: the name of a file or class.
        position: gives the `:line:column` of a place within the text, if known.
        fields: the known fields of each kind of attribute, and of the file itself under `""`.
    """
    lines = []
    found = error.errors(include_url=False)
    for details in found[:MAX_FAULTS]:
        path, kind = _split(details["loc"])
        start = f"{place}{position(path)}: " if place else ""
        where = ".".join(str(part) for part in path)
        text = _text(details, kind, fields or {})
        lines.append(start + (f"{where}: " if where else "") + text)
    if len(found) > MAX_FAULTS:
        lines.append(f"{place}: found {len(found) - MAX_FAULTS} more faults; mend these first")
    return "\n".join(dict.fromkeys(lines))


def _split(loc: Place) -> tuple[Place, str]:
    """Take the kind, which pydantic puts into the path of an attribute, out of it."""
    if len(loc) > 2 and loc[0] == "attributes" and loc[2] in _KINDS:
        return loc[:2] + loc[3:], str(loc[2])
    return loc, ""


def _text(details: ErrorDetails, kind: str, fields: Mapping[str, Iterable[str]]) -> str:
    found, context = details.get("input"), details.get("ctx", {})
    match details["type"]:
        case "value_error":
            return str(context["error"])
        case "missing":
            return "is missing"
        case "extra_forbidden":
            known = list(fields.get(kind, ()))
            hint = did_you_mean(str(details["loc"][-1]), known)
            return f"is no known field.{hint}" + (f" Fields: {', '.join(known)}." if known else "")
        case "union_tag_not_found":
            return f"type is missing, expected one of {', '.join(_KINDS)}"
        case "union_tag_invalid":
            tag = str(context.get("tag"))
            return f"type: found {tag!r}, expected one of {', '.join(_KINDS)}.{did_you_mean(tag, _KINDS)}"
        case "enum" | "literal_error":
            return f"found {_show(found)}, expected {context.get('expected')}"
        case known_type if known_type in _EXPECTED:
            return f"found {_show(found)}, expected {_EXPECTED[known_type]}"
        case _:
            message = details["msg"]
            return f"found {_show(found)}, expected {message[0].lower()}{message[1:]}"


def _show(found: Any) -> str:
    if found is None:
        return "nothing"
    text = found if isinstance(found, str) else str(found)
    text = text if len(text) <= 60 else text[:57] + "..."
    return repr(text) if isinstance(found, str) else text

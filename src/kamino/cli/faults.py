"""How wrong use and failed runs are told: what was found, what was expected, and what was spent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any


def usage_line(problem: Any) -> str:
    """One line for a fault of the command line, and whose help to read."""
    context = getattr(problem, "ctx", None)
    command = context.command_path if context is not None else "kamino"
    text = _with_nearest(problem.format_message())
    return f"{_in_our_words(problem, text).rstrip('.')}. See {command} --help."


# What other tools call a command or an option, with its name here.
_ELSEWHERE = {
    **dict.fromkeys(("generate", "create", "make", "run", "fit", "train", "synthesize", "synthesise"), "synth"),
    **dict.fromkeys(("draft", "schema", "infer", "profile"), "init"),
    **dict.fromkeys(("validate", "test", "lint"), "check"),
    **dict.fromkeys(("compare", "evaluate", "quality", "score"), "report"),
    **dict.fromkeys(("--num-rows", "--num_rows", "--n-rows", "--size", "--count"), "-n"),
    **dict.fromkeys(("--eps", "--privacy"), "-e"),
    **dict.fromkeys(("--rules", "--constraint"), "-c"),
    **dict.fromkeys(("--out", "--output-file"), "-o"),
    **dict.fromkeys(("--random-state", "--random-seed"), "--seed"),
    **dict.fromkeys(("--null", "--na", "--na-values", "--null-values"), "--nulls"),
    **dict.fromkeys(("--delimiter", "--sep"), "--separator"),
    **dict.fromkeys(("--exclude", "--ignore", "--skip"), "--drop"),
    **dict.fromkeys(("--person", "--id", "--group"), "--unit"),
}


def _with_nearest(text: str) -> str:
    """The text with the command or the option that was meant, where another tool calls it so.

    Guarantees:
        Commands and options of other tools are answered.  [test_what_was_meant_is_named]
    """
    found = re.match(r"No such (?:command|option):? '?([-\w]+)'?", text)
    if found is None or "Did you mean" in text or found[1] not in _ELSEWHERE:
        return text
    return f"{text.partition(' (Possible')[0].rstrip('.')}; here it is {_ELSEWHERE[found[1]]}"


def fault_line(kind: type[BaseException]) -> str:
    """One line for an error that was not foreseen: its class alone, since its text may quote the table."""
    return (
        f"found a fault in Kamino: {kind.__name__}. Its text is left out, because it may quote the table; "
        "run the same from Python (kamino.Synthesizer) to see it, and report it without private values."
    )


def notes_of(problem: BaseException) -> Iterator[str]:
    """What was added to an error on its way up, also where another took its place."""
    yield from getattr(problem, "__notes__", ())
    if problem.__cause__ is not None:
        yield from notes_of(problem.__cause__)


def _in_our_words(problem: Any, text: str) -> str:
    """The text with what was found and expected; as it is where the parser does not tell."""
    details = getattr(problem.__cause__, "errors", None)
    fault = details()[0] if callable(details) else None
    message = getattr(problem, "message", "")
    if not fault and message:
        return _of_older_parser(text)
    if not fault or not message or not text.endswith(message):
        return str(text)
    head = text.removesuffix(message)
    expected = _expected(fault)
    if expected is None:
        return f"{head}{message.removeprefix('Value error, ')}"
    return f"{head}found {fault['input']}; expected {expected}"


_OLDER = (
    (re.compile(r"'([^']*)' is not a valid float\.?$"), r"found \1; expected a number"),
    (re.compile(r"'([^']*)' is not a valid integer( range)?\.?$"), r"found \1; expected a whole number"),
    (re.compile(r"(\S+) is not in the range x>=(\S+?)\.?$"), r"found \1; expected \2 or more"),
    (re.compile(r"(\S+) is not in the range x<=(\S+?)\.?$"), r"found \1; expected \2 or less"),
)


def _of_older_parser(text: str) -> str:
    """What older versions of the parser say of numbers, in our words."""
    for pattern, words in _OLDER:
        text = pattern.sub(words, text)
    return text


def _expected(fault: dict[str, Any]) -> str | None:
    limits = fault.get("ctx", {})
    match fault["type"]:
        case "float_parsing" | "float_type":
            return "a number"
        case "int_parsing" | "int_type" | "int_from_float":
            return "a whole number"
        case "greater_than_equal":
            return f"{limits['ge']} or more"
        case "less_than_equal":
            return f"{limits['le']} or less"
        case _:
            return None

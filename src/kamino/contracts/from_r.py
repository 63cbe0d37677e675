"""Rule files of R: YAML of the package validate, and text with a rule a line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from kamino.contracts.contract import Contract, Draft
from kamino.contracts.r_expressions import Lists, RType, read_r_rule
from kamino.errors import ConstraintError, SchemaError
from kamino.schema.files.yaml_text import load_yaml

_ASSIGNED = re.compile(r"^\s*(?P<name>[\w.]+)\s*(?:<-|=(?!=))\s*(?P<values>c\(.*\))\s*$", re.DOTALL)
_VALUE = re.compile(r"\"([^\"]*)\"|'([^']*)'|(-?\d+(?:\.\d+)?)|(TRUE|FALSE)")


def contract_from_r(text: str, *, source: str = "<rules>", table: str = "data") -> Contract:
    """Read a file of rules of R: the YAML of validate, or one rule a line, comments and lists of values between.

    Guarantees:
        A rule that is not carried over is listed with its line.  [test_r_rules_are_read]
    """
    draft = Draft(source)
    rules = _yaml_rules(text, source)
    if rules is not None:
        for rule, name, line in rules:
            _add(draft, table, rule, line, {}, label=name)
        return draft.contract()
    lists: dict[str, list[Any]] = {}
    for rule, line in _lines(text):
        assigned = _ASSIGNED.match(rule)
        if assigned is not None:
            lists[assigned.group("name")] = _listed(assigned.group("values"))
            continue
        _add(draft, table, rule, line, lists)
    return draft.contract()


def _listed(text: str) -> list[Any]:
    found: list[Any] = []
    for one, other, number, truth in _VALUE.findall(text):
        found.append(
            truth == "TRUE" if truth else (float(number) if "." in number else int(number)) if number else one or other
        )
    return found


def _add(draft: Draft, table: str, rule: str, line: int, lists: Lists, label: str = "") -> None:
    try:
        found = read_r_rule(rule, lists)
    except ConstraintError as problem:
        draft.leave(table, f"{label}: {rule}" if label else rule, problem.message, line)
        return
    except (ValueError, IndexError) as problem:
        draft.leave(table, rule, f"it cannot be read ({problem})", line)
        return
    if isinstance(found, RType):
        draft.column(table, found.column, found.kind)
        return
    draft.add(table, lambda: found, rule, line)


def _yaml_rules(text: str, source: str) -> list[tuple[str, str, int]] | None:
    """The rules of validate's YAML with names and lines; None for what is none."""
    if not re.search(r"^\s*-\s+expr\s*:|^rules\s*:", text, re.MULTILINE):
        return None
    try:
        document, _ = load_yaml(text, source=source)
    except SchemaError:
        return None
    rules = document.get("rules") if isinstance(document, Mapping) else None
    if not isinstance(rules, list):
        return None
    lines = text.splitlines()
    found, at = [], 0
    for rule in rules:
        expression = str(rule.get("expr") if isinstance(rule, Mapping) else rule)
        head = expression.strip().splitlines()[0][:40] if expression.strip() else ""
        at = next((n for n in range(at, len(lines)) if head and head in lines[n]), at)
        found.append((expression, str(rule.get("name") or "") if isinstance(rule, Mapping) else "", at + 1))
    return found


def _lines(text: str) -> Iterator[tuple[str, int]]:
    """Rules with the line that each starts on: one goes on while a parenthesis is open or an operator ends its line."""
    waiting, begin, front = "", 0, True
    for number, raw in enumerate(text.splitlines(), start=1):
        if front and raw.strip() == "---":
            continue
        line = re.sub(r"#.*$", "", raw).rstrip()
        if not line.strip():
            continue
        waiting, begin = (waiting + " " + line.strip(), begin) if waiting else (line.strip(), number)
        depth = waiting.count("(") - waiting.count(")")
        if depth > 0 or re.search(r"(==|[-+*/&|,<>~=]|%in%)$", waiting):
            continue
        yield waiting.rstrip(","), begin
        waiting = ""
    if waiting:
        yield waiting, begin

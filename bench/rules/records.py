"""A rule of the survey back to a file of its source, so that it is read by what reads such files.

A record holds one rule and not what stands around it. What it names and does not hold (variables of a dbt project,
lists of R and Python, the values of an enum type) is given made-up public values; nothing else is added.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

Record = dict[str, Any]
_MADE_UP = ["a", "b", "c"]


def write_source(record: Record, folder: Path) -> Path | None:
    """Write the file or folder that a reader is given; None where the record is prose or code of no known source."""
    wrap = _WRAPPERS.get(record["type"])
    return None if wrap is None else wrap(record, folder)


def _text(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def _json(text: str) -> Any:
    """The JSON of a record; one that the survey cut off is closed after its last whole item.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        if not text.startswith('{"'):
            raise
    open_ones: list[str] = []
    inside = escaped = False
    ends: list[tuple[int, str]] = []
    for place, letter in enumerate(text):
        if inside:
            escaped, inside = letter == "\\" and not escaped, letter != '"' or escaped
        elif letter == '"':
            inside = True
        elif letter in "{[":
            open_ones.append("}" if letter == "{" else "]")
            ends.append((place + 1, "".join(reversed(open_ones))))
        elif letter in "}]":
            open_ones.pop()
        elif letter == ",":
            ends.append((place, "".join(reversed(open_ones))))
    for place, closing in reversed(ends):
        try:
            return json.loads(text[:place] + closing)
        except json.JSONDecodeError:
            continue
    raise ValueError("no JSON")


def _dbt(record: Record, folder: Path) -> Path:
    rule = record["rule"]
    names = set(re.findall(r"var\(\s*\\*['\"]([^'\"\\]+)\\*['\"]\s*\)", rule))
    _text(folder, "dbt_project.yml", yaml.safe_dump({"name": "p", "vars": dict.fromkeys(sorted(names), 2000)}))
    try:
        found = _json(rule)
    except ValueError:
        _text(folder, "tests/singular.sql", rule)
        return folder
    model: dict[str, Any] = {"name": found.get("model") or "model"}
    found.setdefault("test", "cut_off")
    if "column" in found:
        model["columns"] = [{"name": found["column"], "tests": [found["test"]]}]
    else:
        model["tests"] = [found["test"]]
    _text(folder, "models/schema.yml", yaml.safe_dump({"version": 2, "models": [model]}, sort_keys=False))
    return folder


_TABLE = re.compile(r"^(?P<table>[\w.\[\]\"@`]+):\s+(?P<rest>.*)$", re.DOTALL)


def _sql(record: Record, folder: Path) -> Path:
    rule = record["rule"].strip()
    found = _TABLE.match(rule)
    table, rest = (found.group("table"), found.group("rest")) if found else ("t", rule)
    before = ""
    rest = re.sub(r"\s*\(\d+ such columns on the page\)$", "", rest)
    if rest.endswith("(enum)"):
        rest = rest.removesuffix("(enum)").strip()
        kind = rest.split()[1]
        default = re.search(r"DEFAULT '([^']*)'", rest)
        values = ", ".join(f"'{each}'" for each in [*([default.group(1)] if default else []), *_MADE_UP])
        before = f"CREATE TYPE {kind} AS ENUM ({values});\n"
    if re.match(r"(CREATE|ALTER)\b", rest, re.IGNORECASE):
        body = rest
    elif re.match(r"ADD\b", rest, re.IGNORECASE):
        body = f"ALTER TABLE {table} {rest}"
    else:
        name = "the_" + rest if re.match(r"(column|key|order)\s+\w+\s+NOT", rest) else rest
        body = f"CREATE TABLE {table} ({name})"
    return _text(folder, "schema.sql", f"{before}{body};\n")


def _r(record: Record, folder: Path) -> Path:
    rule = record["rule"]
    lists = set(re.findall(r"%in%\s*([A-Z_.]+)\b(?!\s*\()", rule))
    lists |= {name for inside in re.findall(r"c\(([A-Z_.,\s]+)\)", rule) for name in re.findall(r"[A-Z_.]+", inside)}
    values = "c(TRUE, FALSE)" if lists == {"BOOL"} else "c('a', 'b', 'c')"
    head = "".join(f"{name} <- {values}\n" for name in sorted(lists))
    return _text(folder, "rules.R", head + rule + "\n")


def _expectations(record: Record, folder: Path) -> Path:
    return _text(folder, "suite.json", json.dumps({"expectations": [_json(record["rule"])]}))


def _soda(record: Record, folder: Path) -> Path | None:
    found = re.match(r"^(checks for [^:]+): (.*)$", record["rule"], re.DOTALL)
    if found is None:
        return None
    return _text(
        folder,
        "checks.yml",
        yaml.safe_dump(
            {found.group(1): [_json(found.group(2)) if found.group(2)[0] == "{" else json.loads(found.group(2))]}
        ),
    )


def _value(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError):
            continue
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return text


def _data_contract(record: Record, folder: Path) -> Path | None:
    rule = record["rule"]
    found = re.match(r"^(?P<table>[\w$-]+)(?:\.(?P<field>[\w. $-]+))?: (?P<rest>.*)$", rule, re.DOTALL)
    if found is None:
        return None
    table, field, rest = found.group("table"), found.group("field"), found.group("rest")
    model: dict[str, Any] = {}
    if rest.startswith("{"):
        facts: dict[str, Any] = {"quality": [_value(rest)]}
    else:
        key, _, value = rest.partition(": ") if ": " in rest else rest.partition(" ")
        facts = {key: _value(value)}
        if key in ("relationships", "references") and not isinstance(facts[key], str | list):
            return None
        if key in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            facts["type"] = "number" if re.fullmatch(r"-?[\d.eE+]+", value.strip()) else "timestamp"
            if facts["type"] == "timestamp":
                facts[key] = value.strip()
    model = {"fields": {field: facts}} if field else facts
    document = {"dataContractSpecification": "1.1.0", "models": {table: model}}
    return _text(folder, "contract.yaml", yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


def _table_schema(record: Record, folder: Path) -> Path | None:
    found = re.match(r"^(?P<name>[\w ]+): (?P<rest>.*)$", record["rule"], re.DOTALL)
    if found is None:
        return None
    rest = found.group("rest").strip().rstrip(",")
    typed = re.match(r"^type (\w+) format (.+)$", rest)
    if typed is not None:
        field: dict[str, Any] = {"name": found.group("name"), "type": typed.group(1), "format": typed.group(2)}
    else:
        key, _, value = rest.partition(":")
        key = key.strip().strip('"')
        made_up = {"enum": _MADE_UP, "pattern": "^[a-z]{3}$", "minimum": 1, "maximum": 9}
        parsed = _value(value.strip()) if key != "pattern" else value.strip()
        code = isinstance(parsed, str) and key in made_up and re.match(r"^[\w.\[\]\"'() ,*|{}=:>-]*$", parsed)
        named = code and (key != "pattern" or re.fullmatch(r"[A-Z][A-Z0-9_]+", parsed))
        field = {"name": found.group("name"), "constraints": {key: made_up[key] if named else parsed}}
    return _text(folder, "schema.json", json.dumps({"fields": [field]}, default=str))


def _pandera(record: Record, folder: Path) -> Path | None:
    rule = record["rule"]
    if re.match(r"^\w+: \*", rule):
        return None
    if rule.startswith('"'):
        text = f"schema = pa.DataFrameSchema({{{rule}}})\n"
    elif rule.startswith("@"):
        one = re.sub(r"^(@[\w.]+(?:\([^)]*\))?) def ", r"\1\n    def ", rule)
        one = re.sub(r'(-> [^:]+(?:\[[^\]]*\])?|\)):\s+("""[^"]*""" )?return', r"\1:\n        return", one)
        text = f"class M(pa.DataFrameModel):\n    {one}\n"
    else:
        text = f"class M(pa.DataFrameModel):\n    {rule}\n"
    return _text(folder, "schema.py", "import pandera as pa\n" + text)


def _sdv(record: Record, folder: Path) -> Path:
    rule = record["rule"].strip().rstrip(",")
    rule = re.sub(r"column_names=(columns|orig_cols)\b", "column_names=['a', 'b', 'c']", rule)
    return _text(folder, "constraints.py", f"constraint = {{{rule}}}\n" if rule.startswith("'") else f"{rule}\n")


def _omop(record: Record, folder: Path) -> Path | None:
    found = re.match(r"^(\w+)\.(\w+) (.*?)\b(is\w+|plausible\w+|measure\w+|fk\w+|standard\w+)\s*(.*)$", record["rule"])
    if found is None:
        return None
    table, field, concept, check, value = found.groups()
    row = {"cdmTableName": table, "cdmFieldName": field, check: value or "Yes"}
    if check == "isForeignKey":
        there, _, to = value.partition(".")
        row |= {check: "Yes", "fkTableName": there, "fkFieldName": to}
    elif check == "plausibleTemporalAfter":
        there, _, to = value.partition(".")
        row |= {check: "Yes", "plausibleTemporalAfterTableName": there, "plausibleTemporalAfterFieldName": to}
    if concept.strip():
        row["conceptId"] = "1"
    cells = [f'"{each}"' for each in row.values()]
    return _text(folder, "fields.csv", f"{','.join(row)}\n{','.join(cells)}\n")


def _denial(record: Record, folder: Path) -> Path | None:
    if "a class of dependency" in record["rule"]:
        return None
    return _text(folder, "rules.dc", record["rule"] + "\n")


_WRAPPERS: dict[str, Callable[[Record, Path], Path | None]] = {
    "dbt": _dbt,
    "dbt (package examples)": _dbt,
    "sql": _sql,
    "R validate": _r,
    "Great Expectations": _expectations,
    "Soda": _soda,
    "data contract": _data_contract,
    "table schema": _table_schema,
    "pandera": _pandera,
    "SDV": _sdv,
    "health DQ (OMOP)": _omop,
    "denial constraint": _denial,
}

"""Texts that would hang or crash a reader: each is refused in one line, with exit code 2, within seconds."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kamino.cli.app import main
from kamino.constraints import Constraints
from kamino.errors import ConstraintError, ConstraintErrors, InputError, KaminoError, SchemaError
from kamino.io.text import read_text
from kamino.limits import (
    MAX_CONSTRAINTS,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_EXPONENT,
    MAX_FAULTS,
    MAX_FILE_BYTES,
    MAX_LINE_CHARS,
    MAX_NAME_CHARS,
    MAX_TEXT_BYTES,
)
from kamino.schema import Real, Schema, schema_from_pandera

SECONDS = 5.0
DEEP = 100_000

RULES = {
    "parentheses": "check (" + "(" * DEEP + "a > 1" + ")" * DEEP + ")",
    "short parentheses": "check (" + "(" * 1_000 + "a > 1" + ")" * 1_000 + ")",
    "negations": "check (" + "not " * 3_000 + "a > 1)",
    "digits": "check (a > " + "9" * 10_000 + ")",
    "digits after the point": "check (a > 0." + "9" * 10_000 + ")",
    "exponent": "check (a > 1e999999999)",
    "negative exponent": "check (a > 1e-999999999)",
    "long exponent": "check (a > 1e" + "9" * 5_000 + ")",
    "weight": "weight 1e999999999: a -> b",
    "legacy digits": "t1&t2&EQ(t1.a," + "9" * 10_000 + ")",
    "legacy digits that are no number": "t1&t2&EQ(t1.a," + "9" * 16_000 + "x)",
    "legacy exponent": "t1&t2&EQ(t1.a,1e999999999)",
    "legacy spaces": "t1&t2&EQ(t1.a" + " " * 16_000,
    "legacy number of a tuple": "t" + "1" * 10_000 + "&t2&EQ(t1.a,t2.a)",
    "legacy name": "t1&t2&EQ(t1." + "a" * 10_000 + ",t2.a)",
    "line": "check (a in (" + ", ".join("1" for _ in range(10_000)) + "))",
    "name": "a" * 5_000 + " -> b",
    "quoted name": '"' + "a" * 5_000 + '" -> b',
    "lines": "a -> b\n" * (MAX_CONSTRAINTS + 5),
    "right sides": "\n".join("a -> " + ", ".join(f"b{i}" for i in range(1_000)) for _ in range(10)),
    "faults": "?\n" * 100_000,
    "bytes": "# " + "x" * MAX_TEXT_BYTES,
}


def _values(*lines: str) -> str:
    return "attributes:\n" + "".join(f"  {line}\n" for line in lines)


SCHEMAS = {
    "lists": "[" * DEEP,
    "closed lists": "attributes: " + "[" * 2_000 + "]" * 2_000,
    "maps": "{a: " * DEEP,
    "indents": "".join(" " * i + "a:\n" for i in range(2_000)),
    "dashes": "- " * 5_000 + "a",
    "digits": _values("a: {type: integer, min: 0, max: " + "9" * 10_000 + "}"),
    "digits after the point": _values("a: {type: real, min: 0, max: 0." + "9" * 10_000 + "}"),
    "digits that are no number": _values("a: {type: integer, min: 0, max: " + "9" * 200_000 + "x}"),
    "exponent": _values("a: {type: real, min: 0, max: 1e999999999}"),
    "negative exponent": _values("a: {type: real, min: 1e-999999999, max: 1}"),
    "both exponents": _values("a: {type: real, min: -1e999999999, max: 1e-999999999}"),
    "resolution": _values("a: {type: datetime, min: 2020-01-01, max: 2021-01-01, resolution: 1e300}"),
    "tagged integer": _values("a: {type: integer, min: !!int x, max: 1}"),
    "tagged float": _values("a: {type: real, min: !!float x, max: 1}"),
    "tagged boolean": _values("a: {type: integer, nullable: !!bool x}"),
    "tagged timestamp": _values("a: {type: date, min: !!timestamp x, max: 1}"),
    "tagged set": _values("a: {type: categorical, values: !!set {x, y}}"),
    "aliases": "a: &a [x,x,x,x,x,x,x,x,x]\n"
    + "".join(f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)),
    "an alias of itself": "attributes: &a {b: *a}",
    "pattern": _values("a: {type: key, pattern: 'C{:0" + "9" * 5_000 + "d}'}"),
    "dtype": _values("a: {type: real, dtype: 'decimal128(" + "9" * 5_000 + ", 2)'}"),
    "max_rows": "unit: a\nmax_rows: " + "9" * 300 + "\n" + _values("a: {type: key}"),
    "name": _values("? " + "a" * 5_000, ": {type: integer}"),
    "faults": _values(*(f"a{i}: {{type: integer, mim: 1}}" for i in range(1_000))),
    "repeated values": _values(
        "a: {type: categorical, values: [" + ", ".join([*map(str, range(9_000)), "8999"]) + "]}"
    ),
    "bytes": "# " + "x" * MAX_TEXT_BYTES,
    "early offset": _values("a: {type: datetime, min: 0001-01-01T00:00:00+14:00, max: 2020-01-01, timezone: UTC}"),
}


def _run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: object) -> list[str]:
    """The lines of a command that must end with exit code 2 in good time."""
    monkeypatch.setattr(sys, "argv", ["kamino", *map(str, arguments)])
    begin = time.process_time()
    with pytest.raises(SystemExit) as end:
        main()
    assert time.process_time() - begin < SECONDS
    told = capsys.readouterr()
    assert end.value.code == 2, told.err[:500]
    assert "Traceback" not in told.err
    return told.err.splitlines()


@pytest.fixture(autouse=True)
def _hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    for module, name in ((sys, "excepthook"), (sys, "unraisablehook"), (threading, "excepthook")):
        monkeypatch.setattr(module, name, getattr(module, name))


@pytest.mark.parametrize("kind", RULES)
def test_hostile_rules_are_refused_at_once(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    begin = time.process_time()
    with pytest.raises(ConstraintErrors) as caught:
        Constraints.parse(RULES[kind])
    assert time.process_time() - begin < SECONDS
    assert len(caught.value.errors) <= MAX_FAULTS + 1
    assert all(len(str(error)) < 500 for error in caught.value.errors)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    (tmp_path / "rules.dc").write_text(RULES[kind])
    lines = _run(monkeypatch, capsys, "check", tmp_path / "t.csv", "-c", tmp_path / "rules.dc")
    assert len(lines) == 1 or kind in ("faults", "lines", "right sides")
    assert len(lines) <= MAX_FAULTS + 1


@pytest.mark.parametrize("kind", SCHEMAS)
def test_hostile_schemas_are_refused_at_once(
    kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    begin = time.process_time()
    with pytest.raises(SchemaError):
        Schema.from_yaml(SCHEMAS[kind])
    assert time.process_time() - begin < SECONDS
    (tmp_path / "s.yaml").write_text(SCHEMAS[kind])
    lines = _run(monkeypatch, capsys, "plan", "-s", tmp_path / "s.yaml")
    assert len(lines) <= (MAX_FAULTS + 1 if kind == "faults" else 2)
    assert all(len(line) < 800 for line in lines)


@pytest.mark.parametrize(
    "text", ["[" * DEEP, '{"a":' * DEEP, '{"columns": {"a": {"x": ' + "9" * 10_000 + "}}}", "[1]", "{", '"']
)
def test_hostile_metadata_is_refused_at_once(
    text: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "m.json").write_text(text)
    for option in ("--sdv", "--pandera"):
        assert len(_run(monkeypatch, capsys, "init", option, tmp_path / "m.json")) == 1


@pytest.mark.parametrize(
    "column",
    [
        {"dtype": "int64", "checks": {"in_range": 5}},
        {"dtype": "int64", "checks": {"in_range": {"min_value": 1}}},
        {"dtype": "float64", "checks": {"ge": "1e999999999", "le": "1e999999999"}},
        {"dtype": "int64", "checks": {"ge": "9" * 5_000, "le": 4}},
        {"dtype": "int64", "checks": [3]},
        {"dtype": "str", "checks": {"isin": 4}},
    ],
)
def test_odd_pandera_checks_are_refused(column: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        schema_from_pandera({"columns": {"a": column}})
    with pytest.raises(SchemaError):
        schema_from_pandera(json.dumps({"columns": {"a": column}}))


@pytest.mark.parametrize(
    "check",
    [
        "(" * 5_000 + "a > 1" + ")" * 5_000,
        "not " * 5_000 + "a > 1",
        "a > " + "9" * 10_000,
        "a > 1e999999999",
        "a > " + "-" * 5_000 + "1",
    ],
    ids=["parentheses", "negations", "digits", "exponent", "signs"],
)
def test_hostile_sql_is_refused_at_once(check: str) -> None:
    begin = time.process_time()
    with pytest.raises(ConstraintError):
        Constraints.from_ddl(f"create table t (a int, b int, check ({check}))")
    assert time.process_time() - begin < SECONDS


def test_many_alternatives_are_read_at_once() -> None:
    """What would be 2^400 denial constraints is one of terms."""
    begin = time.process_time()
    text = " or ".join(f"(a > {i} and b > {i})" for i in range(400))
    (rule,) = Constraints.parse(f"check ({text})")
    (sql,) = Constraints.from_ddl(f"create table t (a int, b int, check ({text}))")
    assert rule.attributes == sql.attributes == ("a", "b")
    assert time.process_time() - begin < SECONDS


def test_a_long_conjunction_in_sql_is_read() -> None:
    parts = " and ".join(f"a != {i}" for i in range(1_500))
    (rule,) = Constraints.from_ddl(f"create table t (a int, check (not ({parts})))")
    assert len(rule.predicates) == 1_500


@pytest.mark.parametrize("source", ["/dev/zero", None])
def test_a_file_too_large_is_refused_at_once(source: str | None, tmp_path: Path) -> None:
    if source is None:
        source = str(tmp_path / "large")
        with open(source, "wb") as handle:
            handle.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(InputError, match=r"found more than 4 MiB, expected a schema file"):
        read_text(source, what="schema file")


@pytest.mark.parametrize("number", [f"1e{MAX_EXPONENT}", f"-1e-{MAX_EXPONENT}", "9" * MAX_DIGITS, "0.5", "0e0"])
def test_numbers_at_the_limit_are_read(number: str) -> None:
    assert len(Constraints.parse(f"check (a > {number})")) == 1


def test_what_is_at_the_limit_is_read() -> None:
    inner = MAX_DEPTH - 1
    assert len(Constraints.parse("check (" + "(" * inner + "a > 1" + ")" * inner + ")")) == 1
    assert len(Constraints.parse("\n".join(f"a{i} -> b" for i in range(MAX_CONSTRAINTS)))) == MAX_CONSTRAINTS
    values = ", ".join(str(10_000 + i) for i in range(MAX_LINE_CHARS // 8))
    assert len(Constraints.parse(f"not (a not in ({values}))")) == 1
    assert len(Constraints.parse("a" * MAX_NAME_CHARS + " -> b")) == 1
    assert len(Schema(attributes={"a": Real(min=-1e300, max=1e300, decimals=-290)})) == 1
    named = "".join(f"  a{i}: {{type: key}}\n" for i in range(200))
    assert len(Schema.from_yaml(f"attributes:\n{named}")) == 200


def test_too_many_attributes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kamino.schema.files.schema_file.MAX_ATTRIBUTES", 100)
    named = "".join(f"  a{i}: {{type: key}}\n" for i in range(101))
    with pytest.raises(SchemaError, match="found 101 attributes, expected at most 100"):
        Schema.from_yaml(f"attributes:\n{named}")


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kamino.schema.category.MAX_VALUES", 100)
    with pytest.raises(SchemaError, match="found 101 values, expected at most 100"):
        Schema.from_yaml(f"attributes:\n  a: {{type: categorical, values: {list(range(101))}}}")


def test_public_numbers_beyond_the_limit_are_refused_from_python() -> None:
    from decimal import Decimal

    for bound in (Decimal("1e999999999"), 10**5_000):
        with pytest.raises(KaminoError):
            Real(min=0, max=bound)

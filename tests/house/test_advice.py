"""Advice: each face says what there is to do in its own words, and each code is explained."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kamino.advice import ANY, Advice, Face, dropping, named, reading, setting, speaking
from kamino.errors import InputError

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "kamino"
# An option, or a command that a program has another way for.
SPEAKS = re.compile(r"(?<![\w-])--[a-z][a-z-]+|\bkamino (init|synth|check|plan|suggest|sample|verify|sign|report)\b")
# What goes with a table to people who have the command: a certificate's own words, and an entry of a registry.
FOR_READERS = ("pipeline/output/provenance.py", "pipeline/verifying/registry_entry.py")


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def _said(tree: ast.Module) -> Iterator[ast.Constant]:
    """The texts of a module, but for docstrings and what is said in the words of each face."""
    passed: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            passed.add(id(node.body[0].value))  # type: ignore[attr-defined]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "words":
            passed |= {id(each) for each in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in passed:
            yield node


def test_the_library_does_not_speak_the_command_line() -> None:
    apart = ("cli/", "advice.py", "pipeline/settings.py", *FOR_READERS)
    found = [
        f"{name}:{text.lineno}: {text.value!r}"
        for name, tree in _trees()
        if not name.startswith(apart)
        for text in _said(tree)
        if SPEAKS.search(text.value)
    ]
    assert found == []


def _codes() -> set[str]:
    """The codes of all advice in the source: the first argument of `Advice.of`, or the constant that it names."""
    found = set()
    for name, tree in _trees():
        constants = {
            node.targets[0].id: node.value.value
            for node in tree.body
            if isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and isinstance(node.value, ast.Constant)
        }
        for node in ast.walk(tree):
            if name == "advice.py" or not (isinstance(node, ast.Call) and ast.unparse(node.func) == "Advice.of"):
                continue
            first = node.args[0]
            if isinstance(first, ast.Attribute):  # the code of other advice that this one goes on with
                continue
            code = first.value if isinstance(first, ast.Constant) else constants[ast.unparse(first)]
            assert isinstance(code, str)
            found.add(code)
    return found


def test_each_code_is_on_the_page() -> None:
    page = (ROOT / "docs" / "reference" / "advice.md").read_text(encoding="utf-8")
    listed = re.findall(r"^## `([a-z-]+)`$", page, re.M)
    assert listed == sorted(set(listed))
    assert set(listed) == _codes()


@pytest.mark.parametrize(
    ("remedy", "command_line", "python"),
    [
        (setting("trust_domain"), "--trust-domain", "trust_domain=True"),
        (setting("unit", "row"), "--unit row", "unit='row'"),
        (setting("max_rows", ANY), "--max-rows N", "max_rows=N"),
        (named("max_rows"), "--max-rows", "max_rows"),
        (dropping(("a", "b c"), repr), "--drop 'a' --drop 'b c'", "Reading(drop=('a', 'b c'))"),
        (dropping(), "--drop", "Reading(drop=...)"),
        (reading("encoding", "cp1252"), "--encoding cp1252", "Reading(encoding='cp1252')"),
        (reading("columns", "a", "b"), "--columns a,b", "Reading(columns=('a', 'b'))"),
    ],
)
def test_each_face_has_its_own_words(remedy: object, command_line: str, python: str) -> None:
    assert str(remedy) == python
    with speaking(Face.COMMAND_LINE):
        assert str(remedy) == command_line
        with speaking(Face.PYTHON):
            assert str(remedy) == python
        assert str(remedy) == command_line
    assert str(remedy) == python


def test_errors_carry_their_advice() -> None:
    inner = Advice.of("whose", "found a; say ", setting("unit", "row"), about=("a",))
    outer = Advice.of("whose", inner, ". Nothing was spent", about=("a",))
    assert outer.remedies == inner.remedies == (setting("unit", "row"),)
    problem = pickle.loads(pickle.dumps(outer.error(InputError)))
    assert str(problem) == "found a; say unit='row'. Nothing was spent"
    assert problem.advice == outer
    assert problem.advice.told(Face.COMMAND_LINE) == "found a; say --unit row. Nothing was spent"
    assert InputError("found nothing").advice is None


def test_settings_that_advice_names_are_options() -> None:
    """Every name that `setting` or `named` is given is a field of the settings with that flag, or an own option."""
    from dataclasses import fields

    from kamino.pipeline import Settings

    flags = {each.name: each.metadata["flag"].names for each in fields(Settings) if each.metadata.get("flag")}
    own = {"workers", "today", "kind"}
    used = set()
    for name, tree in _trees():
        if name == "advice.py":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("setting", "named"):
                used |= {each.value for each in node.args[:1] if isinstance(each, ast.Constant)}
    assert {"unit", "accept", "trust_domain", "anyway", "engine"} <= used
    for name in used - own:
        assert f"--{name.replace('_', '-')}" in flags[name]

"""Texts with Jinja, as dbt writes them: variables and references put in, anything else refused. Nothing is run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kamino.errors import ConstraintError
from kamino.limits import cut

_COMMENT = re.compile(r"{#.*?#}", re.DOTALL)
_CONFIG = re.compile(r"{{-?\s*config\(.*?\)\s*-?}}", re.DOTALL)
_HOLE = re.compile(r"{{-?\s*(.*?)\s*-?}}", re.DOTALL)
_VAR = re.compile(r"var\(\s*\\?['\"]([^'\"\\]+)\\?['\"]\s*(?:,\s*(.+?)\s*)?\)(?:\s*\|\s*\w+)?", re.DOTALL)
_REF = re.compile(
    r"(?:ref|source)\(\s*(?:['\"][^'\"]+['\"]\s*,\s*)?['\"]([^'\"]+)['\"]\s*(?:,\s*v(?:ersion)?\s*=\s*\d+\s*)?\)"
)
_TYPE = re.compile(r"(?:dbt|dbt_utils|dbt_expectations|api\.Column)\.type_(\w+)\(\)")
_LITERAL = re.compile(r"^(?:'([^']*)'|\"([^\"]*)\"|(-?\d+(?:\.\d+)?))$")
_TYPES = {"string": "text", "numeric": "numeric", "int": "integer", "bigint": "bigint", "float": "double precision",
          "timestamp": "timestamp", "datetime": "timestamp", "boolean": "boolean", "date": "date"}  # fmt: skip


def resolved(text: str, variables: Mapping[str, Any]) -> str:
    """The text with what stands in `{{ }}` put in.

    Raises:
        ConstraintError: a variable that is not known, or code.
    """
    text = _CONFIG.sub("", _COMMENT.sub("", text))
    if "{%" in text:
        raise ConstraintError("it holds Jinja code, which is not run here")
    return _HOLE.sub(lambda found: _filled(found.group(1), variables), text)


def _filled(inside: str, variables: Mapping[str, Any]) -> str:
    variable = _VAR.fullmatch(inside)
    if variable is not None:
        return _variable(variable.group(1), variable.group(2), variables)
    reference = _REF.fullmatch(inside)
    if reference is not None:
        return reference.group(1)
    kind = _TYPE.fullmatch(inside)
    if kind is not None and kind.group(1) in _TYPES:
        return _TYPES[kind.group(1)]
    literal = _LITERAL.fullmatch(inside)
    if literal is not None:
        return next(each for each in literal.groups() if each is not None)
    raise ConstraintError(f"it holds Jinja that is not run here: {cut(inside)}")


def _variable(name: str, default: str | None, variables: Mapping[str, Any]) -> str:
    if name in variables:
        value = variables[name]
        if isinstance(value, list | dict):
            raise ConstraintError(f"its variable '{name}' is a list")
        return str(value)
    literal = _LITERAL.fullmatch(default or "")
    if literal is None:
        raise ConstraintError(f"its variable '{name}' is not known; say it in dbt_project.yml")
    return next(each for each in literal.groups() if each is not None)

"""What commands ask for, as it was when each option was written out for each command.

`python -m tests.cli.test_help` writes the snapshot anew, for a change that is meant.
"""

from __future__ import annotations

import importlib
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import typer
from typer.models import ArgumentInfo

from kamino.cli.app import _MODULES, COMMANDS

SNAPSHOT = Path(__file__).parent / "help.json"


def _asked(function: Callable[..., None]) -> list[dict[str, Any]]:
    """The parameters of a command, in the order in which `--help` lists them."""
    found = []
    for each in inspect.signature(function, eval_str=True).parameters.values():
        kind, said = get_args(each.annotation)
        found.append(
            {
                "names": [each.name]
                if isinstance(said, ArgumentInfo)
                else [flag for flag in (said.default, *(said.param_decls or ())) if isinstance(flag, str)],
                "kind": str(kind),
                "least": said.min,
                "default": "required" if each.default is inspect.Parameter.empty else each.default,
                "panel": said.rich_help_panel,
                "metavar": said.metavar,
                "help": said.help,
            }
        )
    return found


def _all_asked() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in COMMANDS:
        function = getattr(importlib.import_module(f"kamino.cli.commands.{_MODULES.get(name, name)}"), name)
        functions = {name: function}
        if isinstance(function, typer.Typer):
            group = function.registered_commands
            functions = {f"{name} {each.callback.__name__}": each.callback for each in group if each.callback}
        for title, each in functions.items():
            found[title] = {"help": inspect.getdoc(each), "asked": _asked(each)}
    return dict(json.loads(json.dumps(found, default=str)))


def test_help_is_as_it_was() -> None:
    was, now = json.loads(SNAPSHOT.read_text(encoding="utf-8")), _all_asked()
    assert set(now) == set(was)
    for name in was:
        assert now[name] == was[name], name


def _written(found: dict[str, Any]) -> str:
    """A line for each command and for each parameter."""
    said = []
    for name, command in found.items():
        lines = ",\n  ".join(json.dumps(each, ensure_ascii=False) for each in command["asked"])
        head = json.dumps(command["help"], ensure_ascii=False)
        said.append(f' {json.dumps(name)}: {{"help": {head}, "asked": [\n  {lines}]}}')
    return "{\n" + ",\n".join(said) + "\n}\n"


if __name__ == "__main__":
    SNAPSHOT.write_text(_written(_all_asked()), encoding="utf-8")

"""What commands ask for alike: options made from the fields of `Settings`, and groups of options of other kinds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, fields
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from kamino.cli.options import (
    AnchorOption,
    ColumnsOption,
    ConstraintsOption,
    DatasetOption,
    DropOption,
    EncodingOption,
    LedgerOption,
    NullsOption,
    NumbersOption,
    PresetOption,
    QueryOption,
    ResumeOption,
    SchemaOption,
    SeparatorOption,
    ledger_use,
    reading_of,
    told_constraints,
    value_lists,
)
from kamino.io import Reading
from kamino.pipeline import Preset, Settings, Synthesizer
from kamino.pipeline.ledgering import LedgerUse
from kamino.pipeline.settings import Flag

# Options that stand together in every command.
READING = ("separator", "encoding", "columns", "drop", "nulls", "numbers")
LEDGER = ("ledger", "dataset", "anchor", "resume")

# Those that are no settings, with what they are if they are left out.
_OTHERS: Mapping[str, tuple[Any, Any]] = {
    "schema": (SchemaOption, None),
    "constraints": (ConstraintsOption, None),
    "preset": (PresetOption, Preset.DEFAULT),
    "query": (QueryOption, None),
    "separator": (SeparatorOption, None),
    "encoding": (EncodingOption, None),
    "columns": (ColumnsOption, None),
    "drop": (DropOption, None),
    "nulls": (NullsOption, None),
    "numbers": (NumbersOption, None),
    "ledger": (LedgerOption, None),
    "dataset": (DatasetOption, None),
    "anchor": (AnchorOption, None),
    "resume": (ResumeOption, None),
}
# Settings that no preset chooses; any other that is left out is as the preset has it.
_PLAIN = (bool, float)
_LISTED = "value_lists"


@cache
def _settings() -> Mapping[str, Field[Any]]:
    """The settings that have a flag, by name."""
    return {each.name: each for each in fields(Settings) if each.metadata.get("flag") is not None}


def _option(name: str) -> inspect.Parameter:
    """A shared option, as typer reads it from a signature."""
    if name in _OTHERS:
        kind, default = _OTHERS[name]
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
    setting = _settings()[name]
    flag: Flag = setting.metadata["flag"]
    kind = list[str] if name == _LISTED else get_type_hints(Settings)[name]
    plain = kind in _PLAIN
    option = typer.Option(
        *flag.names,
        min=setting.metadata["least"] if flag.bounded else None,
        # A bracket begins a style here.
        help=flag.help.replace("[", "\\["),
        rich_help_panel=flag.panel,
    )
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[kind if plain else kind | None, option],
        default=setting.default if plain else None,
    )


@dataclass(frozen=True)
class Asked:
    """What the shared options of a command were given."""

    given: Mapping[str, Any]

    @property
    def schema(self) -> Path | None:
        """The schema file."""
        path: Path | None = self.given["schema"]
        return path

    @property
    def constraints(self) -> Path | None:
        """The constraint file."""
        path: Path | None = self.given["constraints"]
        return path

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that were given, as keywords of `Synthesizer`."""
        chosen = {name: value for name, value in self.given.items() if name in _settings()}
        return chosen | ({_LISTED: value_lists(chosen[_LISTED])} if _LISTED in chosen else {})

    @property
    def reading(self) -> Reading:
        """How the table is read."""
        return reading_of(self.given.get("query"), *(self.given.get(name) for name in READING))

    @property
    def ledger(self) -> LedgerUse | None:
        """The durable ledger in which the run is entered."""
        path, dataset, anchor, resume = (self.given.get(name) for name in LEDGER)
        return ledger_use(path, dataset, resume, anchor)

    def synthesizer(self) -> Synthesizer:
        """A synthesizer of these choices."""
        preset = self.given["preset"]
        rules = told_constraints(self.constraints)
        return Synthesizer(self.schema, rules, preset=preset, **self.settings, ledger=self.ledger)


def options(*order: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command of a function: `order` names its options as `--help` lists them.

    What the function has as a parameter is its own; the rest are shared, and come to it as `asked`.

    Guarantees:
        Commands have the options that they had when each was written out.  [test_help_is_as_it_was]
    """

    def made(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True).parameters
        listed = [
            own[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) if name in own else _option(name) for name in order
        ]

        @wraps(function)
        def command(**given: Any) -> None:
            mine = {name: given.pop(name) for name in own if name in given}
            function(**mine, asked=Asked(given))

        command.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
        command.__annotations__ = {each.name: each.annotation for each in listed}
        return command

    return made

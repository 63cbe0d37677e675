"""Help that reads as text: no types beside flags, paragraphs filled."""

from __future__ import annotations

from typing import Any

import typer.core


class PlainFlags:
    """Shows no type beside options that take no value.

    Guarantees:
        No flag is listed with a type.  [test_flags_are_listed_without_a_type]
    """

    def get_params(self, ctx: Any) -> Any:
        """All parameters, that which asks for help as well."""
        params = super().get_params(ctx)  # type: ignore[misc]
        for each in params:
            if getattr(each, "is_flag", False):
                each.metavar = ""
        return params


class PlainCommand(PlainFlags, typer.core.TyperCommand):
    """One command, whose help is filled to the width of the terminal, not broken where its source is.

    Guarantees:
        Each paragraph of help is one.  [test_paragraphs_of_help_are_filled]
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if self.help is not None:
            self.help = "\n\n".join(" ".join(part.split()) for part in self.help.split("\n\n"))


class PlainGroup(PlainFlags, typer.core.TyperGroup):
    """Several commands under one name."""

"""Examples in docstrings, shown as code: `make docs` loads it as an extension of griffe, which reads the docstrings."""

from __future__ import annotations

import re
from typing import Any

import griffe

# A prompt, and what follows it up to an empty line.
_EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *$).*)*", re.MULTILINE)


def fenced(text: str) -> str:
    """The text with each example between fences: Markdown takes a prompt for a quotation in a quotation."""
    return _EXAMPLE.sub(lambda m: f"{m['indent']}```pycon\n{m.group()}\n{m['indent']}```", text)


class Examples(griffe.Extension):
    """Puts examples between fences wherever there is a docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change one docstring."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)

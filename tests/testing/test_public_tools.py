"""The tools are public: what is exported is there, and the page about them names it and is right."""

from __future__ import annotations

import re
from pathlib import Path

import kamino.testing

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


def test_every_tool_is_there_and_on_its_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for name in kamino.testing.__all__:
        assert hasattr(kamino.testing, name)
        assert re.search(rf"`{name}\b", text), f"docs/testing.md does not name {name}"


def test_the_page_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code, str(PAGE), "exec"), {})

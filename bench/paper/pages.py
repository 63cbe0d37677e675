"""A page of an experiment: words, tables, a plot, and the command that made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.paper.asking import Asked


@dataclass(frozen=True, kw_only=True)
class Grid:
    """A table of a page."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str = ""

    def to_markdown(self) -> str:
        r"""The table in Markdown.

        >>> print(Grid(header=("a", "b"), rows=(("1", "x|y"),)).to_markdown())
        | a | b |
        | --- | --- |
        | 1 | x\|y |
        """
        lines = [self.header, ("---",) * len(self.header), *self.rows]
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


@dataclass(frozen=True, kw_only=True)
class Page:
    """What an experiment found. `plots` are SVG texts by the end of their file's name."""

    name: str
    title: str
    words: str
    grids: Sequence[Grid]
    plots: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def write(self, asked: Asked) -> Path:
        """Write NAME.md and its plots into the folder of pages."""
        asked.docs.mkdir(parents=True, exist_ok=True)
        parts = [f"# {self.title}", self.words]
        for end, picture in self.plots.items():
            file = f"{self.name}{'-' if end else ''}{end}.svg"
            (asked.docs / file).write_text(picture, encoding="utf-8")
            parts.append(f"![{self.title}]({file})")
        for grid in self.grids:
            parts += [f"**{grid.caption}**"] if grid.caption else []
            parts.append(grid.to_markdown())
        if self.notes:
            parts.append("\n".join(f"- {note}" for note in self.notes))
        parts.append(f"Made by:\n\n```sh\n{asked.command}\n```")
        path = asked.docs / f"{self.name}.md"
        path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        return path

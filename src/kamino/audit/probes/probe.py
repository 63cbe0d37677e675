"""A probe asks one part of the code what is known by another way, where no run on a table would show a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One probe: what it asks, what it cannot show, and `search`, which tells what is wrong, on made-up input only."""

    name: str
    does: str
    cannot: str
    search: Callable[[], Iterable[str]]

    def find(self) -> tuple[str, ...]:
        """Return all that is wrong, each once."""
        return tuple(dict.fromkeys(self.search()))

    def first(self) -> tuple[str, ...]:
        """Return the first thing that is wrong, or nothing: enough to see that something is."""
        return tuple(problem for problem, _ in zip(self.search(), range(1), strict=False))

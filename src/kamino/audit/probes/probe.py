"""A probe asks one part of the code what is known by another way, where no run on a table would show a fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One probe: what it asks, what it cannot show, and `find`, which returns what is wrong, on made-up input only."""

    name: str
    does: str
    cannot: str
    find: Callable[[], tuple[str, ...]]

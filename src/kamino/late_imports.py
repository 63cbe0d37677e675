"""Public names that are imported when they are first used: all of them together are slow to import."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def late_imports(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a package's `__getattr__`: `homes` says in which of its modules a name is.

    >>> look_up = late_imports("kamino", {"KaminoError": "errors"})
    >>> look_up("KaminoError").__name__
    'KaminoError'
    """

    def look_up(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return look_up

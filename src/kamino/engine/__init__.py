"""Where private counts are computed, and handed to the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kamino.engine.discovery import DiscoveryShare, discover_domains, set_delta_aside
    from kamino.engine.memory import MemoryMeasurer
    from kamino.engine.typing import discover_types

__all__ = [
    "DiscoveryShare",
    "MemoryMeasurer",
    "discover_domains",
    "discover_types",
    "set_delta_aside",
]

_HOMES = {
    "DiscoveryShare": "discovery",
    "MemoryMeasurer": "memory",
    "discover_domains": "discovery",
    "discover_types": "typing",
    "set_delta_aside": "discovery",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: all of them together are slow to import."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

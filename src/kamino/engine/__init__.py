"""Where private tables are opened: counts of them are computed here, and handed to the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kamino.engine.discovery import DiscoveryShare, discover_domains, set_delta_aside
    from kamino.engine.memory import MemoryMeasurer
    from kamino.engine.neural_rows import NeuralRows
    from kamino.engine.tables import encode, keep_rows, trusted_schema, with_types
    from kamino.engine.typing import discover_types

__all__ = [
    "DiscoveryShare",
    "MemoryMeasurer",
    "NeuralRows",
    "discover_domains",
    "discover_types",
    "encode",
    "keep_rows",
    "set_delta_aside",
    "trusted_schema",
    "with_types",
]

_HOMES = {
    "DiscoveryShare": "discovery",
    "MemoryMeasurer": "memory",
    "NeuralRows": "neural_rows",
    "discover_domains": "discovery",
    "discover_types": "typing",
    "encode": "tables",
    "keep_rows": "tables",
    "set_delta_aside": "discovery",
    "trusted_schema": "tables",
    "with_types": "tables",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: all of them together are slow to import."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

"""Where private tables are opened: counts of them are computed here, and handed to the gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.late_imports import late_imports

if TYPE_CHECKING:
    from kamino.engine.closeness import share_close
    from kamino.engine.discovery import DiscoveryShare, discover_domains, release_about_rows, set_delta_aside
    from kamino.engine.memory import MemoryMeasurer
    from kamino.engine.neural_rows import NeuralRows
    from kamino.engine.own_values import columns_of_single_units
    from kamino.engine.sealed_tables import encode, keep_rows, trusted_attribute, trusted_schema, with_types
    from kamino.engine.streamed import StreamedMeasurer
    from kamino.engine.typing import discover_types

__all__ = [
    "DiscoveryShare",
    "MemoryMeasurer",
    "NeuralRows",
    "StreamedMeasurer",
    "columns_of_single_units",
    "discover_domains",
    "discover_types",
    "encode",
    "keep_rows",
    "release_about_rows",
    "set_delta_aside",
    "share_close",
    "trusted_attribute",
    "trusted_schema",
    "with_types",
]

_HOMES = {
    "DiscoveryShare": "discovery",
    "MemoryMeasurer": "memory",
    "NeuralRows": "neural_rows",
    "StreamedMeasurer": "streamed",
    "columns_of_single_units": "own_values",
    "share_close": "closeness",
    "discover_domains": "discovery",
    "discover_types": "typing",
    "encode": "sealed_tables",
    "keep_rows": "sealed_tables",
    "release_about_rows": "discovery",
    "set_delta_aside": "discovery",
    "trusted_attribute": "sealed_tables",
    "trusted_schema": "sealed_tables",
    "with_types": "sealed_tables",
}

__getattr__ = late_imports(__name__, _HOMES)

"""Where private counts are computed, and handed to the gate."""

from kamino.engine.discovery import DiscoveryShare, discover_domains, set_delta_aside
from kamino.engine.memory import MemoryMeasurer
from kamino.engine.typing import discover_types

__all__ = ["DiscoveryShare", "MemoryMeasurer", "discover_domains", "discover_types", "set_delta_aside"]

"""How values of attributes compare in rules."""

from __future__ import annotations

import pyarrow as pa

from kamino.constraints import ValueType
from kamino.constraints.types import value_type
from kamino.schema import Schema


def schema_types(schema: Schema) -> dict[str, ValueType]:
    """How values of each attribute compare, from the schema alone."""
    kinds = {name: attribute.arrow_type for name, attribute in schema.attributes.items()}
    return {name: value_type(kind.value_type if pa.types.is_dictionary(kind) else kind) for name, kind in kinds.items()}

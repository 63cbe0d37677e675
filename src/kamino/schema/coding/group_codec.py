"""Ids of groups of rows as codes: the number of the group. Ids are made up, so there is nothing to encode."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from kamino.errors import SchemaError
from kamino.schema.attributes import Attribute
from kamino.schema.coding.attribute_codec import AttributeCodec, Codes
from kamino.schema.keys import Key, keys_of

# More groups than any table has rows; codes of several ids are still numbered together.
_MOST_GROUPS = 1 << 40


class GroupCodec(AttributeCodec):
    """The ids of groups: equal for equal codes and different for others. They have no order, and none is null.

    Guarantees:
        Two groups never have the same id, nor have two columns of ids.  [test_ids_of_groups_differ]
    """

    ordered = False

    def __init__(self, name: str, attribute: Attribute, place: int, among: int) -> None:
        assert isinstance(attribute, Key), "only keys repeat"
        most = _MOST_GROUPS if attribute.capacity is None else max(1, attribute.capacity // among)
        super().__init__(name, attribute, num_values=min(most, _MOST_GROUPS))
        self.null_code, self.fallback_code = None, 0
        self._key, self._place, self._among = attribute, place, among

    def _encode(self, array: pa.Array) -> Codes:
        raise SchemaError(f"attribute {self.name!r} is the id of a group, which carries no data and is not encoded")

    def _decode(self, codes: Codes, null: npt.NDArray[np.bool_]) -> pa.Array:
        groups, places = np.unique(codes, return_inverse=True)
        ids = keys_of(self._key, [code * self._among + self._place + 1 for code in groups.tolist()])
        return ids.take(pa.array(places.ravel()))

    def value_of(self, code: int) -> Any:
        """Return the id of one group."""
        return keys_of(self._key, [code * self._among + self._place + 1])[0].as_py()

    def code_of(self, value: Any) -> int | None:
        """Return nothing: what is made up is nobody's constant."""
        return None

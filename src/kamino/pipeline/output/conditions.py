"""Conditions on the rows to draw: what `given` says, as codes. Intervals would be one more kind of condition here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from kamino.arrays import IntArray
from kamino.errors import InputError
from kamino.schema import AttributeCodec, Codec, GridCodec

Given = Mapping[str, Any]
Allowed = Mapping[str, IntArray]
# Of a domain with more values than this, a message lists the first.
_SHOWN = 12


def allowed_codes(codec: Codec, given: Given) -> dict[str, IntArray]:
    """Return the codes that a condition allows for each of its attributes: of one value, or of several in a list."""
    return {name: _codes_of(codec[name], name, value) for name, value in given.items()}


def _codes_of(attribute: AttributeCodec, name: str, value: Any) -> IntArray:
    values = allowed_values(value)
    codes = [attribute.code_of(each) for each in values]
    outside = [_shown(each) for each, code in zip(values, codes, strict=True) if code is None]
    if not values or outside:
        raise InputError(
            f"found a condition on {name!r} with {', '.join(outside) or 'no value'}; expected {_domain(attribute)}"
        )
    return np.unique(np.array(codes, dtype=np.int64))


def allowed_values(value: Any) -> list[Any]:
    """The values that a condition allows: those of a list, or the one it is."""
    return list(value) if isinstance(value, Collection) and not isinstance(value, str | bytes) else [value]


def condition_text(codec: Codec, allowed: Allowed) -> str:
    """Return the condition in words, for a message."""
    parts = [
        f"{name}={' or '.join(_shown(codec[name].value_of(int(code))) for code in codes[:_SHOWN])}"
        for name, codes in allowed.items()
    ]
    return " and ".join(parts)


def _domain(attribute: AttributeCodec) -> str:
    """What an attribute may be, in words. Domains are public."""
    null = "" if attribute.null_code is None else ", or nothing"
    count = attribute.num_values
    if isinstance(attribute, GridCodec):
        return f"a value from {_shown(attribute.value_of(0))} to {_shown(attribute.value_of(count - 1))}{null}"
    shown = ", ".join(_shown(attribute.value_of(code)) for code in range(min(count, _SHOWN)))
    more = f" and {count - _SHOWN:,} more" if count > _SHOWN else ""
    return f"one of {shown}{more}{null}"


def _shown(value: Any) -> str:
    return "nothing" if value is None else str(value)

"""Keys: opaque identifiers that carry no data and are made up in the output; all different, or one for a group."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import pyarrow as pa
from pydantic import Field, StrictBool, StrictStr

from kamino.errors import SchemaError
from kamino.schema.attribute import BaseAttribute
from kamino.schema.dtypes import is_text

UUID = "uuid"
_PLACEHOLDER = re.compile(r"\{(?::(?:0(\d+))?d?)?\}")


class Key(BaseAttribute):
    """Opaque identifiers. The input's are never encoded; the output's are made up by `make_keys`.

    A pattern is text with one `{}` or `{:d}` (a number), or any number of `{:06d}` (a number cut to fixed widths), such
    as `C{:06d}` or `{:03d}-{:02d}-{:04d}`; or `uuid`. Without one, keys are numbers or, in a text column, uuids.

    A key that `repeats` is the id of a group of rows, such as those of a patient: rows of a group have the same one,
    and how many rows groups have is drawn from a noisy distribution.
    """

    type: Literal["key"] = Field(default="key", description="Opaque identifiers, made up in the output.")
    pattern: StrictStr | None = Field(
        default=None, description="How keys look: text with places for digits, such as C{:06d}, or uuid."
    )
    repeats: StrictBool = Field(
        default=False, description="Whether several rows may have the same key: the id of a person with many rows."
    )

    def default_dtype(self) -> str:
        """Return string."""
        return "string"

    def dtype_problem(self, arrow_type: pa.DataType) -> str:
        """Say whether `arrow_type` holds keys, and whether the pattern can be read."""
        if pa.types.is_integer(arrow_type):
            return "holds numbers, which have no pattern: use string, or leave out the pattern" if self.pattern else ""
        if not is_text(arrow_type):
            return "does not fit a key: expected string or an integer type"
        if self.pattern is not None and self.pattern != UUID:
            pattern_widths(self.pattern)
        return ""

    @property
    def capacity(self) -> int | None:
        """The number of different keys; `None` if there is no end."""
        if pa.types.is_integer(self.arrow_type):
            return int(2 ** (self.arrow_type.bit_width - pa.types.is_signed_integer(self.arrow_type)) - 1)
        if self.pattern in (None, UUID):
            return None
        widths = pattern_widths(self.pattern or "")
        return None if widths == (0,) else int(10 ** sum(widths)) - 1


def pattern_widths(pattern: str) -> tuple[int, ...]:
    """Return the number of digits in each place of a pattern; 0 for as many as it takes.

    >>> pattern_widths("{:03d}-{:02d}")
    (3, 2)
    """
    widths = tuple(int(match.group(1) or 0) for match in _PLACEHOLDER.finditer(pattern))
    rest = _PLACEHOLDER.sub("", pattern)
    if not widths or "{" in rest or "}" in rest or (0 in widths and len(widths) > 1) or sum(widths) > 18:
        raise ValueError(
            f"found pattern {pattern!r}, expected text with one {{}} or with places such as {{:06d}}, or uuid"
        )
    return widths


def places_of(attributes: Mapping[str, BaseAttribute]) -> dict[str, tuple[int, int]]:
    """The place of each key among those that are made up alike, and how many of these there are.

    Guarantees:
        Two key columns never get the same values.  [test_two_keys_never_get_the_same_values]
    """
    alike: dict[str, list[str]] = {}
    for name, attribute in attributes.items():
        if isinstance(attribute, Key):
            is_number = pa.types.is_integer(attribute.arrow_type)
            alike.setdefault("" if is_number else attribute.pattern or UUID, []).append(name)
    return {name: (place, len(names)) for names in alike.values() for place, name in enumerate(names)}


def make_keys(attribute: Key, num_keys: int, *, start: int = 1, place: int = 0, among: int = 1) -> pa.Array:
    """Return the keys numbered `start` to `start + num_keys - 1`: all different, the same in every run.

    Of several columns that are made up alike, each takes every so many-th number: the one at `place` of `among`.

    Raises:
        SchemaError: the pattern has too few keys.

    >>> make_keys(Key(pattern="C{:03d}"), 2).to_pylist()
    ['C001', 'C002']
    """
    first = (start - 1) * among + place + 1
    return keys_of(attribute, range(first, first + num_keys * among, among))


def keys_of(attribute: Key, numbers: Sequence[int]) -> pa.Array:
    """Return the keys of some numbers: the same for the same number.

    Raises:
        SchemaError: the pattern has too few keys.
    """
    _check_capacity(attribute, max(numbers, default=0))
    if pa.types.is_integer(attribute.arrow_type):
        return pa.array(numbers, attribute.arrow_type)
    if attribute.pattern in (None, UUID):
        return pa.array([_uuid(number) for number in numbers], attribute.arrow_type)
    return pa.array(_fill(attribute.pattern or "", numbers), attribute.arrow_type)


def check_keys(attributes: Mapping[str, BaseAttribute], num_keys: int) -> None:
    """Raise a `SchemaError` if a key among the attributes has fewer values than `num_keys` rows take."""
    for name, (place, among) in places_of(attributes).items():
        attribute = attributes[name]
        assert isinstance(attribute, Key), "only keys have places"
        if attribute.repeats:
            continue  # there are as many ids as there are groups, and no more than it has values
        _check_capacity(attribute, (num_keys - 1) * among + place + 1 if num_keys else 0)


def _check_capacity(attribute: Key, num_keys: int) -> None:
    if attribute.capacity is not None and num_keys > attribute.capacity:
        raise SchemaError(
            f"found a key with {attribute.capacity} different values (pattern {attribute.pattern or attribute.dtype}), "
            f"expected at least {num_keys}: give it more digits"
        )


def _uuid(number: int) -> str:
    """Write a number as a uuid (version 8); numbers below 2^60 all differ, since mixing is one-to-one."""
    high, low = f"{_mix(number, 60):015x}", f"{(1 << 63) | _mix(number, 62):016x}"
    return f"{high[:8]}-{high[8:12]}-8{high[12:]}-{low[:4]}-{low[4:]}"


def _mix(number: int, bits: int) -> int:
    """Scatter numbers over `bits` bits, one-to-one: odd factors and shifted exclusive ors can be undone."""
    mask = (1 << bits) - 1
    number = (number * 0x9E3779B97F4A7C15) & mask
    number ^= number >> (bits // 2)
    number = (number * 0xD6E8FEB86659FD93) & mask
    return number ^ (number >> (bits // 2))


def _fill(pattern: str, numbers: Iterable[int]) -> list[str]:
    """Write each number's digits into the places of `pattern`, the last digit in the last place."""
    widths = pattern_widths(pattern)
    literals = re.split(_PLACEHOLDER.pattern.replace(r"(\d+)", r"\d+"), pattern)
    if len(widths) == 1:
        return [f"{literals[0]}{number:0{widths[0] or 1}d}{literals[1]}" for number in numbers]
    keys = []
    for number in numbers:
        digits, text = f"{number:0{sum(widths)}d}", literals[0]
        for width, literal in zip(widths, literals[1:], strict=True):
            text, digits = text + digits[:width] + literal, digits[width:]
        keys.append(text)
    return keys

"""Categories and booleans: attributes whose values are listed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import pyarrow as pa
from pydantic import BeforeValidator, Field, StrictInt, StrictStr

from kamino.limits import MAX_VALUES, cut
from kamino.schema.attribute import BaseAttribute
from kamino.schema.dtypes import DICTIONARY, is_text

Category = str | int


def _check_values(values: Any) -> Any:
    """Refuse what is neither all text nor all integers, in one message instead of one for each item and kind."""
    if isinstance(values, str) or not isinstance(values, list | tuple):
        raise ValueError("expected a list of values, such as [red, green]")
    if len(values) > MAX_VALUES:
        raise ValueError(f"found {len(values)} values, expected at most {MAX_VALUES}: use a key, or group them")
    kinds = {type(value) for value in values}
    if bool in kinds:
        raise ValueError("found true or false among the values: put them in quotes, or use type: boolean")
    if kinds == {str, int}:
        raise ValueError("found text and integers among the values: put the numbers in quotes")
    if not kinds <= {str} and not kinds <= {int}:
        raise ValueError("expected all values to be text or all to be integers: put them in quotes, or use type: real")
    if len(set(values)) < len(values):
        seen: set[Category] = set()
        repeated = next(value for value in values if value in seen or seen.add(value))  # type: ignore[func-returns-value]
        raise ValueError(f"found {cut(str(repeated))!r} more than once: list each value once")
    if kinds == {int} and not all(-(2**63) <= value < 2**63 for value in values):
        raise ValueError("expected integers that fit 64 bits: put them in quotes to have them as text")
    return tuple(values)


Values = Annotated[Sequence[StrictStr] | Sequence[StrictInt], BeforeValidator(_check_values)]


class Categorical(BaseAttribute):
    """One of a list of texts, or one of a list of integers."""

    domain_fields: ClassVar[tuple[str, ...]] = ("values",)
    type: Literal["categorical"] = Field(default="categorical", description="One of a list of texts or integers.")
    values: Values | None = Field(default=None, description="All values: all text or all integers, each once.")
    other: StrictStr | StrictInt | None = Field(
        default=None, description="The value that stands for anything outside the list; it need not be in the list."
    )

    @property
    def categories(self) -> tuple[Category, ...]:
        """The values in the order of their codes: as listed, then `other` if it is not in the list."""
        listed: tuple[Category, ...] = tuple(self.values or ())
        return listed if self.other is None or self.other in listed else (*listed, self.other)

    @property
    def holds_integers(self) -> bool:
        """Whether the values are integers; if no value is known, the type of the output column says."""
        if self.categories:
            return isinstance(self.categories[0], int)
        return self.dtype is not None and self.dtype != DICTIONARY and not is_text(super().arrow_type)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the output column."""
        if self.dtype == DICTIONARY:
            return pa.dictionary(pa.int32(), pa.int64() if self.holds_integers else pa.string())
        return super().arrow_type

    def check_domain(self) -> None:
        """Refuse a domain without any value and an `other` of another kind than the values."""
        if not self.categories and not self.nullable:
            raise ValueError("found no values, expected at least one: list them, or set nullable: true")
        if len({type(value) for value in self.categories}) > 1:
            raise ValueError(f"found other {self.other!r} of another kind than the values: quote both or neither")

    def default_dtype(self) -> str:
        """Return string or int64, as the values are."""
        return "int64" if self.values and isinstance(self.values[0], int) else "string"

    def dtype_problem(self, arrow_type: pa.DataType) -> str:
        """Say whether `arrow_type` holds the values."""
        if pa.types.is_dictionary(arrow_type) or (self.has_domain and not self.categories):
            return ""
        if pa.types.is_integer(arrow_type):
            if self.has_domain and not self.holds_integers:
                return "does not fit values that are text: use string"
            low, high = min(self.categories, default=0), max(self.categories, default=0)
            try:
                pa.array([low, high], arrow_type)
            except (pa.ArrowInvalid, OverflowError):
                return f"cannot hold all values from {low} to {high}: use int64"
            return ""
        if not is_text(arrow_type):
            return "does not fit a categorical attribute: expected string, an integer type or dictionary"
        return "does not fit values that are integers: use int64" if self.holds_integers else ""


class Boolean(BaseAttribute):
    """True or false."""

    type: Literal["boolean"] = Field(default="boolean", description="True or false.")

    def default_dtype(self) -> str:
        """Return bool."""
        return "bool"

    def dtype_problem(self, arrow_type: pa.DataType) -> str:
        """Say whether `arrow_type` holds two values."""
        fits = pa.types.is_boolean(arrow_type) or pa.types.is_integer(arrow_type)
        return "" if fits else "does not fit a boolean attribute: expected bool or an integer type"

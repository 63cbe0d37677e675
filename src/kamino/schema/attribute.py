"""What every attribute has: null or not, where its domain comes from, its Arrow type in the output."""

from __future__ import annotations

import enum
from typing import Any, ClassVar, Self

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictStr, ValidationError, model_validator

from kamino.errors import SchemaError
from kamino.schema.dtypes import parse_dtype
from kamino.schema.files.messages import explain


def is_utf8(value: object) -> bool:
    """Whether a text, or each of a list of texts, can be written to a file; of anything else, that it can.

    >>> is_utf8("é"), is_utf8(("a", chr(0xD800))), is_utf8(7)
    (True, False, True)
    """
    if isinstance(value, tuple | list):
        value = "".join(each for each in value if isinstance(each, str))
    try:
        return not isinstance(value, str) or value.encode() is not None
    except UnicodeEncodeError:
        return False


class Source(enum.StrEnum):
    """Where a domain comes from, and so who vouches that it may be known."""

    DECLARED = "declared"
    ASSERTED = "asserted"
    PRIVATE = "private"


class BaseAttribute(BaseModel):
    """One column of the table, as far as it may be publicly known. Every field may be published.

    A domain is the set of values a column can take. Without one (`has_domain` is false) it is private and must be
    found within the budget before the column can be encoded. A private domain that was found keeps its source.

    Guarantees:
        A domain that is declared or asserted is complete.  [test_half_a_domain_is_refused]
        A wrong argument raises a SchemaError that lists all that is wrong.  [test_constructor_raises_schema_error]
    """

    # Few tables have attributes of every kind: a kind is made ready when it is first used.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)
    domain_fields: ClassVar[tuple[str, ...]] = ()

    nullable: StrictBool = Field(default=False, description="Whether the column may hold nulls.")
    source: Source = Field(
        default=Source.PRIVATE,
        description="Where the domain comes from: declared by its owner (the default when a domain is given), asserted "
        "(taken from the table because the user called it public), or private (found within the budget).",
    )
    dtype: StrictStr | None = Field(
        default=None, description="Arrow type of the output column, such as int32, float64 or timestamp[ms]."
    )
    description: StrictStr | None = Field(default=None, description="What the column means, for people.")
    nulls: tuple[StrictStr, ...] = Field(
        default=(), description="Texts that stand for nothing in this column, such as NA or -999; the output has nulls."
    )

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise SchemaError(explain(error, place=type(self).__name__)) from None

    # Pydantic then builds nested attributes without this __init__, and so reports the exact place of each error.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]

    @property
    def has_domain(self) -> bool:
        """Whether the domain is known, from whatever source."""
        return all(getattr(self, name) is not None for name in self.domain_fields)

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of the output column."""
        return parse_dtype(self.dtype or self.default_dtype())

    def no_domain(self) -> SchemaError:
        """Return the error for a use that needs the domain of an attribute that has none."""
        return SchemaError("found an attribute without domain: declare it, or find it within the budget")

    def default_dtype(self) -> str:
        """Return the name of the type of the output column where the schema names none."""
        raise NotImplementedError

    def dtype_problem(self, arrow_type: pa.DataType) -> str:
        """Return why `arrow_type` cannot hold this attribute, or `""`; the domain may still be missing."""
        raise NotImplementedError

    def check_domain(self) -> None:
        """Raise a `ValueError` if the domain, which is complete, makes no sense."""

    @model_validator(mode="before")
    @classmethod
    def _source_follows_domain(cls, data: Any) -> Any:
        if not isinstance(data, dict) or data.get("source") is not None:
            return data
        given = all(data.get(name) is not None for name in cls.domain_fields)
        return {**data, "source": Source.DECLARED if given else Source.PRIVATE}

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in type(self).model_fields:
            if not is_utf8(getattr(self, name)):
                raise ValueError(f"found {name} with half of a pair of surrogates, expected text that UTF-8 can hold")
        given = [name for name in self.domain_fields if getattr(self, name) is not None]
        missing = [name for name in self.domain_fields if name not in given]
        if given and missing:
            raise ValueError(f"found {' and '.join(given)} without {' and '.join(missing)}: give both or neither")
        if missing and self.source is not Source.PRIVATE:
            raise ValueError(
                f"found source {self.source.value} without {' and '.join(missing)}: give the domain, or leave out "
                "the source to have the domain found within the budget"
            )
        if not missing:
            self.check_domain()
        problem = self.dtype_problem(self.arrow_type)
        if problem:
            raise ValueError(f"dtype {self.dtype or self.default_dtype()} {problem}")
        return self

    def with_domain(self, *, source: Source = Source.PRIVATE, **domain: Any) -> Self:
        """Return this attribute with another domain, which came from `source`."""
        return type(self)(**{**self.fields(), **self.fit_domain(domain), "source": source})

    def fit_domain(self, domain: dict[str, Any]) -> dict[str, Any]:
        """Return the smallest domain this attribute can have that covers `domain`."""
        return domain

    def fields(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        return {
            name: getattr(self, name)
            for name, info in type(self).model_fields.items()
            if getattr(self, name) != info.default or name == "source"
        }

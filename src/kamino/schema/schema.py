"""A schema: the attributes of a table in order, and the unit whose privacy is protected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from kamino.errors import SchemaError
from kamino.schema.attribute import BaseAttribute, Source, is_utf8
from kamino.schema.attributes import Attribute
from kamino.schema.files.messages import did_you_mean
from kamino.schema.keys import Key


@dataclass(frozen=True, kw_only=True, eq=False)
class Schema:
    """What may be publicly known of a table. Every field may be published.

    Guarantees:
        The order of attributes counts in comparisons.  [test_equality_heeds_order]
        A text written by `to_yaml` is read back as an equal schema.  [test_yaml_round_trip]
        A model that was fitted with it can be saved and loaded.  [test_a_model_of_any_schema_can_be_loaded]

    >>> from kamino.schema import Integer
    >>> schema = Schema(attributes={"age": Integer(min=0, max=120)})
    >>> schema["age"].max
    120
    """

    attributes: Mapping[str, Attribute]
    # An attribute, with `max_rows`; or "row", to say that each row is its own unit.
    unit: str | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))
        problems = [
            f"attributes.{name}: found {type(attribute).__name__}, expected an attribute such as Integer(min=0, max=9)"
            for name, attribute in self.attributes.items()
            if not isinstance(attribute, BaseAttribute)
        ]
        if not self.attributes:
            problems.append("attributes: found none, expected at least one")
        problems += [
            f"attributes: found the name {name!r}, expected text that is not empty"
            for name in self.attributes
            if not isinstance(name, str) or not name
        ]
        problems += [
            f"attributes: found the name {name!r} with half of a pair of surrogates, expected text that UTF-8 can hold"
            for name in self.attributes
            if not is_utf8(name)
        ]
        problems += self._unit_problems()
        if problems:
            raise SchemaError("\n".join(problems))

    def _unit_problems(self) -> list[str]:
        if self.unit is None:
            return [] if self.max_rows is None else ["max_rows: found without unit: name the attribute of the unit"]
        if self.unit == "row" and self.max_rows is None and self.unit not in self.attributes:
            return []
        if self.unit not in self.attributes:
            return [f"unit: {self._unknown(self.unit)}"]
        if self.max_rows is None:
            return ["unit: found without max_rows: say how many rows of one unit are kept, such as max_rows: 3"]
        if isinstance(self.max_rows, bool) or not isinstance(self.max_rows, int) or self.max_rows < 1:
            return [f"max_rows: found {self.max_rows!r}, expected an integer of at least 1"]
        return []

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all attributes, in order."""
        return tuple(self.attributes)

    @property
    def data_names(self) -> tuple[str, ...]:
        """The names of the attributes that carry data and so have codes: all but the keys."""
        return tuple(name for name, attribute in self.attributes.items() if not isinstance(attribute, Key))

    @property
    def group_names(self) -> tuple[str, ...]:
        """The names of the ids of groups of rows: keys that repeat."""
        return tuple(name for name, each in self.attributes.items() if isinstance(each, Key) and each.repeats)

    @property
    def missing_domains(self) -> tuple[str, ...]:
        """The names of the attributes whose domain is private and not yet found."""
        return tuple(name for name, attribute in self.attributes.items() if not attribute.has_domain)

    @property
    def sources(self) -> Mapping[str, Source]:
        """Where the domain of each attribute comes from, keys left out."""
        return {name: self.attributes[name].source for name in self.data_names}

    def __getitem__(self, name: str) -> Attribute:
        """Return an attribute; an unknown name raises a `SchemaError` that suggests the nearest one."""
        if name not in self.attributes:
            raise SchemaError(self._unknown(name))
        return self.attributes[name]

    def __contains__(self, name: object) -> bool:
        return name in self.attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self.attributes)

    def __len__(self) -> int:
        return len(self.attributes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self._facts() == other._facts()

    def __hash__(self) -> int:
        return hash(self._facts())

    def __reduce__(self) -> tuple[Any, ...]:
        # A view of a mapping does not pickle.
        return _restored, (dict(self.attributes), self.unit, self.max_rows)

    def _facts(self) -> tuple[Any, ...]:
        return tuple(self.attributes.items()), self.unit, self.max_rows

    def _unknown(self, name: str) -> str:
        known = ", ".join(self.attributes)
        return f"attribute {name!r} is not in the schema.{did_you_mean(name, self.attributes)} Attributes: {known}."

    def with_attribute(self, name: str, attribute: Attribute) -> Schema:
        """Return the schema with another attribute in the place of one it has."""
        self[name]
        return replace(self, attributes={**self.attributes, name: attribute})

    def with_domain(self, name: str, *, source: Source = Source.PRIVATE, **domain: Any) -> Schema:
        """Return the schema with a domain found for `name`, widened to the attribute's grid where needed.

        Args:
            name: the attribute.
            source: where the domain comes from.
            domain: `values` (and `other`) of categories; `min` and `max` of all others.

        >>> from kamino.schema import Integer
        >>> schema = Schema(attributes={"age": Integer()}).with_domain("age", min=0, max=127)
        >>> schema["age"].source.value, schema["age"].has_domain
        ('private', True)
        """
        return self.with_attribute(name, self[name].with_domain(source=source, **domain))

    @classmethod
    def from_yaml(cls, text: str, *, source: str = "") -> Schema:
        """Read the text of a schema file; `source` names it in error messages."""
        from kamino.schema.files.schema_file import read_schema

        return read_schema(text, source=source)

    def to_yaml(self) -> str:
        """Return the text of a schema file."""
        return self._text

    @cached_property
    def _text(self) -> str:
        # A model file, a certificate and its hashes all hold it; long domains take a while to write.
        from kamino.schema.files.schema_file import write_schema

        return write_schema(self)

    @staticmethod
    def json_schema() -> dict[str, Any]:
        """Return the JSON Schema of schema files, for editors."""
        from kamino.schema.files.schema_file import schema_of_files

        return schema_of_files()


def _restored(attributes: Mapping[str, Attribute], unit: str | None, max_rows: int | None) -> Schema:
    """The schema that was pickled or copied."""
    return Schema(attributes=attributes, unit=unit, max_rows=max_rows)

"""The codec of a whole table: raw columns to codes and back, with keys left out and made up again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import assert_never

import numpy as np
import pyarrow as pa

from kamino.errors import SchemaError
from kamino.schema.attributes import Attribute, Boolean, Categorical, Date, Datetime, Integer, Key, Real
from kamino.schema.coding.attribute_codec import AttributeCodec, Codes
from kamino.schema.coding.category_codec import BooleanCodec, CategoryCodec
from kamino.schema.coding.differences import Difference, Distance, is_date
from kamino.schema.coding.grid_codec import GridCodec
from kamino.schema.coding.group_codec import GroupCodec
from kamino.schema.column_types import check_columns
from kamino.schema.keys import make_keys, places_of
from kamino.schema.schema import Schema


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CodedTable:
    """A table as codes: one int64 array for each attribute that carries data. It is as private as what it encodes.

    Guarantees:
        Its text shows the names of its columns and nothing else.  [test_repr_shows_no_data]
        Its arrays cannot be written to.  [test_coded_table_is_read_only]
    """

    columns: Mapping[str, Codes]
    num_rows: int

    def __post_init__(self) -> None:
        frozen = {}
        for name, codes in self.columns.items():
            view = np.asarray(codes, dtype=np.int64).view()
            if view.shape != (self.num_rows,):
                raise SchemaError(f"codes of {name!r}: expected one code for each row of the table")
            view.flags.writeable = False
            frozen[name] = view
        object.__setattr__(self, "columns", MappingProxyType(frozen))

    def __repr__(self) -> str:
        return f"CodedTable(columns={tuple(self.columns)})"

    def __getitem__(self, name: str) -> Codes:
        return self.columns[name]

    def equals(self, other: CodedTable) -> bool:
        """Tell whether both have the same columns in the same order with the same codes."""
        same_shape = self.num_rows == other.num_rows and list(self.columns) == list(other.columns)
        return same_shape and all(np.array_equal(self[name], other[name]) for name in self.columns)


def attribute_codec(name: str, attribute: Attribute) -> AttributeCodec:
    """Return the codec of one attribute.

    Raises:
        SchemaError: it is a key, or its domain is not known.
    """
    if not attribute.has_domain:
        raise SchemaError(
            f"attribute {name!r} has no domain, expected one: declare it in the schema, or find it within the budget"
        )
    match attribute:
        case Categorical():
            return CategoryCodec(name, attribute)
        case Boolean():
            return BooleanCodec(name, attribute)
        case Integer() | Real() | Date() | Datetime():
            return GridCodec(name, attribute)
        case Key():
            raise SchemaError(f"attribute {name!r} is a key, which carries no data and has no codes")
        case _:
            assert_never(attribute)


class Codec:
    """Raw tables to codes and back, for a schema in which every domain is known. Holds public facts only.

    Attributes in `differences` are coded by their distance from another: their codes are those of the distance.

    Guarantees:
        Whether encoding raises depends on names and types of columns, never on values.  [test_anything_encodes]
        No message holds a value of the table.  [test_marker_never_shows]

    >>> from kamino.schema import Integer
    >>> codec = Codec(Schema(attributes={"age": Integer(min=10, max=20)}))
    >>> codec.encode(pa.table({"age": [10, 12, 99]}))["age"].tolist()
    [0, 2, 10]
    """

    def __init__(self, schema: Schema, differences: Mapping[str, Difference] = MappingProxyType({})) -> None:
        if schema.missing_domains:
            raise SchemaError(
                f"found no domain for {', '.join(schema.missing_domains)}: declare it in the schema, "
                "or find it within the budget"
            )
        self.schema = schema
        self.plain: Mapping[str, AttributeCodec] = MappingProxyType(
            {name: attribute_codec(name, schema[name]) for name in schema.data_names}
        )
        self._key_places = places_of(schema.attributes)
        self.groups: Mapping[str, GroupCodec] = MappingProxyType(
            {name: GroupCodec(name, schema[name], *self._key_places[name]) for name in schema.group_names}
        )
        self.differences = MappingProxyType(dict(differences))
        self._distances = {name: self.distance(name, each) for name, each in differences.items()}
        self.bases_first = _bases_first(tuple(self.plain), differences)
        self.attributes: Mapping[str, AttributeCodec] = MappingProxyType(
            {n: self._distances[n].codec if n in self._distances else each for n, each in self.plain.items()}
        )

    def __repr__(self) -> str:
        return f"Codec({', '.join(self.schema.names)})"

    def __getitem__(self, name: str) -> AttributeCodec:
        """Return the codec of one attribute or of the ids of groups; unknown names and other keys raise."""
        if name in self.groups:
            return self.groups[name]
        return self.attributes[name] if name in self.attributes else attribute_codec(name, self.schema[name])

    @property
    def sizes(self) -> Mapping[str, int]:
        """The number of codes of each attribute, null's included."""
        return {name: codec.size for name, codec in self.attributes.items()}

    def encode(self, table: pa.Table) -> CodedTable:
        """Return the codes of a table, keys left out; its columns may be in any order.

        Raises:
            SchemaError: columns are missing or unknown, or of a type that does not fit. Values never matter.
        """
        check_columns(self.schema, table)
        return self.encode_some(table, tuple(self.plain))

    def encode_some(self, table: pa.Table, names: Sequence[str]) -> CodedTable:
        """Return the codes of some attributes; the table has the columns that `columns_for` names, and fits.

        Guarantees:
            They are those that the whole table has.  [test_some_columns_have_the_codes_of_all]
        """
        plain = {name: self.plain[name].encode(table.column(name)) for name in self.columns_for(names)}
        columns = self.as_distances(plain)
        return CodedTable(columns={name: columns[name] for name in names}, num_rows=table.num_rows)

    def columns_for(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the columns that the codes of some attributes follow from: their own and those of their bases."""
        bases = [self.differences[name].base for name in names if name in self.differences]
        return tuple(dict.fromkeys([*names, *bases]))

    def distance(self, name: str, difference: Difference) -> Distance:
        """Return how an attribute is told by its distance from another.

        Raises:
            SchemaError: they are no dates.
        """
        own, base = self.plain.get(name), self.plain.get(difference.base)
        if own is None or base is None or own is base or not is_date(own) or not is_date(base):
            raise SchemaError(f"found a distance of {name!r} from {difference.base!r}; expected two dates or times")
        assert isinstance(own, GridCodec)
        assert isinstance(base, GridCodec)
        return Distance(own, base, difference)

    def as_distances(self, plain: Mapping[str, Codes]) -> dict[str, Codes]:
        """Return codes of values with those of `differences` as distances."""
        found = dict(plain)
        for name, distance in self._distances.items():
            if name in plain and self.differences[name].base in plain:
                found[name] = distance.encode(plain[name], plain[self.differences[name].base])
        return found

    def as_values(self, columns: Mapping[str, Codes]) -> dict[str, Codes]:
        """Return codes with distances as codes of values again."""
        found = dict(columns)
        for name in self.bases_first:
            found[name] = self._distances[name].decode(columns[name], found[self.differences[name].base])
        return found

    def decode(self, coded: CodedTable, *, first_key: int = 1) -> pa.Table:
        """Return the table of codes in the order of the schema; keys are made up, numbered from `first_key`.

        The codes of groups are their numbers: rows of one group get the same id.

        Raises:
            SchemaError: columns are missing, codes lie outside their domain, or a key has too few values.
        """
        missing = [name for name in (*self.attributes, *self.groups) if name not in coded.columns]
        if missing:
            raise SchemaError(f"found no codes for {', '.join(missing)}, expected all attributes of the schema")
        arrays = {}
        values = self.as_values(coded.columns)
        for name, attribute in self.schema.attributes.items():
            if name in self.groups:
                arrays[name] = self.groups[name].decode(values[name])
            elif isinstance(attribute, Key):
                place, among = self._key_places[name]
                arrays[name] = make_keys(attribute, coded.num_rows, start=first_key, place=place, among=among)
            else:
                arrays[name] = self.plain[name].decode(values[name])
        return pa.table(arrays)


def _bases_first(names: tuple[str, ...], differences: Mapping[str, Difference]) -> tuple[str, ...]:
    """Return the attributes of `differences`, each after its base; refuse circles."""
    done = [name for name in names if name not in differences]
    left = set(differences)
    while left:
        ready = [name for name in names if name in left and differences[name].base in done]
        if not ready:
            raise SchemaError(f"found distances in a circle: {', '.join(sorted(left))}; expected a first date")
        done += ready
        left -= set(ready)
    return tuple(name for name in done if name in differences)

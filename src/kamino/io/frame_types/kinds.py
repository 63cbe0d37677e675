"""The kind of a frame: its library and the declared types of its columns, as texts. Public facts."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from kamino.schema import Categorical, Schema

LIBRARIES = ("pandas", "polars", "pyarrow")
_MOST_TEXT = 200
_SAFE = re.compile(r"[\w \[\](),:=<>'/+.-]*")


@dataclass(frozen=True, kw_only=True)
class FrameKind:
    """The library of a frame, and the type of each column as its library writes it. Every field may be published.

    `domains` are the values that a type itself lists, in their order: an ordered category of pandas, an Enum of polars.
    They are part of the schema from then on, and not saved here.

    Guarantees:
        Without `trust_domain` it does not depend on a cell.  [test_the_kind_of_a_frame_depends_on_no_cell]
    """

    library: str
    types: Mapping[str, str] = field(default_factory=dict)
    domains: Mapping[str, tuple[str, ...] | tuple[int, ...]] = field(default_factory=dict)

    def without(self, names: Collection[str]) -> FrameKind:
        """The kind without the types of some columns, which are then as the schema has them."""
        return replace(self, types={name: text for name, text in self.types.items() if name not in names})

    def to_json(self) -> dict[str, Any]:
        """Plain data that `json.dumps` takes."""
        return {"library": self.library, "types": dict(self.types)}

    def told(self) -> FrameKind:
        """The kind without types that no model file may hold, such as one with any text for a timezone."""
        return self.without([name for name, text in self.types.items() if not _is_type(text)])

    @staticmethod
    def problem(library: str, types: Mapping[str, str]) -> str:
        """Why this is not the kind of a frame, or `""`; a model file may come from anybody."""
        if library not in LIBRARIES:
            return f"its library is none of {', '.join(LIBRARIES)}"
        return "" if all(map(_is_type, types.values())) else "the type of a column is no type"


def _is_type(text: str) -> bool:
    """Whether a text may stand in a model file as the type of a column."""
    return len(text) <= _MOST_TEXT and _SAFE.fullmatch(text) is not None


def kind_of(frame: object, sealed: pa.Schema, *, trust_domain: bool = False) -> FrameKind | None:
    """The kind of a frame; None for a file, a query, or a frame of another library, which come back as pyarrow.

    It is made from the names and types of the `sealed` table, and from what the frame declares beside these: its
    library, and of each column what texts, numbers and times are kept in, such as a category or a type with nulls.

    With `trust_domain`, the categories of an unordered category, and intervals, count as listed by its type too, and
    the types of values in categories and objects are kept. Without it they are not: `astype("category")` lists the
    cells, `pandas.cut` takes its bounds from them, and one cell decides the type of all values.

    Guarantees:
        It can be saved with a model, whatever a type is called.  [test_a_model_of_any_frame_can_be_loaded]
        Frames of one library that are sealed as the same table have one kind.  [test_no_cell_decides_what_comes_back]
        No name and no type of a column that is not read is kept.  [test_what_is_left_out_leaves_no_trace]
    """
    found = None if isinstance(frame, str | os.PathLike) else _kind_of(frame, trusted=trust_domain)
    if found is None:
        return None
    types = {name: found.types[name] for name in sealed.names if name in found.types}
    if not trust_domain:
        types = {name: _sealed_type(found.library, text, sealed.field(name).type) for name, text in types.items()}
    domains = {name: values for name, values in found.domains.items() if name in sealed.names}
    return replace(found, types=types, domains=domains).told()


def _sealed_type(library: str, text: str, plain: pa.DataType) -> str:
    """The type of a column that comes back, which was declared as `text` and sealed with values of the type `plain`."""
    from kamino.io.frame_types import arrow_types, pandas_types, polars_types

    types = {"pandas": pandas_types, "polars": polars_types, "pyarrow": arrow_types}[library]
    return str(types.sealed_type_of(text, plain))


def _kind_of(frame: object, *, trusted: bool) -> FrameKind | None:
    """The kind of a frame with the types that it declares, of all its columns."""
    from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_polars_lazyframe  # slow to import

    from kamino.io.frame_types import arrow_types, pandas_types, polars_types

    if is_pandas_dataframe(frame):
        types = pandas_types.trusted_types_of(frame) if trusted else pandas_types.types_of(frame)
        return FrameKind(library="pandas", types=types, domains=pandas_types.domains_of(frame, trusted=trusted))
    if is_polars_dataframe(frame) or is_polars_lazyframe(frame):
        columns = frame.collect_schema() if is_polars_lazyframe(frame) else frame.schema
        return FrameKind(
            library="polars", types=polars_types.types_of(columns), domains=polars_types.domains_of(columns)
        )
    if isinstance(frame, pa.Table):
        return FrameKind(library="pyarrow", types=arrow_types.types_of(frame.schema))
    return None


def frame_from(table: pa.Table, kind: FrameKind | None, schema: Schema) -> Any:
    """The table as a frame of `kind`, its columns of the types that they came with.

    A type that cannot hold what was drawn (an `int64` of pandas, where the schema allows nulls) gives way to the
    nearest that can. Where the library of the frame is not installed, a `pyarrow.Table` is returned.

    Guarantees:
        Types are equal before and after.  [test_frames_come_back_with_their_types]
    """
    if kind is None or find_spec(kind.library) is None:
        return table
    if kind.library == "pandas":
        from kamino.io.frame_types.pandas_types import to_pandas

        return to_pandas(table, kind.types, schema)
    if kind.library == "polars":
        from kamino.io.frame_types.polars_types import to_polars

        return to_polars(table, kind.types, schema)
    from kamino.io.frame_types.arrow_types import to_arrow

    return to_arrow(table, kind.types, schema)


def categories_in(schema: Schema, name: str) -> tuple[str | int, ...] | None:
    """The values of a category in their order; None where the attribute is none."""
    attribute = schema[name]
    return attribute.categories if isinstance(attribute, Categorical) else None


def plain_domain(values: Collection[object]) -> tuple[str, ...] | tuple[int, ...] | None:
    """Values that an attribute can list: all texts or all integers; None for any others."""
    if values and all(isinstance(value, str) for value in values):
        return tuple(str(value) for value in values)
    if values and all(type(value) is int for value in values):
        return tuple(int(value) for value in values)  # type: ignore[call-overload]
    return None

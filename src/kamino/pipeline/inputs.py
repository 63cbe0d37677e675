"""Schemas and constraints as they are given: an object, its text, or the path of its file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from kamino.advice import words
from kamino.constraints.collection import Constraints
from kamino.constraints.tree import Place
from kamino.errors import ConstraintError, ConstraintErrors, InputError, KaminoError, SchemaError
from kamino.io import Reading
from kamino.io.text import read_text
from kamino.schema.schema import Schema

SchemaInput = Schema | str | os.PathLike[str] | Mapping[str, Any] | None
ConstraintsInput = Constraints | str | os.PathLike[str] | Sequence[str] | None
Made = TypeVar("Made")

_ENDINGS = (".yaml", ".yml", ".json", ".dc", ".sql", ".txt")


def schema_from(given: SchemaInput) -> Schema | None:
    """The schema that is given: itself, its YAML text, what that holds as a mapping, or the path of a file with it.

    Guarantees:
        Text is text and a path is a `Path`; one in the place of the other is told.  [test_a_path_given_as_text_is_told]
    """
    if given is None or isinstance(given, Schema):
        return given
    if isinstance(given, Mapping):
        from kamino.schema.files.schema_file import schema_from_mapping

        return schema_from_mapping(given)
    return _read(given, Schema.from_yaml, what="schema")


def constraints_from(given: ConstraintsInput, *, tell: Callable[[str], None] = lambda line: None) -> Constraints:
    """The constraints that are given: themselves, their text, a list of such, or the path of a file with them; None for
    none.

    A file that ends in `.sql` holds a CREATE TABLE; `tell` is told what of it is not taken over, a line each.
    """
    if given is None:
        return Constraints()
    if isinstance(given, Constraints):
        return given
    if isinstance(given, list | tuple) and all(isinstance(each, str) for each in given):
        return Constraints.parse("\n".join(given))
    if isinstance(given, os.PathLike) and Path(given).suffix.lower() == ".sql":
        found, left_out = Constraints.split_ddl(read_text(Path(given), what="constraint file"), source=str(given))
        for line in left_out:
            tell(f"{given}: not taken over: {line}")
        return found
    return _read(given, Constraints.parse, what="constraint")


def folder_of(given: ConstraintsInput) -> Path:
    """Where paths in the constraints start: beside their file, or here."""
    return Path(given).parent if isinstance(given, os.PathLike) else Path()


def refuse_unread(reading: Reading, rules: Constraints, schema: Schema | None = None, unit: str | None = None) -> None:
    """Refuse rules, a schema or a unit that need a column which is not to be read, and say so.

    Raises:
        ConstraintErrors, SchemaError, InputError: a column is needed and left out.
    """
    left = words("--columns and --drop leave", "Reading(columns=..., drop=...) leaves")
    why = f"is not among the columns that {left}: keep it, or"
    unread = [
        ConstraintError(f"attribute '{each.name}' {why} take this rule out", **_place(each.place, rule.place))
        for rule in rules
        for each in rule.columns()
        if not reading.reads(each.name)
    ]
    if unread:
        raise ConstraintErrors(list({str(each): each for each in unread}.values()))
    for name in () if schema is None else schema.names:
        if not reading.reads(name):
            raise SchemaError(f"attribute '{name}' of the schema {why} take the attribute out of the schema")
    if unit is not None and not reading.reads(unit):
        raise InputError(f"the unit column '{unit}' {why} name another unit")


def named_by(reading: Reading, source: object, schema: Schema | None, unit: str | None = None) -> Reading:
    """How a table is read: its cells as the schema says that they are written, and where it declares no columns, those
    of the schema, unless they are told.

    Guarantees:
        They are those of the schema, whatever the rows hold.  [test_json_lines_have_the_columns_of_the_schema]
    """
    from kamino.io.tables import declares_names

    reading = reading.with_cells(schema)
    if schema is None or reading.columns or declares_names(source):
        return reading
    more = [] if unit is None else [unit]
    return replace(reading, columns=tuple(dict.fromkeys([*schema.names, *more])), drop=())


def _place(*known: Place) -> dict[str, Any]:
    """The first place that is one, as an error takes it."""
    place = next((each for each in known if each.line), known[-1])
    return {"source": place.source, "line": place.line, "column": place.column}


def _read(given: object, parse: Callable[..., Made], *, what: str) -> Made:
    if isinstance(given, os.PathLike):
        return parse(_text_of_file(Path(given), what=f"{what} file"), source=str(given))
    if not isinstance(given, str):
        raise InputError(
            f"found a {what} of type {type(given).__name__}; expected {_CLASSES[what]}, text, or a Path to a file"
        )
    if _looks_like_a_path(given):
        raise InputError(
            f"found the text {given!r} in the place of a {what}; text is read as it is. For a file say Path({given!r})"
        )
    return parse(given)


def path_from(given: object, *, what: str) -> Path:
    """The path of a file that is given as text or as a path.

    Guarantees:
        What is no path is refused by its type.  [test_what_is_no_path_is_told]
    """
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"found the path of a {what} of type {type(given).__name__}; expected text or a Path")
    return Path(os.fspath(given))


def _text_of_file(path: Path, *, what: str) -> str:
    try:
        return read_text(path, what=what)
    except KaminoError as problem:
        if "\n" in str(path) or (" " in path.name.strip() and not path.suffix):
            mend = words("put it into a file, and name that", "give it as str, not as a Path").told()
            raise InputError(f"{problem}. Is it the text itself? Then {mend}") from None
        raise


def _looks_like_a_path(text: str) -> bool:
    return "\n" not in text and text.strip().lower().endswith(_ENDINGS) and "->" not in text and "(" not in text


_CLASSES = {"schema": "a Schema, a mapping", "constraint": "Constraints, a list of texts"}

"""Where a command may write: never over what it reads, and only where a file can be made."""

from __future__ import annotations

import os
from pathlib import Path

from kamino.errors import InputError
from kamino.io.atomic import staged, telling_what_failed
from kamino.io.databases.sql import split_table
from kamino.io.databases.storing import DatabaseTable, refuse_unwritable_database
from kamino.io.write import try_table_path
from kamino.pipeline.output.writing import certificate_paths


def refuse_overwriting(output: Path, *inputs: Path | str | None) -> None:
    """Raise an `InputError` if `output` is the file of one of the inputs, under whatever name.

    None stands for an input that was not given; an address of a database is passed over, but for a DuckDB file.

    Guarantees:
        No command takes the place of what it reads.  [test_no_command_overwrites_what_it_reads]
    """
    for given in inputs:
        path = _file_of(given)
        if path is not None and _is_same(output, path):
            raise InputError(
                f"{output}: found an output that is also an input, which would be lost; expected another name. "
                "Nothing was written"
            )


def refuse_same(first: Path, second: Path) -> None:
    """Raise an `InputError` if two outputs are one file, of which the second would replace the first."""
    if _is_same(first, second):
        raise InputError(f"{second}: found one name for two outputs; expected a name for each")


def refuse_unwritable(output: Path) -> None:
    """Raise an `InputError` if no file can be made at `output`, before anything is spent on what goes there."""
    with staged(output) as file, telling_what_failed(output), file.open():
        pass


def refuse_unwritable_table(output: Path) -> None:
    """Raise an `InputError` if no table can be written at `output`: the place, or the kind of file, is wrong."""
    try_table_path(output)


def certificates_of(output: str) -> tuple[Path, ...]:
    """Where the certificate of a table goes, be it a file or a table of a database."""
    target = DatabaseTable.of(output)
    return certificate_paths(Path(output)) if target is None else (target.certificate,)


def refuse_table(output: str, *inputs: Path | str | None) -> None:
    """Refuse a table, or its certificate, that cannot be written or that would replace an input."""
    target, certificates = DatabaseTable.of(output), certificates_of(output)
    for path in (*(() if target is not None else (Path(output),)), *certificates):
        refuse_overwriting(path, *inputs)
    if target is None:
        refuse_unwritable_table(Path(output))
    else:
        if any(given is not None and str(given) == output for given in inputs):
            raise InputError(f"{target}: found an output that is also an input; expected another name")
        refuse_unwritable_database(target)
    for path in certificates:
        refuse_unwritable(path)


def refuse_model(model: Path, output: str, *inputs: Path | str | None) -> None:
    """Refuse a file beside the table that cannot be written, or that would replace an input, table or certificate."""
    refuse_overwriting(model, *inputs)
    for path in (*(() if DatabaseTable.of(output) is not None else (Path(output),)), *certificates_of(output)):
        refuse_same(path, model)
    refuse_unwritable(model)


def _file_of(given: Path | str | None) -> Path | None:
    """The file an input is read from; None for one that is not given, or that a server holds."""
    if given is None:
        return None
    scheme, separator, rest = split_table(str(given))[0].partition("://")
    if not separator:
        return Path(given)
    name = rest.removeprefix("/")
    return Path(name) if scheme == "duckdb" and name else None


def _is_same(one: Path, other: Path) -> bool:
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)

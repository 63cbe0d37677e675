"""Read an Arrow file: Feather, version 2."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from kamino.errors import InputError
from kamino.io.normalise import Choose, chosen_columns, every_column, normalise_table


def read_feather(path: Path, *, private: bool = False, choose: Choose = every_column) -> pa.Table:
    """Read a `.feather` or `.arrow` file, with plain column types."""
    try:
        with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
            table = chosen_columns(reader.read_all(), choose, where=str(path))
    except (PermissionError, InputError):
        raise
    # The library's own text may quote bytes of the file, so it is not passed on. Types of other libraries, such as the
    # periods of pandas, are read by these, and fail in any way.
    except Exception:
        raise InputError(
            f"{path}: not a readable Feather file (version 2): damaged, cut short, or of another format. "
            "Write it again."
        ) from None
    for field in table.schema:
        if pa.types.is_dictionary(field.type) and isinstance(field.type.value_type, pa.BaseExtensionType):
            kind = field.type.value_type.extension_name
            raise InputError(
                f"{path}: column '{field.name}' is a dictionary of {kind}, which Arrow does not read back. Write its "
                "values as text, or leave the column out."
            )
    return normalise_table(table, where=str(path), private=private)

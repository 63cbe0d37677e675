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
            table = reader.read_all()
    except PermissionError:
        raise
    # The library's own text may quote bytes of the file, so it is not passed on.
    except (pa.ArrowException, OSError):
        raise InputError(
            f"{path}: not a readable Feather file (version 2): damaged, cut short, or of another format. "
            "Write it again."
        ) from None
    return normalise_table(chosen_columns(table, choose, where=str(path)), where=str(path), private=private)

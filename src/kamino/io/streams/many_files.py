"""Many Parquet files as one table: a folder of them, or a pattern that their names follow."""

from __future__ import annotations

import glob
from pathlib import Path

from kamino.errors import InputError
from kamino.io.databases.credentials import shown_source

_SIGNS = frozenset("*?[")


def is_many(path: Path) -> bool:
    """Say whether a path stands for several files: it is a folder, or a pattern and no file of that very name."""
    return path.is_dir() or (bool(_SIGNS & set(path.name)) and not path.exists())


def check_file(path: Path) -> None:
    """Refuse what is no file: one that is not there, and a pipe, which would be waited for and gives its rows once."""
    shown = shown_source(str(path))
    if not path.exists():
        raise InputError(f"{shown}: no such file. Check the path; it is relative to {Path.cwd()}.")
    if not path.is_file():
        raise InputError(
            f"{shown}: found a pipe or a device, expected a file: a table is read more than once. Write it to a file "
            "first."
        )


def find_files(path: Path) -> tuple[Path, ...]:
    """Return the Parquet files of a folder or a pattern, sorted by name; hidden files and marks are left out.

    Guarantees:
        The order follows from the names alone.  [test_files_of_a_folder_come_in_the_order_of_their_names]
    """
    found = sorted(path.rglob("*.parquet")) if path.is_dir() else sorted(map(Path, glob.glob(str(path))))
    files = tuple(each for each in found if each.is_file() and not each.name.startswith((".", "_")))
    shown = shown_source(str(path))
    if not files:
        if path.is_dir():
            raise InputError(f"{shown}: found a directory, expected a file, or a folder with .parquet files in it.")
        raise InputError(f"{shown}: found no file that fits the pattern, expected at least one .parquet file.")
    other = [each.name for each in files if each.suffix.lower() != ".parquet"]
    if other:
        raise InputError(
            f"{shown}: the pattern fits {other[0]}, which is no .parquet file. Expected Parquet files only; narrow the "
            "pattern."
        )
    return files

"""Small text files: constraints, schemas."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from kamino.errors import InputError
from kamino.limits import MAX_FILE_BYTES


def read_text(path: str | Path, *, what: str, most: int = MAX_FILE_BYTES) -> str:
    """The text of a UTF-8 file of at most `most` bytes; `what` names its role in errors, such as "constraint file".

    Guarantees:
        No more is read than a limit allows, also of a file without end.  [test_a_file_too_large_is_refused_at_once]
        Nobody is waited for.  [test_a_pipe_is_refused]
    """
    if _is_named_pipe(path):
        raise InputError(f"{path}: found a pipe, expected a {what}; write it to a file first")
    try:
        with open(path, "rb") as handle:
            content = handle.read(most + 1)
        if len(content) > most:
            raise InputError(f"{path}: found more than {most // 2**20} MiB, expected a {what}; is this a table?")
        return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such {what}; check the path") from None
    except IsADirectoryError:
        raise InputError(f"{path}: found a folder, expected a {what}") from None
    except UnicodeDecodeError as problem:
        raise InputError(
            f"{path}: found bytes that are not UTF-8 at offset {problem.start}; save the {what} as UTF-8"
        ) from None
    except OSError as problem:
        raise InputError(f"{path}: the {what} cannot be read: {problem.strerror}") from None


def _is_named_pipe(path: str | Path) -> bool:
    """Whether a path is a pipe that somebody may never write to; what a shell makes of `<(...)` is none."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode) and not os.fspath(path).startswith(("/dev/", "/proc/"))
    except (OSError, ValueError):
        return False


def parse_json(text: str, *, source: str) -> Any:
    """The content of a JSON text; whatever is wrong with it is an `InputError`."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:
        raise InputError(f"{source}:{problem.lineno}:{problem.colno}: found text that is not JSON") from None
    except RecursionError:
        raise InputError(f"{source}: found levels too deep within each other, expected fewer") from None
    except ValueError:
        raise InputError(f"{source}: found a number of thousands of digits, expected fewer") from None

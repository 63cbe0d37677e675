"""Small text files: constraints, schemas."""

from __future__ import annotations

from pathlib import Path

from kamino.errors import InputError


def read_text(path: str | Path, *, what: str) -> str:
    """The text of a UTF-8 file; `what` names its role in errors, such as "constraint file"."""
    try:
        return Path(path).read_text(encoding="utf-8")
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

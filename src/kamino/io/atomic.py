"""Write a file whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from kamino.errors import InputError


@contextmanager
def atomic_file(path: Path, *, verify: Callable[[Path], None] | None = None) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` when the block ends well.

    `verify` is shown the finished temporary file; what it raises stops the rename.

    The bytes go to a temporary file in the same folder, are forced to the disk, and are then renamed. A
    failure (no space, no permission, an interrupt) removes the temporary file.

    Guarantees:
        - After a failure the folder is as it was.  [test_a_failing_write_leaves_the_old_file]
        - Nobody sees half a file under `path`.  [test_the_old_file_is_there_until_the_end]
    """
    # Through a symbolic link the file it points to is replaced, as an ordinary write would do.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    try:
        with open(temporary, "xb") as handle:
            if target.exists():
                os.chmod(temporary, target.stat().st_mode & 0o777)
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        if verify is not None:
            verify(temporary)
        os.replace(temporary, target)
        _sync_folder(target.parent)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(
            f"{path}: cannot be written ({reason}). Nothing was changed; check the folder, its permissions "
            "and the free space."
        ) from None
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Force the rename to the disk, where the system lets a folder be opened."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

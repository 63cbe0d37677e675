"""Files without a name: written in the folder where they will be, they are gone with a process that dies before.

Linux has such files (`O_TMPFILE`) on most of its file systems; elsewhere callers write under a name of their own.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

# What systems answer that have no such files, or none on this disk; and those that cannot name them.
_UNKNOWN = frozenset({errno.EOPNOTSUPP, errno.EINVAL, errno.EISDIR, errno.ENOSYS})
_UNNAMEABLE = _UNKNOWN | {errno.EPERM, errno.ENOENT, errno.EXDEV, errno.EMLINK}


def open_nameless(folder: Path) -> int | None:
    """A new file in a folder, open for reading and writing; None where the system has none without a name.

    Raises:
        OSError: the folder is not there, or may not be written.

    Guarantees:
        A process that is killed leaves nothing of it.  [test_a_killed_writer_leaves_nothing]
    """
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None:
        return None
    try:
        descriptor = os.open(folder, os.O_RDWR | flag, 0o666)
    except OSError as problem:
        if problem.errno in _UNKNOWN:
            return None
        raise
    if not path_of(descriptor).exists():
        os.close(descriptor)
        return None
    return descriptor


def path_of(descriptor: int) -> Path:
    """A path that leads this process to an open file, whatever its name."""
    return Path(f"/proc/self/fd/{descriptor}")


def give_name(descriptor: int, path: Path) -> bool:
    """Give a file without a name its name, in one step; False where the system cannot.

    Raises:
        FileExistsError: there is a file of that name, which stays as it is.
        OSError: it failed.
    """
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        # Only with a folder does Python follow the link that leads to the open file; its path stands on its own.
        os.link(path_of(descriptor), path, src_dir_fd=folder)
    except OSError as problem:
        if problem.errno in _UNNAMEABLE:
            return False
        raise
    finally:
        os.close(folder)
    return True

"""Write a file whole or not at all; and a file that is never seen without the files that vouch for it."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from kamino.errors import InputError
from kamino.nameless import give_name, open_nameless, path_of

# As many symbolic links as Linux follows before it gives up.
_MOST_LINKS = 40
# Of the old file, while a new one gets its name; and of the new one, where the old one is there until it is replaced.
_OLD, _NEW = ".old", ".new"
# Files that must not outlive the process.
_temporary: set[Path] = set()
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


@dataclass(frozen=True, kw_only=True)
class StagedFile:
    """A file that is being written, in the folder where it will go.

    `path` is the name that was asked for, `target` the file behind it (through symbolic links), `temporary` leads to
    the bytes until then, and `aside` is where the old file waits until all is done. The bytes have no name in the
    folder, and `descriptor` is the open file; None where the system has no such files, and `temporary` is a name.
    """

    path: Path
    target: Path
    temporary: Path
    aside: Path
    descriptor: int | None

    @contextmanager
    def open(self) -> Iterator[BinaryIO]:
        """Open the temporary file, empty; when the block ends well its bytes are on the disk."""
        with open(self.temporary, "wb") as handle:
            self.take_mode()
            yield handle
            handle.flush()
            os.fsync(handle.fileno())

    def take_mode(self) -> None:
        """Who may read the old file may read the new one; another writer may be moving the old one just now."""
        with suppress(FileNotFoundError):
            os.chmod(self.temporary, self.target.stat().st_mode & 0o777)

    def place(self) -> None:
        """Give the file its name, in the place of an old one. While it does, the caller holds the folder's lock."""
        if self.descriptor is None:
            os.replace(self.temporary, self.target)
            return
        with suppress(FileExistsError):
            if give_name(self.descriptor, self.target):
                return
        # Only a name can take the place of a name: for a moment the file has one of its own.
        named = self.aside.with_suffix(_NEW)
        with temporary(named):
            if not give_name(self.descriptor, named):
                self._copy(named)
            os.replace(named, self.target)

    @property
    def is_placed(self) -> bool:
        """Whether the file has its name."""
        if self.descriptor is None:
            return not self.temporary.exists()
        try:
            return os.path.samestat(os.fstat(self.descriptor), os.stat(self.target))
        except FileNotFoundError:
            return False

    def _copy(self, named: Path) -> None:
        """Take a copy for the file, where the system gives no name to a file without one."""
        assert self.descriptor is not None
        with open(named, "xb") as copy, open(self.temporary, "rb") as source:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fchmod(copy.fileno(), os.fstat(self.descriptor).st_mode & 0o777)
            os.fsync(copy.fileno())
            os.dup2(copy.fileno(), self.descriptor, inheritable=False)


def target_of(path: Path) -> Path:
    """The regular file, there already or not, that is replaced by writing to `path`: links are followed.

    Raises:
        InputError: `path` is, or links to, a directory, a device, a pipe, a socket or an open file of a process.

    Guarantees:
        What is no regular file is never replaced.  [test_what_is_no_regular_file_is_refused]
    """
    try:
        found = _kind_of(path)
        target = Path(os.path.realpath(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or type(error).__name__}).") from None
    if found == "a directory":
        raise InputError(f"{path}: found a directory, expected a file name. Add a file name to the path.")
    if found is not None:
        raise InputError(
            f"{path}: found {found}, expected a regular file or a new name. Nothing was written; write to a file."
        )
    if not target.parent.is_dir():
        folder = path.parent if not path.parent.is_dir() else target.parent
        raise InputError(f"{path}: there is no folder {folder}. Create it first.")
    return target


def _kind_of(path: Path) -> str | None:
    """What stands at `path` in the place of a regular file; None for a regular file, or nothing."""
    place = os.path.abspath(path)
    for _ in range(_MOST_LINKS):
        # /dev/stdout leads to a file that is open already: to replace its name would leave the open one behind.
        if place.startswith("/proc/"):
            return "an open file of a process"
        if not os.path.islink(place):
            break
        place = os.path.normpath(os.path.join(os.path.dirname(place), os.readlink(place)))
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return None
    return next((name for matches, name in _KINDS if matches(mode)), None)


@contextmanager
def staged(path: Path) -> Iterator[StagedFile]:
    """Prepare a file that will take the place of `path`; its temporary file is gone when the block ends, however.

    Guarantees:
        A process that is killed leaves none, or one until the next write of the same file, if it was just giving the
        name of an old file to the new one.  [test_a_kill_at_any_call_leaves_no_temporary]
    """
    target = target_of(path)
    aside = target.with_name(f".{target.name}.{secrets.token_hex(6)}{_OLD}")
    with telling_what_failed(path):
        descriptor = open_nameless(target.parent)
    if descriptor is None:
        named = aside.with_suffix(".tmp")
        with temporary(named):
            yield StagedFile(path=path, target=target, temporary=named, aside=aside, descriptor=None)
        return
    try:
        yield StagedFile(path=path, target=target, temporary=path_of(descriptor), aside=aside, descriptor=descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def temporary(path: Path) -> Iterator[None]:
    """A file that is gone when the block ends, however."""
    _temporary.add(path)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink(missing_ok=True)
        _temporary.discard(path)


def remove_leftovers() -> None:
    """Remove temporary files that are still there. For whoever ends the process at a signal.

    A signal may come while a block is just removing its file: the error it raises there ends the removing as well.

    Guarantees:
        No temporary file is left, whenever the signal comes.  [test_a_signal_while_a_file_is_removed_leaves_none]
    """
    for path in tuple(_temporary):
        with suppress(OSError):
            path.unlink(missing_ok=True)
        _temporary.discard(path)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a new file that takes the place of `path` when the block ends well.

    The bytes go to a file without a name in the same folder, are forced to the disk, and then get the name. After a
    failure (no space, no permission, an interrupt, a kill) they are gone.

    Guarantees:
        - After a failure the folder is as it was.  [test_a_failing_write_leaves_the_old_file]
        - Nobody sees half a file under `path`.  [test_the_old_file_is_there_until_the_end]
        - A link is followed, to a regular file only.  [test_what_is_no_regular_file_is_refused]
    """
    with staged(path) as file, telling_what_failed(path):
        with file.open() as handle:
            yield handle
        with _locked(file.target.parent) as is_locked:
            file.place()
            _sync_folders(file)
            if is_locked:
                _sweep(file)


@contextmanager
def telling_what_failed(path: Path) -> Iterator[None]:
    """Turn an error of the system into one line about `path`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(
            f"{path}: cannot be written ({reason}). Nothing was changed; check the folder, its permissions "
            "and the free space."
        ) from None


def place_together(main: StagedFile, vouchers: Sequence[StagedFile]) -> None:
    """Give finished files their names, so that `main` is never seen without the vouchers that belong to it.

    Two names cannot change at one instant, so `main` goes first and comes last:

        1. the old main file is moved aside           no main file
        2. the old vouchers are moved aside           no main file
        3. the new vouchers get their names           no main file
        4. the new main file gets its name            the new main file, with its new vouchers
        5. what was moved aside is removed

    Before step 1 the old main file stands beside its old vouchers; from then until step 4 there is no main file; from
    step 4 on the new one stands beside its own. Whenever the process dies, at a signal that cannot be caught or when
    the power fails (the folders are forced to the disk between the steps), one of these three is what is left. A
    process that dies between 1 and 4 leaves the old file under a hidden name that ends in `.old`.

    A step that fails, or is interrupted, is taken back in the opposite order: vouchers first, main file last. While
    the names change the folder is locked against other runs of this function. In the end what earlier processes left
    that died between the steps is removed, too.

    Raises:
        InputError: the files could not be placed. The old ones are back, or the message says where they are.

    Guarantees:
        A main file is always beside its own vouchers, whenever the process is killed.
        [test_a_kill_at_any_step_leaves_no_table_beside_another_certificate]
        A failing step leaves the old files as they were.  [test_a_failing_step_leaves_the_old_pair]
        Two processes that write the same name leave one pair, not a mixture.  [test_two_writers_leave_one_pair]
    """
    files = (main, *vouchers)
    with _locked(main.target.parent) as is_locked:
        try:
            _swap(main, vouchers)
        except BaseException as problem:
            _take_back(main, vouchers, problem)
            raise
        for file in files:
            with suppress(OSError):
                file.aside.unlink(missing_ok=True)
        if is_locked:
            _sweep(*(file for file in files if file.target.parent == main.target.parent))


@contextmanager
def moved_aside(file: StagedFile) -> Iterator[None]:
    """Move the old file aside for the block, in which what it vouches for goes; put it back if the block fails."""
    with _locked(file.target.parent):
        with telling_what_failed(file.path):
            _move_aside(file)
            _sync_folders(file)
        try:
            yield
        except BaseException:
            if file.aside.exists():
                os.replace(file.aside, file.target)
            raise
        with suppress(OSError):
            file.aside.unlink(missing_ok=True)


def _swap(main: StagedFile, vouchers: Sequence[StagedFile]) -> None:
    """Steps 1 to 4. Each change of a name is one call, and the folders are forced to the disk in between."""
    with telling_what_failed(main.path):
        for file in (main, *vouchers):
            file.take_mode()
        _move_aside(main)
        _sync_folders(main)
        for voucher in vouchers:
            _move_aside(voucher)
        for voucher in vouchers:
            voucher.place()
        _sync_folders(*vouchers)
        main.place()
        _sync_folders(main)


def _move_aside(file: StagedFile) -> None:
    with suppress(FileNotFoundError):
        os.replace(file.target, file.aside)


def _take_back(main: StagedFile, vouchers: Sequence[StagedFile], problem: BaseException) -> None:
    """Put the old files back, unless the new main file has its name; the folder itself tells how far the steps came."""
    placed = main.is_placed
    try:
        for file in (*vouchers, main):
            if placed:
                file.aside.unlink(missing_ok=True)
            elif file.aside.exists():
                os.replace(file.aside, file.target)
            elif file.is_placed:
                # A new voucher that replaced nothing: without its main file it vouches for nothing.
                file.target.unlink(missing_ok=True)
    except OSError:
        left = ", ".join(str(file.aside) for file in (main, *vouchers) if file.aside.exists())
        problem.add_note(f"{main.path}: the old file could not be put back; it is kept as {left or 'it was'}.")


@contextmanager
def _locked(folder: Path) -> Iterator[bool]:
    """Hold a lock on a folder; False where the system has no such locks."""
    is_locked = False
    with ExitStack() as held:
        with suppress(ImportError, OSError):
            import fcntl

            descriptor = os.open(folder, os.O_RDONLY)
            held.callback(os.close, descriptor)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            is_locked = True
        yield is_locked


def _sweep(*files: StagedFile) -> None:
    """Remove what processes left that died while they changed these names; whoever is at it now holds the lock."""
    for file in files:
        left = re.compile(rf"\.{re.escape(file.target.name)}\.[0-9a-f]{{12}}({_OLD}|{_NEW})")
        with suppress(OSError):
            for path in tuple(file.target.parent.iterdir()):
                if left.fullmatch(path.name):
                    path.unlink(missing_ok=True)


def _sync_folders(*files: StagedFile) -> None:
    """Force renames to the disk, where the system lets a folder be opened."""
    for folder in dict.fromkeys(file.target.parent for file in files):
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

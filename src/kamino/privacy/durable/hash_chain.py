"""A file of lines, each with the hash of all before it: appended under a lock, on the disk before anyone acts on it.

A line is `HASH JSON`. The hash is SHA-256 of the hash of the line before (64 zeros, for the first) and of the JSON
text, which is canonical: keys sorted, no spaces, ASCII. So the hash of the last line, the head, vouches for every byte.
A changed, removed or reordered line is found from the file alone; lines cut from the end, or a file that was written
anew as a whole, by whoever kept a head.

Why a plain file and not a database: a file of lines may come from anybody and is read with plain limits; every byte is
under the hash; there is one file to copy, without logs that must travel with it; and people can read it.

    >>> digest(START, canonical({"b": 1, "a": "x"}))[:8]
    'd2cc6cf2'
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kamino.errors import LedgerError
from kamino.limits import MAX_DEPTH
from kamino.nameless import give_name, open_nameless

START = "0" * 64
_HASH_CHARS = len(START)
# How long a process waits for another one that is writing; a line takes milliseconds.
PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.005
_NO_LOCKS = "needs a system with file locks (fcntl), such as Linux or macOS"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line: its number, from 1, its hash, and what it says."""

    number: int
    head: str
    body: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much is read of a file: what it is called, its bytes, its lines, and the bytes of one line."""

    what: str
    file_bytes: int
    lines: int
    line_bytes: int


def canonical(body: Mapping[str, Any]) -> str:
    """The one text of a line: keys sorted, no spaces, ASCII, finite numbers."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def digest(head: str, text: str) -> str:
    """The hash of a line, from that of the line before."""
    return hashlib.sha256(f"{head} {text}".encode("ascii")).hexdigest()


class Chain:
    """An open file of hashed lines, of which this process has read a beginning.

    Guarantees:
        A changed, removed or reordered line is found.  [test_tampering_is_found]
        What a failed write left is taken back, and nothing was acted on.  [test_a_full_disk_is_told_in_one_line]
        A line that a dying process left half written is no line.  [test_half_a_line_is_no_line]
        No bytes make it raise anything but a `LedgerError`.  [test_whatever_the_bytes_a_ledger_error]
    """

    def __init__(self, path: Path, descriptor: int, limits: Limits) -> None:
        self.path = path
        self.limits = limits
        self.head = START
        self.num_lines = 0
        self.half_line = 0
        """How many bytes follow the last whole line."""
        self._descriptor = descriptor
        self._size = 0
        self._before_last = (START, 0, 0)

    @classmethod
    def open(cls, path: Path, limits: Limits, *, read_only: bool = False) -> Chain:
        """Open a file that is there.

        Raises:
            LedgerError: there is none, or it is no regular file, or it may not be written.
        """
        try:
            if path.exists() and not stat.S_ISREG(path.stat().st_mode):
                kind = "a directory" if path.is_dir() else "a device or a pipe"
                raise LedgerError(f"{path}: found {kind}, expected {limits.what} or a new name")
            descriptor = os.open(path, os.O_RDONLY if read_only else os.O_RDWR)
        except OSError as problem:
            raise _cannot_open(path, limits, problem, "reading" if read_only else "writing") from None
        return cls(path, descriptor, limits)

    @classmethod
    def create(cls, path: Path, limits: Limits, first: Mapping[str, Any]) -> Chain:
        """Begin a file with its first line, on the disk; this process holds its lock from the start.

        Raises:
            FileExistsError: there is a file of that name, which stays as it is.
            LedgerError: it cannot be written.

        Guarantees:
            A file of that name is never changed.  [test_files_of_other_kinds_are_never_changed]
            A process that is killed leaves none without its first line.  [test_a_killed_writer_leaves_nothing]
        """
        place = Path(os.path.realpath(path))
        try:
            descriptor = open_nameless(place.parent)
            if descriptor is not None:
                chain = cls(path, descriptor, limits)
                try:
                    chain._begin(first)
                    if give_name(descriptor, place):
                        _sync_folder(place)
                        return chain
                except BaseException:
                    chain.close()
                    raise
                chain.close()
            return cls._create_named(path, place, limits, first)
        except FileExistsError:
            raise
        except OSError as problem:
            raise _cannot_open(path, limits, problem, "writing") from None

    @classmethod
    def _create_named(cls, path: Path, place: Path, limits: Limits, first: Mapping[str, Any]) -> Chain:
        """Begin a file where each has a name from the start: one that a killed process left is empty, and refused."""
        chain = cls(path, os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), limits)
        try:
            chain._begin(first)
        except BaseException:
            chain.close()
            remove(place)
            raise
        _sync_folder(place)
        return chain

    def _begin(self, first: Mapping[str, Any]) -> None:
        self.try_lock(patience=PATIENCE_SECONDS)
        self.append(first)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    @contextmanager
    def locked(self, *, patience: float | None = None, shared: bool = False) -> Iterator[None]:
        """Hold the file's lock.

        Raises:
            LedgerError: another process held it all the time.
        """
        if not self.try_lock(patience=PATIENCE_SECONDS if patience is None else patience, shared=shared):
            raise LedgerError(
                f"{self.path}: another process has held the lock of {self.limits.what} for too long; "
                "expected it to be free in seconds. Look for a process that hangs, then try again. Nothing was released"
            )
        try:
            yield
        finally:
            self.unlock()

    def try_lock(self, *, patience: float = 0.0, shared: bool = False) -> bool:
        """Take the file's lock within some seconds; whether it was free."""
        try:
            import fcntl
        except ImportError:
            raise LedgerError(f"{self.path}: {self.limits.what} {_NO_LOCKS}") from None
        end = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
            except OSError as problem:
                if problem.errno not in (errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK):
                    reason = problem.strerror
                    raise LedgerError(f"{self.path}: {self.limits.what} cannot be locked ({reason})") from None
            else:
                return True
            if time.monotonic() >= end:
                return False
            time.sleep(_PAUSE_SECONDS)

    @property
    def is_there(self) -> bool:
        """Whether the open file still has its name."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self.path))
        except OSError:
            return False

    def unlock(self) -> None:
        """Give the file's lock back."""
        import fcntl

        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def read_on(self) -> Iterator[Line]:
        """Read the lines that were added since, checking each; whoever appends must hold the lock.

        Raises:
            LedgerError: a line does not follow from the one before, or is beyond a limit, or there is no whole one.
        """
        size = os.fstat(self._descriptor).st_size
        if size > self.limits.file_bytes:
            raise LedgerError(
                f"{self.path}: found {size:,} bytes, expected at most {self.limits.file_bytes:,} in {self.limits.what}"
            )
        if size < self._size:
            raise self._fault(self.num_lines, "fewer bytes than were read before: lines were cut from the end")
        with open(os.dup(self._descriptor), "rb") as handle:
            handle.seek(self._size)
            while raw := handle.readline(self.limits.line_bytes + 1):
                if len(raw) > self.limits.line_bytes or self.num_lines >= self.limits.lines:
                    raise self._fault(self.num_lines + 1, "more than any line, or more lines than any file, has")
                if not raw.endswith(b"\n"):
                    if not self.num_lines:
                        # A file gets its name with its first line: no dying process left this.
                        raise self._something_else()
                    self.half_line = len(raw)
                    return
                yield self._line(raw)
        self.half_line = 0

    def forget_last(self) -> None:
        """Take the last line for one that a dying process left half written: the next one is written in its place."""
        size = self._size
        self.head, self.num_lines, self._size = self._before_last
        self.half_line += size - self._size

    def append(self, *bodies: Mapping[str, Any]) -> tuple[Line, ...]:
        """Add lines and force them to the disk; whoever calls holds the lock and has read all there is.

        Raises:
            LedgerError: they cannot be written. The file is as it was.
        """
        if os.fstat(self._descriptor).st_size != self._size + self.half_line:
            raise self._fault(self.num_lines, "other bytes behind it than were read")
        head, lines, data = self.head, [], b""
        for number, body in enumerate(bodies, start=self.num_lines + 1):
            text = canonical(body)
            head = digest(head, text)
            lines.append(Line(number=number, head=head, body=body))
            raw = f"{head} {text}\n".encode("ascii")
            if len(raw) > self.limits.line_bytes:
                raise LedgerError(
                    f"{self.path}: a line would have {len(raw):,} bytes, expected at most {self.limits.line_bytes:,}. "
                    "Nothing was written"
                )
            data += raw
        if self._size + len(data) > self.limits.file_bytes or self.num_lines + len(bodies) > self.limits.lines:
            raise LedgerError(f"{self.path}: {self.limits.what} is full; begin another file. Nothing was written")
        self._write(data)
        self.head, self.num_lines, self._size, self.half_line = head, lines[-1].number, self._size + len(data), 0
        return tuple(lines)

    def _write(self, data: bytes) -> None:
        """Write behind the last whole line: what a process left half written there was never acted on."""
        try:
            if self.half_line:
                os.ftruncate(self._descriptor, self._size)
            os.lseek(self._descriptor, self._size, os.SEEK_SET)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            os.fsync(self._descriptor)
        except BaseException as problem:
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            if isinstance(problem, OSError):
                raise LedgerError(
                    f"{self.path}: {self.limits.what} cannot be written ({problem.strerror}). Nothing was entered, and "
                    "nothing is released that is not entered; check the free space, its permissions and the folder"
                ) from None
            raise

    def _line(self, raw: bytes) -> Line:
        number = self.num_lines + 1
        head, space, rest = raw[:_HASH_CHARS], raw[_HASH_CHARS : _HASH_CHARS + 1], raw[_HASH_CHARS + 1 : -1]
        try:
            text, found = rest.decode("ascii"), head.decode("ascii")
            body = json.loads(text, parse_constant=_refuse)
            is_plain = isinstance(body, dict) and space == b" " and _depth(body) <= MAX_DEPTH
            is_plain = is_plain and canonical(body) == text
        except (ValueError, RecursionError):
            is_plain = False
        if not is_plain:
            if number == 1:
                raise self._something_else()
            raise self._fault(number, "something that is no line of it")
        expected = digest(self.head, text)
        if found != expected:
            raise self._fault(number, "a hash that does not follow from the lines before")
        self._before_last = (self.head, self.num_lines, self._size)
        self.head, self.num_lines, self._size = expected, number, self._size + len(raw)
        return Line(number=number, head=expected, body=body)

    def _something_else(self) -> LedgerError:
        return LedgerError(
            f"{self.path}: found something else, expected {self.limits.what} or a new name. The file was not changed"
        )

    def _fault(self, number: int, found: str) -> LedgerError:
        return LedgerError(
            f"{self.path}: line {number}: found {found}; the file was changed or is damaged. Get an untouched copy"
        )


def _cannot_open(path: Path, limits: Limits, problem: OSError, purpose: str) -> LedgerError:
    if isinstance(problem, FileNotFoundError):
        missing = f"such {limits.what.removeprefix('a ')}" if path.parent.is_dir() else f"folder {path.parent}"
        return LedgerError(f"{path}: there is no {missing}; check the path")
    return LedgerError(
        f"{path}: {limits.what} cannot be opened for {purpose} ({problem.strerror}); check its permissions. "
        "Nothing was released"
    )


def remove(path: Path) -> None:
    """Remove a file, if it is there, for good."""
    with suppress(OSError):
        path.unlink(missing_ok=True)
        _sync_folder(path)


def _sync_folder(path: Path) -> None:
    """Force a new name, or one that is gone, to the disk, where the system lets a folder be opened."""
    with suppress(OSError):
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _refuse(name: str) -> float:
    raise ValueError(name)


def _depth(value: object) -> int:
    """How deep lists and mappings stand in each other; also refuses numbers that no double holds."""
    deepest, level = 0, [value]
    while level and deepest <= MAX_DEPTH:
        deepest += 1
        following: list[object] = []
        for each in level:
            if isinstance(each, float) and not math.isfinite(each):
                raise ValueError("infinite")
            children: Sequence[object] = (
                tuple(each.values()) if isinstance(each, dict) else each if isinstance(each, list) else ()
            )
            following.extend(children)
        level = following
    return deepest

"""The stored releases of one run: what was drawn, on the disk before anything can follow from it.

A run's releases stand in a file of hashed lines beside the ledger, `LEDGER.RUN.releases`, until its table is written.
They are noisy answers, which are public, and what they were asked for; no private value, and no secret bytes from which
noise was made (see `kamino.privacy.tape.StoredTape`). The first line holds a seed for choices that cost no privacy,
such as which rows are drawn from the model, so that a run that goes on ends as it would have. Whoever works on the run
holds the lock of the file.

The ledger vouches for each release with a line that holds its hash, so that an older copy of the file cannot take its
place. Two files cannot change at one instant: the process may end when a release is here and its line is not yet in the
ledger. It is drawn anew then, and nobody may see the first draw. So each release is sealed with a key of its own, which
comes with its line in the ledger: before that the file tells nothing of it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from kamino.advice import starting_anew
from kamino.errors import LedgerError
from kamino.limits import MAX_LEDGER_LINES, MAX_RELEASE_BYTES, MAX_RELEASES_BYTES
from kamino.privacy.durable.hash_chain import Chain, Limits, Line, canonical, remove
from kamino.privacy.durable.policing import RunState
from kamino.privacy.durable.store import charged_as
from kamino.privacy.ledger import Entry
from kamino.privacy.mechanisms.categories import NoisyCategories

JOURNAL_LIMITS = Limits(
    what="a file of stored releases",
    file_bytes=MAX_RELEASES_BYTES,
    lines=MAX_LEDGER_LINES,
    line_bytes=MAX_RELEASE_BYTES,
)
_SUFFIX = ".releases"
# Numbers that are exact in the arrays that mechanisms release.
_TYPES = frozenset({"<i8", "<i4", "<f4", "<f8", "<u4", "|b1", "|u1"})
_MOST_DIMENSIONS = 16


def journal_path(ledger: Path, run: str) -> Path:
    """Where the stored releases of a run are."""
    return ledger.with_name(f"{ledger.name}.{run}{_SUFFIX}")


def journals_of(ledger: Path) -> dict[str, Path]:
    """All files of stored releases beside a ledger, by their runs."""
    prefix = f"{ledger.name}."
    found = sorted(path for path in ledger.parent.iterdir() if path.name.startswith(prefix))
    return {path.name.removeprefix(prefix).removesuffix(_SUFFIX): path for path in found if path.name.endswith(_SUFFIX)}


class Journal:
    """The stored releases of a run that this process works on.

    Guarantees:
        What is played back is what was drawn, bit by bit.  [test_stored_releases_come_back_as_they_were]
        A release is on the disk before it is handed out.  [test_a_release_is_on_the_disk_before_it_is_handed_out]
    """

    def __init__(self, chain: Chain, draw_seed: int, lines: Sequence[Line] = ()) -> None:
        self._chain = chain
        self.draw_seed = draw_seed
        self._lines = list(lines)
        self._keys: dict[int, str] = {}
        self._records: dict[int, Mapping[str, Any]] = {}

    @classmethod
    def create(cls, path: Path, run: str) -> Journal:
        """Begin the file of a new run, and hold its lock."""
        seed = secrets.randbits(63)
        try:
            chain = Chain.create(path, JOURNAL_LIMITS, {"kind": "releases", "run": run, "draw_seed": seed})
        except FileExistsError:
            raise LedgerError(f"{path}: found a file, expected none; move it to another folder") from None
        return cls(chain, seed)

    @classmethod
    def reopen(cls, path: Path, run: str) -> Journal | None:
        """Open the file of a run that ended early; None if a process is at work on it. `take` lets releases count.

        Raises:
            LedgerError: it is not that run's, or was changed.
        """
        chain = Chain.open(path, JOURNAL_LIMITS)
        try:
            if not chain.try_lock():
                chain.close()
                return None
            lines = list(chain.read_on())
            return cls(chain, _draw_seed(lines, run, path), lines[1:])
        except BaseException:
            chain.close()
            raise

    def take(self, state: RunState) -> None:
        """Let the releases count that are stored: those that the ledger vouches for, or all, in a run of format 1.

        Raises:
            LedgerError: one of them is another one, or is missing: an older copy of the file was put back.

        Guarantees:
            All that the ledger vouches for is there, as it was.
            [test_stored_releases_that_are_put_back_show_nothing_new]
        """
        lines, stored = self._lines, state.stored
        if state.is_bound:
            _compare(lines, state, self.path)
            if len(lines) > len(stored) + 1:
                raise LedgerError(set_back(self.path, f"{len(lines)} releases where the ledger has {len(stored)}"))
            if len(lines) > len(stored):
                # Nobody has its key: the process ended before the ledger had it.
                self._chain.forget_last()
            self._keys = {each.number: each.key for each in stored}
        self._records = _records(lines[: len(stored)] if state.is_bound else lines, self.path)

    @staticmethod
    def check(path: Path, state: RunState) -> None:
        """Raise a `LedgerError` unless all is there that the ledger vouches for; a process may be at work on it."""
        chain = Chain.open(path, JOURNAL_LIMITS, read_only=True)
        try:
            _compare(list(chain.read_on())[1:], state, path)
        finally:
            chain.close()

    @staticmethod
    def remove_if_unused(path: Path, run: str, *, is_useless: Callable[[], bool]) -> None:
        """Remove the file of a run that no process works on; what is no file of this run stays.

        Guarantees:
            What only has a name like it is kept.  [test_a_file_that_is_named_as_stored_releases_is_kept]
        """
        with suppress(LedgerError):
            chain = Chain.open(path, JOURNAL_LIMITS)
            try:
                # One that a process holds is just being entered.
                if chain.try_lock():
                    _draw_seed(list(chain.read_on()), run, path)
                    if is_useless():
                        remove(path)
            finally:
                chain.close()

    def __len__(self) -> int:
        return len(self._records)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._chain.path

    def find(self, number: int, entry: Entry) -> tuple[bool, Any]:
        """Whether a release was stored under a number, and what it was.

        Raises:
            LedgerError: something else was stored under it.
        """
        record = self._records.get(number)
        if record is None:
            return False, None
        if record.get("entry") != charged_as(entry):
            raise LedgerError(changed(self.path, f"release {number} ({entry.kind})"))
        key = self._keys.get(number)
        return True, _decode(record if key is None else _opened(record, key, self.path), self.path)

    def keep(self, number: int, entry: Entry, released: object, *, key: str | None) -> str:
        """Store a release, sealed with a key unless it is None; it is on the disk when this returns its hash."""
        body = _encode(released) if key is None else _sealed(_encode(released), key)
        record = {"number": number, "entry": charged_as(entry), **body}
        (line,) = self._chain.append(record)
        self._records[number] = record
        if key is not None:
            self._keys[number] = key
        return line.head

    def release(self) -> None:
        """Close the file and let others go on with the run."""
        self._chain.close()

    def discard(self) -> None:
        """Close the file and remove it: nobody can go on with the run."""
        remove(self.path)
        self._chain.close()


def changed(path: Path, what: str) -> str:
    """What is said of a run that asks for something else than the run it goes on with."""
    return (
        f"{path}: {what} is another one than was stored: the columns of the table, a public file, a setting or the "
        f"libraries have changed since. Go back to what it was, or start anew with {starting_anew()}, which pays again"
    )


def set_back(path: Path, found: str) -> str:
    """What is said where the stored releases of a run are not those that its ledger vouches for."""
    return (
        f"{path}: found {found}: an older copy was put back, or the file was changed. Nothing was drawn. Put the "
        f"latest file back, or start anew with {starting_anew()}, which pays again"
    )


def _compare(lines: Sequence[Line], state: RunState, path: Path) -> None:
    """Refuse stored releases that do not begin with those that the ledger vouches for."""
    stored = state.stored
    if [line.head for line in lines[: len(stored)]] != [each.hash for each in stored]:
        raise LedgerError(set_back(path, f"{len(lines)} releases where the ledger has {len(stored)}"))


def _draw_seed(lines: list[Line], run: str, path: Path) -> int:
    first = lines[0].body if lines else {}
    seed = first.get("draw_seed")
    if first.get("kind") != "releases" or first.get("run") != run or not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise LedgerError(f"{path}: found something else, expected the stored releases of run {run}")
    return seed


def _records(lines: Sequence[Line], path: Path) -> dict[int, Mapping[str, Any]]:
    found: dict[int, Mapping[str, Any]] = {}
    for line in lines:
        number = line.body.get("number")
        if not isinstance(number, int) or number in found:
            raise LedgerError(f"{path}: line {line.number}: found no stored release")
        found[number] = line.body
    return found


def _sealed(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    """A stored release that only the key opens. A key is used once, and is as long as a hash."""
    sealed = _masked(canonical(body).encode("ascii"), key)
    return {"kind": "sealed", "sealed": base64.b64encode(sealed).decode("ascii")}


def _opened(record: Mapping[str, Any], key: str, path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(_masked(base64.b64decode(record["sealed"], validate=True), key))
    except (KeyError, TypeError, ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise LedgerError(f"{path}: found a stored release that its key does not open; the file is damaged")
    return found


def _masked(data: bytes, key: str) -> bytes:
    """Each byte with one of SHAKE-256 of the key; twice is once not at all."""
    mask = hashlib.shake_256(bytes.fromhex(key)).digest(len(data))
    plain: bytes = np.bitwise_xor(np.frombuffer(data, np.uint8), np.frombuffer(mask, np.uint8)).tobytes()
    return plain


def _encode(released: object) -> dict[str, Any]:
    if isinstance(released, np.ndarray):
        return {"kind": "array", "array": _array_body(released)}
    if isinstance(released, dict) and all(isinstance(each, NoisyCategories) for each in released.values()):
        sets = [
            {"name": name, "values": list(each.values), "counts": list(each.counts), "threshold": each.threshold}
            for name, each in released.items()
        ]
        return {"kind": "categories", "sets": sets}
    if isinstance(released, bytes):
        return {"kind": "bytes", "data": base64.b64encode(released).decode("ascii")}
    if isinstance(released, tuple) and all(isinstance(each, np.ndarray) for each in released):
        return {"kind": "arrays", "arrays": [_array_body(each) for each in released]}
    raise LedgerError(f"a release of type {type(released).__name__} cannot be stored")


def _decode(record: Mapping[str, Any], path: Path) -> object:
    try:
        match record["kind"]:
            case "array":
                return _array(record["array"])
            case "arrays":
                return tuple(_array(each) for each in record["arrays"])
            case "bytes":
                return base64.b64decode(record["data"], validate=True)
            case "categories":
                return {str(each["name"]): _categories(each) for each in record["sets"]}
            case _:
                raise ValueError("no kind of release")
    except (KeyError, TypeError, ValueError, binascii.Error, OverflowError):
        raise LedgerError(f"{path}: found a stored release that is damaged") from None


def _array_body(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    plain = np.ascontiguousarray(array)
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    if plain.dtype.str not in _TYPES:
        raise LedgerError(f"a release of {plain.dtype} numbers cannot be stored")
    data = base64.b64encode(plain.tobytes()).decode("ascii")
    return {"type": plain.dtype.str, "shape": list(array.shape), "data": data}


def _array(body: Mapping[str, Any]) -> np.ndarray[Any, Any]:
    kind, shape = body["type"], body["shape"]
    if kind not in _TYPES or not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
        raise ValueError("no array")
    if any(isinstance(each, bool) or not isinstance(each, int) or each < 0 for each in shape):
        raise ValueError("no shape")
    data = base64.b64decode(body["data"], validate=True)
    if len(data) != math.prod(shape) * np.dtype(kind).itemsize:
        raise ValueError("another size than it says")
    found: np.ndarray[Any, Any] = np.frombuffer(data, dtype=kind).reshape(shape).copy()
    return found


def _categories(body: Mapping[str, Any]) -> NoisyCategories:
    return NoisyCategories(
        values=tuple(_category(each) for each in body["values"]),
        counts=tuple(int(each) for each in body["counts"]),
        threshold=int(body["threshold"]),
    )


def _category(value: object) -> str | int:
    if not isinstance(value, str | int):
        raise ValueError("no category")
    return value

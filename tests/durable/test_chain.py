"""Files of hashed lines: tampering, half lines, full disks, and whatever bytes somebody sends."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.durable.planning import gaussian, planned
from tests.trying import examples

from kamino.errors import LedgerError
from kamino.privacy.durable import hash_chain as chain_module
from kamino.privacy.durable.hash_chain import START, Chain, Limits, canonical, digest
from kamino.privacy.durable.journal import Journal
from kamino.privacy.durable.ledger_lines import StoredRelease, header_body
from kamino.privacy.durable.policing import RunState
from kamino.privacy.durable.store import DurableLedger
from kamino.privacy.mechanisms.categories import NoisyCategories


def ledger_file(folder: Path, charges: int = 5) -> Path:
    path = folder / "l.ledger"
    with DurableLedger.open(path) as ledger:
        ledger.reserve(planned("one"))
        for number in range(charges):
            ledger.charge("one", gaussian(1e-4, what=f"counts {number}"))
    return path


def chained(*bodies: dict[str, Any]) -> bytes:
    """A file of lines whose hashes are right, whatever they say."""
    head, text = START, ""
    for body in bodies:
        head = digest(head, canonical(body))
        text += f"{head} {canonical(body)}\n"
    return text.encode("ascii")


TAMPERED: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "a changed number": lambda lines: [*lines[:3], lines[3].replace(b"counts 1", b"counts 9"), *lines[4:]],
    "a changed hash": lambda lines: [*lines[:3], (b"1" if lines[3][:1] == b"0" else b"0") + lines[3][1:], *lines[4:]],
    "a removed line": lambda lines: [*lines[:3], *lines[4:]],
    "two lines exchanged": lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]],
    "a line twice": lambda lines: [*lines[:4], lines[3], *lines[4:]],
    "no first line": lambda lines: lines[1:],
    "other spaces": lambda lines: [*lines[:3], lines[3].replace(b'":', b'": '), *lines[4:]],
    "half of the last line": lambda lines: [*lines[:-1], lines[-1][:50]],
}


@pytest.mark.parametrize("how", TAMPERED)
def test_tampering_is_found(tmp_path: Path, how: str) -> None:
    path = ledger_file(tmp_path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(TAMPERED[how](lines)))
    if how == "half of the last line":
        with DurableLedger.read(path) as ledger:
            assert ledger.half_line == 50
        return
    with pytest.raises(
        LedgerError, match=r"the file was changed or is damaged|found something else, expected a ledger"
    ):
        DurableLedger.read(path)
    with pytest.raises(LedgerError):
        DurableLedger.open(path)


def test_lines_cut_from_the_end_are_found_with_a_head(tmp_path: Path) -> None:
    path = ledger_file(tmp_path)
    with DurableLedger.read(path) as ledger:
        head = ledger.head
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-2]))
    with DurableLedger.read(path) as ledger:
        assert head not in ledger.heads
    path.write_bytes(b"".join(lines))
    with DurableLedger.open(path) as ledger:
        ledger.charge("one", gaussian(1e-4))
        assert head in ledger.heads
        assert head != ledger.head


def test_a_process_that_has_the_ledger_open_sees_that_it_was_cut(tmp_path: Path) -> None:
    path = ledger_file(tmp_path)
    with DurableLedger.open(path) as ledger:
        os.truncate(path, path.stat().st_size - 300)
        with pytest.raises(LedgerError, match="lines were cut from the end"):
            ledger.charge("one", gaussian(1e-4))


def test_half_a_line_is_no_line(tmp_path: Path) -> None:
    """What a dying process left is cut off by the next one, and the chain goes on."""
    path = ledger_file(tmp_path)
    whole = path.read_bytes()
    with open(path, "ab") as handle:
        handle.write(b"ab12 {half")
    with DurableLedger.open(path) as ledger:
        assert len(ledger.runs["one"].charged) == 5
        ledger.charge("one", gaussian(1e-4))
    assert path.read_bytes().startswith(whole)
    with DurableLedger.read(path) as ledger:
        assert (len(ledger.runs["one"].charged), ledger.half_line) == (6, 0)


@pytest.mark.parametrize("part", [0, 7])
def test_a_full_disk_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    """Also one that takes some of the bytes: they are taken back, and the file is as it was."""
    path = ledger_file(tmp_path)
    before, write, written = path.read_bytes(), os.write, []

    def full(descriptor: int, data: bytes) -> int:
        if written or not part:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(part)
        return write(descriptor, bytes(data)[:part])

    with DurableLedger.open(path) as ledger:
        monkeypatch.setattr(chain_module.os, "write", full)
        with pytest.raises(LedgerError, match=r"cannot be written \(No space left on device\)\. Nothing was entered"):
            ledger.charge("one", gaussian(1e-4))
        monkeypatch.setattr(chain_module.os, "write", write)
        assert path.read_bytes() == before
        ledger.charge("one", gaussian(1e-4))
        assert len(ledger.runs["one"].charged) == 6


def test_bytes_that_do_not_reach_the_disk_are_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ledger_file(tmp_path)
    before = path.read_bytes()

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with DurableLedger.open(path) as ledger:
        monkeypatch.setattr(chain_module.os, "fsync", fail)
        with pytest.raises(LedgerError, match="Input/output error"):
            ledger.charge("one", gaussian(1e-4))
    assert path.read_bytes() == before


def test_a_ledger_that_another_process_holds_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ledger_file(tmp_path)
    monkeypatch.setattr(chain_module, "PATIENCE_SECONDS", 0.05)
    with open(path, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(LedgerError, match="another process has held the lock of a ledger for too long"):
            DurableLedger.open(path)
    DurableLedger.open(path).close_file()


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty").touch()
    (tmp_path / "other").write_bytes(chained({"kind": "releases"}))
    (tmp_path / "newer").write_bytes(chained({**header_body("i", "9"), "format": 3}))
    (tmp_path / "unknown").write_bytes(chained(header_body("i", "0"), {"kind": "gift"}))
    os.mkfifo(tmp_path / "pipe")
    for name, text in (
        ("table.csv", "found something else, expected a ledger"),
        ("other", "found something else, expected a ledger"),
        ("newer", "found a ledger of format 3, expected 2 or an earlier one"),
        ("unknown", "line 2: found a line of a kind that this Kamino does not know"),
        ("pipe", "found a device or a pipe, expected a ledger"),
        (".", "found a directory, expected a ledger"),
        ("missing/l", "there is no folder"),
    ):
        before = (tmp_path / name).read_bytes() if (tmp_path / name).is_file() else None
        with pytest.raises(LedgerError, match=text):
            DurableLedger.open(tmp_path / name)
        assert before is None or (tmp_path / name).read_bytes() == before
    with pytest.raises(LedgerError, match="found an empty file"):
        DurableLedger.read(tmp_path / "empty")
    with pytest.raises(LedgerError, match="there is no such ledger"):
        DurableLedger.read(tmp_path / "nothing")


CHARGE = {"attributes": [], "events": [], "kind": "k"}
RUN = planned("one").to_body()
WRONG: dict[str, list[dict[str, Any]]] = {
    "an unknown run": [{"kind": "charge", "run": "x", "number": 1, "entry": CHARGE}],
    "a charge out of order": [RUN, {"kind": "charge", "run": "one", "number": 2, "entry": CHARGE}],
    "a run twice": [RUN, RUN],
    "a charge after the end": [
        RUN,
        {"kind": "close", "run": "one", "outcome": "done"},
        {"kind": "charge", "run": "one", "number": 1, "entry": CHARGE},
    ],
    "a negative epsilon": [{**RUN, "epsilon": -1}],
    "an endless number": [{**RUN, "gaussian": 10**400}],
    "an epsilon of text": [{**RUN, "epsilon": "1"}],
    "a delta that is true": [{**RUN, "delta": True}],
    "a long name": [{**RUN, "dataset": "x" * 1001}],
    "a name that moves the cursor": [{**RUN, "dataset": "x\x1b[2J"}],
    "a mark that moves the cursor": [{**RUN, "mark": "\x1b[2J"}],
    "a price below zero": [{**RUN, "gaussian": -1.0}],
    "an unknown relation": [{**RUN, "neighbours": "friends"}],
    "no entry": [RUN, {"kind": "charge", "run": "one", "number": 1}],
    "an unknown event": [RUN, {"kind": "charge", "run": "one", "number": 1, "entry": {"events": [{"type": "Free"}]}}],
    "an event too often": [
        RUN,
        {
            "kind": "charge",
            "run": "one",
            "number": 1,
            "entry": {"events": [{"type": "DeltaEvent", "delta": 0.1, "count": 10**13}]},
        },
    ],
    "an event with other fields": [
        RUN,
        {
            "kind": "charge",
            "run": "one",
            "number": 1,
            "entry": {"events": [{"type": "DeltaEvent", "epsilon": 0.1, "count": 1}]},
        },
    ],
    "an event without noise below zero": [
        RUN,
        {
            "kind": "charge",
            "run": "one",
            "number": 1,
            "entry": {
                "events": [{"type": "GaussianEvent", "noise_multiplier": -1, "replace_multiplier": 1, "count": 1}]
            },
        },
    ],
    "an event of a type that is no text": [
        RUN,
        {"kind": "charge", "run": "one", "number": 1, "entry": {"events": [{"type": ["GaussianEvent"], "count": 1}]}},
    ],
    "a policy without bound": [{"kind": "policy", "dataset": "d", "epsilon": 1, "delta": 2, "neighbours": "replace"}],
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_lines_with_right_hashes_are_refused(tmp_path: Path, what: str) -> None:
    path = tmp_path / "l"
    path.write_bytes(chained(header_body("i", "0"), *WRONG[what]))
    with pytest.raises(LedgerError, match=r"line [23456]: "):
        DurableLedger.read(path)


@examples(150)
@given(data=st.data())
def test_whatever_the_bytes_a_ledger_error(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.ledger"
    whole = chained(header_body("i", "0"), RUN, {"kind": "charge", "run": "one", "number": 1, "entry": CHARGE})
    if data.draw(st.booleans()):
        start, stop = sorted(data.draw(st.tuples(st.integers(0, len(whole)), st.integers(0, len(whole)))))
        path.write_bytes(whole[:start] + data.draw(st.binary(max_size=40)) + whole[stop:])
    else:
        value = st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        )
        name = data.draw(st.sampled_from(["kind", "run", "dataset", "epsilon", "gaussian", "entry", "number", "unit"]))
        kind = data.draw(st.sampled_from(["policy", "run", "charge", "close"]))
        changed = {**RUN, "kind": kind, "entry": CHARGE, "number": 1, "outcome": "done", name: data.draw(value)}
        path.write_bytes(chained(header_body("i", "0"), RUN, changed))
    with suppress(LedgerError):
        DurableLedger.read(path).close_file()


def test_deep_and_long_lines_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "l"
    limits = Limits(what="a file", file_bytes=5_000, lines=3, line_bytes=1_000)
    deep: Any = 1
    for _ in range(200):
        deep = [deep]
    start = {"a": 1}
    for content in (
        chained(start, {"a": deep}),
        START.encode() + b" " + b'{"a":' + b"[" * 100_000 + b"\n",
        chained(start, {"a": "x" * 990}),
        chained(start, start, start, start),
        chained(start) + b"x" * 6_000,
        START.encode() + b' {"a":' + b"9" * 5_000 + b"}\n",
        START.encode() + b' {"a":1e999}\n',
        START.encode() + b' {"a":NaN}\n',
    ):
        path.write_bytes(content)
        with pytest.raises(LedgerError):
            list(Chain.open(path, limits, read_only=True).read_on())


RELEASES = (
    np.array([[1, -2], [3, 2**62]], dtype=np.int64),
    np.array(7, dtype=np.int64),
    np.zeros((0, 4), dtype=np.int64),
    (np.array([0.1, -np.inf], dtype=np.float32), np.array(3, dtype=np.int32)),
    {"x": NoisyCategories(values=("ä", "b\n", 5, -(2**70)), counts=(3, 4, 5, 6), threshold=3)},
    b"\x00\xff" * 16,
)


@pytest.mark.parametrize("is_sealed", [True, False])
def test_stored_releases_come_back_as_they_were(tmp_path: Path, is_sealed: bool) -> None:
    state = RunState(planned=planned("one"), tallies={}, charged=[], is_bound=is_sealed)
    journal = Journal.create(tmp_path / "j.releases", "one")
    entry = gaussian(1e-3)
    for number, release in enumerate(RELEASES, start=1):
        key = f"{number:064x}" if is_sealed else None
        head = journal.keep(number, entry, release, key=key)
        if key is not None:
            state.stored.append(StoredRelease(run="one", number=number, hash=head, key=key))
    journal.release()
    again = Journal.reopen(tmp_path / "j.releases", "one")
    assert again is not None
    again.take(state)
    assert again.draw_seed == journal.draw_seed
    for number, release in enumerate(RELEASES, start=1):
        is_stored, found = again.find(number, entry)
        assert is_stored
        pairs = zip(found, release, strict=True) if isinstance(release, tuple) else [(found, release)]
        for one, other in pairs:
            if isinstance(other, np.ndarray):
                assert one.dtype == other.dtype
                assert one.shape == other.shape
                assert one.tobytes() == other.tobytes()
            else:
                assert one == other
    assert again.find(99, entry) == (False, None)
    with pytest.raises(LedgerError, match=r"release 1 .* is another one than was stored"):
        again.find(1, gaussian(1e-3, what="other"))
    with pytest.raises(LedgerError, match="cannot be stored"):
        again.keep(50, entry, object(), key=None)
    assert Journal.reopen(tmp_path / "j.releases", "one") is None
    again.release()
    with pytest.raises(LedgerError, match="expected the stored releases of run two"):
        Journal.reopen(tmp_path / "j.releases", "two")


@pytest.mark.parametrize(
    "array",
    [
        {"type": "<i8", "shape": [10**9, 10**9], "data": ""},
        {"type": "O", "shape": [1], "data": "AAAAAAAAAAA="},
        {"type": "<i8", "shape": [-1], "data": ""},
        {"type": "<i8", "shape": [1], "data": "%%%"},
        {"type": "<i8", "shape": "x", "data": ""},
        {"type": ["<i8"], "shape": [0], "data": ""},
        7,
    ],
)
def test_damaged_releases_are_refused(tmp_path: Path, array: object) -> None:
    from kamino.privacy.durable.store import charged_as

    entry = gaussian(1e-3)
    path = tmp_path / "j.releases"
    first = {"kind": "releases", "run": "one", "draw_seed": 1}
    path.write_bytes(chained(first, {"number": 1, "entry": charged_as(entry), "kind": "array", "array": array}))
    journal = Journal.reopen(path, "one")
    assert journal is not None
    journal.take(RunState(planned=planned("one"), tallies={}, charged=[]))
    with pytest.raises(LedgerError, match="damaged"):
        journal.find(1, entry)
    journal.release()

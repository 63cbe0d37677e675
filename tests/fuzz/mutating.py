"""Inputs that nobody wrote: valid ones with a few things changed, each made from a seed and a number alone."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

WORDS = (
    *(b"", b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"\t", b" ", b'"', b"'"),
    *(
        b",",
        b";",
        b":",
        b"(",
        b")",
        b"[",
        b"]",
        b"{",
        b"}",
        b"-",
        b"--",
        b"#",
        b"&",
        b"*",
        b"!",
        b"\\",
        b"|",
        b">",
        b"<",
    ),
    *(b"0", b"-0", b"-1", b"1e308", b"1e309", b"-1e309", b"1e-400", b"1e999999999", b"9" * 30, b"9" * 500, b"0x10"),
    *(
        b".",
        b"nan",
        b"NaN",
        b"inf",
        b"-inf",
        b"Infinity",
        b"null",
        b"true",
        b"false",
        b"None",
        b"~",
        b"9223372036854775808",
    ),
    *(
        b"2024-02-30",
        b"9999-12-31",
        b"0001-01-01",
        b"2024-01-01T00:00:00Z",
        b"23:59:60",
        b"\xe2\x80\xae",
        b"\xf0\x9f\x98\x80",
    ),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2.5, -0.0, 1e308, 5e-324, 10**18, -(10**18), 2**63, 10**40, "", "x", "7", "\x00"),
    *([], {}, [0], [None], {"a": 1}, [[[]]], "1e309", "not (", "a -> b", "\u202e", "é" * 50, "x" * 2000),
)
MOST_BYTES = 1 << 16


def mutated(seeds: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> bytes:
    """One of the seeds with a few bytes, words or stretches changed."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 2, 3, 5, 9))):
        rng.choice(_CHANGES)(data, seeds, words, rng)
    return bytes(data[:MOST_BYTES])


def _stretch(data: bytearray, rng: random.Random) -> tuple[int, int]:
    begin = rng.randrange(len(data) + 1)
    return begin, min(len(data), begin + rng.choice((1, 1, 2, 4, 8, 32, 200)))


def _flip(data: bytearray, seeds: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> None:
    if data:
        data[rng.randrange(len(data))] = rng.randrange(256)


def _delete(data: bytearray, seeds: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> None:
    begin, end = _stretch(data, rng)
    del data[begin:end]


def _double(data: bytearray, seeds: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> None:
    begin, end = _stretch(data, rng)
    data[begin:begin] = bytes(data[begin:end]) * rng.choice((1, 1, 2, 10, 300))


def _insert(data: bytearray, seeds: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> None:
    begin = rng.randrange(len(data) + 1)
    data[begin:begin] = rng.choice(words if words and rng.random() < 0.6 else WORDS)


def _replace(data: bytearray, seeds: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> None:
    begin, end = _stretch(data, rng)
    data[begin:end] = rng.choice(words if words and rng.random() < 0.6 else WORDS)


def _splice(data: bytearray, seeds: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> None:
    other = rng.choice(seeds)
    begin, end = _stretch(bytearray(other), rng)
    place = rng.randrange(len(data) + 1)
    data[place:place] = other[begin:end]


def _cut(data: bytearray, seeds: Sequence[bytes], words: Sequence[bytes], rng: random.Random) -> None:
    if rng.random() < 0.3:
        del data[rng.randrange(len(data) + 1) :]


_CHANGES: tuple[Callable[[bytearray, Sequence[bytes], Sequence[bytes], random.Random], None], ...] = (
    *(_flip, _delete, _double, _insert, _replace, _splice, _insert, _replace, _cut),
)


def mutated_json(documents: Sequence[Any], rng: random.Random) -> Any:
    """One of the documents with a few values changed, left out, doubled or moved."""
    document = copy.deepcopy(rng.choice(documents))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        owner, name = _place(document, rng)
        if owner is None:
            return copy.deepcopy(rng.choice(VALUES))
        _change_value(owner, name, documents, rng)
    return document


def _place(document: Any, rng: random.Random) -> tuple[Any, Any]:
    """A random place in a document: the object or list, and the name or number in it."""
    owner, name = None, None
    current = document
    while isinstance(current, dict | list) and current and (owner is None or rng.random() < 0.8):
        owner = current
        name = rng.choice(list(current)) if isinstance(current, dict) else rng.randrange(len(current))
        current = current[name]
    return owner, name


def _change_value(owner: Any, name: Any, documents: Sequence[Any], rng: random.Random) -> None:
    way = rng.randrange(6)
    value = owner[name]
    if way == 0:
        del owner[name]
    elif way == 1 and isinstance(value, int | float) and not isinstance(value, bool):
        owner[name] = rng.choice((value * 2, -value, value / 3, value + 1, value * 1e200, value * 1e-200))
    elif way == 2 and isinstance(value, str):
        owner[name] = mutated([value.encode()], (), rng).decode("utf-8", "replace")
    elif way == 3 and isinstance(owner, list):
        owner.extend([copy.deepcopy(value)] * rng.choice((1, 3, 50)))
    elif way == 4 and isinstance(owner, dict):
        owner[rng.choice(("", "x", "type", "é"))] = copy.deepcopy(value)
    else:
        other, place = _place(rng.choice(documents), rng)
        moved = rng.random() < 0.3 and other is not None
        owner[name] = copy.deepcopy(other[place] if moved else rng.choice(VALUES))


def json_bytes(document: Any) -> bytes:
    """A document as a file holds it, also one that no writer would write."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")

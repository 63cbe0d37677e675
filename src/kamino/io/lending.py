"""Lend objects of Python to the threads of a library, and go on when these have let go of them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

# A thread lets go as soon as it gets a processor: tens of milliseconds on a busy machine, and never where it is stuck.
MOST_SECONDS = 2.0
PAUSE_SECONDS = 0.001


@contextmanager
def lent(*objects: object) -> Iterator[None]:
    """Lend objects to a library; at the end, wait until nobody holds more of them than before.

    The parser of Arrow gives its result before its threads have let go of the file that they read. A thread that lets
    go of an object while Python ends takes the whole process down, with a signal instead of its exit code.

    Guarantees:
        Nothing that was lent is held at the end.  [test_no_thread_holds_a_file_that_was_read]
    """
    before = _holders(objects)
    try:
        yield
    finally:
        until = time.monotonic() + MOST_SECONDS
        while time.monotonic() < until and any(now > then for now, then in zip(_holders(objects), before, strict=True)):
            time.sleep(PAUSE_SECONDS)


def _holders(objects: tuple[object, ...]) -> list[int]:
    return [sys.getrefcount(each) for each in objects]

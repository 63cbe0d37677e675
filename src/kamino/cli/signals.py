"""A run that is told to end, ends as after Ctrl-C: temporary files go, and what is spent is said."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

from kamino.io.atomic import remove_leftovers

# Signals that ask a program to end, and that Python would obey at once, without a word.
_ASKING = ("SIGTERM", "SIGHUP")


class ToldToEndError(BaseException):
    """A signal asked the program to end. No `Exception`: nothing on the way up may take it for a fault and go on."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number
        """What a shell says of a program that the signal ended."""


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Turn signals that ask the program to end into an error that cleans up on its way.

    The first one counts; further ones do not disturb the cleaning up. A signal that was ignored stays ignored.

    Guarantees:
        No temporary file is left, and what is spent is said.  [test_a_run_told_to_end_cleans_up_and_tells_the_cost]
        Also if a library renames the error.  [test_a_signal_that_a_library_renames_ends_the_run]
        Not even if the signal comes while one is removed.  [test_a_signal_while_a_file_is_removed_leaves_none]
    """
    # Python lets the main thread alone set handlers.
    asking = _ASKING if threading.current_thread() is threading.main_thread() else ()
    numbers = [getattr(signal, name) for name in asking if hasattr(signal, name)]
    caught = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    told: list[int] = []

    def end(number: int, frame: FrameType | None) -> NoReturn:
        del frame
        for each in caught:
            signal.signal(each, signal.SIG_IGN)
        told.append(number)
        raise ToldToEndError(number)

    for number in caught:
        signal.signal(number, end)
    try:
        yield
    except (ToldToEndError, KeyboardInterrupt):
        remove_leftovers()
        raise
    except Exception as problem:
        # A library may put an error of its own in the place of the one that the signal raised inside it.
        if not told:
            raise
        remove_leftovers()
        raise ToldToEndError(told[0]) from problem
    finally:
        for number in caught:
            # After a signal further ones stay ignored: what is spent is still to be said.
            if signal.getsignal(number) is end:
                signal.signal(number, signal.SIG_DFL)

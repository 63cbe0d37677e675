"""An act that is killed at each call of the system that changes a file or a folder, in a fork of this process."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

CALLS = ("open", "write", "fsync", "ftruncate", "link", "replace", "unlink", "chmod", "close")


def is_killed(act: Callable[[], object], *, call: int, before: bool) -> bool:
    """Do it in a fork that is killed before or after its call of this number; whether there were so many calls."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _arm(call, before)
            act()
            code = 0
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGKILL)
    return status != 0


def _arm(call: int, before: bool) -> None:
    left = call

    def armed(real: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if before and left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            outcome = real(*given, **options)
            if not before and left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return outcome

        return counted

    for name in CALLS:
        setattr(os, name, armed(getattr(os, name)))

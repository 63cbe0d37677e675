"""Code that is killed at each call of the system that changes a file or a folder, in a fork (see `tests/forked.py`)."""

from __future__ import annotations

import signal
from pathlib import Path

from tests.forked import forks

_ARM = """
import os, signal, sys

def arm(call, before):
    left = call
    def armed(real):
        def counted(*given, **options):
            nonlocal left
            left -= 1
            if before and left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            outcome = real(*given, **options)
            if not before and left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return outcome
        return counted
    for name in ("open", "write", "fsync", "ftruncate", "link", "replace", "unlink", "chmod", "close"):
        setattr(os, name, armed(getattr(os, name)))

"""


def is_killed(code: str, folder: Path, *, call: int, before: bool) -> bool:
    """Run code in a folder, killed before or after its call of this number; whether there were so many calls.

    It says itself when the counting begins: `arm()`.
    """
    told = f"{_ARM}\narm = __import__('functools').partial(arm, {call}, {before})\n{code}"
    ran = forks().run(told, folder=folder)
    assert ran.returncode in (0, -signal.SIGKILL), ran.stderr
    return ran.returncode != 0

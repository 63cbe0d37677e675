"""Runs of the command that are killed at chosen or random moments, in forks of one process (see `tests/forked.py`)."""

from __future__ import annotations

import json
import signal
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.forked import forks

# The first argument says when it is killed: `after` seconds by a process of its own, or by itself at the given one of
# the `calls` of what forces bytes or names to the disk.
ARMED = """
import json, os, resource, signal, sys, time
import kamino.cli.app

def kill_after(number, seconds):
    parent = os.getpid()
    if os.fork() == 0:
        end = time.monotonic() + seconds
        while os.getppid() == parent and time.monotonic() < end:
            time.sleep(0.002)
        if os.getppid() == parent:
            os.kill(parent, number)
        os._exit(0)

def kill_at(number, calls, before):
    left = calls
    def armed(real):
        def call(*arguments, **options):
            nonlocal left
            left -= 1
            if before and left == 0:
                os.kill(os.getpid(), number)
            outcome = real(*arguments, **options)
            if not before and left == 0:
                os.kill(os.getpid(), number)
            return outcome
        return call
    for name in ("fsync", "replace", "link", "ftruncate", "unlink"):
        setattr(os, name, armed(getattr(os, name)))

told = json.loads(sys.argv.pop(1))
sys.argv[0] = "kamino"
log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
os.dup2(log, 1), os.dup2(log, 2)
if told["after"]:
    kill_after(told["number"], told["after"])
if told["calls"]:
    kill_at(told["number"], told["calls"], told["before"])
if told["file_bytes"]:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (told["file_bytes"], resource.RLIM_INFINITY))
kamino.cli.app.main()
"""


@dataclass(frozen=True, kw_only=True)
class Kill:
    """When and how a run is killed: after some seconds, or before or after a number of calls."""

    number: signal.Signals
    after: float = 0.0
    calls: int = 0
    before: bool = False


def run_command(folder: Path, *arguments: str, kill: Kill | None = None, file_bytes: int = 0) -> int:
    """Run the command in a folder; the exit code, negative for a signal that could not be caught.

    What it prints is added to the file `log` there. With `file_bytes`, no file may grow beyond so many.
    """
    told = {**asdict(kill or Kill(number=signal.SIGKILL)), "file_bytes": file_bytes}
    return forks().run(ARMED, json.dumps(told), *arguments, folder=folder).returncode

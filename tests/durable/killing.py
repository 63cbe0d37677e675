"""Runs of the command that are killed at chosen or random moments: one process imports everything once, and forks."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

# Each line asks for one run. `after` seconds, or `calls` calls of what forces bytes or names to the disk, it is killed.
SERVER = """
import json, os, resource, signal, sys, time
import dp_accounting, opendp.prelude, pyarrow.csv, scipy.optimize
import kamino.cli.app, kamino.cli.commands.synth, kamino.engine, kamino.pipeline.fitting, kamino.sampling.sampler
import kamino.pipeline.output.writing, kamino.privacy.durable.durable_run

def arm(number, calls, before):
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
    for name in ("fsync", "replace", "ftruncate", "unlink"):
        setattr(os, name, armed(getattr(os, name)))

def child(job):
    os.chdir(job["folder"])
    log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1), os.dup2(log, 2)
    sys.argv = ["kamino", *job["arguments"]]
    if job["calls"]:
        arm(job["signal"], job["calls"], job["before"])
    if job["file_bytes"]:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["file_bytes"], resource.RLIM_INFINITY))
    code = 3
    try:
        kamino.cli.app.main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)

for line in sys.stdin:
    job = json.loads(line)
    pid = os.fork()
    if pid == 0:
        child(job)
    end = time.monotonic() + job["after"] if job["after"] else None
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        if end is not None and time.monotonic() >= end:
            os.kill(pid, job["signal"])
            end = None
        time.sleep(0.002)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@dataclass(frozen=True, kw_only=True)
class Kill:
    """When and how a run is killed: after some seconds, or before or after a number of calls."""

    number: signal.Signals
    after: float = 0.0
    calls: int = 0
    before: bool = False


class Commands:
    """A process that runs the command, as often as it is asked."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def run(self, folder: Path, *arguments: str, kill: Kill | None = None, file_bytes: int = 0) -> int:
        """Run the command in a folder; the exit code, negative for a signal that could not be caught.

        With `file_bytes`, no file may grow beyond so many.
        """
        plan = kill or Kill(number=signal.SIGKILL)
        job = {
            "folder": str(folder),
            "arguments": list(arguments),
            "signal": int(plan.number),
            "after": plan.after,
            "calls": plan.calls,
            "before": plan.before,
            "file_bytes": file_bytes,
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

"""One process, measured and limited: CPU seconds of it and its children, and the largest memory."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = os.sysconf("SC_CLK_TCK")
POLL_SECONDS = 0.2


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much a process may use: CPU seconds and gibibytes, its children counted."""

    cpu: float
    memory: float


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended. `problem` is empty if all went well, else one line."""

    cpu: float
    memory: float
    problem: str = ""
    passed_limit: bool = False


def run_limited(command: Sequence[str], environment: Mapping[str, str], limits: Limits, log: Path) -> Ended:
    """Run a command to its end or to a limit. What it prints goes to `log`."""
    with log.open("wb") as stream:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
        )
    largest, passed = 0.0, ""
    while True:
        found, status, usage = os.wait4(process.pid, os.WNOHANG)
        if found:
            break
        cpu, memory = _used_by_group(process.pid)
        largest = max(largest, memory)
        if not passed and (cpu > limits.cpu or memory > limits.memory):
            passed = f"{limits.cpu:,.0f} CPU s" if cpu > limits.cpu else f"{limits.memory:g} GiB"
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
    process.returncode = os.waitstatus_to_exitcode(status)
    spent = usage.ru_utime + usage.ru_stime
    largest = max(largest, usage.ru_maxrss / 2**20)
    if passed:
        return Ended(cpu=spent, memory=largest, problem=f"stopped at the limit of {passed}", passed_limit=True)
    problem = "" if process.returncode == 0 else f"failed: {last_line(log)}"
    return Ended(cpu=spent, memory=largest, problem=problem)


def last_line(log: Path, columns: int = 160) -> str:
    """The last line that says something, without the folders of this machine."""
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    line = lines[-1] if lines else "it said nothing"
    words = [Path(word).name if word.startswith("/") and len(word) > 1 else word for word in line.split()]
    return " ".join(words)[:columns]


def _used_by_group(group: int) -> tuple[float, float]:
    """CPU seconds and gibibytes of all living processes of a group."""
    ticks = pages = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group:
            # user and system time, also of children that ended; resident pages
            ticks += sum(int(field) for field in fields[11:15])
            pages += int(fields[21])
    return ticks / TICK, pages * PAGE / 2**30

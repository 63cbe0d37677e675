"""Fuzz the readers: `python -m tests.fuzz --count 1000000 --seed 1`; `make fuzz` does that.

An input is made from the seed, the reader and its number alone, so that `--reader NAME --from NUMBER --count 1` makes a
faulty one again. A fault is an error that is none of Kamino's, a message of several lines where one is promised, more
than five seconds of CPU, or more than 1 GiB of memory.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.readers import READERS, KaminoError, Reader

SECONDS = 5.0
KIBIBYTES = 1 << 20
MOST_MESSAGE = 20_000


@dataclass
class Outcome:
    """What became of the inputs of one reader."""

    reader: str
    seed: int
    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    slowest_number: int = -1
    cpu: float = 0.0
    peak_mib: int = 0
    limit: int = KIBIBYTES
    faults: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)


def input_of(reader: Reader, seed: int, number: int) -> bytes:
    """The input of a number."""
    return reader.make(random.Random(f"{seed}:{reader.name}:{number}"))


def fuzz(reader: Reader, *, seed: int, first: int, count: int, folder: Path) -> Outcome:
    """Read `count` inputs; a hang ends the process, with a traceback that tells where and a file that tells which."""
    # A process that has done other work before may have needed more then.
    limit = max(KIBIBYTES, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    outcome = Outcome(reader=reader.name, seed=seed, limit=limit)
    scratch, current = folder / f"{reader.name}.input", folder / f"{reader.name}.number"
    faulthandler.register(signal.SIGPROF, all_threads=False, chain=True)
    begin = time.process_time()
    with open(current, "wb", buffering=0) as note:
        for number in range(first, first + count):
            note.seek(0)
            note.write(b"%12d" % number)
            data = input_of(reader, seed, number)
            _one(reader, data, number, scratch, outcome)
    outcome.cpu = time.process_time() - begin
    return outcome


def _one(reader: Reader, data: bytes, number: int, scratch: Path, outcome: Outcome) -> None:
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    fault = ""
    try:
        reader.read(data, scratch)
        outcome.accepted += 1
    except KaminoError as problem:
        outcome.refused += 1
        outcome.kinds[type(problem).__name__] += 1
        text = str(problem)
        if len(text) > MOST_MESSAGE or (reader.one_line and len(text.splitlines()) != 1):
            fault = f"a message of {len(text.splitlines())} lines and {len(text)} characters"
    except BaseException as problem:
        fault = f"{type(problem).__name__}: {str(problem)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    took = time.process_time() - started
    outcome.inputs += 1
    if took > outcome.slowest:
        outcome.slowest, outcome.slowest_number = took, number
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if peak > outcome.limit and outcome.peak_mib <= outcome.limit >> 10:
        fault = fault or f"{peak >> 10} MiB of memory"
    outcome.peak_mib = max(outcome.peak_mib, peak >> 10)
    if fault and len(outcome.faults) < 50:
        outcome.faults.append(f"number {number}: {fault}")


def main() -> int:
    """Fuzz all readers, or one; print a line of JSON for each."""
    options = argparse.ArgumentParser()
    options.add_argument("--count", type=int, default=10_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--reader", choices=[make.__name__.replace("_", "-") for make in READERS])
    options.add_argument("--from", type=int, default=0, dest="first")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    failed = False
    with tempfile.TemporaryDirectory(prefix="kamino-fuzz-") as name:
        folder = Path(name)
        for make in READERS:
            if chosen.reader is not None and make.__name__.replace("_", "-") != chosen.reader:
                continue
            reader = make(folder)
            count = chosen.count if chosen.reader else max(1, round(chosen.count * reader.share))
            outcome = fuzz(reader, seed=chosen.seed, first=chosen.first, count=count, folder=folder)
            print(json.dumps({**vars(outcome), "kinds": dict(outcome.kinds)}), flush=True)
            failed |= bool(outcome.faults)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

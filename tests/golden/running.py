"""Run cases on the sources that are installed here, and write what they let out: `-m tests.golden.running OUT`."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from tests.golden.cases import CASES, Outputs, outputs_of
from tests.golden.naming import file_of

from kamino.errors import KaminoError


def run_case(name: str) -> Outputs:
    """What a case lets out; the message where it is refused."""
    # The same place in every run, since names of files enter the ledger of a run and messages.
    with tempfile.TemporaryDirectory(prefix="golden-case-") as folder:
        try:
            return outputs_of(CASES[name], Path(folder))
        except KaminoError as problem:
            return {"refused": str(problem).replace(folder, "").encode()}


def main() -> None:
    """Run the cases that are named, or all."""
    target, *names = sys.argv[1:]
    for name in names or list(CASES):
        begun = time.process_time()
        folder = Path(target) / file_of(name)
        folder.mkdir(parents=True)
        for part, content in run_case(name).items():
            (folder / file_of(part)).write_bytes(content)
        print(f"{name}: {time.process_time() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main()

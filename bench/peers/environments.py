"""A virtual environment for each peer, made once from its requirements and kept outside the sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.peers.methods import Method
from bench.peers.process import last_line


def python_of(method: Method, store: Path) -> Path:
    """The interpreter of a method's environment, which is made or renewed if its requirements changed.

    Raises:
        RuntimeError: the requirements could not be installed, with the last line that pip said.
    """
    if method.is_ours:
        return Path(sys.executable)
    folder = store / "venv" / method.peer
    python, stamp, log = folder / "bin" / "python", folder / "installed.txt", store / f"install-{method.peer}.log"
    wanted = method.requirements.read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    store.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as stream:
        for command in (
            [sys.executable, "-m", "venv", str(folder)],
            [str(python), "-m", "pip", "install", "--quiet", "--requirement", str(method.requirements)],
        ):
            if subprocess.run(command, stdout=stream, stderr=stream, check=False).returncode:
                raise RuntimeError(f"not installed: {last_line(log)}")
    stamp.write_text(wanted, encoding="utf-8")
    return python

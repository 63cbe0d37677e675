"""Python code in a process of its own that need not import everything again: one process imports once, and forks.

Commands and programs run as users run them, with files, exit codes and output of their own, for a fraction of the cost.
What a test says of imports, memory or seconds needs a fresh interpreter instead.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

COMMAND = "from kamino.cli import main; main()"

# Each line asks for one run: code, arguments, folder, environment, and files for what it prints.
_SERVER = """
import json, os, sys, traceback
import dp_accounting, opendp.prelude, pyarrow.csv, pyarrow.parquet, scipy.optimize, scipy.sparse
import kamino.cli.app, kamino.cli.commands.synth, kamino.engine, kamino.pipeline.fitting, kamino.sampling.sampler
import kamino.pipeline.output.writing, kamino.privacy.durable.durable_run

def child(job):
    os.chdir(job["folder"])
    os.environ.clear(), os.environ.update(job["environment"])
    for number, path in ((0, os.devnull), (1, job["stdout"]), (2, job["stderr"])):
        os.dup2(os.open(path, os.O_RDWR), number)
    sys.argv = ["-c", *job["arguments"]]
    code = 1
    try:
        exec(compile(job["code"], "<string>", "exec"), {"__name__": "__main__"})
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(code)

for line in sys.stdin:
    job = json.loads(line)
    pid = os.fork()
    if pid == 0:
        child(job)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Forks:
    """A process that has imported Kamino, and runs code in children as often as it is asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(
        self, code: str, *arguments: str | Path, folder: Path, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run code like `python -c`, with `environment` for all of its environment where it is given."""
        sys.audit("tests.process")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        said = list(map(str, arguments))
        with tempfile.NamedTemporaryFile() as output, tempfile.NamedTemporaryFile() as errors:
            job = {
                "code": code,
                "arguments": said,
                "folder": str(folder),
                "environment": dict(os.environ if environment is None else environment),
                "stdout": output.name,
                "stderr": errors.name,
            }
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            status = int(self._process.stdout.readline())
            return subprocess.CompletedProcess(said, status, output.read().decode(), errors.read().decode())


@cache
def forks() -> Forks:
    """The process that forks, with one thread for linear algebra; it is started once, and ends with the tests."""
    tree = str(Path(__file__).parents[1] / "src")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": tree}
    pipe = subprocess.PIPE
    started = subprocess.Popen([sys.executable, "-c", _SERVER], stdin=pipe, stdout=pipe, text=True, env=environment)
    atexit.register(started.communicate)
    return Forks(started)

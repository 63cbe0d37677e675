"""One synthesis in a process of its own, so that its CPU seconds are its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.useful.cases import DELTA, Case, Mode, Record
from bench.useful.folders import Source
from bench.useful.switches import switched
from kamino.constraints import Constraints
from kamino.io import write_table
from kamino.pipeline import Synthesizer

ROOT = Path(__file__).parents[2]


def synthesize(case: Case, source: Source, output: Path) -> dict[str, Any]:
    """Make the table of a case in a new process, and say how many CPU seconds it took; or raise what went wrong."""
    asked = {
        "case": Record(case=case).to_json()["case"],
        "source": [source.name, str(source.path), str(source.judged) if source.judged else None, source.parity],
        "output": str(output),
    }
    paths = [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "bench.useful.synthesis", json.dumps(asked)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    if ran.returncode:
        raise RuntimeError(f"the process ended with code {ran.returncode}: {ran.stderr.strip()[-400:]}")
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    if "problem" in found:
        raise RuntimeError(found["problem"])
    return found


def run_case(case: Case, source: Source, output: Path) -> dict[str, Any]:
    """Fit, draw as many rows as the table has, write; in this process."""
    rules = Constraints() if case.mode is Mode.NOT_GIVEN else source.rules
    sampling = Mode.IGNORED if case.mode is Mode.IGNORED else Mode.KEPT
    begin = time.process_time()
    with switched(case.changes):
        fitted = Synthesizer(
            None, rules, epsilon=case.epsilon, delta=DELTA, trust_domain=True, sampling=sampling.value
        ).fit(source.path)
    made = fitted.sample(source.table.num_rows)
    seconds = time.process_time() - begin
    write_table(made, output)
    return {"cpu": seconds}


def main() -> int:
    """Run the case of the command line, a JSON document; print what it took, or what went wrong."""
    asked = json.loads(sys.argv[1])
    name, path, judged, parity = asked["source"]
    source = Source(name, Path(path), Path(judged) if judged else None, tuple(parity))
    case = Record.from_json({"case": asked["case"]}).case
    try:
        found = run_case(case, source, Path(asked["output"]))
    except Exception as problem:
        found = {"problem": f"{type(problem).__name__}: {problem}"}
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The quick tests as on other processors: `python -m tests.processors` says what passed as each of five.

OpenBLAS takes the kernels of the processor that OPENBLAS_CORETYPE names, and numpy leaves out the instructions that
NPY_DISABLE_CPU_FEATURES names: sums, powers and products of matrices then end in the digits that they have there. A
kind that this machine cannot run is left out, and said.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence

from numpy._core import _multiarray_umath as umath

#: Processors, by the name of their kernels, and what numpy may use there: beyond the least, no AVX-512, or all.
KINDS: Mapping[str, str] = {
    "Nehalem": "least",
    "Sandybridge": "least",
    "Haswell": "no AVX-512",
    "Zen": "no AVX-512",
    "SkylakeX": "all",
}
_TRIED = (
    "import numpy as np, scipy.linalg as s; a = np.eye(99) * 2.0; print((np.exp(a) @ a).sum(), s.cholesky(a).sum())"
)


def environment(kind: str) -> dict[str, str]:
    """The variables under which this machine computes as one of a kind; all others are this one's."""
    there = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]
    off = {
        "least": there,
        "no AVX-512": [name for name in there if name.startswith(("AVX512", "X86_V4"))],
        "all": [],
    }[KINDS[kind]]
    return {**os.environ, "OPENBLAS_CORETYPE": kind, "NPY_DISABLE_CPU_FEATURES": " ".join(off)}


def others() -> Iterator[str]:
    """The kinds that this machine can run, those first that are least like it."""
    for kind in KINDS:
        tried = subprocess.run([sys.executable, "-c", _TRIED], env=environment(kind), capture_output=True)
        if tried.returncode == 0:
            yield kind
        else:
            print(f"{kind}: this machine cannot run its instructions", flush=True)


def _passed(kind: str, paths: Sequence[str]) -> bool:
    chosen = ["-q", "-m", "not slow", "-n", "auto", "--maxprocesses", "8", "--dist", "loadfile", *paths]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *chosen], env=environment(kind), stdout=subprocess.PIPE, text=True
    )
    lines = ran.stdout.splitlines()
    for line in [*(line for line in lines if line.startswith(("FAILED", "ERROR"))), *lines[-1:]]:
        print(f"{kind}: {line}", flush=True)
    return ran.returncode == 0


def main() -> None:
    """Run the tests as each kind; exit code 1 if one failed."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--kinds", type=int, default=len(KINDS), help="how many kinds, those first that differ most")
    reader.add_argument("paths", nargs="*", help="tests to run; all by default")
    asked = reader.parse_args()
    kinds = list(others())[: asked.kinds]
    passed = [_passed(kind, asked.paths) for kind in kinds]
    sys.exit(0 if passed and all(passed) else 1)


if __name__ == "__main__":
    main()

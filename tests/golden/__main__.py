"""Hold the bytes of small runs of every kind before and after a change: both trees run here, one after the other.

    python -m tests.golden --before COMMIT [--after COMMIT] [--case NAME ...]

Bytes follow from the processor as well, so that none are stored: the commit before is unpacked and run beside the
working tree. Parts of a run that differ are named; the files of both are left where the last line says.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from tests.golden.naming import file_of

ROOT = Path(__file__).parents[2]


def main() -> int:
    """Run, compare, and say what differs; the exit code is 1 where something does."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description=__doc__.splitlines()[0])
    parser.add_argument("--before", required=True, metavar="COMMIT", help="the commit that the bytes are held to")
    parser.add_argument("--after", metavar="COMMIT", help="a commit in the place of the working tree")
    parser.add_argument("--case", action="append", default=[], metavar="NAME", help="only these cases")
    parser.add_argument("--part", action="append", default=[], metavar="PART", help="only these parts, such as table")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="golden-"))
    trees = {
        "before": unpack(asked.before, folder),
        "after": ROOT if asked.after is None else unpack(asked.after, folder),
    }
    for name, tree in trees.items():
        run_tree(tree, folder / name, asked.case)
    differing = compare(folder / "before", folder / "after", asked.part)
    for line in differing:
        print(line)
    compared = sum(1 for _ in (folder / "after").rglob("*") if _.is_file())
    print(f"{compared} parts compared, {len(differing)} differ: {folder}")
    return 1 if differing or not compared else 0


def unpack(commit: str, folder: Path) -> Path:
    """The sources of a commit in a folder of their own."""
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True).stdout
    tree = folder / f"tree-{hashlib.sha256(commit.encode()).hexdigest()[:8]}"
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(tree, filter="data")
    return tree


def run_tree(tree: Path, folder: Path, cases: Sequence[str]) -> None:
    """Run the cases of this tree on the sources of another."""
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "tests.golden.running", str(folder), *cases]
    subprocess.run(command, cwd=ROOT, check=True, env=environment)


def compare(before: Path, after: Path, parts: Sequence[str] = ()) -> list[str]:
    """A line for each part of a case that is not the same in both, or is there in one only."""
    wanted = {file_of(part) for part in parts}
    names = sorted({path.relative_to(root) for root in (before, after) for path in root.rglob("*") if path.is_file()})
    found = []
    for name in names:
        one, other = (root / name for root in (before, after))
        if wanted and name.name not in wanted:
            continue
        if not one.exists() or not other.exists():
            found.append(f"{name}: only {'after' if other.exists() else 'before'}")
        elif one.read_bytes() != other.read_bytes():
            found.append(f"{name}: differs")
    return found


if __name__ == "__main__":
    sys.exit(main())

"""What each test costs, which start processes, and which tests reach a file: measured once, kept in `measured.json`.

`make map` measures: every test but the slow ones, with a twentieth of the examples, under coverage. `make quick` leaves
out what is long or starts a process; `make tests FILE=src/kamino/...` runs the test files that together reach every
line of the file that any test reaches.
"""

from __future__ import annotations

import ast
import json
import os
import resource
import sys
from collections import defaultdict
from collections.abc import Generator, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
MEASURED = Path(__file__).parent / "measured.json"
# A test of `make quick` takes less, in seconds of CPU under coverage.
LONG = 0.1
_STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "tests.process"}
_started: list[str] = []


@cache
def measured() -> Mapping[str, Any]:
    """What was measured last."""
    return dict(json.loads(MEASURED.read_text(encoding="utf-8"))) if MEASURED.exists() else {}


def mark(items: Iterable[pytest.Item]) -> None:
    """Mark the tests that were found to start processes, or to be long."""
    for item in items:
        for name in ("process", "long"):
            if item.nodeid in _listed(name):
                item.add_marker(name)


@cache
def _listed(name: str) -> frozenset[str]:
    return frozenset(f"{file}::{test}" for file, tests in measured().get(name, {}).items() for test in tests)


class Measuring:
    """A plugin that notes, for each test, its seconds of CPU and whether it started a process.

    Under coverage, lines are noted for the file of the test that reached them.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        sys.addaudithook(lambda event, _: _started.append(event) if event in _STARTS else None)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Run a test between two looks at the clock."""
        import coverage

        current = coverage.Coverage.current()
        if current is not None:
            current.switch_context(item.nodeid.split("::")[0])
        begin, before = _seconds(), len(_started)
        try:
            return (yield)
        finally:
            line = {"test": item.nodeid, "seconds": _seconds() - begin, "process": len(_started) > before}
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()


def _seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def pytest_configure(config: pytest.Config) -> None:
    """With `-p tests.measured`, write what tests cost to the file that TESTS_MEASURED names."""
    config.pluginmanager.register(Measuring(Path(os.environ["TESTS_MEASURED"])))


def _function_lines(path: Path) -> set[int]:
    """The lines in bodies of functions: what is above them runs when a module is imported, for no test."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found |= set(range(node.body[0].lineno, (node.end_lineno or node.body[0].lineno) + 1))
    return found


def _enough(reached: Mapping[str, set[int]], cost: Mapping[str, float]) -> list[str]:
    """Test files that together reach what all of them reach, those first that reach most for their seconds."""
    left, chosen = set().union(*reached.values()) if reached else set(), []
    while left:
        best = max(reached, key=lambda test: (len(reached[test] & left) / (0.5 + cost.get(test, 0.0)), test))
        chosen.append(best)
        left -= reached[best]
    return chosen


def summary(lines: Path, data: Path) -> dict[str, Any]:
    """What is kept of a measurement: long tests, those that start processes, and the tests of each file."""
    from coverage import CoverageData

    tests = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
    cost: dict[str, float] = defaultdict(float)
    kept: dict[str, dict[str, list[str]]] = {"process": defaultdict(list), "long": defaultdict(list)}
    for each in tests:
        file, _, name = each["test"].partition("::")
        cost[file] += each["seconds"]
        if each["process"]:
            kept["process"][file].append(name)
        elif each["seconds"] > LONG:
            kept["long"][file].append(name)
    found = CoverageData(str(data))
    found.read()
    files = {}
    for path in sorted(found.measured_files()):
        name = "src/kamino" + path.split("src/kamino")[-1]
        if not name.endswith(".py") or not (ROOT / name).exists():
            continue
        inside = _function_lines(Path(path))
        reached: dict[str, set[int]] = defaultdict(set)
        for line, contexts in found.contexts_by_lineno(path).items():
            for context in contexts if line in inside else ():
                if context:
                    reached[context].add(line)
        files[name] = _enough(reached, cost)
    return {"files": files, **{name: dict(sorted(tests.items())) for name, tests in kept.items()}}


def tests_of(names: Iterable[str]) -> list[str]:
    """The test files of source files, and those that are named themselves."""
    found: list[str] = []
    for name in names:
        path = Path(name).resolve().relative_to(ROOT).as_posix()
        if path.startswith("tests/"):
            found.append(path)
        elif path in measured().get("files", {}):
            found += [test for test in measured()["files"][path] if (ROOT / test).exists()]
        else:
            raise SystemExit(f"{path}: found no test that reaches it; expected a file that `make map` has measured")
    return list(dict.fromkeys(found))


def main(arguments: list[str]) -> None:
    """`MEASUREMENT COVERAGE_DATA` writes `measured.json`; names of files print their tests."""
    if len(arguments) == 3 and arguments[0] == "--write":
        written = json.dumps(summary(Path(arguments[1]), Path(arguments[2])), indent=1)
        MEASURED.write_text(written + "\n", encoding="utf-8")
    else:
        print(" ".join(tests_of(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])

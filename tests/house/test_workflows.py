"""What CI runs is what people run: targets of the Makefile."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_workflows_run_targets_that_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    run = []
    for path in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values():
            matrix = job.get("strategy", {}).get("matrix", {})
            commands = [step["run"] for step in job["steps"] if "run" in step]
            assert all(re.fullmatch(r'make ([a-z-]+|"\$TARGET")', command) for command in commands)
            named = [command.removeprefix("make ") for command in commands]
            run += [each for each in named if each != '"$TARGET"'] + matrix.get("target", [])
    assert {"check", "quick", "test", "test-slow"} <= set(run) <= targets


def test_profiles_scale_all_examples() -> None:
    """A number of examples in a test beats every profile: `tests.trying` says it instead."""
    named = [path.name for path in sorted((ROOT / "tests").rglob("*.py")) if "max_examples" in path.read_text("utf-8")]
    assert named == ["conftest.py", "test_workflows.py", "trying.py"]

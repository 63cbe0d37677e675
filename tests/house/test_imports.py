"""The house: imports point one way, and importing Kamino stays light."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "kamino"

# From the ground up. The engine plugs into the protocol that the model states, so it comes after it.
# `io`, `datasets` and `testing` are edges beside the stages; of these only the audit imports `testing`, and it reads.
STAGES = (
    "late_imports",
    "nameless",
    "errors",
    "advice",
    "policy",
    "limits",
    "arrays",
    "schema",
    "constraints",
    "contracts",
    "layout",
    "privacy",
    "model",
    "engine",
    "sampling",
    "evaluate",
    "pipeline",
    "databases",
    "audit",
    "planted",
    "cli",
)
EDGES = {
    "io": {"advice", "errors", "late_imports", "limits", "nameless", "schema", "io"},
    "datasets": {"datasets", "errors"},
    "testing": {"errors", "privacy", "testing"},
}


def stage_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_stages(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module]
        found |= {parts[1] for module in modules if (parts := module.split("."))[0] == "kamino" and len(parts) > 1}
    return found


def allowed(stage: str) -> set[str]:
    if stage in EDGES:
        return EDGES[stage]
    below = set(STAGES[: STAGES.index(stage) + 1])
    if stage in ("audit", "planted"):
        return below | {"testing", "io"}
    return below | ({"io", "datasets"} if stage in ("pipeline", "databases", "cli") else set())


def test_imports_point_one_way() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        stage = stage_of(path)
        if stage not in ("__init__", "__main__"):
            back = imported_stages(path) - allowed(stage)
            assert not back, f"{path} imports {sorted(back)}; {stage} may import {sorted(allowed(stage))}"


def test_only_one_command_plants_faults() -> None:
    found = [
        path for path in SOURCE.rglob("*.py") if "planted" in imported_stages(path) and stage_of(path) != "planted"
    ]
    assert {path.relative_to(SOURCE).as_posix() for path in found} <= {"cli/commands/audit.py", "cli/render_audit.py"}


def test_no_file_name_occurs_twice_in_a_package() -> None:
    """What has the same name in two packages means the same thing there."""
    names = [(stage_of(path), path.name) for path in SOURCE.rglob("*.py") if not path.name.startswith("__")]
    assert sorted(set(names)) == sorted(names)


def test_the_map_names_what_is_there() -> None:
    """ARCHITECTURE.md: every file, folder and test that it names exists, and so does every package."""
    import re

    root = SOURCE.parents[1]
    text = (root / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"[\w.]+(?:/[\w.]*)+", re.sub(r"https?://\S+", "", text)))
    missing = [name for name in named if not (SOURCE / name).exists() and not (root / name).exists()]
    assert missing == []
    tests = "".join(path.read_text(encoding="utf-8") for path in (root / "tests").rglob("*.py"))
    assert [name for name in re.findall(r"`(test_\w+)`", text) if f"def {name}(" not in tests] == []
    packages = [path.parent.name for path in SOURCE.glob("*/__init__.py")]
    assert [name for name in packages if not re.search(rf"\b{name}\b", text)] == []


def test_guarantees_name_tests_that_exist() -> None:
    import re

    tests = "".join(path.read_text(encoding="utf-8") for path in SOURCE.parents[1].joinpath("tests").rglob("*.py"))
    for path in SOURCE.rglob("*.py"):
        for name in re.findall(r"\[(test_\w+)\]", path.read_text(encoding="utf-8")):
            assert f"def {name}(" in tests, f"{path}: the guarantee names {name}, which is no test"


# Slow to import, so imported only when they are used.
HEAVY = (
    *("jax", "torch", "pandas", "polars", "narwhals", "dp_accounting", "opendp", "duckdb", "sqlglot"),
    *("scipy.optimize", "scipy.sparse", "scipy.special", "pyarrow.csv", "pyarrow.dataset", "pyarrow.parquet"),
    *("kamino.engine", "kamino.evaluate", "kamino.model", "kamino.pipeline.fitting", "kamino.sampling.sampler"),
)


def modules_after(code: str) -> set[str]:
    """What a fresh interpreter has imported once it has run `code`."""
    shown = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True)
    return set(json.loads(ran.stdout.splitlines()[-1]))


def test_importing_kamino_is_light() -> None:
    assert modules_after("import kamino").isdisjoint({*HEAVY, "numpy", "pyarrow", "pydantic"})


def test_the_front_door_is_light() -> None:
    assert modules_after("import kamino; kamino.Synthesizer").isdisjoint(HEAVY)


def test_help_is_light() -> None:
    code = (
        "import sys; sys.argv = ['kamino', '--help']\nfrom kamino.cli import main\ntry: main()\nexcept SystemExit: pass"
    )
    assert modules_after(code).isdisjoint({*HEAVY, "numpy", "pyarrow", "pydantic"})


# Pyarrow imports pandas where that is installed, and pandas much else.
WITHOUT_PANDAS = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
sys.argv = {arguments}
from kamino.cli import main
try:
    main()
except SystemExit:
    pass
"""


def test_a_run_imports_what_it_needs(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("city,size,part\n" + "Rome,3,0.25\nBonn,,0.5\n" * 200)
    arguments = ["kamino", "synth", str(table), "--trust-domain", "--seed", "1", "-o", str(tmp_path / "out.csv")]
    found = modules_after(WITHOUT_PANDAS.format(arguments=arguments))
    assert (tmp_path / "out.csv").exists()
    light = {name for name in HEAVY if name.startswith("kamino.")} | {"pandas", "pyarrow.csv"}
    assert found.isdisjoint({*HEAVY, "numpy.ma", "dateutil"} - light)


def test_commands_are_listed_with_their_own_help() -> None:
    from kamino.cli.app import COMMANDS, load_command

    for name, text in COMMANDS.items():
        assert load_command(name).help.split("\n\n")[0].replace("\n", " ") == text


@pytest.mark.parametrize(
    "package", ["constraints", "engine", "io", "model", "pipeline", "privacy", "sampling", "schema"]
)
def test_names_that_are_imported_late_are_there(package: str) -> None:
    import importlib
    from types import ModuleType

    module = importlib.import_module(f"kamino.{package}")
    assert all(not isinstance(getattr(module, name), ModuleType) for name in module.__all__)
    assert set(module._HOMES) <= set(module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing


def test_importing_plans_loads_no_model() -> None:
    code = (
        "import sys; from kamino.sampling import SamplingPlan; print([m for m in sys.modules if 'kamino.model' in m])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert found == "[]"


WITH_EXAMPLES = [path for path in sorted(SOURCE.rglob("*.py")) if ">>>" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_docstring_examples_run(path: Path) -> None:
    import doctest
    import importlib

    tried = doctest.testmod(importlib.import_module(module_name(path)))
    assert tried.attempted > 0
    assert tried.failed == 0


def test_every_module_can_be_imported() -> None:
    import importlib

    for path in sorted(SOURCE.rglob("*.py")):
        importlib.import_module(module_name(path))

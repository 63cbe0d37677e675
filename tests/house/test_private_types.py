"""Private rows have types of their own, which only two packages open: at run time, for the linter and for mypy."""

from __future__ import annotations

import ast
import copy
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from kamino.constraints import Constraints
from kamino.errors import PrivacyError
from kamino.pipeline import Settings
from kamino.pipeline.fitting import fit, open_gate
from kamino.pipeline.plan.run_plan import plan_run
from kamino.privacy import private as sealed
from kamino.privacy.private import PrivateCodes, PrivateTable
from kamino.schema import Codec, Integer, Schema

ROOT = Path(__file__).parents[2]
OPENERS = {"open_table", "open_rows", "open_parts", "open_codes", "open_code_parts", "_sealed"}
OPENED_IN = ("src/kamino/engine/", "src/kamino/privacy/")
SCHEMA = Schema(attributes={"age": Integer(min=0, max=99)})
TABLE = pa.table({"age": [71, 72]})

OPENS = """from kamino.privacy.private import PrivateTable, open_table


def rows(t: PrivateTable) -> object:
    return open_table(t)
"""
OPENS_BY_MODULE = """import kamino.privacy.private as door


def rows(t: door.PrivateTable) -> object:
    return door.open_table(t)
"""
OPENS_CODES = OPENS.replace("PrivateTable", "PrivateCodes").replace("open_table", "open_codes")


def names_in(path: Path) -> set[str]:
    """Every name that a module imports, reads or writes."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom | ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)
    return found


def test_private_rows_are_opened_in_their_packages_only() -> None:
    paths = [path for folder in ("src", "bench", "examples") for path in (ROOT / folder).rglob("*.py")]
    opening = [path.relative_to(ROOT).as_posix() for path in paths if names_in(path) & OPENERS]
    assert "src/kamino/engine/sealed_tables.py" in opening
    assert [path for path in opening if not path.startswith(OPENED_IN)] == []


def lint(code: str, path: str) -> str:
    """What the linter of `make check` says of a file with this text."""
    command = [sys.executable, "-m", "ruff", "check", "--stdin-filename", path, "--output-format", "concise", "-"]
    return subprocess.run(command, cwd=ROOT, input=code, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("code", [OPENS, OPENS_BY_MODULE, OPENS_CODES])
@pytest.mark.parametrize(
    "folder",
    ["src/kamino", *(f"src/kamino/{each}" for each in ("cli", "model/neural", "pipeline", "sampling")), "bench"],
)
def test_a_snippet_that_opens_a_private_table_fails_the_check(code: str, folder: str) -> None:
    code = f'"""A snippet."""\n\n{code}'.replace(":\n    return", ':\n    """Open it."""\n    return')
    assert "TID251" in lint(code, f"{folder}/snippet.py")
    for allowed in OPENED_IN:
        assert "TID251" not in lint(code, f"{allowed}snippet.py")


def test_make_check_runs_the_linter_on_everything() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = [part for part in text.split("\n\n") if part.startswith("check:")]
    assert "ruff check .\n" in recipe
    assert "mypy" in recipe


def test_mypy_refuses_to_look_inside(tmp_path: Path) -> None:
    code = (
        "from kamino.engine.memory import open_codes\n"
        "from kamino.privacy.private import PrivateCodes, PrivateTable\n"
        "def rows(t: PrivateTable, c: PrivateCodes) -> None:\n"
        "    print(t.num_rows)\n"
        "    print(c.columns)\n"
        "    print(t['age'])\n"
    )
    (tmp_path / "snippet.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(tmp_path / "snippet.py")]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    for line, text in ((1, "explicitly export"), (4, "num_rows"), (5, "columns"), (6, "not indexable")):
        assert any(f"snippet.py:{line}: error" in each and text in each for each in told.splitlines()), told


@pytest.mark.parametrize("private", [PrivateTable(TABLE), PrivateCodes(Codec(SCHEMA).encode(TABLE))])
def test_sealed_rows_do_not_show(private: PrivateTable | PrivateCodes) -> None:
    assert repr(private) == str(private) == f"{type(private).__name__}(age)"
    assert not hasattr(private, "__dict__")
    for send in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(PrivacyError, match="not to be saved or sent"):
            send(private)
    with pytest.raises(TypeError):
        len(private)  # type: ignore[arg-type]


def test_columns_without_rows_hold_no_value() -> None:
    words = pa.array(["marked", "marked"]).dictionary_encode()
    table = pa.table({"age": [71, 72], "word": words}).replace_schema_metadata({"rows": "marked"})
    columns = PrivateTable(table).without_rows()
    assert columns.num_rows == 0
    assert [field.type for field in columns.schema] == [field.type for field in table.schema]
    assert columns.schema.metadata is None
    assert "marked" not in repr(columns.to_pydict()) + columns.schema.to_string()
    assert columns["word"].num_chunks == 0 or len(columns["word"].chunk(0).dictionary) == 0


def test_rows_that_are_not_sealed_are_refused() -> None:
    settings = Settings(seed=1)
    plan = plan_run(SCHEMA, Constraints(), settings)
    with pytest.raises(PrivacyError, match="expected a PrivateTable"):
        fit(TABLE, plan, open_gate(settings))
    with pytest.raises(PrivacyError, match="expected PrivateCodes"):
        sealed.open_codes(PrivateTable(TABLE))  # type: ignore[arg-type]  # noqa: TID251
    with pytest.raises(PrivacyError, match="expected a Table"):
        PrivateTable(PrivateTable(TABLE))

"""Pages that show how things are done: every example on them runs, and prints what stands there, numbers aside.

On a page, ```text title="NAME"` blocks are files, ```python` blocks are programs, and lines that begin with `$` in
```console` blocks are commands; the lines below a command must be among those that it prints.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests.forked import COMMAND, forks

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(folder: Path, code: str, *arguments: str) -> str:
    ran = forks().run(code, *arguments, folder=folder, environment={**os.environ, "COLUMNS": "200"})
    assert ran.returncode == 0, f"{arguments}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout + ran.stderr


def plain(line: str) -> str:
    """A line without its numbers and its spacing."""
    return " ".join(re.sub(r"\d[\d,.]*", "#", line).split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_on_a_page_runs(page: Path, tmp_path: Path) -> None:
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    assert blocks
    for kind, title, body in blocks:
        if kind == "text":
            (tmp_path / title).write_text(body, encoding="utf-8")
        elif kind == "python":
            run(tmp_path, body)
        else:
            assert kind == "console", f"{page}: found a block of {kind}"
            printed: set[str] = set()
            for line in body.splitlines():
                if line.startswith("$ "):
                    name, *rest = shlex.split(line[2:])
                    assert name == "kamino", line
                    output = run(tmp_path, COMMAND, *rest)
                    printed = {plain(each) for each in output.splitlines()}
                else:
                    assert any(plain(line) in each for each in printed), f"{line!r} is not in {sorted(printed)}"


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    """Its cells run one after the other, and it is kept without output."""
    cells = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in cells)
    run(tmp_path, "\n".join("".join(cell["source"]) for cell in cells))


@pytest.mark.slow
def test_the_site_builds(tmp_path: Path) -> None:
    """Strictly: a page that is not in the index, or a link that leads nowhere, is an error."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-f", "mkdocs.yml", "-d", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    commands = (tmp_path / "reference" / "commands.html").read_text(encoding="utf-8")
    assert "kamino synth" in commands
    assert "--max-rows" in commands
    assert "discovery_share" in (tmp_path / "reference" / "api.html").read_text(encoding="utf-8")
    assert "resolution" in (tmp_path / "reference" / "fields.html").read_text(encoding="utf-8")


def test_no_page_is_left_out_of_the_index() -> None:
    named = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    there = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert named == there


def test_links_between_pages_lead_somewhere() -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page}: {link}"

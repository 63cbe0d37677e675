"""The distribution: its name, its version, and the wheel in an empty environment outside of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import kamino

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def test_name_and_version() -> None:
    assert PROJECT["name"] == "kamino-synth"
    assert PROJECT["version"] == kamino.__version__


def test_messages_name_extras_that_exist() -> None:
    named = set()
    for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("src/**/*.py")):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w-])kamino\\{0,2}\[[a-z]+\]", text), f"{path}: the distribution is kamino-synth"
        assert not re.search(r"pip install '?kamino(?!-synth)\b", text), f"{path}: the distribution is kamino-synth"
        named |= set(re.findall(r"kamino-synth\\{0,2}\[([a-z]+)\]", text))
    assert {"neural", "postgres", "ml"} <= named <= set(PROJECT["optional-dependencies"])


def pythons() -> list[str]:
    """Every Python here that Kamino runs on; at least the one that runs the tests."""
    found = {".".join(map(str, sys.version_info[:2])): sys.executable}
    homes = [Path(home) for home in os.environ.get("PATH", "").split(os.pathsep)]
    homes += sorted(Path.home().glob(".pyenv/versions/*/bin"))
    for version in PYTHONS:
        for home in homes:
            place = home / f"python{version}"
            works = (
                place.exists() and subprocess.run([place, "-c", ""], capture_output=True, check=False).returncode == 0
            )
            if works:
                found.setdefault(version, str(place))
    return list(found.values())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy of the sources, so that building leaves nothing in the repository."""
    copy, out = tmp_path_factory.mktemp("sources") / "kamino", tmp_path_factory.mktemp("dist")
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(out), str(copy)], check=True, capture_output=True)
    (built,) = out.glob("kamino_synth-*.whl")
    assert len(list(out.glob("kamino_synth-*.tar.gz"))) == 1
    return built


@pytest.mark.slow
def test_a_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"kamino", f"kamino_synth-{kamino.__version__}.dist-info"}
    assert {"kamino/py.typed", "kamino/evaluate/report/templates/report.html"} <= set(names)
    with zipfile.ZipFile(wheel) as archive:
        other = sum(each.compress_size for each in archive.infolist() if not each.filename.endswith(".py"))
    assert other < 1 << 16, "code aside, a wheel holds a page's template and what is said of it"


@pytest.mark.slow
@pytest.mark.parametrize("python", pythons())
def test_the_wheel_runs_in_an_empty_environment(wheel: Path, python: str, tmp_path: Path) -> None:
    subprocess.run([python, "-m", "venv", str(tmp_path / "env")], check=True)
    folder = tmp_path / "env" / "bin"
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}

    def run(*command: str | Path) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(folder / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel))
    where = run(folder / "python", "-c", "import kamino; print(kamino.__file__)")
    assert Path(where.strip()).is_relative_to(tmp_path)
    assert run(folder / "kamino", "--version") == f"kamino {kamino.__version__}\n"
    assert "zip -> city" in run(folder / "kamino", "demo", "--rows", "2000")
    (tmp_path / "t.csv").write_text("zip,city\n" + "10115,Berlin\n20095,Hamburg\n" * 200, encoding="utf-8")
    (tmp_path / "rules.dc").write_text("zip -> city\n", encoding="utf-8")
    run(folder / "kamino", "check", "t.csv", "-c", "rules.dc")
    run(folder / "kamino", "synth", "t.csv", "-c", "rules.dc", "--trust-domain", "-o", "out.csv")
    assert run(folder / "python", "-m", "kamino", "check", "out.csv", "-c", "rules.dc")
    assert (tmp_path / "out.csv.certificate.json").is_file()

"""What was spent, and whether it may be released: one mark, whoever tells it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import typer
from tests.cli.test_check_command import kamino

from kamino import Synthesizer
from kamino.cli.app import COMMANDS, app, load_command
from kamino.errors import InputError, KaminoError
from kamino.evaluate.report.document import PUBLIC
from kamino.io import write_table
from kamino.pipeline import Settings
from kamino.pipeline.output.release_mark import mark_before, mark_of_certificate, mark_of_runs, spent_of
from kamino.pipeline.verifying.registry_entry import write_entry
from kamino.pipeline.verifying.verification import verify
from kamino.schema import Categorical, Integer, Schema

SCHEMA = Schema(attributes={"zone": Categorical(values=["x", "y", "z"]), "age": Integer(min=0, max=99)})
# One row of 600 has z.
TABLE = pa.table({"zone": ["x", "y"] * 299 + ["x", "z"], "age": np.arange(600) % 90})


@dataclass(frozen=True)
class Run:
    """Options of a run and what they are in Python, its mark, and a word of the reason for it."""

    options: tuple[str, ...]
    settings: dict[str, Any]
    mark: str
    reason: str

    @property
    def is_for_release(self) -> bool:
        return self.mark == "for release"


RUNS = {
    "delta a half": Run(("-d", "0.5"), {"delta": 0.5}, "not for release", "delta 0.5 is above"),
    "normal": Run((), {}, "for release", ""),
    "seed": Run(("--seed", "1"), {"seed": 1}, "not for release", "made with a seed"),
    "no noise": Run(("-e", "inf"), {"epsilon": float("inf")}, "not private", "made without noise"),
    "epsilon 50": Run(("-e", "50"), {"epsilon": 50.0}, "not for release", "epsilon 50 is above 10"),
    "accepted": Run(("-e", "50", "--accept"), {"epsilon": 50.0, "accept": True}, "for release", ""),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("marks")
    write_table(TABLE, folder / "t.csv")
    (folder / "s.yaml").write_text(SCHEMA.to_yaml())
    (folder / "r.dc").write_text("check (age >= 0)\n")
    return folder


def _faces(run: Run, folder: Path) -> Iterator[tuple[str, str]]:
    """The name of each command and page that tells what a run spent, and all that it says."""

    def ran(*arguments: str | Path) -> str:
        found = kamino(*arguments, cwd=folder)
        assert found.returncode == 0, found.stderr
        return f"{found.stdout}\n{found.stderr}"

    asked = ("-s", "s.yaml", "-c", "r.dc", *run.options)
    private = run.mark != "not private"  # a run without a price is not entered in a ledger
    ledger = ("--ledger", "l", "--dataset", "d") if private else ()
    more = ("-n", "100", "--save-model", "m.kamino", "--release-note", "note.md", *ledger)
    yield "dry run", ran("synth", "t.csv", "-o", "o.csv", *asked, "--dry-run")
    yield "synth", ran("synth", "t.csv", "-o", "o.csv", *asked, *more)
    yield "certificate", json.loads((folder / "o.csv.certificate.json").read_text())["mark"]
    yield "release note", (folder / "note.md").read_text()
    yield "sample", ran("sample", "m.kamino", "-o", "p.csv", "-n", "20")
    yield "certificate of a sample", json.loads((folder / "p.csv.certificate.json").read_text())["mark"]
    yield "verify", ran("verify", "o.csv")
    yield "verify, as data", verify(folder / "o.csv").to_json()["mark"]
    yield from _public_report(
        ran("report", "--public", "m.kamino", "o.csv", "-o", "r.html", "--text"), folder / "r.html"
    )
    (folder / "o.csv.certificate.json").rename(folder / "elsewhere.json")
    yield from _public_report(
        ran("report", "--public", "m.kamino", "o.csv", "-o", "r.html", "--json"), folder / "r.html"
    )
    (folder / "elsewhere.json").rename(folder / "o.csv.certificate.json")
    ran("report", "t.csv", "o.csv", "-o", "internal.html")
    text = (folder / "internal.html").read_text()
    yield "report, privacy", re.search("<dt>mark</dt><dd>(.*?)</dd>", text, re.DOTALL)[1]  # type: ignore[index]
    if private:
        yield "ledger show", ran("ledger", "show", "l")
    suggested = kamino("suggest", "t.csv", *run.options, cwd=folder)
    yield "suggest", suggested.stderr
    yield "suggest, what is pasted", suggested.stdout
    loaded = Synthesizer.load(folder / "m.kamino")
    yield "notebook", loaded._repr_html_()
    yield "model in Python", loaded.certificate(loaded.sample(5))["mark"]
    plan = ("plan", "-s", "s.yaml", "-c", "r.dc", *(each for each in run.options if each != "--accept"))
    if "--accept" not in run.options:
        yield "plan", ran(*plan)
    yield "plan, as data", Synthesizer(SCHEMA, **run.settings).plan().to_json()["mark"]


def _public_report(printed: str, path: Path) -> Iterator[tuple[str, str]]:
    """What a public report prints, and each place of its page that has the mark."""
    yield "public report, printed", printed
    text = path.read_text()
    for place in ('<p class="mark" id="mark">(.*?)</p>', "<dt>mark</dt><dd>(.*?)</dd>", "<footer>.*?<b>(.*?)</b>"):
        yield f"public report, page, {place[:9]}", html.unescape(re.search(place, text, re.DOTALL)[1])  # type: ignore[index]
    yield "public report, embedded", json.loads(text.split('id="report">')[1].split("</script>")[0])["mark"]


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.slow] if each == "delta a half" else []) for each in RUNS]
)
def test_every_face_tells_the_same_mark(inputs: Path, tmp_path: Path, name: str) -> None:
    run = RUNS[name]
    for file in inputs.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    told = 0
    for face, said in _faces(run, tmp_path):
        plain = " ".join(said.split())
        if run.is_for_release:
            assert "not for release" not in plain, face
            assert "not private" not in plain, face
            continue
        assert run.mark in plain, f"{face}: {plain}"
        for claim in (PUBLIC, "public:"):
            assert claim not in plain, face
        assert "for release" not in plain.replace("not for release", ""), face
        told += run.reason in plain
    assert told > 10 or run.is_for_release
    refused = kamino("verify", "o.csv", "--registry-entry", "e.yaml", cwd=tmp_path)
    assert (refused.returncode == 0) == run.is_for_release, refused.stderr
    if run.is_for_release:
        assert PUBLIC in kamino("report", "--public", "m.kamino", "o.csv", cwd=tmp_path).stdout
    else:
        assert f"found a table that is {run.mark}" in refused.stderr


# Each command, with arguments that make it tell whatever it can tell of a run that was saved in the folder: {options}
# are those of the run, where the command takes them. Of a command that is not listed the test asks for a line.
TOLD = {
    "init": ["t.csv", "--trust-domain"],
    "check": ["o.csv", "-c", "r.dc", "-s", "s.yaml"],
    "suggest": ["t.csv", "{options}"],
    "plan": ["-s", "s.yaml", "-c", "r.dc", "-n", "600", "{options}"],
    "synth": ["t.csv", "-o", "q.csv", "-s", "s.yaml", "-n", "20", "--release-note", "q.md", "{options}"],
    "sample": ["m.kamino", "-o", "p.csv", "-n", "20"],
    "verify": ["o.csv"],
    "sign": ["p.csv.certificate.json", "--key", "key.pem"],
    "audit": ["t.csv", "-s", "s.yaml", "--runs", "100", "{options}"],
    "report": ["--public", "m.kamino", "o.csv", "-o", "r.html"],
    "ledger show": ["l"],
    "ledger verify": ["l"],
    "ledger policy": ["l"],
    "ledger close": ["l", "{run}"],
    "demo": ["-n", "60", "{options}"],
    "rules import": ["r.dc"],
    "rules to": ["sql", "r.dc"],
    "rules explain": ["r.dc"],
}
FLAGS = ("--json", "--text", "--all", "--explain", "--dry-run")
# A budget that is told: a number, or that there is none.
BUDGET = re.compile(r"epsilon[\"': =at most]*(?:[0-9]|inf|null)", re.IGNORECASE)


def _commands() -> Iterator[tuple[str, Any]]:
    """Every command of the program, those of groups by both names."""
    for name in COMMANDS:
        found = load_command(name)
        for inner, command in getattr(found, "commands", {None: found}).items():
            yield f"{name} {inner}" if inner else name, command


def test_every_command_is_asked_for_its_mark() -> None:
    assert set(TOLD) == {name for name, _ in _commands()}, "say in TOLD how a new command is run"


# These fit a table many times, and a large one.
TAKE_LONG = ("audit", "demo")


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("no noise", TAKE_LONG),
        ("epsilon 50", TAKE_LONG),
        *(pytest.param(each, (), marks=pytest.mark.slow) for each in ("seed", "epsilon 50", "delta a half")),
    ],
)
def test_whatever_tells_a_budget_tells_its_mark(
    inputs: Path,
    tmp_path: Path,
    name: str,
    left_out: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Every command with every flag that changes what is printed; also the texts of all files that it writes."""
    run = RUNS[name]
    for file in inputs.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.chdir(tmp_path)
    private = run.mark != "not private"
    asked = ("-s", "s.yaml", "-c", "r.dc", "-n", "60", *run.options)
    app(["synth", "t.csv", "-o", "o.csv", *asked, "--save-model", "m.kamino"], standalone_mode=False)
    if private:
        app(["synth", "t.csv", "-o", "x.csv", *asked, "--ledger", "l", "--dataset", "d"], standalone_mode=False)
    _write_key(tmp_path / "key.pem")
    told = set()
    for command, found in _commands():
        if command in left_out or (command.startswith("ledger") and not private):
            continue
        taken = {option for each in found.params for option in each.opts}
        for flag in ("", *(each for each in FLAGS if each in taken)):
            said = _said(command, run, taken, flag, tmp_path, capfd)
            if BUDGET.search(said):
                told.add(command)
                assert run.mark in said or "not for release" in said, f"{command} {flag}: {said}"
    assert told >= {"suggest", "plan", "synth", "sample", "report"}, "these tell a budget"


def _said(command: str, run: Run, taken: set[str], flag: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """What a command prints, and the texts of the files that it writes."""
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    options = dict(zip(run.options[::2], run.options[1::2], strict=False))
    own = [part for option, value in options.items() if option in taken for part in (option, value)]
    if command == "demo" and not own:
        return ""  # it takes no such option: what it makes is for release
    arguments: list[str] = []
    for part in TOLD[command]:
        arguments += own if part == "{options}" else ["0" * 12] if part == "{run}" else [part]
    capfd.readouterr()
    with suppress(KaminoError, typer.Exit, SystemExit):  # no noise is no budget to audit, and the run is not open
        app([*command.split(), *arguments, *filter(None, [flag])], standalone_mode=False)
    printed = capfd.readouterr()
    written = [path for path in folder.iterdir() if before.get(path) != path.stat().st_mtime_ns]
    texts = [path.read_text() for path in written if path.suffix in (".md", ".html", ".json", ".yaml")]
    return " ".join(" ".join([printed.out, printed.err, *texts]).split())


def _write_key(path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    path.write_bytes(Ed25519PrivateKey.generate().private_bytes(*pem))


def test_runs_are_marked_together(tmp_path: Path) -> None:
    """Two runs of epsilon 9 may each be released, and all of them promise next to nothing; a seed marks all."""
    write_table(TABLE, tmp_path / "t.csv")
    (tmp_path / "s.yaml").write_text(SCHEMA.to_yaml())
    for place in range(2):
        asked = ("-s", "s.yaml", "-e", "9", "-n", "20", "--ledger", "l", "--no-resume")
        ran = kamino("synth", "t.csv", "-o", f"o{place}.csv", *asked, cwd=tmp_path)
        assert ran.returncode == 0, ran.stderr
    assert "not for release together, unless the owner accepts it: epsilon 1" in " ".join(ran.stderr.split())
    shown = " ".join(kamino("ledger", "show", "l", cwd=tmp_path).stdout.split())
    assert "mark not for release together, unless the owner accepts it: epsilon 1" in shown
    assert mark_of_runs(3.0, 1e-6, ["", ""]) == ""
    assert mark_of_runs(3.0, 1e-6, ["not for release", ""]) == (
        "not for release together: 1 of 2 runs is not for release"
    )
    assert mark_of_runs(50.0, 1e-6, [""]) == "", "it was accepted, or the run would be marked"


def _certificate(tmp_path: Path, **settings: Any) -> tuple[Path, dict[str, Any]]:
    made = Synthesizer(SCHEMA, **settings).fit(TABLE.slice(0, 300))
    written = made.write(tmp_path / "o.csv", 20)
    return written.certificate_path, json.loads(written.certificate_path.read_text())


@pytest.mark.parametrize("settings", [{"epsilon": 50.0}, {"seed": 1}, {"epsilon": float("inf")}])
def test_a_forged_mark_is_not_repeated(tmp_path: Path, settings: dict[str, Any]) -> None:
    path, document = _certificate(tmp_path, **settings)
    forged = {**document, "mark": "for release", "ledger": {**document["ledger"], "mark": ""}}
    path.write_text(json.dumps(forged))
    assert mark_of_certificate(document) == document["mark"] == mark_of_certificate(forged)
    found = verify(tmp_path / "o.csv")
    assert "mark" in {each.what for each in found.failed}
    assert found.mark == document["mark"]
    with pytest.raises(InputError, match=f"found a table that is {document['mark']}"):
        write_entry(path, tmp_path / "e.yaml")
    page = kamino("report", "o.csv", "o.csv", "--json", cwd=tmp_path)
    assert json.loads(page.stdout)["certificate"]["mark"] == document["mark"]


def test_a_stricter_mark_holds(tmp_path: Path) -> None:
    path, document = _certificate(tmp_path)
    path.write_text(json.dumps({**document, "mark": "not for release"}))
    assert verify(tmp_path / "o.csv").holds
    assert mark_of_certificate({**document, "mark": "not for release"}) == "not for release"


def test_damaged_certificates_are_for_no_release() -> None:
    known = {"mark": "for release", "privacy": {"epsilon": 1.0, "delta": 1e-6}}
    assert mark_of_certificate(known) == "for release"
    assert mark_of_certificate({}) == "unknown"
    for privacy in ({"epsilon": None}, {"epsilon": "1"}, {"epsilon": True}, {"epsilon": 1.0, "delta": []}):
        assert mark_of_certificate({**known, "privacy": privacy}) != "for release"
    for settings in ({"epsilon": "x"}, {"no such": 1}, {"seed": 3}, {"seed": -1}):
        assert mark_of_certificate({**known, "settings": settings}) == "not for release"


def test_the_mark_before_a_run_is_that_after_it() -> None:
    for run in RUNS.values():
        settings = Settings(**run.settings)
        made = Synthesizer(SCHEMA, **run.settings).fit(TABLE.slice(0, 300))
        after = spent_of(made.ledger, made.settings, about_rows=300, schema=SCHEMA)
        assert mark_before(settings).mark == after.mark == run.mark
        assert after.epsilon is None or after.epsilon <= settings.epsilon

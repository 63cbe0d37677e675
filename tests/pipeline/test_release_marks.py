"""What was spent, and whether it may be released: one mark, whoever tells it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.cli.test_check_command import kamino

from kamino import Synthesizer
from kamino.errors import InputError
from kamino.evaluate.report.document import PUBLIC
from kamino.io import write_table
from kamino.pipeline import Settings
from kamino.pipeline.output.release_mark import mark_before, mark_of_certificate, spent_of
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


@pytest.mark.parametrize("name", RUNS)
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

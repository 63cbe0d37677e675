"""`kamino audit` on a file: what it says, and how it ends."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from kamino.audit.probes.policy_totals import POLICY
from kamino.audit.subjects import SCHEMA, made_up
from kamino.cli.app import app
from kamino.planted.all_faults import FAULTS

RULES = "soft: not (t1.city = t2.city and t1.age > t2.age and t1.pay < t2.pay)\n"


@pytest.fixture
def audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    pyarrow.parquet.write_table(made_up(), "data.parquet")
    pyarrow.csv.write_csv(made_up(), "data.csv")
    Path("schema.yaml").write_text(SCHEMA.to_yaml())
    Path("rules.dc").write_text(RULES)

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(app, ["audit", *arguments, "--runs", "200"])

    return run


def test_an_audit_says_what_it_did_and_found(audited: Any) -> None:
    result = audited("data.parquet", "-s", "schema.yaml", "-c", "rules.dc")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "No problem was found." in text
    assert "For the owner, not for release" in text
    assert "An audit is a test, no proof" in text
    assert "of 200 won" in text
    assert "claimed: 1 " in text
    assert {path.name for path in Path().iterdir()} == {"data.parquet", "data.csv", "schema.yaml", "rules.dc"}


@pytest.mark.parametrize(
    "options",
    [
        ["data.csv", "--anyway"],
        ["data.parquet", "--trust-domain"],
        ["data.parquet", "-s", "schema.yaml", "--unit", "who", "--max-rows", "3", "--neighbours", "replace"],
    ],
    ids=["types and domains found", "trusted", "a unit replaced"],
)
def test_an_audit_of_other_runs_passes(audited: Any, options: list[str]) -> None:
    result = audited(*options, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.output)
    assert found["note"] == "for the owner, not for release"
    assert [each["problems"] for each in found["findings"]] == [[]] * 6
    assert found["passed"] is True
    assert found["game"]["claimed"] == 1.0


def test_an_audit_of_a_leak_fails(audited: Any) -> None:
    (fault,) = [each for each in FAULTS if "something else" in each.name]
    with fault.plant():
        result = audited("data.parquet", "-s", "schema.yaml", "-c", "rules.dc")
    assert result.exit_code == 1
    assert "do not release" in " ".join(result.output.split())


def test_wrong_use_is_told(audited: Any) -> None:
    for arguments in ([], ["data.parquet", "-e", "inf"]):
        result = audited(*arguments)
        assert result.exit_code != 0
        assert "expected" in str(result.exception)


def test_a_self_test_is_printed(audited: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kamino.audit import subjects
    from kamino.planted import self_test

    monkeypatch.setattr(self_test, "FAULTS", FAULTS[1:3])
    monkeypatch.setattr(self_test, "PROBES", (POLICY,))
    monkeypatch.setattr(self_test, "DEFAULT", (subjects.suggesting,))
    monkeypatch.setattr(self_test, "has_neural", lambda: False)
    # Both ways to print show one self-test.
    monkeypatch.setattr(self_test, "self_test", cache(self_test.self_test))
    result = audited("--self-test")
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert "2 of 2 planted faults caught." in text
    assert "The clean code passes all checks." in text
    found = json.loads(audited("--self-test", "--json").output)
    assert found["passed"] is True


def test_a_self_test_without_faults_is_printed(audited: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kamino.planted import self_test

    monkeypatch.setattr(self_test, "FAULTS", ())
    monkeypatch.setattr(self_test, "PROBES", ())
    monkeypatch.setattr(self_test, "DEFAULT", ())
    monkeypatch.setattr(self_test, "has_neural", lambda: False)
    assert audited("--self-test").exit_code == 0

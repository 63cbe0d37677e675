"""Certificates that hold, and what becomes of them once anything is changed."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import kamino
from kamino.cli.app import main
from kamino.errors import InputError, PrivacyError
from kamino.limits import MAX_CERTIFICATE_BYTES
from kamino.pipeline import Synthesizer
from kamino.pipeline.output.certificate import hashes_of
from kamino.pipeline.output.writing import certificate_path
from kamino.pipeline.verifying.case import reprice_ledger
from kamino.pipeline.verifying.certificate_file import read_certificate
from kamino.pipeline.verifying.signatures import signer
from kamino.privacy import Budget, Neighbours
from kamino.privacy.accounting.events import DeltaEvent, GaussianEvent, PoissonGaussianEvent
from kamino.privacy.ledger import Entry, Ledger
from kamino.privacy.published_price import Priced, reprice
from kamino.schema import Categorical, Integer, Key, Schema, draft_schema

RULES = "city -> zone using zones.csv\nsoft: not (t1.age > t2.age and t1.pay < t2.pay)\ncheck (age <= pay)\n"
SCHEMA = Schema(
    attributes={
        "id": Key(),
        "city": Categorical(values=["Rome", "Oslo", "07"], nullable=True),
        "zone": Categorical(values=["N", "S", "E"], nullable=True),
        "age": Integer(min=0, max=9, nullable=True),
        "pay": Integer(min=0, max=90, nullable=True),
    }
)


def private_table(rows: int = 200) -> pa.Table:
    rng = np.random.default_rng(1)
    city, age = rng.choice(3, rows), rng.integers(0, 10, rows)
    return pa.table(
        {
            "id": [f"p{i % 90}" for i in range(rows)],
            "city": np.array(["Rome", "Oslo", "07"])[city],
            "zone": np.array(["N", "S", "E"])[city],
            "age": age,
            "pay": rng.integers(0, 10, rows) * 10,  # breaks the soft constraint in every table of this size
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("rules")
    (found / "zones.csv").write_text("city,zone\nRome,N\nOslo,S\n07,E\n")
    (found / "rules.dc").write_text(RULES)
    return found


@pytest.fixture(scope="module")
def made(folder: Path) -> Synthesizer:
    return Synthesizer(SCHEMA, folder / "rules.dc", epsilon=2.0).fit(private_table())


@pytest.fixture(scope="module")
def key_files(folder: Path) -> tuple[Path, Path]:
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private, public = folder / "key.pem", folder / "public.pem"
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    public.write_bytes(
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return private, public


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    monkeypatch.setattr(sys, "argv", ["kamino", *arguments])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code


def edit(path: Path, change: Callable[[dict[str, Any]], Any], *, rehash: bool = False) -> None:
    """Change a certificate; with `rehash`, as somebody would who knows of the hashes in it."""
    document = json.loads(path.read_text())
    change(document)
    if rehash:
        texts = [each["text"] for each in document["constraints"]]
        anew = hashes_of(document["schema"], texts, document["ledger"], {})
        document["hashes"] = {**anew, "references": document["hashes"]["references"]}
    path.write_text(json.dumps(document))


REAL: dict[str, dict[str, Any]] = {
    "default, domains found": {"table": private_table(400), "settings": {"anyway": True}},
    "types found too": {"csv": private_table(300), "settings": {"anyway": True}},
    "asserted in the schema": {"schema": draft_schema(private_table(), trust_domain=True), "settings": {"unit": "row"}},
    "trusted": {"table": private_table(), "settings": {"trust_domain": True, "unit": "row"}},
    "replace": {"schema": SCHEMA, "rules": RULES, "settings": {"neighbours": "replace"}},
    "unit": {"schema": SCHEMA, "rules": RULES, "settings": {"unit": "id", "max_rows": 3}},
    "paper weights": {"schema": SCHEMA, "rules": RULES, "settings": {"weights": "paper", "epsilon": 5.0}},
    "not private": {"schema": SCHEMA, "rules": RULES, "settings": {"epsilon": float("inf")}},
    "with a seed": {"schema": SCHEMA, "rules": RULES, "settings": {"seed": 3}},
    "no constraint kept": {"schema": SCHEMA, "rules": RULES, "settings": {"sampling": "independent"}},
}

SLOW = ("paper weights",)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in REAL]
)
def test_real_certificates_hold(name: str, ending: str, folder: Path, tmp_path: Path) -> None:
    case = REAL[name]
    rules = folder / "rules.dc" if "rules" in case else ""
    source: object = case.get("table", private_table())
    if "csv" in case:
        kamino.io.write_table(case["csv"], tmp_path / "in.csv")
        source = tmp_path / "in.csv"
    synthesizer = Synthesizer(case.get("schema"), rules, **case["settings"]).fit(source)
    written = synthesizer.write(tmp_path / f"out.{ending}", 60)
    found = kamino.verify(written.path, constraints=folder / "rules.dc" if "rules" in case else None)
    assert found.failed == ()
    assert found.holds
    assert found.signed_by is None


@pytest.mark.parametrize("preset", [{"preset": "paper"}, pytest.param({"backend": "neural"}, marks=pytest.mark.slow)])
def test_a_neural_certificate_holds(preset: dict[str, str], folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("jax")
    small = SCHEMA.with_attribute("id", Categorical(values=[f"p{i}" for i in range(90)]))
    synthesizer = Synthesizer(small, folder / "rules.dc", epsilon=4.0, **preset).fit(private_table(150))
    written = synthesizer.write(tmp_path / "out.csv", 20)
    found = kamino.verify(written.path)
    assert found.failed == ()
    kinds = {event["type"] for entry in written.certificate["ledger"]["entries"] for event in entry["events"]}
    assert "PoissonGaussianEvent" in kinds
    assert written.certificate["ledger"]["sealed"]


def test_conditions_and_samples_hold(made: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made.save(tmp_path / "m.kamino")
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "sample", "m.kamino", "-o", "o.csv", "-n", "9", "-g", "city=07", "-g", "city=Oslo") == 0
    assert run(monkeypatch, "verify", "o.csv") == 0
    edit(Path("o.csv.certificate.json"), lambda c: c["given"].update(city=["Rome"]))
    assert run(monkeypatch, "verify", "o.csv") == 1


def change_cell(table: Path) -> None:
    lines = table.read_text().splitlines()
    lines[1] = lines[1].replace(lines[1].split(",")[0], "k999999", 1)
    table.write_text("\n".join(lines) + "\n")


def remove_row(table: Path) -> None:
    table.write_text("\n".join(table.read_text().splitlines()[:-1]) + "\n")


def spoil_cell(table: Path) -> None:
    lines = table.read_text().splitlines()
    lines[1] = ",".join([*lines[1].split(",")[:3], "seven", "8"])
    table.write_text("\n".join(lines) + "\n")


def first_event(document: dict[str, Any]) -> dict[str, Any]:
    return next(event for entry in document["ledger"]["entries"] for event in entry["events"])


def less_noise(document: dict[str, Any]) -> None:
    for entry in document["ledger"]["entries"]:
        for event in entry["events"]:
            event["noise_multiplier"] *= 1.2
            event["replace_multiplier"] *= 1.2


def cheaper(document: dict[str, Any]) -> None:
    for source in (document["privacy"], document["ledger"]):
        source["spent_epsilon"]["add_remove"] *= 0.999


def found_domain(schema: str) -> str:
    document = yaml.safe_load(schema)
    document["attributes"]["city"]["source"] = "private"
    return yaml.safe_dump(document, sort_keys=False)


TABLES: dict[str, Callable[[Path], None]] = {"cell": change_cell, "row": remove_row, "type of a cell": spoil_cell}
CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "hash": lambda c: c.update(sha256="0" * 64),
    "number of rows": lambda c: c.update(rows=59),
    "event": lambda c: first_event(c).update(noise_multiplier=first_event(c)["noise_multiplier"] * 2),
    "event, by little": lambda c: first_event(c).update(noise_multiplier=first_event(c)["noise_multiplier"] * 1.001),
    "event of an unknown kind": lambda c: first_event(c).update(type="FreeEvent"),
    "event that makes no sense": lambda c: first_event(c).update(noise_multiplier=-1.0),
    "event left out": lambda c: c["ledger"]["entries"].pop(),
    "number of events": lambda c: first_event(c).update(count=7),
    "noise of all events": less_noise,
    "price": cheaper,
    "price under the other relation": lambda c: c["privacy"]["spent_epsilon"].update(replace=2.0),
    "budget": lambda c: c["privacy"].update(epsilon=1.0),
    "delta": lambda c: c["ledger"].update(delta=1e-5),
    "relation": lambda c: c["privacy"].update(neighbours="replace"),
    "unit": lambda c: c["privacy"].update(unit="all rows with one value of 'id', at most 3 of them kept"),
    "unit of the settings": lambda c: c["settings"].update(unit="id", max_rows=3),
    "stated noise": lambda c: c["ledger"]["entries"][0].update(sigma=0.01),
    "number of releases": lambda c: c["privacy"].update(releases=3),
    "constraint": lambda c: c["constraints"][0].update(text="city -> age"),
    "constraint left out": lambda c: c["constraints"].pop(0),
    "strength": lambda c: c["constraints"][1].update(hard=True, text="not (t1.age > t2.age and t1.pay < t2.pay)"),
    "violations": lambda c: c["constraints"][1].update(violations=1),
    "rate": lambda c: c["constraints"][1].update(rate=0.5),
    "schema": lambda c: c.update(schema=c["schema"].replace("max: 9", "max: 8")),
    "source of a domain": lambda c: c.update(schema=found_domain(c["schema"])),
    "list of domains": lambda c: c["domains"].update(declared=["city"], private=["zone", "age", "pay"]),
    "cost of finding domains": lambda c: c["finding_domains"].update(share=0.5),
    "mark": lambda c: c.update(mark="not private"),
    "seed": lambda c: c["settings"].update(seed=3),
    "mark of the ledger": lambda c: c["ledger"].update(mark="not for release"),
    "method": lambda c: c["method"].update(backend="neural"),
    "meaning": lambda c: c["privacy"]["meaning"]["add_remove"].update(guess_right_at_most=0.5),
    "meaning in words": lambda c: c["words"].update(meaning="nobody can learn anything"),
    "what may be done": lambda c: c["words"]["may"].append("take a row for a person"),
    "hash of the ledger": lambda c: c["hashes"].update(ledger="0"),
}


@pytest.mark.parametrize("name", [*TABLES, *CHANGES])
def test_what_was_changed_does_not_hold(
    name: str,
    made: Synthesizer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = made.write(tmp_path / "out.csv", 60).path
    assert run(monkeypatch, "verify", str(table)) == 0
    if name in TABLES:
        TABLES[name](table)
    else:
        before = certificate_path(table).read_text()
        edit(certificate_path(table), CHANGES[name])
        assert json.loads(before) != json.loads(certificate_path(table).read_text())
    capsys.readouterr()
    assert run(monkeypatch, "verify", str(table), "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert told["holds"] is False
    assert [each for each in told["findings"] if not each["holds"]]
    assert run(monkeypatch, "verify", str(table)) == 1
    assert "The certificate does not hold" in capsys.readouterr().out


NOT_BY_HASH = (
    "strength",
    "event",
    "event, by little",
    "noise of all events",
    "number of events",
    "constraint",
    "event left out",
)


@pytest.mark.parametrize("name", NOT_BY_HASH)
def test_changes_are_seen_also_where_hashes_are_made_anew(name: str, made: Synthesizer, tmp_path: Path) -> None:
    table = made.write(tmp_path / "out.csv", 60).path
    edit(certificate_path(table), CHANGES[name], rehash=True)
    failed = [each.what for each in kamino.verify(table).failed]
    assert failed
    assert not any(what.startswith("hash") for what in failed)


def test_a_signature_tells_who_and_what(
    made: Synthesizer, key_files: tuple[Path, Path], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    private, public = map(str, key_files)
    table = made.write(tmp_path / "out.csv", 30).path
    certificate = certificate_path(table)
    assert run(monkeypatch, "verify", str(table), "--key", public) == 1  # not signed
    assert run(monkeypatch, "sign", str(certificate), "--key", private) == 0
    assert run(monkeypatch, "verify", str(table), "--key", public) == 0
    assert kamino.verify(table).signed_by
    good = certificate.read_text()
    edit(certificate, lambda c: c["notes"].append("a remark that nothing derives"))
    assert run(monkeypatch, "verify", str(table), "--key", public) == 1
    assert run(monkeypatch, "verify", str(table)) == 1
    certificate.write_text(good)
    edit(certificate, lambda c: c["signature"].update(value="00" * 64))
    assert run(monkeypatch, "verify", str(table), "--key", public) == 1
    certificate.write_text(good)
    edit(certificate, lambda c: c["signature"].update(public_key="00" * 32))
    assert run(monkeypatch, "verify", str(table)) == 1
    certificate.write_text(good)
    edit(certificate, lambda c: c.pop("signature"))
    assert run(monkeypatch, "verify", str(table)) == 0  # as good as any that was never signed
    assert run(monkeypatch, "verify", str(table), "--key", public) == 1


def test_somebody_else_signed(made: Synthesizer, key_files: tuple[Path, Path], tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    other = tmp_path / "other.pem"
    other.write_bytes(
        Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    table = made.write(tmp_path / "out.csv", 30, sign=signer(other)).path
    assert kamino.verify(table).holds
    found = kamino.verify(table, key=key_files[1])
    assert [each.what for each in found.failed] == ["signature"]
    assert "another key" in found.failed[0].found


def test_synth_signs_and_refuses_a_bad_key_before_it_spends(
    key_files: tuple[Path, Path], folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kamino.io.write_table(private_table(), "in.csv")
    Path("s.yaml").write_text(SCHEMA.to_yaml())
    Path("bad.pem").write_text("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
    usual = ("synth", "in.csv", "-s", "s.yaml", "-o", "o.csv", "-n", "20")
    assert run(monkeypatch, *usual, "--sign", "bad.pem") == 2
    assert run(monkeypatch, *usual, "--sign", str(key_files[1])) == 2
    assert not Path("o.csv").exists()
    assert run(monkeypatch, *usual, "--sign", str(key_files[0])) == 0
    assert run(monkeypatch, "verify", "o.csv", "--key", str(key_files[1])) == 0


def test_other_rules_and_other_references_do_not_hold(made: Synthesizer, folder: Path, tmp_path: Path) -> None:
    table = made.write(tmp_path / "out.csv", 60).path
    assert kamino.verify(table, constraints=folder / "rules.dc").holds
    (tmp_path / "zones.csv").write_text("city,zone\nRome,S\nOslo,S\n07,E\n")
    (tmp_path / "rules.dc").write_text(RULES)
    failed = [each.what for each in kamino.verify(table, constraints=tmp_path / "rules.dc").failed]
    assert failed == ["reference table of city -> zone", "zone as in its reference table"]
    (tmp_path / "fewer.dc").write_text("city -> zone using zones.csv\n")
    failed = [each.what for each in kamino.verify(table, constraints=tmp_path / "fewer.dc").failed]
    assert failed[0] == "constraints that were given"


def test_a_seed_is_not_for_release_whatever_is_claimed(folder: Path, tmp_path: Path) -> None:
    table = Synthesizer(SCHEMA, folder / "rules.dc", seed=1).fit(private_table()).write(tmp_path / "o.csv", 10).path
    assert kamino.verify(table).holds
    edit(certificate_path(table), lambda c: c.update(mark="for release"))
    assert [each.what for each in kamino.verify(table).failed] == ["mark"]
    edit(certificate_path(table), lambda c: c["ledger"].update(mark=""), rehash=True)
    assert [each.what for each in kamino.verify(table).failed] == ["mark", "mark of the ledger"]
    edit(certificate_path(table), lambda c: c["settings"].update(seed=None), rehash=True)
    assert kamino.verify(table).holds  # who changes all of it is found out by a signature alone


def test_a_stricter_mark_is_no_false_claim(made: Synthesizer, tmp_path: Path) -> None:
    table = made.write(tmp_path / "out.csv", 10).path
    edit(certificate_path(table), lambda c: c.update(mark="not for release"))
    assert kamino.verify(table).holds


def test_names_of_later_versions_are_kept(made: Synthesizer, tmp_path: Path) -> None:
    table = made.write(tmp_path / "out.csv", 20).path
    edit(certificate_path(table), lambda c: c.update(licence="none", meaning={"of": ["epsilon"]}))
    found = kamino.verify(table)
    assert found.holds
    assert found.stated == ("kamino", "date", "columns", "notes", "licence", "meaning")


MALFORMED: dict[str, Callable[[dict[str, Any]], str]] = {
    "empty": lambda c: "",
    "no JSON": lambda c: "{",
    "a list": lambda c: "[]",
    "deep": lambda c: "[" * 100_000,
    "deep within": lambda c: json.dumps({**c, "more": json.loads("[" * 100 + "]" * 100)}),
    "NaN": lambda c: json.dumps({**c, "rows": float("nan")}),
    "beyond numbers": lambda c: json.dumps(c).replace('"rows": 20', '"rows": 1e999'),
    "digits": lambda c: json.dumps(c).replace('"rows": 20', '"rows": ' + "9" * 5_000),
    "a name twice": lambda c: json.dumps(c)[:-1] + ', "rows": 3}',
    "many items": lambda c: "[" + "0," * 5_000_000 + "0]",
    "large": lambda c: json.dumps({**c, "more": "x" * (MAX_CERTIFICATE_BYTES + 1)}),
    "half a character": lambda c: json.dumps({**c, "more": "\ud800"}),
    "another format": lambda c: json.dumps({**c, "format": "kamino-certificate-9"}),
    "no format": lambda c: json.dumps({k: v for k, v in c.items() if k != "format"}),
    "no table": lambda c: json.dumps({k: v for k, v in c.items() if k != "sha256"}),
    "no schema": lambda c: json.dumps({**c, "schema": None}),
    "no events": lambda c: json.dumps({**c, "ledger": {}}),
    "rows as text": lambda c: json.dumps({**c, "rows": "20"}),
    "a rule that is none": lambda c: json.dumps({**c, "constraints": [{"text": "?", "hard": True, "violations": 0}]}),
    "two rules in one": lambda c: json.dumps(
        {**c, "constraints": [{"text": "city -> zone, age", "hard": True, "violations": 0}]}
    ),
    "settings that make no sense": lambda c: json.dumps({**c, "settings": {**c["settings"], "epsilon": -1}}),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_certificates_are_refused_in_one_line(
    name: str,
    made: Synthesizer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = made.write(tmp_path / "out.csv", 20).path
    document = json.loads(certificate_path(table).read_text())
    certificate_path(table).write_text(MALFORMED[name](document))
    assert run(monkeypatch, "verify", str(table)) == 2
    told = capsys.readouterr().err
    assert len(told.splitlines()) == 1
    assert len(told) < 600
    assert "certificate" in told


def test_what_is_not_there_is_told(tmp_path: Path, made: Synthesizer) -> None:
    with pytest.raises(InputError, match="no such certificate"):
        kamino.verify(tmp_path / "out.csv")
    table = made.write(tmp_path / "out.csv", 20).path
    table.unlink()
    with pytest.raises(InputError, match="the table cannot be read"):
        kamino.verify(table)


def test_a_parquet_table_of_other_columns_does_not_hold(made: Synthesizer, tmp_path: Path) -> None:
    table = made.write(tmp_path / "out.parquet", 20).path
    pq.write_table(pq.read_table(table).rename_columns(["id", "town", "zone", "age", "pay"]), table)
    assert {each.what for each in kamino.verify(table).failed} == {"bytes of the table", "columns"}
    table.write_bytes(b"PAR1 nothing PAR1")
    assert {each.what for each in kamino.verify(table).failed} == {"bytes of the table", "table"}


def charged(budget: Budget, seed: int) -> Ledger:
    """A ledger with a random course of releases: Gaussian, delta, set aside, sealed, sampled."""
    rng = np.random.default_rng(seed)
    ledger = Ledger(budget)
    events: list[Any] = [GaussianEvent(noise_multiplier=float(rng.uniform(30, 60))) for _ in range(4)]
    events += [GaussianEvent(noise_multiplier=50.0, replace_multiplier=40.0)]
    ledger.set_aside(budget.delta / 20, what="for categories")
    for number, event in enumerate(events):
        share = budget.delta / 100 if number == 2 else 0.0
        ledger.charge(
            Entry(kind="counts", what="c", attributes=(), events=((event, int(rng.integers(1, 4))),), from_aside=share)
        )
    ledger.charge(Entry(kind="x", what="d", attributes=(), events=((DeltaEvent(delta=budget.delta / 50), 1),)))
    if seed % 2:
        ledger.seal()
        sampled = PoissonGaussianEvent(noise_multiplier=float(rng.uniform(3, 5)), sampling_rate=0.02)
        ledger.charge(Entry(kind="descent", what="s", attributes=(), events=((sampled, 40),)))
    return ledger


@pytest.mark.parametrize("relation", list(Neighbours))
@pytest.mark.parametrize("seed", range(4))
def test_repricing_agrees_with_the_ledger(relation: Neighbours, seed: int) -> None:
    ledger = charged(Budget(epsilon=3.0, delta=1e-6, neighbours=relation), seed)
    document = json.loads(ledger.to_json())
    found = reprice_ledger(document)
    assert found.problems == ()
    assert found.spent == pytest.approx(ledger.spent(), rel=1e-9)
    for each in Neighbours:
        stated = document["spent_epsilon"][each.value]
        assert found.stated[each] == pytest.approx(float("inf") if stated is None else stated, rel=1e-9)
    for part, prices in zip(ledger.sealed, found.sealed, strict=True):
        assert prices == {each: pytest.approx(part.epsilon[each], rel=1e-9) for each in Neighbours}
    document["entries"] += copy.deepcopy(document["entries"]) * 40
    assert any("above the budget" in each for each in reprice_ledger({**document, "sealed": []}).problems) or seed % 2


def test_taking_more_than_was_set_aside_is_a_problem() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6)
    taken = Priced(events=(), from_aside=2e-7)
    aside = Priced(events=((DeltaEvent(delta=1e-7), 1),), sets_aside=1e-7)
    assert reprice(budget, [aside, Priced(events=(), from_aside=1e-7)], []).problems == ()
    assert len(reprice(budget, [aside, taken], []).problems) == 1
    assert len(reprice(budget, [taken, aside], []).problems) == 1


@pytest.mark.parametrize(
    ("noise", "rate", "count"),
    [(0.01, 0.5, 1), (1e-9, 0.5, 1), (1.0, 0.5, 10**6), (0.2, 0.5, 1_000), (1.0, 1.0, 10**9)],
)
def test_events_that_take_long_to_price_are_refused(noise: float, rate: float, count: int) -> None:
    event = PoissonGaussianEvent(noise_multiplier=noise, sampling_rate=rate)
    with pytest.raises(PrivacyError, match="too long to price"):
        reprice(Budget(epsilon=1.0, delta=1e-6), [Priced(events=((event, count),))], [])
    many = tuple((PoissonGaussianEvent(noise_multiplier=5 + i, sampling_rate=0.1), 1) for i in range(30))
    with pytest.raises(PrivacyError, match="too long to price"):
        reprice(Budget(epsilon=1.0, delta=1e-6), [Priced(events=many)], [])


# The fields of the registry's schema (schemas/deployments-schema.yaml, early 2026).
REGISTRY = {
    "": {"url_slug", "deployment"},
    "basic": {
        *("name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region"),
        *("data_product_sector", "publication_date"),
    },
    "dp_variant": {"variant_name", "data_domain", "unprotected_quantities"},
    "privacy_loss": {
        *("privacy_unit", "privacy_unit_details", "number_of_privacy_units", "privacy_parameters"),
        "privacy_parameters_details",
    },
    "deployment_model": {
        *("model_name", "model_name_details", "trust_assumptions", "actors", "release_type", "release_type_details"),
        *("data_source_type", "data_source_type_details", "access_type", "access_type_details"),
    },
    "implementation": {
        *("preprocessing_and_hyperparameter_tuning", "mechanisms", "composition", "post_processing", "justification"),
        *("utility", "additional_information"),
    },
    "administrative": {"evidence_sources", "status", "registry_authors", "tier"},
}


def test_registry_entries_have_the_fields_of_its_schema(
    made: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made.write(tmp_path / "out.csv", 20).path
    entry = tmp_path / "entry.yaml"
    assert run(monkeypatch, "verify", str(table), "--registry-entry", str(entry)) == 0
    found = yaml.safe_load(entry.read_text())
    assert set(found) == REGISTRY[""]
    sections = found["deployment"]
    assert set(sections) == set(REGISTRY) - {""}
    for name, fields in sections.items():
        assert set(fields) <= REGISTRY[name]
    required = {"name", "data_curators", "description", "intended_use", "data_product_type", "data_product_region"}
    assert required | {"publication_date"} <= set(sections["basic"])
    assert sections["privacy_loss"]["privacy_parameters"]["delta"] == 1e-6
    assert sections["privacy_loss"]["privacy_parameters"]["epsilon"] == pytest.approx(2.0, rel=1e-3)
    assert sections["dp_variant"]["variant_name"] == "Approximate DP"
    assert sections["basic"]["data_product_type"] == "Synthetic data"


def test_no_registry_entry_for_what_does_not_hold(
    made: Synthesizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made.write(tmp_path / "out.csv", 20).path
    remove_row(table)
    assert run(monkeypatch, "verify", str(table), "--registry-entry", str(tmp_path / "e.yaml")) == 1
    assert not (tmp_path / "e.yaml").exists()
    seeded = Synthesizer(SCHEMA, "", seed=1).fit(private_table()).write(tmp_path / "s.csv", 10).path
    assert run(monkeypatch, "verify", str(seeded), "--registry-entry", str(tmp_path / "e.yaml")) == 2
    assert read_certificate(certificate_path(seeded)).document["mark"] == "not for release"

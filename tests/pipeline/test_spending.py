"""An error after a release says what is spent."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pipeline.test_privacy_of_synth import private_table

from kamino.errors import InputError, KaminoError
from kamino.io import write_table
from kamino.pipeline import Settings, Synthesizer
from kamino.pipeline.spending import spent_note, telling_what_is_spent

LEDGER = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "mark": "",
    "unit": {"text": "one row"},
    "neighbours": "replace",
    "spent_epsilon": {"add_remove": 0.3, "replace": 0.51239},
    "entries": [{}, {}],
}


def test_a_late_error_tells_the_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails once types and domains were found: here the encoding of rows."""

    def fail(*_: object) -> None:
        raise InputError("too late")

    write_table(private_table().select(["city", "age"]), tmp_path / "t.csv")
    monkeypatch.setattr("kamino.pipeline.program.measuring_stages.encode", fail)
    with pytest.raises(InputError, match="too late") as late:
        Synthesizer(epsilon=2.0, seed=1).fit(tmp_path / "t.csv")
    (note,) = late.value.__notes__
    assert "of 2 is spent" in note
    assert "draft_schema" in note
    with pytest.raises(KaminoError) as early:
        Synthesizer(constraints="check (ctiy > 5)", seed=1).fit(tmp_path / "t.csv")
    assert not hasattr(early.value, "__notes__")


def test_the_note_has_the_numbers_of_the_ledger(tmp_path: Path) -> None:
    assert "2 releases were made before this: epsilon 0.5124 of 2 is spent" in spent_note(LEDGER, Settings())
    assert "epsilon 0.5124 of 2 is spent (not for release: made" in spent_note(
        {**LEDGER, "mark": "not for release"}, Settings()
    )
    assert spent_note({**LEDGER, "entries": [{}]}, Settings()).startswith("1 release was")
    assert (
        spent_note({**LEDGER, "entries": []}, Settings()) == spent_note({**LEDGER, "epsilon": None}, Settings()) == ""
    )
    weak = {**LEDGER, "epsilon": 50.0}
    assert "is spent (not for release: epsilon 50 is above 10" in spent_note(weak, Settings(epsilon=50.0))
    assert "not for release" not in spent_note(weak, Settings(epsilon=50.0, accept=True))
    model = tmp_path / "m.kamino"
    assert "run again only if you accept that" in spent_note(LEDGER, Settings(), model=model)
    model.touch()
    assert f"The model is in {model}: draw from it with Synthesizer.load(...).sample" in spent_note(
        LEDGER, Settings(), model=model
    )


def test_an_error_keeps_its_kind() -> None:
    with pytest.raises(InputError, match="broken"), telling_what_is_spent(lambda: LEDGER, Settings()):
        raise InputError("broken")

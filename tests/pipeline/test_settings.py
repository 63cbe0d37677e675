"""Choices of a run, and presets of them."""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import pyarrow as pa
import pytest

from kamino.errors import InputError, ModelError
from kamino.pipeline import Backend, SequenceMode, Settings, Synthesizer, Training, WeightMode
from kamino.privacy import Neighbours
from kamino.sampling import Sampling
from kamino.schema import Boolean, Schema


def test_the_paper_preset_is_what_the_paper_does() -> None:
    found = Settings.of("paper")
    assert found.backend is Backend.NEURAL
    assert found.sequence is SequenceMode.PAPER
    assert found.sampling is Sampling.ROW_BY_ROW
    assert found.neighbours is Neighbours.REPLACE
    assert (found.weights, found.training) == (WeightMode.MATCHING, Training.FITTED)
    printed = Settings.of("printed")
    assert (printed.weights, printed.training) == (WeightMode.PAPER, Training.PRINTED)
    assert printed.sampling is Sampling.PRINTED
    assert replace(printed, weights=found.weights, training=found.training, sampling=found.sampling) == found


def test_what_is_given_wins_over_the_preset() -> None:
    found = Settings.of("printed", weights="matching", neighbours=Neighbours.ADD_REMOVE, sweeps=None, jobs=2)
    assert found.weights is WeightMode.MATCHING
    assert found.neighbours is Neighbours.ADD_REMOVE
    assert found.backend is Backend.NEURAL
    assert (found.sweeps, found.jobs) == (0, 2)
    assert Settings.of("default", sweeps=None).sweeps == Settings().sweeps


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"preset": "best"}, "found preset 'best'; expected one of default, paper, printed"),
        ({"backend": "tree"}, "found backend 'tree'; expected one of marginal, neural"),
        ({"sweeps": -1}, "found sweeps -1; expected 0 or more"),
        ({"candidates": 0}, "found candidates 0; expected 1 or more"),
        ({"colour": 1}, "found unknown settings: colour; expected some of epsilon, delta,"),
    ],
)
def test_wrong_choices_are_told(given: dict[str, object], text: str) -> None:
    with pytest.raises(InputError, match=text.replace("?", r"\?")):
        Settings.of(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", [Settings.of("paper", seed=3), Settings(epsilon=math.inf, unit="a", max_rows=2)])
def test_settings_survive_being_saved(settings: Settings) -> None:
    assert Settings.from_json(settings.to_json()) == settings
    assert Settings.from_json({}) == Settings()


def test_a_saved_model_does_not_tell_of_the_machine() -> None:
    document = Settings(cluster="tcp://10.0.0.7:8786", jobs=8).to_json()
    assert "10.0.0.7" not in str(document)
    assert "jobs" not in document


def test_without_the_extra_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kamino.model.neural.extra.find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"pip install 'kamino-synth\[neural\]'"):
        Synthesizer(Schema(attributes={"a": Boolean()}), backend="neural", training="printed").fit(
            pa.table({"a": [True, False]})
        )


def test_import_is_free_of_the_extra() -> None:
    import subprocess

    code = "import kamino, kamino.cli, sys; sys.exit(any(m in sys.modules for m in ('jax', 'optax', 'torch')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_plan_of_the_paper_preset_is_plain_data() -> None:
    document = Synthesizer(Schema(attributes={"a": Boolean()}), preset="paper").plan(20_000).to_json()
    assert document["backend"] == "neural"
    assert document["neural"]["epsilon"]["replace"] <= 1

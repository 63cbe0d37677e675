"""What a notebook shows of a synthesizer, and of a run."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from tests.pipeline.test_privacy_of_synth import RULES, SCHEMA, private_table

from kamino import Stage, Synthesizer
from kamino.pipeline.stages import shown, silent, stage_bar
from kamino.schema import Boolean, Schema


def test_a_notebook_shows_budget_plan_and_notes() -> None:
    made = Synthesizer(SCHEMA, RULES, epsilon=0.5, seed=1)
    before = made._repr_html_()
    assert "Budget, not spent yet" in before
    assert "<th>epsilon</th><td>0.5</td>" in before
    assert "How rows are drawn" in before
    after = made.fit(private_table())._repr_html_()
    assert "Budget, spent" in after
    assert "not for release" in after
    assert "<th>city</th>" in after
    assert "secret" not in after
    assert "there is no plan" in Synthesizer()._repr_html_()
    odd = Schema(attributes={"<script>x</script>\x1b": Boolean()})
    html = Synthesizer(odd, seed=1)._repr_html_()
    assert "<script>" not in html
    assert "\x1b" not in html
    assert "every row would be null there" in Synthesizer(SCHEMA, "check (age < 0)")._repr_html_()
    unplanned = Synthesizer(SCHEMA, "check (age < 0)\ncheck (age is not null)")._repr_html_()
    assert "not to be planned" in unplanned


def test_notes_are_shown() -> None:
    made = Synthesizer(SCHEMA, "key (city)", seed=1).fit(private_table())
    assert "Note: key (city): 3 values for" in made._repr_html_()


def test_progress_is_off_unless_someone_sees_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked in (None, False, True):
        with shown(asked, Stage.FIT) as report:
            assert report is silent, "standard error is no terminal here"
    told: list[Stage] = []
    with shown(told.append, Stage.FIT) as report:  # type: ignore[arg-type]
        report(Stage.FIT)
    assert told == [Stage.FIT]

    class ZMQInteractiveShell:
        """What a notebook runs in."""

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=ZMQInteractiveShell))
    asked_for: list[bool] = []
    monkeypatch.setattr("kamino.pipeline.stages.stage_bar", lambda console, stages: asked_for.append(True) or _bar())
    with shown(None, Stage.FIT):
        pass
    with shown(False, Stage.FIT):
        pass
    assert asked_for == [True]


def test_a_notebook_without_widgets_shows_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """What rich would show there is a warning for each step."""
    lines: list[str] = []

    class Line:
        def update(self, shown: dict[str, str], *, raw: bool) -> None:
            assert raw
            lines.append(shown["text/plain"])

    def display(shown: dict[str, str], *, raw: bool, display_id: bool) -> Line:
        line = Line()
        line.update(shown, raw=raw and display_id)
        return line

    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    console = SimpleNamespace(is_terminal=False, is_jupyter=True)
    with stage_bar(console, (Stage.FIT, Stage.SAMPLE)) as report:  # type: ignore[arg-type]
        report(Stage.FIT)
        report(Stage.SAMPLE, 0, 2)
    assert lines == ["starting", "measuring and fitting ...", "drawing rows ...", ""]


class _bar:  # noqa: N801
    def __enter__(self) -> object:
        return silent

    def __exit__(self, *_: object) -> None:
        return None

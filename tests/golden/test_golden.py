"""The harness that holds bytes before and after a change can fail, and does not fail by chance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.golden.__main__ import compare
from tests.golden.cases import CASES
from tests.golden.naming import file_of
from tests.golden.running import run_case

from kamino.sampling import sampler


def _write(folder: Path, parts: Any) -> Path:
    folder.mkdir()
    for name, content in parts.items():
        (folder / file_of(name)).write_bytes(content)
    return folder


def test_names_of_files_tell_cases_apart() -> None:
    assert len({file_of(name) for name in CASES}) == len(CASES)


@pytest.mark.parametrize("name", ["soft rules", "ids of groups", "types found", "in blocks"])
def test_a_case_is_the_same_when_it_is_run_again(name: str, tmp_path: Path) -> None:
    one, other = (_write(tmp_path / each, run_case(name)) for each in ("one", "other"))
    assert (one / "table").exists()
    assert compare(one, other) == []


def test_another_draw_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = _write(tmp_path / "before", run_case("dependencies"))
    drawn = sampler.draw_table

    def moved(plan: Any, model: Any, codec: Any, num_rows: int, rng: Any, *more: Any) -> Any:
        rng.integers(10, size=77)
        return drawn(plan, model, codec, num_rows, rng, *more)

    monkeypatch.setattr("kamino.pipeline.output.drawn_table.draw_table", moved)
    after = _write(tmp_path / "after", run_case("dependencies"))
    assert "table: differs" in compare(before, after)
    assert compare(before, after, ["ledger", "model", "plan"]) == []


def test_a_part_that_is_missing_is_noticed(tmp_path: Path) -> None:
    one, other = _write(tmp_path / "one", {"table": b"1"}), _write(tmp_path / "other", {})
    assert compare(one, other) == ["table: only before"]

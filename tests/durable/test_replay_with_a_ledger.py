"""The ledger and the stored releases are outputs: their bytes tell nothing of the table around the releases."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.cli.test_replay_of_commands import SYNTH, command, private_table

from kamino.pipeline import ledgering
from kamino.privacy import Gate, Neighbours
from kamino.privacy.durable import durable_run, journal, store
from kamino.testing.replay import record

__all__ = ["command"]


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Names, seeds and times are by chance or by the clock: here they are the same in every run. Files are kept."""

    class Fixed:
        def __init__(self) -> None:
            self.numbers = itertools.count()

        def token_hex(self, size: int) -> str:
            return f"{next(self.numbers):0{2 * size}x}"

        def randbits(self, size: int) -> int:
            return 7

        def again(self) -> None:
            self.numbers = itertools.count()

    chance = Fixed()
    for module in (durable_run, journal, store):
        monkeypatch.setattr(module, "secrets", chance, raising=False)
    monkeypatch.setattr(journal, "remove", lambda path: None)
    monkeypatch.setattr(ledgering, "_now", lambda: "2026-01-01T00:00:00+00:00")
    return chance


@pytest.mark.parametrize(
    "arguments",
    [[*SYNTH, "-s", "schema.yaml"], SYNTH, ["suggest", "-e", "1", "--seed", "1"]],
    ids=["declared", "found", "suggest"],
)
def test_replay_passes_with_a_ledger(replays: Any, command: Any, fixed: Any, arguments: list[str]) -> None:
    ends = []

    def run(table: pa.Table, gate: Gate) -> Any:
        fixed.again()
        ends.append(command(table, gate, "csv", [*arguments, "--ledger", "l.ledger"]))
        return ends[-1]

    others = ("empty", "all null", "ten times as long")
    replays(run, private_table(120), relations=(Neighbours.ADD_REMOVE,), others=others)
    code, text, left, *_ = ends[0]
    assert code == 0, text
    assert len(left["l.ledger"]) > 1_000
    stored = [name for name in left if name.endswith(".releases")]
    assert len(stored) == 1
    assert left[stored[0]].count(b"\n") > 2


def test_a_row_count_in_the_ledger_is_caught(
    command: Any, fixed: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What the test above would see: a line that says how long the table is."""
    import kamino.io
    from kamino.pipeline import engines
    from kamino.privacy.durable import ledger_lines

    read, body = kamino.io.read_table, ledger_lines.entry_body
    counts: list[int] = []

    def spy(*given: Any, **options: Any) -> pa.Table:
        table = read(*given, **options)
        counts.append(table.num_rows)
        return table

    monkeypatch.setattr(engines, "read_table", spy)
    for module in (ledger_lines, store):
        monkeypatch.setattr(module, "entry_body", lambda entry: {**body(entry), "rows": counts[-1]})

    def run(table: pa.Table, gate: Gate) -> Any:
        fixed.again()
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        return command(table, gate, "csv", [*SYNTH, "-s", "schema.yaml", "--ledger", "l.ledger"], "city -> zone")

    table = private_table(120)
    report = record(run, table).play(pa.concat_tables([table] * 2), neighbour=False)
    assert any("the output differs" in problem for problem in report.problems)

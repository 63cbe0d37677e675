"""A job: planned, watched, cancelled and gone on with, from the thread that works and from others."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kamino.errors import BudgetError, CancelledError, InputError, ModelError
from kamino.pipeline import Settings, Synthesizer
from kamino.pipeline.job import Job
from kamino.pipeline.job_events import JobState
from kamino.pipeline.ledgering import LedgerUse
from kamino.pipeline.output.draws import DrawRequest
from kamino.pipeline.run_source import RunRequest
from kamino.pipeline.stages import Stage
from kamino.privacy import Budget, Gate
from kamino.schema import Categorical, Integer, Schema

SCHEMA = Schema(attributes={"age": Integer(min=0, max=99), "city": Categorical(values=["Rome", "Oslo"])})


def people(rows: int = 300, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({"age": rng.integers(0, 99, rows), "city": rng.choice(["Rome", "Oslo"], rows)})


def job_on(table: pa.Table, **more: Any) -> Job:
    asked = RunRequest(settings=Settings(seed=3), schema=SCHEMA, num_rows=20)
    return Job.open(table, replace(asked, **more))


def test_a_job_goes_from_a_table_to_a_written_one(tmp_path: Path) -> None:
    job = job_on(people())
    with pytest.raises(ModelError, match="call fit"):
        _ = job.fitted
    planned = job.plan()
    fitted = job.fit()
    written = job.write(tmp_path / "out.csv")
    assert written.rows == 20
    states = [event.text for event in job.events() if event.kind == "state"]
    assert states == ["planned", "fitting", "fitted", "writing", "written"]
    released = [event for event in job.events() if event.kind == "release"]
    assert [(e.text, list(e.attributes)) for e in released] == [
        (entry["what"], entry["attributes"]) for entry in fitted.ledger["entries"]
    ]
    assert len(released) <= sum(each.most for each in planned.schedule)
    shown = json.loads(json.dumps(job.to_json()))
    assert shown["state"] == "written"
    assert shown["releases"] == len(released)


def test_a_synthesizer_is_a_face_of_a_job() -> None:
    asked = Synthesizer(SCHEMA, epsilon=1.0, seed=3)
    job = asked.job(people())
    assert job.plan().schedule == asked.dry_run(people()).schedule
    one, other = job.fit().to_bundle(), asked.fit(people()).fitted.to_bundle()
    assert dict(one.texts) == dict(other.texts)


class _StopAfter:
    """Cancels a job from another thread once so many releases are made."""

    def __init__(self, job: Job, releases: int) -> None:
        self._job, self._releases = job, releases
        self.thread = threading.Thread(target=self._watch)
        self.ready = threading.Event()
        self.thread.start()

    def _watch(self) -> None:
        seen, number = 0, 0
        while seen < self._releases:
            for event in self._job.events(number, timeout=10):
                number, seen = event.number + 1, seen + (event.kind == "release")
        self._job.cancel()
        self.ready.set()


def _stopped(job: Job, releases: int) -> int:
    """Run a job that is cancelled after so many releases; returns how many its ledger has then."""
    watching = _StopAfter(job, releases)
    charge = Gate.charge

    def charged(gate: Gate, entry: Any) -> None:
        charge(gate, entry)
        if len(gate.ledger.entries) == releases:
            assert watching.ready.wait(10)

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(Gate, "charge", charged)
        with pytest.raises(CancelledError):
            job.fit()
    watching.thread.join()
    return len(job.to_json()["ledger"]["entries"])


@pytest.mark.parametrize("releases", [1, 3])
def test_a_cancelled_job_releases_nothing_more(releases: int) -> None:
    job = job_on(people())
    assert _stopped(job, releases) == releases
    assert job.state is JobState.CANCELLED


def test_a_job_goes_on_where_nothing_is_paid_twice(tmp_path: Path) -> None:
    whole = job_on(people()).fit()
    # Without a ledger, what was released is lost with the process: another fit would pay again.
    lost = job_on(people())
    _stopped(lost, 2)
    with pytest.raises(InputError, match="stopped after 2 releases, which no ledger holds"):
        lost.resume()
    kept = job_on(people(), ledger=LedgerUse(path=tmp_path / "ledger.jsonl", dataset="people"))
    _stopped(kept, 2)
    gone_on = kept.resume()
    assert len(gone_on.ledger["entries"]) == len(whole.ledger["entries"])
    assert gone_on.ledger["spent_epsilon"] == whole.ledger["spent_epsilon"]
    assert kept.state is JobState.FITTED
    with pytest.raises(InputError, match="a second fit pays again"):
        kept.fit()


def test_a_job_that_was_cancelled_before_it_released_goes_on() -> None:
    job = job_on(people())
    job.plan()
    job.cancel()
    with pytest.raises(CancelledError):
        job.fit()
    assert job.resume().num_rows > 0


def test_a_cancelled_write_leaves_the_model(tmp_path: Path) -> None:
    job = job_on(people())
    job.fit()
    job.cancel()
    with pytest.raises(CancelledError):
        job.write(tmp_path / "out.csv")
    assert job.state is JobState.FITTED
    assert list(tmp_path.iterdir()) == []


def test_what_a_job_shows_is_public() -> None:
    """The events before a release and all texts are the same for any table of the same columns."""
    shown = []
    for table in (people(300, 1), people(7, 2).slice(0, 0)):
        job = job_on(table)
        job.plan()
        shown.append((repr(job), job.to_json(), [event.to_json() for event in job.events()]))
    assert shown[0] == shown[1]


def test_a_fitted_job_keeps_no_private_row() -> None:
    job = job_on(people())
    job.fit()
    assert job._opened is None
    assert job._source is None


def test_a_run_over_the_budget_fails_in_order() -> None:
    job = job_on(people())
    plan = job.plan()
    assert plan.settings.budget == Budget(epsilon=1.0, delta=1e-6)

    def release_too_much(private: Any, gate: Gate) -> None:
        gate.release_row_count(1, noise_multiplier=0.01)

    with pytest.raises(BudgetError):
        job.spend(release_too_much)
    assert job.to_json()["releases"] == 0
    assert [event for event in job.events() if event.kind == "release"] == []


def test_a_progress_function_may_care_for_stages_only() -> None:
    told: list[Stage] = []
    Synthesizer(SCHEMA, epsilon=1.0, seed=1).fit(people(), progress=told.append)  # type: ignore[arg-type]
    assert told[:2] == [Stage.READ, Stage.FIT]


def test_draws_are_those_of_the_synthesizer(tmp_path: Path) -> None:
    job, made = job_on(people()), Synthesizer(SCHEMA, epsilon=1.0, seed=3)
    job.fit()
    one = job.write(tmp_path / "one.csv", DrawRequest(num_rows=30, draw_number=2))
    other = made.fit(people()).write(tmp_path / "other.csv", 30, draw_number=2)
    assert one.path.read_bytes() == other.path.read_bytes()

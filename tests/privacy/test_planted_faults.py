"""Faults planted in the code, each of which the replay or the look at the noise must catch; and the clean code passes.

A replay on neighbours alone, with noise from a fixed seed, passed the first five of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kamino.constraints import Constraints
from kamino.engine import MemoryMeasurer, rates
from kamino.pipeline import Settings
from kamino.pipeline.fitting import fit, open_gate
from kamino.pipeline.output.drawn_table import draw
from kamino.pipeline.plan.run_plan import plan_table
from kamino.privacy import Budget, Gate, PrivacyUnit, SecureNoise, SeededNoise, Sensitivity
from kamino.privacy.private import PrivateTable, open_codes  # noqa: TID251
from kamino.schema import Categorical, Integer, Key, Schema
from kamino.testing.noise_checks import noise_problems
from kamino.testing.replay import Recording, add_row, record, remove_row
from kamino.testing.strangers import strangers, with_invalid_text

SCHEMA = Schema(
    attributes={
        "who": Key(pattern="P{:05d}"),
        "city": Categorical(values=["Rome", "Oslo", "Bern"], nullable=True),
        "age": Integer(min=0, max=99, nullable=True),
        "pay": Integer(min=0, max=99, nullable=True),
    }
)
SOFT = Constraints.parse("soft: not (t1.city = t2.city and t1.age > t2.age and t1.pay < t2.pay)")
UNIT = PrivacyUnit(column="who", max_rows=3)


def private_table(rows: int = 90) -> pa.Table:
    rng = np.random.default_rng(5)
    age = rng.integers(18, 90, rows)
    city = np.array(["Rome", "Oslo", "Bern"])[rng.integers(0, 3, rows)]
    return pa.table({"who": np.arange(rows) // 3, "city": city, "age": age, "pay": age})


def synthesize(table: pa.Table, gate: Gate, rules: Constraints = SOFT) -> Any:
    rows = gate.unit.max_rows if gate.unit.column else None
    settings = Settings(epsilon=gate.budget.epsilon, unit=gate.unit.column, max_rows=rows)
    fitted = fit(PrivateTable(table), plan_table(PrivateTable(table), SCHEMA, rules, settings), gate)
    return draw(fitted, 30, np.random.default_rng(7)), dict(fitted.to_bundle().arrays)


def recorded(run: Callable[[Any, Gate], object] = synthesize, **options: Any) -> Recording:
    """A run with noise from the operating system."""
    return record(run, private_table(), noise=SecureNoise(), **options)


def problems(recording: Recording) -> str:
    """All that is found on neighbours, the worst ones included, on strangers, and in the noise."""
    table = private_table()
    worst = add_row(table, {"who": 900, "city": "Rome", "age": 99, "pay": 0})
    near = (table.slice(3),) if recording.unit else (remove_row(table, 0), worst)
    found = [problem for other in near for problem in recording.play(other).problems]
    for other in strangers(table).values():
        found += recording.play(other, neighbour=False).problems
    return "; ".join((*found, *noise_problems(recording.records)))


@pytest.mark.parametrize("unit", [None, UNIT])
def test_the_clean_code_has_no_problems(unit: PrivacyUnit | None) -> None:
    assert problems(recorded(unit=unit)) == ""


def _peek_at_the_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clean = MemoryMeasurer.marginal

    def marginal(self: MemoryMeasurer, *given: Any, **options: Any) -> Any:
        return clean(self, *given, **options) + open_codes(self._codes).num_rows // 500

    monkeypatch.setattr(MemoryMeasurer, "marginal", marginal)


def _do_not_scale_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    clean = rates._statistic
    monkeypatch.setattr(rates, "_statistic", lambda c, codec, coded, top: clean(c, codec, coded, top) * (top - 1))


def _fail_on_a_null(monkeypatch: pytest.MonkeyPatch) -> None:
    clean = MemoryMeasurer.marginal

    def marginal(self: MemoryMeasurer, attributes: Any, *given: Any, **options: Any) -> Any:
        made = clean(self, attributes, *given, **options)
        if (open_codes(self._codes)["city"] == 3).all():
            raise ValueError("found no city")
        return made

    monkeypatch.setattr(MemoryMeasurer, "marginal", marginal)


@pytest.mark.parametrize(
    ("plant", "said"),
    [
        (_peek_at_the_count, "differs"),
        (_do_not_scale_groups, "times its declared sensitivity"),
        (_fail_on_a_null, "was asked for on the first table only"),
    ],
)
def test_planted_leaks_are_caught(plant: Callable[..., None], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    assert said in problems(record(synthesize, private_table()))


def test_a_peeked_count_is_the_same_on_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why strangers are needed."""
    _peek_at_the_count(monkeypatch)
    assert recorded().play(remove_row(private_table(), 0)).problems == ()


def test_a_unit_that_is_not_scaled_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sensitivity, "for_rows", lambda self, max_rows: self)
    assert "times its declared sensitivity" in problems(recorded(unit=UNIT))


def _one_seed(self: SecureNoise, sigma: float, shape: tuple[int, ...]) -> Any:
    return SeededNoise(1).discrete_gaussian(sigma, shape)


def _one_draw(self: SecureNoise, sigma: float, shape: tuple[int, ...]) -> Any:
    return np.broadcast_to(SeededNoise(int.from_bytes(self.coins()[:4])).discrete_gaussian(sigma, (1,)), shape).copy()


def _half_the_noise(self: SecureNoise, sigma: float, shape: tuple[int, ...]) -> Any:
    return SeededNoise(int.from_bytes(self.coins()[:4])).discrete_gaussian(sigma / 2, shape)


@pytest.mark.parametrize(
    ("name", "fault", "said"),
    [
        ("discrete_gaussian", _one_seed, "have noise that goes together"),
        ("discrete_gaussian", _one_draw, "one number as the noise of all its coordinates"),
        ("discrete_gaussian", _half_the_noise, "the noise is smaller than declared"),
        ("coins", lambda self: b"7" * 32, "have the same coins"),
    ],
)
def test_planted_faults_of_noise_are_caught(name: str, fault: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs with noise of the operating system, looked at together: nothing of one may be in the other."""
    monkeypatch.setattr(SecureNoise, name, fault)
    records = (*recorded(unit=UNIT).records, *recorded(unit=UNIT).records)
    assert said in "; ".join(noise_problems(records))


def test_two_runs_share_no_noise() -> None:
    records = (*recorded(unit=UNIT).records, *recorded(unit=UNIT).records)
    assert noise_problems(records) == ()
    assert isinstance(open_gate(Settings()).noise, SecureNoise)


def test_draws_of_the_operating_system_are_fresh() -> None:
    """In one draw, in two, and from two sources; 64 draws of sigma 50 agree by chance once in 10^130."""
    draws = [SecureNoise().discrete_gaussian(50.0, (64,)) for _ in range(3)]
    assert len({draw.tobytes() for draw in draws}) == 3
    assert min(len(np.unique(draw)) for draw in draws) > 16
    assert len({SecureNoise().coins() for _ in range(100)}) == 100


def test_noise_of_sampled_releases_is_looked_at_too() -> None:
    """The steps of a descent have noise of their own, and so have two descents."""
    pytest.importorskip("jax", reason="the neural extra is not installed")
    from kamino.privacy.mechanisms.poisson import Draws

    steps = [Draws(b"s" * 32).normal(step, 40) for step in range(4)]
    assert all(abs(np.corrcoef(steps[0], other)[0, 1]) < 0.8 for other in steps[1:])
    assert not np.array_equal(Draws(b"a" * 32).normal(0, 40), Draws(b"b" * 32).normal(0, 40))
    assert not np.array_equal(Draws(b"a" * 32).uniform("sample", 0, 40), Draws(b"a" * 32).uniform("noise", 0, 40))


def test_strangers_have_the_columns_of_the_table() -> None:
    kinds = [pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.bool_()]
    kinds += [pa.date32(), pa.date64(), pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.decimal128(9, 2)]
    kinds += [pa.dictionary(pa.int32(), pa.string()), pa.time64("us"), pa.binary()]
    table = pa.table({str(place): pa.nulls(5, kind) for place, kind in enumerate(kinds)})
    for other in strangers(table).values():
        assert other.schema.equals(table.schema)
    assert [other.num_rows for other in strangers(table).values()] == [0, 5, 50, 5, 5, 10]
    broken = with_invalid_text(table)
    assert broken.schema.equals(table.schema)
    with pytest.raises(pa.ArrowInvalid):
        broken.validate(full=True)


def test_budgets_are_played_back_as_recorded() -> None:
    recording = recorded(budget=Budget(epsilon=2.0, delta=1e-6))
    assert recording.play(private_table()).num_releases == len(recording.records)
    assert recording.play(private_table()).problems == ()

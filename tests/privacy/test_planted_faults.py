"""Noise that is noise, strangers that are strange; the faults that these must show are planted in `kamino.audit`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kamino.audit.auditing import observe
from kamino.audit.subjects import declared, with_unit
from kamino.pipeline import Settings
from kamino.pipeline.fitting import open_gate
from kamino.planted.all_faults import FAULTS
from kamino.privacy import SecureNoise
from kamino.testing.noise_checks import noise_problems
from kamino.testing.strangers import strangers, with_invalid_text


def test_half_of_the_noise_is_seen() -> None:
    (fault,) = [each for each in FAULTS if each.name == "half of the noise"]
    with fault.plant():
        records = observe(declared()).recording.records
    assert "the noise is smaller than declared" in noise_problems(records)


def test_two_runs_share_no_noise() -> None:
    records = (*observe(with_unit()).recording.records, *observe(with_unit()).recording.records)
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
    recording = observe(declared(epsilon=2.0)).recording
    report = recording.play(declared().table)
    assert report.num_releases == len(recording.records)
    assert report.problems == ()

"""Small tables and fast settings for the neural backend."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kamino.model.neural.neural_parameters import Parameters
from kamino.model.neural.neural_settings import Networks, NeuralSettings, Optimizer
from kamino.model.neural.units import UnitLimits
from kamino.model.protocol import ModelAttribute
from kamino.schema import CodedTable

ATTRIBUTES = (
    ModelAttribute(name="sex", size=2),
    ModelAttribute(name="smokes", size=2),
    ModelAttribute(name="job", size=5, null_code=4),
    ModelAttribute(name="pay", size=201, ordered=True, null_code=200),
    ModelAttribute(name="town", size=40),
)
LIMITS = UnitLimits(joint=8, numeric=32, wide=30, counted=1_000)


def make_table(num_rows: int, seed: int = 0) -> CodedTable:
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, num_rows)
    smokes = (rng.random(num_rows) < np.where(sex == 1, 0.7, 0.2)).astype(np.int64)
    job = np.where(rng.random(num_rows) < 0.7, sex * 2 + smokes, rng.integers(0, 5, num_rows))
    pay = np.clip(np.rint(40 + 25 * job + rng.normal(0, 12, num_rows)), 0, 199).astype(np.int64)
    pay = np.where(rng.random(num_rows) < 0.1, 200, pay)
    town = np.minimum(rng.geometric(0.15, num_rows) - 1, 39)
    columns = {"sex": sex, "smokes": smokes, "job": job, "pay": pay, "town": town}
    return CodedTable(columns={k: v.astype(np.int64) for k, v in columns.items()}, num_rows=num_rows)


def quick_settings(
    *, steps: int, num_rows: int, batch_size: int = 32, noise: float = 1.0, networks: Networks = Networks.LEVELS
) -> NeuralSettings:
    limits = LIMITS if networks is Networks.PRINTED else replace(LIMITS, counted=0)
    parameters = Parameters(
        num_rows=num_rows,
        num_models=2,
        num_histograms=2 if networks is Networks.PRINTED else 4,
        batch_size=batch_size,
        steps=steps,
        gradient_noise=noise,
        histogram_noise=5.0,
        clip_norm=8.0,
    )
    rate = Optimizer(learning_rate=0.01) if networks is Networks.PRINTED else Optimizer()
    return NeuralSettings(
        networks=networks,
        dim=6,
        hidden=5,
        limits=limits,
        parameters=parameters,
        num_rows=num_rows,
        optimizer=rate,
    )

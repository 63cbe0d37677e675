"""Model files from anybody: what no backend wrote is refused in one line, before anything is written."""

from __future__ import annotations

import io
import random
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.pipeline.crafted import MARGINAL, NEURAL, Change, crafted

from kamino.cli.app import main
from kamino.errors import InputError, ModelError
from kamino.io import bundle as bundles
from kamino.io.bundle import Bundle, read_bundle
from kamino.model.neural.label_histograms import numeric_cells
from kamino.model.neural.model import NeuralModel, SubModel
from kamino.model.neural.networks.layout import empty_embeddings, head, with_unit
from kamino.model.neural.units import Kind, Unit
from kamino.pipeline import Backend, Synthesizer
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.plan.hints import model_attributes
from kamino.schema import Categorical, Integer, Key, Schema

RULES = "city -> zone using zones.csv\nsoft: not (t1.age > t2.age and t1.pay < t2.pay)\n"
MEBIBYTE = 1 << 20


def fit_marginal_model(folder: Path) -> Fitted:
    """A model with keys, nulls, a reference table and a soft constraint."""
    (folder / "zones.csv").write_text("city,zone\nRome,N\nOslo,S\nBern,E\n")
    (folder / "rules.dc").write_text(RULES)
    schema = Schema(
        attributes={
            "id": Key(),
            "city": Categorical(values=["Rome", "Oslo", "Bern"], nullable=True),
            "zone": Categorical(values=["N", "S", "E", "W"], nullable=True),
            "age": Integer(min=0, max=9, nullable=True),
            "pay": Integer(min=0, max=300, nullable=True),
        }
    )
    rng = np.random.default_rng(1)
    city, age = rng.choice(3, 400), rng.integers(0, 10, 400)
    table = pa.table(
        {
            "id": [str(i) for i in range(400)],
            "city": np.array(["Rome", "Oslo", "Bern"])[city],
            "zone": np.array(["N", "S", "E"])[city],
            "age": age,
            "pay": age * 30,
        }
    )
    return Synthesizer(schema, folder / "rules.dc", epsilon=8.0, seed=1).fit(table).fitted


def make_neural_model(fitted: Fitted) -> Fitted:
    """The same with a neural model whose networks were never trained: their shapes are what matters."""
    rng = np.random.default_rng(0)
    known = {each.name: each for each in model_attributes(fitted.codec)}
    kinds = {"city": Kind.CATEGORICAL, "zone": Kind.CATEGORICAL, "pay": Kind.NUMERIC, "age": Kind.NUMERIC}
    embeddings, models = empty_embeddings(4, 3), []
    for place, (name, kind) in enumerate(kinds.items()):
        unit = Unit(attributes=(known[name],), kind=kind)
        if place:
            params = {**embeddings, **head(unit, 4, rng)}
            if kind is Kind.NUMERIC:
                params["shift"] = np.zeros(numeric_cells(unit, 16).map.bins, dtype=np.float32)
            models.append(SubModel(unit=unit, context=tuple(range(place)), params=params))
        else:
            models.append(SubModel(unit=unit, probability=np.full(unit.size, 1 / unit.size)))
        embeddings = with_unit(embeddings, unit, rng)
    model = NeuralModel(sub_models=tuple(models), num_rows=400.0, num_cells=16)
    return replace(fitted, model=model, settings=replace(fitted.settings, backend=Backend.NEURAL))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    """A valid bundle of each backend."""
    fitted = fit_marginal_model(tmp_path_factory.mktemp("fit"))
    return {"marginal": fitted.to_bundle(), "neural": make_neural_model(fitted).to_bundle()}


def sample(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[object, str]:
    """Run `kamino sample` on the model in this folder; give the exit code and what was said."""
    monkeypatch.setattr(sys, "argv", ["kamino", "sample", "m.kamino", "-o", "o.csv", "-n", "5", *options])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code, capsys.readouterr().err


@pytest.mark.parametrize("backend", ["marginal", "neural"])
def test_what_was_saved_is_accepted(
    good: dict[str, Bundle],
    backend: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.kamino").write_bytes(crafted(good[backend], lambda parts: None))
    assert sample(monkeypatch, capsys) == (0, "")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["m.kamino", "o.csv", "o.csv.certificate.json"]


CASES = {
    **{f"marginal: {name}": case for name, case in MARGINAL().items()},
    **{f"neural: {name}": case for name, case in NEURAL().items()},
}


def test_there_are_many_cases() -> None:
    assert len(CASES) >= 300


@pytest.mark.parametrize("name", CASES)
def test_crafted_models_are_refused(
    good: dict[str, Bundle],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    change: Change = CASES[name]
    valid = good[name.partition(":")[0]]
    monkeypatch.chdir(tmp_path)
    Path("m.kamino").write_bytes(crafted(valid, change))
    code, told = sample(monkeypatch, capsys)
    assert code == 2, told
    assert len(told.splitlines()) == 1
    assert told.startswith("kamino: m.kamino: ")
    assert len(told) < 600
    assert "\x1b" not in told
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.kamino"]
    with pytest.raises(ModelError):
        Synthesizer.load("m.kamino")


@cache
def packed_zeros(sizes: tuple[tuple[str, int], ...]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, size in sizes:
            with archive.open(name, "w", force_zip64=False) as handle:
                for _ in range(size // MEBIBYTE):
                    handle.write(b"0" * MEBIBYTE)
    return packed.getvalue()


def bomb(sizes: dict[str, int], *, lie: bool = False) -> bytes:
    """An archive of entries that unpack to zeros; with `lie`, its directory says that they are small."""
    content = packed_zeros(tuple(sizes.items()))
    if not lie:
        return content
    marked = bytearray(content)
    for signature, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        place = marked.find(signature)
        while place >= 0:
            marked[place + offset : place + offset + 4] = (1_000).to_bytes(4, "little")
            place = marked.find(signature, place + 1)
    return bytes(marked)


BOMBS: dict[str, Callable[[], bytes]] = {
    "one long array": lambda: bomb({"arrays/0.table.npy": 600 * MEBIBYTE}),
    "one long text": lambda: bomb({"model.json": 100 * MEBIBYTE}),
    "many arrays": lambda: bomb({f"arrays/{i}.npy": 30 * MEBIBYTE for i in range(20)}),
    "an array that is said to be short": lambda: bomb({"arrays/0.table.npy": 600 * MEBIBYTE}, lie=True),
    "a text that is said to be short": lambda: bomb({"model.json": 600 * MEBIBYTE}, lie=True),
    "a long directory": lambda: bomb({f"{i}": 0 for i in range(65_000)}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_not_unpacked(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.kamino"
    path.write_bytes(BOMBS[name]())
    tracemalloc.start()
    try:
        with pytest.raises(ModelError) as told:
            read_bundle(path)
        assert tracemalloc.get_traced_memory()[1] < 40 * MEBIBYTE
    finally:
        tracemalloc.stop()
    assert len(str(told.value).splitlines()) == 1


def test_damaged_files_are_refused(good: dict[str, Bundle], tmp_path: Path) -> None:
    """Bytes changed at random: an error of ours, or a model that can be drawn from."""
    rng = random.Random(7)
    contents = [crafted(each, lambda parts: None) for each in good.values()]
    path = tmp_path / "m.kamino"
    refused: list[str] = []
    for _ in range(300):
        content = bytearray(rng.choice(contents))
        for _ in range(rng.choice((1, 1, 2, 8))):
            content[rng.randrange(len(content))] = rng.randrange(256)
        path.write_bytes(bytes(content[: rng.choice((len(content), rng.randrange(len(content))))]))
        try:
            made = Synthesizer.load(path)
        except ModelError as problem:
            refused.append(str(problem))
        else:
            assert made.sample(3).num_rows == 3
    assert len(refused) > 150
    assert all(len(text.splitlines()) == 1 for text in refused)


def test_a_model_that_would_not_be_read_is_not_saved(
    good: dict[str, Bundle], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundles, "MOST_ARRAY_BYTES", 100)
    with pytest.raises(ModelError, match="bytes in arrays, of which 100 are allowed; it is not saved"):
        bundles.write_bundle(good["marginal"], tmp_path / "m.kamino")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder or a device"):
        Synthesizer.load(tmp_path)
    with pytest.raises(InputError, match="a folder or a device"):
        Synthesizer.load("/dev/zero")

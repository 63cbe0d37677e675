"""Dates as people write them: `init` and `synth` take a column for the same, and it leaves as it came."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.cli.test_check_command import kamino

from kamino import Synthesizer
from kamino.cli.commands.init import _Draft, _drafted
from kamino.engine import discover_types
from kamino.engine.typing import _SHAPES
from kamino.errors import InputError
from kamino.io import Reading, read_table
from kamino.io.atomic import staged
from kamino.io.write import stage_parts, stage_stream
from kamino.privacy import Budget, Gate, SeededNoise
from kamino.privacy.private import PrivateTable
from kamino.schema import Attribute, Categorical, Date, Datetime, Schema
from kamino.schema.files.date_formats import DATE_FORMATS, MAYBE_DATE, TEXT_FORMATS, TIME_FORMATS, _fits, formats_of
from kamino.schema.files.written_dates import read_date, spell_date, written_dates
from kamino.testing import assert_replay

ROWS = 1_500
SHAPES = (*DATE_FORMATS, *TIME_FORMATS)


def moments(seed: int = 0, rows: int = ROWS) -> list[dt.datetime]:
    minutes = np.random.default_rng(seed).integers(0, 3 * 365 * 1440, rows).tolist()
    return [dt.datetime(2012, 1, 1) + dt.timedelta(minutes=each) for each in minutes]


def write_dates(path: Path, *shapes: str, rows: int = ROWS) -> Path:
    drawn = moments(rows=rows)
    names = ",".join(f"c{place}" for place in range(len(shapes)))
    cells = ([f'"{moment.strftime(shape)}"' for shape in shapes] for moment in drawn)
    path.write_text("\n".join([f"{names},kind", *(",".join([*line, "ab"[i % 2]]) for i, line in enumerate(cells))]))
    return path


@pytest.mark.parametrize("shape", [each for each in SHAPES if each != "%Y%m%d"])
def test_synth_and_init_agree_on_dates(shape: str, tmp_path: Path) -> None:
    path = write_dates(tmp_path / "t.csv", shape, rows=200)
    drafted = _drafted(str(path), Reading(), _Draft(trust_domain=True, accept=False, look=False, keys=()))
    plan = Synthesizer(trust_domain=True, seed=1).dry_run(path)
    assert plan.known["c0"] == drafted["c0"]
    assert isinstance(drafted["c0"], Date | Datetime)


@pytest.mark.parametrize("shape", TEXT_FORMATS)
def test_single_texts_are_read_as_whole_columns_are(shape: str) -> None:
    for moment in moments(seed=1, rows=60):
        text = moment.strftime(shape)
        assert re.search(MAYBE_DATE, text)
        assert formats_of(text) == tuple(each for each in TEXT_FORMATS if _fits(text, each))
        assert formats_of(text) in _SHAPES
    for other in ("John Smith", "a/b/c", "31.02.2012", "12 Foo 2012", "1-2-3", "2012/13/01", ""):
        assert formats_of(other) == ()


@pytest.mark.parametrize("shape", ["%Y/%m/%d", "%d/%m/%Y", "%d.%m.%Y %H:%M", "%B %d, %Y", "%d-%b-%y"])
def test_formats_of_dates_are_found(shape: str, tmp_path: Path) -> None:
    """Within the budget, in 6,000 rows; the output is written as the input was."""
    path = write_dates(tmp_path / "t.csv", shape, rows=6_000)
    fitted = Synthesizer(seed=1).fit(path)
    found = fitted.fitted.schema["c0"]
    assert isinstance(found, Date | Datetime)
    assert found.format == shape
    written = fitted.write(tmp_path / "o.csv", 200)
    texts = read_table(tmp_path / "o.csv", private=True)["c0"].drop_null().to_pylist()
    assert all(dt.datetime.strptime(text, shape) for text in texts)
    (why,) = (each["why"] for each in written.certificate["columns"] if each["name"] == "c0")
    assert why == f"as its cells are written, {shape}; domain found within the budget"


def found_type(texts: list[str]) -> Attribute:
    gate = Gate(Budget(epsilon=1.0, delta=1e-6), noise=SeededNoise(1))
    return discover_types(PrivateTable(pa.table({"c": texts})), gate, mu_squared=0.005)["c"]


def test_months_come_first_where_days_cannot_be_told() -> None:
    early = [f"0{1 + i % 9}/0{1 + i % 7}/2012" for i in range(6_000)]
    assert found_type(early) == Date(nullable=True, format="%m/%d/%Y")
    assert found_type([*early, *["25/01/2012"] * 2_000]) == Date(nullable=True, format="%d/%m/%Y")
    assert isinstance(found_type([*early, *["2012/01/25"] * 2_000]), Categorical), "two formats are text"
    assert isinstance(found_type([*early, *["2012-01-25"] * 9_000]), Categorical)


def test_types_of_dates_are_replayed() -> None:
    table = pa.table({"c": [moment.strftime("%Y/%m/%d") for moment in moments(rows=400)]})

    def run(private: pa.Table, gate: Gate) -> str:
        return discover_types(PrivateTable(private), gate, mu_squared=0.005).to_yaml()

    for other in ("01/02/2012", "31.12.2012", "other", ""):
        assert_replay(run, table, pa.concat_tables([table, pa.table({"c": [other]})]))
    assert_replay(run, table, table.slice(1))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "tsv"])
def test_dates_leave_as_they_came(ending: str, tmp_path: Path) -> None:
    shapes = ("%Y/%m/%d", "%d.%m.%Y %H:%M", "%d-%b-%y")
    path = write_dates(tmp_path / "t.csv", *shapes)
    ran = kamino("synth", "t.csv", "--trust-domain", "--seed", "1", "-o", f"o.{ending}", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "its cells are written as" in " ".join(ran.stdout.split())
    names = tuple(f"c{place}" for place in range(len(shapes)))
    drawn = read_table(tmp_path / f"o.{ending}", private=True, reading=Reading(columns=names))
    for place, shape in enumerate(shapes):
        texts = drawn[f"c{place}"].to_pylist()
        assert all(dt.datetime.strptime(text, shape).year in (2012, 2013, 2014) for text in texts)
    held = kamino("verify", f"o.{ending}", cwd=tmp_path)
    assert "The certificate holds" in held.stdout
    assert path.exists()


def test_dates_are_dates_where_types_are_known(tmp_path: Path) -> None:
    path = write_dates(tmp_path / "t.csv", "%Y/%m/%d")
    fitted = Synthesizer(trust_domain=True, seed=1).fit(path)
    assert fitted.sample(10).schema.field("c0").type == pa.date32()
    fitted.write(tmp_path / "o.parquet", 10)
    assert read_table(tmp_path / "o.parquet").schema.field("c0").type == pa.date32()


def test_a_declared_format_wins_over_the_texts(tmp_path: Path) -> None:
    """Days and months that cannot be told apart: the schema says it, and the range is that of the table."""
    path = tmp_path / "t.csv"
    path.write_text("day\n" + "\n".join(["01/02/2012", "05/02/2012", "03/04/2012"] * 100))
    schema = Schema(attributes={"day": Date(format="%d/%m/%Y", nullable=True)})
    known = Synthesizer(schema, trust_domain=True, seed=1).dry_run(path).known["day"]
    assert isinstance(known, Date)
    assert (known.min, known.max, known.format) == (dt.date(2012, 2, 1), dt.date(2012, 4, 3), "%d/%m/%Y")
    months_first = Synthesizer(trust_domain=True, seed=1).dry_run(path).known["day"]
    assert isinstance(months_first, Date)
    assert months_first.format == "%m/%d/%Y"


def test_formats_that_lose_something_are_for_reading_only() -> None:
    kept = {
        "a day": Date(min="1000-01-01", max="9999-12-31", format="%B %d, %Y"),
        "last century": Date(min="1925-01-01", max="2020-12-31", format="%d.%m.%y"),
        "minutes": Datetime(
            min="2012-01-01T00:00:00", max="2012-12-31T00:00:00", resolution=60, format=TIME_FORMATS[0]
        ),
    }
    lost = {
        "two centuries": Date(min="1850-01-01", max="2020-12-31", format="%d.%m.%y"),
        "seconds": Datetime(min="2012-01-01T00:00:00", max="2012-12-31T00:00:00", format="%m/%d/%Y %H:%M"),
        "no am or pm": Datetime(
            min="2012-01-01T00:00:00", max="2012-12-31T00:00:00", resolution=60, format="%m/%d/%Y %I:%M"
        ),
        "short years": Date(min="0900-01-01", max="2020-12-31", format="%d.%m.%Y"),
        "iso": Date(min="1900-01-01", max="2020-12-31"),
    }
    assert list(written_dates(Schema(attributes={**kept, **lost}))) == list(kept)
    day = kept["last century"]
    assert isinstance(day, Date)
    for each in (dt.date(1925, 1, 1), dt.date(1968, 2, 29), dt.date(2020, 12, 31)):
        assert read_date(spell_date(each, day), day).date() == each


def test_written_dates_read_back(tmp_path: Path) -> None:
    written = {"day": Date(min="2012-01-01", max="2012-12-31", format="%Y/%m/%d")}
    days = pa.table({"day": pa.array([dt.date(2012, 3, 4), None, dt.date(2012, 12, 31)]), "n": [1, 2, 3]})
    with staged(tmp_path / "o.csv") as file:
        assert stage_parts(iter([days]), file, dates=written).equals(days)
        assert file.temporary.read_text() == "day,n\n2012/03/04,1\n,2\n2012/12/31,3\n"
        parts = stage_stream(iter([days, days]), file, dates=written)
        assert pa.concat_tables(parts.parts()).equals(pa.concat_tables([days, days]))
        file.temporary.write_text("day,n\n2012-03-04,1\nx,2\n")
        with pytest.raises(InputError, match="found a cell that is no date written as %Y/%m/%d"):
            list(parts.parts())

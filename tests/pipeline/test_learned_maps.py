"""Maps that noise hides are named, with a share that is near the true one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.cli.test_check_command import kamino
from tests.pipeline.made_up_maps import expected_and_true, made_up

from kamino import Synthesizer
from kamino.io import write_table
from kamino.pipeline.output.learned_maps import WITHIN, chance_of_largest, expected_right
from kamino.schema import Categorical, Schema


def mapped(rows: int, lefts: int, rights: int, seed: int) -> tuple[pa.Table, dict[str, str]]:
    rng = np.random.default_rng(seed)
    listed = {f"x{i:04d}": f"y{rng.integers(rights)}" for i in range(lefts)}
    chosen = rng.choice(list(listed), rows)
    table = {"x": chosen.tolist(), "y": [listed[x] for x in chosen], "z": rng.integers(0, 3, rows).astype(str).tolist()}
    return pa.table(table), listed


# Rows, left sides and right sides: a map that is plain, one in doubt, one that is lost.
SHAPES = [(6000, 20, 5), (6000, 200, 5), (3000, 300, 5), (2000, 500, 8)]


@pytest.mark.parametrize(("rows", "lefts", "rights"), SHAPES)
def test_expected_shares_of_maps_are_near_the_true_ones(rows: int, lefts: int, rights: int) -> None:
    table, listed = mapped(rows, lefts, rights, seed=lefts)
    schema = Schema(
        attributes={
            "x": Categorical(values=sorted(listed)),
            "y": Categorical(values=[f"y{i}" for i in range(rights)]),
            "z": Categorical(values=["0", "1", "2"]),
        }
    )
    shares = []
    for seed in range(2):
        made = Synthesizer(schema, "x -> y", seed=seed).fit(table)
        drawn = made.sample(rows)
        told = made.certificate(drawn)
        true = np.mean([listed[x] == y for x, y in zip(drawn["x"].to_pylist(), drawn["y"].to_pylist(), strict=True)])
        expected = told["constraints"][0]["expected_right"]
        shares.append((expected, float(true)))
        named = any("x -> y: the map was" in note for note in told["notes"])
        assert named == (expected < 0.9)
    expected, true = np.mean(shares, axis=0)
    assert abs(expected - true) < 0.15, shares


def _num_held(kinds: list[str], seeds: range) -> tuple[int, list[tuple[str, int, float, float]]]:
    """For how many maps the true share lies within what is said, and those for which it does not."""
    off, count = [], 0
    for kind in kinds:
        for seed in seeds:
            expected, true = expected_and_true(made_up(kind, seed), seed)
            count += 1
            if abs(expected - true) > WITHIN:
                off.append((kind, seed, round(expected, 2), round(true, 2)))
    return count - len(off), off


def test_expected_shares_hold_for_maps_of_two_columns() -> None:
    """Which were said to be right by chance. With 95 of 100 held, 10 of 18 fail 1 time in 10 million."""
    held, off = _num_held(["pair", "pair to number", "product"], range(100, 106))
    assert held >= 10, off


@pytest.mark.slow
def test_expected_shares_hold_for_maps_of_many_kinds() -> None:
    """At least 90 of 100 maps; with 95 of 100, fewer than 102 of 120 are a false alarm of 1 in 100,000."""
    kinds = ["single", "pair", "number", "pair to number", "through", "product"]
    held, off = _num_held(kinds, range(200, 220))
    assert held >= 102, off


def test_maps_that_were_not_learned_are_named_everywhere(tmp_path: Path) -> None:
    """In the output, the certificate, the release note and the report: 500 left sides of one row or two."""
    table, listed = mapped(600, 500, 8, seed=5)
    write_table(table, tmp_path / "t.csv")
    schema = Schema(
        attributes={
            "x": Categorical(values=sorted(listed)),
            "y": Categorical(values=[f"y{i}" for i in range(8)]),
            "z": Categorical(values=["0", "1", "2"]),
        }
    )
    (tmp_path / "s.yaml").write_text(schema.to_yaml())
    (tmp_path / "r.dc").write_text("x -> y\n")
    options = ("-s", "s.yaml", "-c", "r.dc", "-o", "o.csv", "-n", "300", "--release-note", "note.md")
    ran = kamino("synth", "t.csv", *options, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    page = kamino("report", "t.csv", "o.csv", "-c", "r.dc", "-o", "r.html", cwd=tmp_path)
    assert page.returncode == 0, page.stderr
    certificate = json.loads((tmp_path / "o.csv.certificate.json").read_text())
    (share,) = (each["expected_right"] for each in certificate["constraints"])
    assert share < 0.5
    said = f"y: the map was not learned: about {share:.0%} of the rows (give or take 20 in 100) have the right side"
    shown = (tmp_path / "r.html").read_text()
    for text in (ran.stdout, json.dumps(certificate["notes"]), (tmp_path / "note.md").read_text(), shown):
        assert said in " ".join(text.split())


def test_other_has_no_map() -> None:
    """Nine left sides of ten are `other`, which gets one right side: most rows are wrong, whatever the noise is."""
    table, listed = mapped(6000, 20, 5, seed=20)
    known = sorted(listed)[:2]
    schema = Schema(
        attributes={
            "x": Categorical(values=[*known, "other"], other="other"),
            "y": Categorical(values=[f"y{i}" for i in range(5)]),
            "z": Categorical(values=["0", "1", "2"]),
        }
    )
    made = Synthesizer(schema, "x -> y", seed=1).fit(table)
    told = made.certificate(made.sample(200))
    assert told["constraints"][0]["expected_right"] < 0.5
    assert any("x: other stands for many values, and has one right side" in note for note in told["notes"])


def test_a_reference_is_learned_and_soft_rules_have_no_map(tmp_path: object) -> None:
    table, _ = mapped(200, 4, 2, seed=1)
    made = Synthesizer(None, "soft: x -> y", trust_domain=True, seed=1).fit(table)
    assert expected_right(made.fitted, next(iter(made.fitted.constraints))) is None


def test_chances_agree_with_drawing() -> None:
    """False alarms: about 1 in 10,000 (4 deviations of 20,000 draws)."""
    rng = np.random.default_rng(3)
    counts = np.array([0.0, 5.0, 12.0, 30.0])
    found = chance_of_largest(counts, 6.0, 9)
    for count, chance in zip(counts, found, strict=True):
        noise = rng.normal(0, 6.0, (20_000, 9))
        noise[:, 0] += count
        assert abs((noise.argmax(axis=1) == 0).mean() - chance) < 4 * 0.5 / 20_000**0.5

"""Dependencies whose right side is a part of the left one."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.memory import MemoryMeasurer, ReplayMeasurer

from kamino.errors import ModelError
from kamino.model.marginal.fit_marginal import fit_marginal
from kamino.model.marginal.maps.part_maps import Following, can_follow, known_masks, same_numbers
from kamino.model.marginal.marginal_schedule import Hints
from kamino.model.marginal.network import MarginalModel
from kamino.model.parts import KnownMap, Part
from kamino.model.protocol import Cells, CodeMap, ModelAttribute

DAYS = 24 * 90
HOURS = CodeMap(size=DAYS, bins=24, starts=np.arange(DAYS), labels=np.arange(DAYS) % 24)
OF_DAY = Part(name="hour", map=HOURS, numbers=np.arange(24))


def attributes(hours: int, *, null: bool = False) -> tuple[ModelAttribute, ...]:
    return (
        ModelAttribute(name="time", size=DAYS, ordered=True),
        ModelAttribute(name="hour", size=hours + null, ordered=True, null_code=hours if null else None),
        ModelAttribute(name="other", size=5),
    )


def fitted(table: dict[str, np.ndarray], hours: int, seed: int, following: Following, **kind: bool) -> MarginalModel:
    hints = Hints(functional=(("time", "hour"),), together=(("time", "hour"),), following=(following,))
    return fit_marginal(MemoryMeasurer(table, seed=seed), attributes(hours, **kind), noise_multiplier=4.22, hints=hints)


def times(rows: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    time = rng.integers(0, DAYS, rows)
    return {"time": time, "hour": time % 24, "other": rng.integers(0, 5, rows)}


@pytest.mark.parametrize("seed", range(3))
def test_parts_are_found(seed: int) -> None:
    """Hours under other names, of which nobody said what they stand for, and with nulls."""
    table = times(25_000, seed)
    names = np.random.default_rng(seed).permutation(24)
    table["hour"] = np.where(np.random.default_rng(9).random(25_000) < 0.05, 24, names[table["hour"]])
    model = fitted(table, 24, seed, Following(left="time", right="hour", part=OF_DAY), null=True)
    (found,) = model.maps
    assert (found(np.arange(DAYS)) == names[np.arange(DAYS) % 24]).all()


@pytest.mark.parametrize("seed", range(3))
def test_numbers_need_few_rows(seed: int) -> None:
    """2,500 rows are a hundred an hour: too few to tell hours apart one by one, enough for all together."""
    following = Following(left="time", right="hour", part=OF_DAY, first=0)
    (found,) = fitted(times(2_500, seed), 24, seed, following).maps
    assert (found(np.arange(DAYS)) == np.arange(DAYS) % 24).all()
    assert not fitted(times(2_500, seed), 24, seed, Following(left="time", right="hour", part=OF_DAY)).maps


@pytest.mark.parametrize("rows", [300, 25_000])
@pytest.mark.parametrize("first", [0, None])
def test_what_follows_no_part_is_not_believed(rows: int, first: int | None) -> None:
    """Every time has an hour of its own, but not that of the clock."""
    for seed in range(2):
        table = times(rows, seed)
        table["hour"] = np.random.default_rng(seed).integers(0, 24, DAYS)[table["time"]]
        following = Following(left="time", right="hour", part=OF_DAY, first=first)
        assert not fitted(table, 24, seed, following).maps


@pytest.mark.parametrize("first", [0, None])
def test_what_follows_a_part_mostly_is_not_believed(first: int | None) -> None:
    """The hour of nine times in ten: the tenth would be made wrong."""
    table = times(25_000, 0)
    table["hour"] = np.where(table["time"] % 10 == 0, (table["hour"] + 1) % 24, table["hour"])
    assert not fitted(table, 24, 0, Following(left="time", right="hour", part=OF_DAY, first=first)).maps


@pytest.mark.parametrize("first", [-(2**63), 2**63 - 30, -(2**62), 2**62])
def test_numbers_at_the_ends_of_64_bits_are_no_others(first: int) -> None:
    following = Following(left="time", right="hour", part=OF_DAY, first=first)
    assert (same_numbers(following, 30) == -1).all()


def test_numbers_that_start_elsewhere_are_found() -> None:
    table = times(25_000, 0)
    table = {name: column[table["hour"] >= 5] for name, column in table.items()}
    table["hour"] = table["hour"] - 5
    (found,) = fitted(table, 19, 0, Following(left="time", right="hour", part=OF_DAY, first=5)).maps
    expected = np.arange(DAYS) % 24 - 5
    assert (found(np.arange(DAYS)) == np.where(expected >= 0, expected, -1)).all()


def test_only_what_may_be_a_part_is_asked_for() -> None:
    def possible(ordered: bool) -> list[int]:
        sizes = (1, 2, 11, 12, 24, 25, 96, 97)
        return [n for n in sizes if can_follow(OF_DAY, ModelAttribute(name="y", size=n, ordered=ordered))]

    assert possible(ordered=False) == [12, 24]
    assert possible(ordered=True) == [12, 24, 25, 96]
    week = Part(
        name="weekday", map=CodeMap(size=9, bins=7, starts=np.arange(9), labels=np.arange(9) % 7), numbers=np.arange(7)
    )
    assert can_follow(week, ModelAttribute(name="weekend", size=2))


def test_part_maps_depend_on_releases_only() -> None:
    following = Following(left="time", right="hour", part=OF_DAY, first=0)
    hints = Hints(functional=(("time", "hour"),), following=(following,))
    measurer = MemoryMeasurer(times(5_000, 1), seed=1)
    model = fit_marginal(measurer, attributes(24), noise_multiplier=4.0, hints=hints)
    empty = {name: np.zeros(0, dtype=np.int64) for name in ("time", "hour", "other")}
    again = fit_marginal(ReplayMeasurer(empty, measurer.record), attributes(24), noise_multiplier=4.0, hints=hints)
    first, second = (m.sample(300, np.random.default_rng(0)) for m in (model, again))
    assert all(np.array_equal(first[name], second[name]) for name in first)
    assert [(m.left, m.right, m.starts.tolist(), m.values.tolist()) for m in model.maps] == [
        (m.left, m.right, m.starts.tolist(), m.values.tolist()) for m in again.maps
    ]
    assert measurer.cost <= 1 / 4.0**2


@given(st.lists(st.integers(-1, 3), min_size=2, max_size=30), st.integers(1, 6), st.integers(1, 4), st.data())
def test_masks_allow_what_a_map_says(values: list[int], left_bins: int, right_bins: int, data: st.DataObject) -> None:
    """Code by code: a combination of bins is allowed if some code of the bin has a value in the other, or none."""
    size = len(values)
    left = np.sort(np.array(data.draw(st.lists(st.integers(0, left_bins - 1), min_size=size, max_size=size))))
    left = np.unique(left, return_inverse=True)[1]
    right = np.arange(5) % right_bins  # four values and null
    cells = [_cells(left), _cells(right)]
    starts = np.flatnonzero(np.append(True, np.diff(values) != 0))
    known = KnownMap(left="x", right="y", starts=starts, values=np.array(values)[starts])
    both = (
        ModelAttribute(name="x", size=size, ordered=True),
        ModelAttribute(name="y", size=5, ordered=True, null_code=4),
    )
    found = known_masks(both, cells, [known], {"x": 0, "y": 1})
    allowed = np.zeros((left.max() + 1, right_bins))
    allowed[:, right[4]] = 1
    for code, value in enumerate(values):
        allowed[left[code], right[value] if value >= 0 else slice(None)] = 1
    assert np.array_equal(found.get((0, 1), np.ones_like(allowed)), allowed)


def test_right_sides_of_one_left_side_are_masked_together() -> None:
    """A time of ten minutes' steps has an hour and a minute: of their combinations, each bin of times has its own."""
    time = np.arange(24 * 6)
    hour, minute, bins = time // 6, time % 6, time // 9
    known = [
        KnownMap(left="t", right=name, starts=time, values=values) for name, values in (("h", hour), ("m", minute))
    ]
    minutes = ModelAttribute(name="m", size=7, null_code=6)
    attributes = (ModelAttribute(name="h", size=24), ModelAttribute(name="t", size=144), minutes)
    cells = [_cells(np.arange(24)), _cells(bins), _cells(np.arange(7))]
    masks = known_masks(attributes, cells, known, {"h": 0, "t": 1, "m": 2})
    allowed = np.zeros((24, 16, 7))
    allowed[hour, bins, minute] = 1
    allowed[hour, bins, 6] = 1
    assert set(masks) == {(0, 1, 2)}
    assert np.array_equal(masks[0, 1, 2], allowed)


def _cells(labels: np.ndarray) -> Cells:
    size = len(labels)
    code_map = CodeMap(size=size, bins=int(labels.max()) + 1, starts=np.arange(size), labels=labels)
    return Cells(map=code_map, width=np.ones(size, dtype=np.int64), share=1 / np.bincount(labels)[labels])


def test_maps_are_read_as_they_were_written() -> None:
    model = fitted(times(5_000, 1), 24, 1, Following(left="time", right="hour", part=OF_DAY, first=0))
    meta, arrays = model.to_arrays()
    again = MarginalModel.from_arrays(json.loads(json.dumps(meta)), arrays)
    codes = np.arange(DAYS)
    assert [(m.left, m.right, m(codes).tolist()) for m in again.maps] == [
        (m.left, m.right, m(codes).tolist()) for m in model.maps
    ]


@pytest.mark.parametrize(
    "broken",
    ["unknown left", "same sides", "twice", "code outside", "value outside", "value below", "no runs", "not ascending"],
)
def test_crafted_maps_are_refused(broken: str) -> None:
    model = fitted(times(5_000, 1), 24, 1, Following(left="time", right="hour", part=OF_DAY, first=0))
    meta, arrays = model.to_arrays()
    starts, values = arrays["map.0.starts"].copy(), arrays["map.0.values"].copy()
    match broken:
        case "unknown left":
            meta["maps"][0]["left"] = "nothing"
        case "same sides":
            meta["maps"][0]["right"] = "time"
        case "twice":
            meta["maps"] *= 2
            arrays |= {"map.1.starts": starts, "map.1.values": values}
        case "code outside":
            starts[-1] = DAYS
        case "value outside":
            values[0] = 24
        case "value below":
            values[0] = -2
        case "no runs":
            starts, values = starts[:0], values[:0]
        case "not ascending":
            starts[1] = starts[2]
    arrays |= {"map.0.starts": starts, "map.0.values": values}
    with pytest.raises(ModelError):
        MarginalModel.from_arrays(meta, arrays)

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.memory import MemoryMeasurer, ReplayMeasurer
from tests.trying import examples

from kamino.errors import ModelError
from kamino.model import Hints, MarginalSettings, ModelAttribute, fit_marginal, order_attributes
from kamino.model.marginal.pairs.rounds import Effort

ATTRIBUTES = (
    ModelAttribute(name="kind", size=4),
    ModelAttribute(name="group", size=3, null_code=2),
    ModelAttribute(name="copy", size=4),
    ModelAttribute(name="amount", size=5001, ordered=True, null_code=5000),
)


def table(seed=0, rows=6000):
    rng = np.random.default_rng(seed)
    kind = rng.choice(4, rows, p=[0.5, 0.3, 0.15, 0.05])
    group = np.where(rng.random(rows) < 0.1, 2, (kind + (rng.random(rows) < 0.2)) % 2)
    amount = np.where(rng.random(rows) < 0.4, 0, np.minimum(rng.gamma(2.0, 200 * (1 + kind)).astype(int), 4999))
    amount = np.where(rng.random(rows) < 0.05, 5000, amount)
    return {"kind": kind, "group": group, "copy": (kind + 1) % 4, "amount": amount}


def distance(a, b, *, cells):
    return 0.5 * np.abs(np.bincount(a, minlength=cells) / len(a) - np.bincount(b, minlength=cells) / len(b)).sum()


def test_fit_spends_exactly_the_budget():
    measurer = MemoryMeasurer(table())
    model = fit_marginal(measurer, ATTRIBUTES, noise_multiplier=4.2)
    assert 0.999 < measurer.cost * 4.2**2 <= 1.0
    assert sum(share for _, share in model.releases) == pytest.approx(1.0)


@st.composite
def schemas(draw):
    """Wide attributes with what follows from them, and ordered ones that are nearly the same; rows enough to tell."""
    rng, rows = np.random.default_rng(draw(st.integers(0, 9))), draw(st.sampled_from([100, 5_000, 5_000]))
    columns, attributes, functional = {}, [], []

    def add(codes, size, *, ordered=False):
        attributes.append(ModelAttribute(name=f"a{len(attributes)}", size=size, ordered=ordered))
        columns[attributes[-1].name] = codes % size
        return attributes[-1].name

    for size in draw(st.lists(st.sampled_from([70, 300, 1_000]), max_size=2)):
        left = add(rng.integers(0, size, rows), size, ordered=draw(st.booleans()))
        for small in draw(st.lists(st.integers(2, 12), min_size=1, max_size=2)):
            functional.append((left, add(columns[left] * small // size, small)))
    base = rng.integers(0, 400, rows)
    for spread in draw(st.lists(st.sampled_from([1, 3, 50]), max_size=7)):
        add(base + rng.integers(0, spread, rows), 500, ordered=True)
    for _ in range(draw(st.integers(0, 3))):
        add((base > 200) ^ (rng.random(rows) < 0.1), 2)
    add(rng.integers(0, 3, rows), 3)
    return columns, attributes, Hints(functional=tuple(functional))


@examples(30)
@given(schemas(), st.sampled_from([0.1, 1.0, 1.0, 10.0]))
def test_every_schema_spends_the_whole_budget(schema, noise_multiplier):
    columns, attributes, hints = schema
    measurer = MemoryMeasurer(columns)
    quick = MarginalSettings(effort=Effort(most_cells=20_000, iterations=3, final_iterations=3))
    model = fit_marginal(measurer, attributes, noise_multiplier=noise_multiplier, hints=hints, settings=quick)
    assert min(share for _, share in model.releases) > 0
    assert sum(share for _, share in model.releases) == pytest.approx(1.0)
    assert measurer.cost * noise_multiplier**2 <= 1.0


def test_links_and_relations_together_leave_the_rounds_their_part():
    """As many close relations as may be read, beside a link that would take half of the budget."""
    rng, rows = np.random.default_rng(0), 5_000
    base, wide = rng.integers(0, 400, rows), rng.integers(0, 1_000, rows)
    columns = {f"n{i}": base + rng.integers(0, 1, rows) for i in range(6)} | {"wide": wide, "small": wide % 8}
    attributes = [ModelAttribute(name=f"n{i}", size=500, ordered=True) for i in range(6)]
    attributes += [ModelAttribute(name="wide", size=1_000), ModelAttribute(name="small", size=8)]
    model = fit_marginal(
        MemoryMeasurer(columns), attributes, noise_multiplier=1.0, hints=Hints(functional=(("wide", "small"),))
    )
    shares = {what: sum(s for w, s in model.releases if w == what) for what, _ in model.releases}
    assert shares["wide x small"] > 0.3
    assert sum(share for what, share in shares.items() if what.count("n") == 2) > 0.15
    assert sum(shares.values()) == pytest.approx(1.0)


def test_fit_depends_on_releases_only():
    first = MemoryMeasurer(table())
    model = fit_marginal(first, ATTRIBUTES, noise_multiplier=4.2)
    other = {name: column[:-1] for name, column in table(seed=1, rows=100).items()}
    again = fit_marginal(ReplayMeasurer(other, first.record), ATTRIBUTES, noise_multiplier=4.2)
    meta, arrays = model.to_arrays()
    meta2, arrays2 = again.to_arrays()
    assert meta == meta2
    assert all(np.array_equal(arrays[k], arrays2[k]) for k in arrays)


@pytest.mark.parametrize("sequence", [None, ("amount", "copy", "kind", "group")])
def test_the_model_learns_pairs(sequence):
    columns = table()
    model = fit_marginal(MemoryMeasurer(columns), ATTRIBUTES, noise_multiplier=2.0, sequence=sequence)
    if sequence is not None:
        assert model.sequence == sequence
    rows = model.sample(6000, np.random.default_rng(0))
    pair = {n: c["kind"] * 3 + c["group"] for n, c in (("true", columns), ("drawn", rows))}
    assert distance(pair["true"], pair["drawn"], cells=12) < 0.03
    assert (rows["copy"] == (rows["kind"] + 1) % 4).mean() > 0.97
    assert abs((rows["amount"] == 0).mean() - (columns["amount"] == 0).mean()) < 0.03
    assert abs((rows["amount"] == 5000).mean() - 0.05) < 0.02
    assert model.num_rows == pytest.approx(6000, rel=0.02)


def test_without_noise_the_pairs_are_exact():
    columns = table()
    model = fit_marginal(MemoryMeasurer(columns), ATTRIBUTES[:3], noise_multiplier=0.0)
    exact = np.bincount(columns["kind"] * 3 + columns["group"], minlength=12) / 6000
    np.testing.assert_allclose(model.marginal(("kind", "group")).ravel(), exact, atol=2e-4)


def test_less_noise_gives_less_distance():
    columns = table()
    found = []
    for multiplier in (200.0, 20.0, 2.0):
        model = fit_marginal(MemoryMeasurer(columns), ATTRIBUTES[:3], noise_multiplier=multiplier)
        exact = np.bincount(columns["kind"] * 3 + columns["group"], minlength=12) / 6000
        found.append(np.abs(model.marginal(("kind", "group")).ravel() - exact).sum())
    assert found[0] > found[1] > found[2]


def test_forbidden_rows_are_never_drawn():
    allowed = {
        ("kind",): lambda c: c["kind"] != 3,
        ("kind", "group"): lambda c: ~((c["kind"] == 0) & (c["group"] == 1)),
    }
    hints = Hints(allowed=allowed)
    model = fit_marginal(MemoryMeasurer(table()), ATTRIBUTES, noise_multiplier=4.0, hints=hints)
    rows = model.sample(20_000, np.random.default_rng(0))
    assert not (rows["kind"] == 3).any()
    assert not ((rows["kind"] == 0) & (rows["group"] == 1)).any()


def test_constraints_that_allow_nothing_are_refused():
    hints = Hints(allowed={("kind",): lambda c: c["kind"] < 0})
    with pytest.raises(ModelError, match="allow no combination"):
        fit_marginal(MemoryMeasurer(table()), ATTRIBUTES, noise_multiplier=4.0, hints=hints)


def wide_table(rows=8000):
    rng = np.random.default_rng(5)
    owner = rng.integers(0, 6, 200)
    wide = rng.integers(0, 200, rows)
    return owner, {"wide": wide, "small": owner[wide], "other": rng.integers(0, 2, rows)}


WIDE = (
    ModelAttribute(name="wide", size=200),
    ModelAttribute(name="small", size=6),
    ModelAttribute(name="other", size=2),
)


def test_a_wide_attribute_is_linked_to_what_it_determines():
    owner, columns = wide_table()
    hints = Hints(functional=(("wide", "small"),))
    measurer = MemoryMeasurer(columns)
    model = fit_marginal(measurer, WIDE, noise_multiplier=2.0, hints=hints)
    assert model.parents("wide") == ("small",)
    rows = model.sample(8000, np.random.default_rng(0))
    assert (owner[rows["wide"]] == rows["small"]).mean() > 0.95
    assert distance(rows["wide"], columns["wide"], cells=200) < 0.15
    assert 0.999 < measurer.cost * 4.0 <= 1.0


def test_a_link_against_the_sequence_is_not_made():
    _, columns = wide_table()
    hints = Hints(functional=(("wide", "small"),))
    sequence = ("wide", "small", "other")
    model = fit_marginal(MemoryMeasurer(columns), WIDE, noise_multiplier=2.0, hints=hints, sequence=sequence)
    assert model.sequence == sequence


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("multiplier", [0.0, 4.0])
def test_almost_no_rows(rows, multiplier):
    columns = {name: column[:rows] for name, column in table().items()}
    model = fit_marginal(MemoryMeasurer(columns), ATTRIBUTES, noise_multiplier=multiplier)
    drawn = model.sample(50, np.random.default_rng(0))
    for attribute in ATTRIBUTES:
        assert drawn[attribute.name].min() >= 0
        assert drawn[attribute.name].max() < attribute.size


@pytest.mark.parametrize(
    "attribute",
    [
        ModelAttribute(name="x", size=1),
        ModelAttribute(name="x", size=1, ordered=True, null_code=0),
        ModelAttribute(name="x", size=50, ordered=True),
        ModelAttribute(name="x", size=3, null_code=0),
    ],
)
def test_one_column(attribute):
    measurer = MemoryMeasurer({"x": np.zeros(500, dtype=np.int64)})
    model = fit_marginal(measurer, [attribute], noise_multiplier=4.0)
    rows = model.sample(500, np.random.default_rng(0))
    assert (rows["x"] == 0).mean() > 0.8
    assert 0.999 < measurer.cost * 16 <= 1.0


def test_wrong_use_is_refused():
    measurer = MemoryMeasurer(table())
    with pytest.raises(ModelError, match="at least one attribute"):
        fit_marginal(measurer, [], noise_multiplier=1.0)
    with pytest.raises(ModelError, match="noise multiplier"):
        fit_marginal(measurer, ATTRIBUTES, noise_multiplier=-1.0)
    with pytest.raises(ModelError, match="every attribute once"):
        fit_marginal(measurer, ATTRIBUTES, noise_multiplier=1.0, sequence=("kind",))
    with pytest.raises(ModelError, match="unknown attributes: zip"):
        fit_marginal(measurer, ATTRIBUTES, noise_multiplier=1.0, hints=Hints(together=(("zip", "kind"),)))
    assert measurer.record == []


def test_order_puts_small_attributes_first():
    assert order_attributes(ATTRIBUTES) == ("group", "kind", "copy", "amount")
    assert order_attributes(ATTRIBUTES, [("copy", "kind")]) == ("group", "copy", "kind", "amount")


def test_rows_are_counted_by_all_tables() -> None:
    """600 rows of twelve wide columns: histograms alone would be off by a sixth, pairs in few groups tell more."""
    rng = np.random.default_rng(0)
    base = rng.integers(0, 5_000, 600)
    columns = {f"c{i}": np.clip(base + rng.integers(-900, 900, 600), 0, 4_999) for i in range(12)}
    attributes = [ModelAttribute(name=name, size=5_000, ordered=True) for name in columns]
    apart = []
    for seed in range(6):
        model = fit_marginal(MemoryMeasurer(columns, seed=seed), attributes, noise_multiplier=4.0)
        apart.append(model.num_rows - 600)
    assert np.sqrt(np.mean(np.square(apart))) < 0.06 * 600

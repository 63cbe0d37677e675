"""Every planted fault is caught by its check, the clean code passes all of them, and games bound what they should."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kamino.audit import subjects
from kamino.audit.auditing import CHECKS, GAME, NEIGHBOURS, STRANGERS, audit, observe
from kamino.audit.loss_distribution import Releases, compose, gaussian_epsilon
from kamino.audit.lower_bounds import family_bound, gaussian_mu_bound, least_probability
from kamino.audit.near_tables import near_tables, strange_tables
from kamino.audit.playing import affordable, play, questions_of, worst_pair
from kamino.audit.probes import PROBES, Probe
from kamino.audit.subjects import Subject
from kamino.errors import PrivacyError
from kamino.planted.all_faults import FAULTS
from kamino.planted.fault import PLANTED, Fault, edited
from kamino.planted.self_test import catch, self_test
from kamino.privacy import (
    Budget,
    Gate,
    GaussianEvent,
    Neighbours,
    PoissonGaussianEvent,
    PrivacyUnit,
    SeededNoise,
    epsilon,
)

ADD, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


# Caught in half a second each, or more; others of their kind are planted in every run of the tests.
LONGER = {
    "exact selection scores",
    "groups of a rate not scaled",
    "half of the noise",
    "the row count peeked at",
    "categories in the order of their true counts",
    "no noise on empty cells",
    "categories with their true counts",
    "to replace taken for to add, in vectors",
    "later sampled events in the place of earlier ones",
    "Gaussian releases left out beside sampled ones",
    "Gaussian releases beside sampled ones at half of their distance",
    "calibrated to a tenth more",
    "sampled releases admitted without a price",
    "a sealed part that costs nothing",
    "the delta of a sealed part left to what follows",
    "shares of lost cells by the true number of rows",
    "a sample of a part of the true number of rows",
    "a quote that is never closed",
    "nullable where a cell is null",
    "a data frame's objects by their kind",
    "a database read as the owner's",
    "a database in parts read as the owner's",
    "rates of small groups in full",
    "lost cells of several columns taken for one",
    "kept codes of the wrong part",
    "categories of the last part",
    "ranges of the last part",
    "lost cells of the last part",
    "groups cut at the ends of parts",
    "blocks of one stream",
    "a world that is not completed",
    "workers with random numbers of their own",
    "blocks of workers in another order",
    "a table that is not compared with its hash",
    "violations that are not counted again",
    "rows that are not counted again",
    "a price that is not derived again",
    "noise that is not compared with its charge",
    "a mark that is believed",
    "a budget that is believed",
    "sources that are believed",
}


def _marked(fault: Fault) -> Any:
    marks = pytest.mark.slow if fault.neural or fault.name in LONGER else ()
    return pytest.param(fault, marks=marks, id=fault.name)


@pytest.mark.parametrize("fault", [_marked(fault) for fault in FAULTS])
def test_every_planted_fault_is_caught(fault: Fault) -> None:
    assert catch(fault).is_caught


# Each charges for something else than the plan says.
REFUSED = (
    "half of delta charged",
    "charged for more noise than drawn",
    "to replace charged as to add",
    "spellings of several columns taken for one",
)


@pytest.mark.parametrize("name", REFUSED)
def test_the_guard_refuses_faults_of_noise(name: str) -> None:
    (fault,) = [each for each in FAULTS if each.name == name]
    assert fault.subject is not None
    with fault.plant(), pytest.raises(PrivacyError, match="It was not charged and not made"):
        observe(fault.subject(), runs=100)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            make, marks=pytest.mark.slow if make in (*subjects.NEURAL, subjects.grouped, subjects.dated) else ()
        )
        for make in (*subjects.DEFAULT, *subjects.NEURAL)
    ],
    ids=lambda make: make.__name__,
)
def test_the_clean_code_passes_the_audit(make: Callable[..., Subject]) -> None:
    found = audit(make(), runs=400)
    assert [finding.problems for finding in found.findings] == [()] * 6
    assert found.passed
    assert found.game is not None
    assert found.to_json()["game"]["runs"] == 400


def test_the_asked_for_faults_are_among_the_planted_ones() -> None:
    names = " ".join(fault.name for fault in FAULTS)
    assert len(FAULTS) >= 90
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    assert {fault.name for fault in FAULTS} >= LONGER
    for word in (
        *("exact selection", "groups of a rate", "reseeded", "row count peeked", "true maximum", "order of their true"),
        *("not scaled for vectors", "half of delta", "constant coins", "other relation", "nullable", "something else"),
        *("one draw", "blocks of noise repeated", "two zeros", "shared by forks", "rows as default"),
        "delta of finished runs",
    ):
        assert word in names


def _all_of_kamino() -> dict[tuple[str, ...], Any]:
    """Every name of every module and class of Kamino that is imported."""
    found: dict[tuple[str, ...], Any] = {}
    for module in [each for key, each in sys.modules.items() if key.split(".")[0] == "kamino"]:
        for name, value in vars(module).items():
            found[module.__name__, name] = value
            if isinstance(value, type) and value.__module__ == module.__name__:
                found |= {(module.__name__, name, own): part for own, part in vars(value).items()}
    return found


def test_faults_are_taken_out_again() -> None:
    before = _all_of_kamino()
    for fault in FAULTS:
        with fault.plant():
            assert PLANTED, fault.name
            there = {id(each) for each in _all_of_kamino().values()} if fault in FAULTS[::20] else ()
            assert not there or any(id(each) in there for each in PLANTED), fault.name
        assert PLANTED == [], fault.name
    after = _all_of_kamino()
    assert [key for key in before if after[key] is not before[key]] == []


def test_a_fault_that_no_longer_fits_is_refused() -> None:
    with pytest.raises(LookupError, match="the fault no longer fits"):
        edited(subjects, "made_up", "nothing", "something")


def test_the_pages_say_how_many_faults_there_are() -> None:
    docs = Path(__file__).parents[2] / "docs"
    assert f"plants {len(FAULTS)} faults" in (docs / "audit.md").read_text(encoding="utf-8")
    assert f"{len(FAULTS)} faults are planted" in (docs / "privacy.md").read_text(encoding="utf-8")
    named = {
        probe.name for probe in PROBES if f"| {probe.name} |" not in (docs / "audit.md").read_text(encoding="utf-8")
    }
    assert named == set()


def test_every_check_and_probe_catches_something() -> None:
    quick = {fault.check.name for fault in FAULTS if fault.name not in LONGER}
    assert {each.name for each in (*CHECKS, *PROBES)} - quick == {GAME.name}


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_the_clean_code_passes_the_probes(probe: Probe) -> None:
    assert probe.find() == ()


def test_a_peeked_count_is_the_same_on_neighbours() -> None:
    """Why strangers are needed."""
    (fault,) = [each for each in FAULTS if "peeked" in each.name]
    with fault.plant():
        seen = observe(subjects.declared())
        assert NEIGHBOURS.find(seen) == ()
        assert STRANGERS.find(seen) != ()


def test_a_probe_that_catches_the_clean_code_fails_the_self_test(monkeypatch: pytest.MonkeyPatch) -> None:
    from kamino.planted import self_test as module

    wrong = Probe(name="wrong", does="", cannot="", search=lambda: ("something", "something", "else"))
    assert (wrong.find(), wrong.first()) == (("something", "else"), ("something",))
    for name, value in (("FAULTS", ()), ("DEFAULT", ()), ("PROBES", (wrong,))):
        monkeypatch.setattr(module, name, value)
    found = self_test(neural=False)
    assert not found.passed
    assert found.to_json()["probes"] == [{"check": "wrong", "problems": ("something", "else")}]


def test_a_check_that_catches_the_clean_code_fails_the_self_test(monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import nullcontext

    from kamino.planted import self_test as module

    eager = replace(NEIGHBOURS, name="eager", search=lambda seen: ("something",))
    fault = replace(FAULTS[1], plant=nullcontext, check=eager, subject=partial(subjects.suggesting))
    for name, value in (("FAULTS", (fault,)), ("DEFAULT", ()), ("PROBES", ())):
        monkeypatch.setattr(module, name, value)
    found = self_test(neural=False)
    assert [each.is_caught for each in found.faults] == [True]
    assert not found.passed
    assert found.to_json()["sound"][0]["problems"] == ("something",)


def test_the_self_test_tells_what_was_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    from contextlib import nullcontext

    from kamino.planted import self_test as module

    harmless = replace(FAULTS[1], plant=nullcontext)
    monkeypatch.setattr(module, "FAULTS", (harmless,))
    monkeypatch.setattr(module, "DEFAULT", (subjects.suggesting,))
    monkeypatch.setattr(module, "PROBES", ())
    found = self_test(runs=200, neural=False)
    assert not found.passed
    assert [each.is_caught for each in found.faults] == [False]
    assert found.to_json()["faults"][0]["caught"] is False


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize(
    "releases",
    [
        [Releases(noise_multiplier=4.2247)],
        [Releases(noise_multiplier=2.83, sampling_rate=0.123, count=18), Releases(noise_multiplier=16.0)],
        [Releases(noise_multiplier=1.0, sampling_rate=0.01, count=1000)],
        [Releases(noise_multiplier=0.8, sampling_rate=0.002, count=3000), Releases(noise_multiplier=16.0)],
        [Releases(noise_multiplier=32.0, sampling_rate=0.38)],
        [Releases(noise_multiplier=0.5)],
    ],
)
def test_own_prices_agree_with_dp_accounting(releases: list[Releases], relation: Neighbours) -> None:
    events: Any = [
        (PoissonGaussianEvent(noise_multiplier=r.noise_multiplier, sampling_rate=r.sampling_rate), r.count)
        if r.sampling_rate < 1
        else (GaussianEvent(noise_multiplier=r.noise_multiplier, replace_multiplier=r.noise_multiplier), r.count)
        for r in releases
    ]
    price = epsilon(events, delta=1e-6, neighbours=relation)
    assert compose(releases, relation).epsilon(1e-6) == pytest.approx(price, rel=2e-3)
    if len(releases) == 1 and releases[0].sampling_rate == 1:
        assert gaussian_epsilon(1 / releases[0].noise_multiplier, 1e-6) == pytest.approx(price, rel=1e-6)


@pytest.mark.parametrize("mu", [0.2367, 1.5])
def test_bounds_hold_as_often_as_they_say(mu: float) -> None:
    """Of 2,000 bounds at 95%, more than 140 are above the truth with probability 5e-5."""
    rng = np.random.default_rng(3)
    chance = 0.5 * (1 + math.erf(mu / 2 / math.sqrt(2)))
    rights = rng.binomial(1_000, chance, 2_000)
    above = sum(gaussian_mu_bound(int(right), 1_000, confidence=0.95) > mu for right in rights)
    assert 20 < above < 140
    releases = [Releases(noise_multiplier=1.0, sampling_rate=0.05, count=50), Releases(noise_multiplier=9.0)]
    loss = compose(releases, ADD)
    exact = round(1_000_000 * (1 + loss.total_variation) / 2)
    bound = family_bound(exact, 1_000_000, releases, ADD, 1e-6, confidence=0.95)
    assert 0.97 * loss.epsilon(1e-6) < bound < loss.epsilon(1e-6)
    assert family_bound(500, 1_000, releases, ADD, 1e-6, confidence=0.95) == 0.0
    assert least_probability(0, 10, confidence=0.95) == 0.0


def test_the_game_comes_near_the_claim() -> None:
    """The bound is below 0.75 of the claim with probability below 1e-6: 10,000 games, mu 0.82."""
    seen = observe(subjects.found(), runs=10_000)
    assert GAME.find(seen) == ()
    game = seen.played[0]
    assert game.ratio > 0.75
    assert game.pair_epsilon > 0.97 * game.claimed
    assert 0 < game.plain < game.bound


def test_the_game_sees_half_of_the_noise() -> None:
    (fault,) = [each for each in FAULTS if each.name == "half of the noise"]
    with fault.plant():
        seen = observe(subjects.declared(epsilon=4.0), runs=2_000)
        assert "was won" in " ".join(GAME.find(seen))


def test_a_game_without_questions_is_won_by_chance() -> None:
    gate = Gate(Budget(epsilon=1.0, delta=1e-6))
    gate.release_counts(np.array([3]), what="rows", attributes=(), noise_multiplier=9.0)
    played = play([], gate.ledger, pair="none", runs=1_000)
    assert 400 < played.right < 600
    assert played.bound < 1.0
    assert affordable([], gate.ledger) == 20_000
    assert worst_pair({"same": ()}) == ("", (), 0.0)
    assert questions_of((), ADD) == []


def _plan(**given: Any) -> Any:
    from kamino.privacy.mechanisms.gradients import DescentPlan

    return DescentPlan(
        what="gradients",
        attributes=("age",),
        noise_multiplier=given.get("noise", 1.5),
        sampling_rate=given.get("rate", 0.2),
        steps=20,
        clip_norm=2.0,
        batch_size=30.0,
        num_parameters=40,
    )


@pytest.mark.parametrize("relation", Neighbours)
def test_the_loop_releases_what_its_parts_make(relation: Neighbours, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jax", reason="the neural extra is not installed")
    from kamino.audit import playing, sampled_game
    from kamino.privacy.mechanisms.gradients import open_descent

    gate = Gate(Budget(epsilon=20.0, delta=1e-6, neighbours=relation))
    open_descent(gate, _plan())
    descents = sampled_game.descents_of(gate.ledger)
    assert len(descents) == 1
    assert sampled_game.num_left_out(gate.ledger) == 0
    assert sampled_game.loop_problems(descents) == ()
    assert sampled_game.draw_problems(descents) == ()
    # Seeded: with coins of the system, the bound of so few games is farther off in one run of thirty.
    noise, worlds = SeededNoise(1), np.random.default_rng(1)
    monkeypatch.setattr(playing, "SecureNoise", lambda: noise)
    monkeypatch.setattr(playing, "_coins", lambda size: worlds.random(size) < 0.5)
    played = play(descents, gate.ledger, pair="a canary", runs=4_000)
    assert played.problems == ()
    # The budget is not used up here: the claim is what the descent costs.
    price = gate.ledger.spent()
    assert 0.7 * price < played.bound < 1.1 * price
    monkeypatch.setattr(sampled_game, "_clipped", lambda plan: 1)
    assert "other sums" in sampled_game.loop_problems(descents)[0]


def test_near_tables_differ_in_one_unit() -> None:
    table = subjects.made_up(9)
    for name, other in near_tables(table, ADD, PrivacyUnit()).items():
        assert abs(other.num_rows - table.num_rows) == 1, name
    for name, other in near_tables(table, REPLACE, PrivacyUnit()).items():
        assert other.num_rows == 9, name
        assert other.slice(1).equals(table.slice(1)), name
    unit = PrivacyUnit(column="who", max_rows=3)
    for relation in Neighbours:
        for name, other in near_tables(table, relation, unit).items():
            owners = [set(each.column("who").to_pylist()) for each in (table, other)]
            changed = owners[0] ^ owners[1]
            assert len(changed) == (1 if relation is ADD else 2), name
            kept = [[r for r in each.to_pylist() if r["who"] not in changed] for each in (table, other)]
            assert kept[0] == kept[1], name


def test_tables_without_rows_have_neighbours_too() -> None:
    empty = subjects.made_up(0)
    assert set(near_tables(empty, ADD, PrivacyUnit())) == {"with a row of nulls", "with odd cells"}
    assert near_tables(empty, REPLACE, PrivacyUnit()) == {}
    assert set(strange_tables(empty)) == {"odd cells"}


def test_strange_tables_keep_the_columns() -> None:
    table = pa.table({"word": pa.array(["a", "b", None]).dictionary_encode(), "n": pa.array([1, 2, 2], pa.int8())})
    for other in strange_tables(table).values():
        assert other.schema.equals(table.schema)
    assert strange_tables(table)["other counts"].column("n").to_pylist() == [1, 2, 1]

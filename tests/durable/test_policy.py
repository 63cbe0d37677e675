"""The policy of a dataset: what is admitted, refused and given back, also with many processes at a time."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.durable.planning import BUDGET, delta_event, gaussian, planned
from tests.trying import examples

from kamino.errors import BudgetError, LedgerError
from kamino.privacy.accounting.accountant import epsilon
from kamino.privacy.accounting.budget import Budget, Neighbours
from kamino.privacy.accounting.calibration import max_mu, most_under_replace
from kamino.privacy.accounting.events import GaussianEvent, PoissonGaussianEvent
from kamino.privacy.durable.ledger_lines import Composition, Policy
from kamino.privacy.durable.policing import bound_of, cost_of_run, epsilon_of_total, keeps, total_cost
from kamino.privacy.durable.store import DONE, DurableLedger
from kamino.privacy.ledger import Entry

EIGHT = """
import os, sys
import dp_accounting
from kamino.errors import BudgetError
from kamino.privacy.durable import hash_chain
from kamino.privacy.durable.store import DurableLedger
hash_chain.PATIENCE_SECONDS = 3_600.0  # on a busy machine, one of eight may have to wait for long
sys.path.insert(0, sys.argv[3])
from tests.trying import examples
from tests.durable.planning import gaussian, planned

path, share = sys.argv[1], float(sys.argv[2])
entry = gaussian(share * (1 - 1e-12))
begin, ready = os.pipe()
children = []
for worker in range(8):
    pid = os.fork()
    if pid == 0:
        os.close(ready)
        os.read(begin, 1)
        admitted = 0
        with DurableLedger.open(path) as ledger:
            for number in range(125):
                run = f"w{worker}-{number}"
                try:
                    ledger.reserve(planned(run, gaussian=share))
                except BudgetError:
                    continue
                ledger.charge(run, entry)
                admitted += 1
                if number % 3 == 0:
                    ledger.close_run(run, "done")
        os.write(1, f"{admitted}\\n".encode())
        os._exit(0)
    children.append(pid)
os.close(begin)
os.close(ready)
for pid in children:
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""
ROOT = Path(__file__).parents[2]


def test_eight_processes_keep_the_policy_exactly(tmp_path: Path) -> None:
    """1,000 charges by eight processes at a time, of which 613 fit."""
    path = tmp_path / "l.ledger"
    policy = Policy(dataset="d", budget=BUDGET, finding_delta=0.0)
    with DurableLedger.open(path) as ledger:
        ledger.set_policy(policy)
    share = bound_of(policy).amount / 613.5
    command = [sys.executable, "-c", EIGHT, str(path), repr(share), str(ROOT)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    admitted = [int(line) for line in made.stdout.split()]
    assert len(admitted) == 8
    assert sum(admitted) == 613
    with DurableLedger.read(path) as ledger:
        assert len(ledger.runs) == sum(len(run.charged) for run in ledger.runs.values()) == 613
        assert keeps(total_cost(ledger.runs.values(), policy), bound_of(policy))
        assert ledger.price("d", delta=BUDGET.delta, neighbours=BUDGET.neighbours) <= BUDGET.epsilon
        assert ledger.half_line == 0


@pytest.mark.parametrize("finding", [0.0, 0.1 * BUDGET.delta])
@pytest.mark.parametrize("composition", Composition)
@pytest.mark.parametrize("relation", Neighbours)
def test_a_policy_admits_a_run_of_its_own_budget(
    tmp_path: Path, finding: float, composition: Composition, relation: Neighbours
) -> None:
    """Once, with or without finding domains; the second one is over."""
    budget = Budget(epsilon=1.0, delta=1e-6, neighbours=relation)
    with DurableLedger.open(tmp_path / "l") as ledger:
        ledger.set_policy(Policy(dataset="d", budget=budget, composition=composition))
        ledger.reserve(planned("one", budget=budget, finding_delta=finding))
        with pytest.raises(BudgetError, match="Nothing was read or released"):
            ledger.reserve(planned("two", budget=budget, finding_delta=finding))
        ledger.reserve(planned("three", budget=budget, finding_delta=finding, dataset="other"))


def test_the_part_for_finding_is_decided_with_the_first_run_and_never_moves(tmp_path: Path) -> None:
    """What is chosen after a release may follow from it, and then mu² and delta could not be traded for each other."""
    with DurableLedger.open(tmp_path / "l") as ledger:
        policy = ledger.set_policy(Policy(dataset="d", budget=BUDGET))
        assert policy.finding_delta is None
        ledger.reserve(planned("small", gaussian=max_mu(BUDGET) ** 2 / 10))
        assert ledger.policies["d"].finding_delta == 0.1 * BUDGET.delta
        # Nothing was found yet, and still the delta that is kept for it is not given to the noise.
        with pytest.raises(BudgetError):
            ledger.reserve(planned("rest", gaussian=max_mu(BUDGET) ** 2 * 0.8999))
        ledger.reserve(planned("less", gaussian=bound_of(ledger.policies["d"]).amount * 0.89))
        later = ledger.set_policy(Policy(dataset="d", budget=Budget(epsilon=2.0, delta=1e-5)))
        assert later.finding_delta == 0.1 * 1e-5


def test_what_was_not_spent_is_given_back(tmp_path: Path) -> None:
    with DurableLedger.open(tmp_path / "l") as ledger:
        policy = ledger.set_policy(Policy(dataset="d", budget=BUDGET, finding_delta=0.0))
        ledger.reserve(planned("one"))
        ledger.charge("one", gaussian(max_mu(BUDGET) ** 2 / 4))
        assert cost_of_run(ledger.runs["one"], policy).amount == max_mu(BUDGET) ** 2
        with pytest.raises(BudgetError, match=r"Unfinished runs hold a part \(one\)"):
            ledger.reserve(planned("two", gaussian=max_mu(BUDGET) ** 2 / 2))
        ledger.close_run("one", DONE)
        assert cost_of_run(ledger.runs["one"], policy).amount == pytest.approx(max_mu(BUDGET) ** 2 / 4)
        ledger.reserve(planned("two", gaussian=max_mu(BUDGET) ** 2 / 2))
        with pytest.raises(LedgerError, match="run one was closed"):
            ledger.charge("one", gaussian(1e-9))


def test_by_basic_composition_nothing_is_given_back(tmp_path: Path) -> None:
    """What a run spent follows from its releases, and epsilons that do may not be added up."""
    policy = Policy(dataset="d", budget=Budget(epsilon=1.5, delta=1e-5), composition=Composition.BASIC)
    with DurableLedger.open(tmp_path / "l") as ledger:
        ledger.set_policy(policy)
        ledger.reserve(planned("one"))
        ledger.charge("one", gaussian(1e-9))
        ledger.close_run("one", DONE)
        with pytest.raises(BudgetError, match="all runs would come to epsilon 2"):
            ledger.reserve(planned("two"))
        ledger.reserve(planned("empty", budget=Budget(epsilon=0.5, delta=1e-6)))
        ledger.close_run("empty", DONE)
        ledger.reserve(planned("three", budget=Budget(epsilon=0.5, delta=1e-6)))


def test_a_charge_over_what_is_set_aside_is_refused(tmp_path: Path) -> None:
    with DurableLedger.open(tmp_path / "l") as ledger:
        ledger.reserve(planned("one", finding_delta=1e-7))
        lines = ledger.num_lines
        sampled = Entry(
            kind="sample",
            what="sample",
            attributes=(),
            events=((PoissonGaussianEvent(noise_multiplier=9.0, sampling_rate=0.1), 1),),
        )
        for entry, text in (
            (gaussian(max_mu(BUDGET) ** 2 * 1.001), "over the mu²"),
            (delta_event(1.01e-7), "over the delta"),
            (sampled, "for it is sampled"),
        ):
            with pytest.raises(BudgetError, match=text):
                ledger.charge("one", entry)
        assert ledger.num_lines == lines
        ledger.charge("one", delta_event(1e-7))


def test_units_do_not_add_up(tmp_path: Path) -> None:
    with DurableLedger.open(tmp_path / "l") as ledger:
        ledger.set_policy(Policy(dataset="d", budget=Budget(epsilon=9.0, delta=1e-5), unit="who"))
        ledger.reserve(planned("one", unit="who", max_rows=3))
        with pytest.raises(BudgetError, match="protects all rows with one value of 'who', the run single rows"):
            ledger.reserve(planned("two"))


def test_the_other_relation_is_priced_at_its_most(tmp_path: Path) -> None:
    """A run for add or remove moves twice as far under replace; one for replace no further under add or remove."""
    replace = Budget(epsilon=most_under_replace(BUDGET), delta=1e-6, neighbours=Neighbours.REPLACE)
    with DurableLedger.open(tmp_path / "l") as ledger:
        ledger.set_policy(Policy(dataset="d", budget=replace, finding_delta=0.0))
        ledger.reserve(planned("one"))
        total = total_cost(ledger.runs.values(), ledger.policies["d"])
        assert total.amount == pytest.approx(4 * max_mu(BUDGET) ** 2)
        with pytest.raises(BudgetError):
            ledger.reserve(planned("two", gaussian=max_mu(BUDGET) ** 2 / 100))
        ledger.reserve(
            planned("three", dataset="r", budget=Budget(epsilon=1.0, delta=1e-6, neighbours=replace.neighbours))
        )
        grows = GaussianEvent(noise_multiplier=50.0, replace_multiplier=90.0)
        with pytest.raises(BudgetError, match="the price under add or remove"):
            ledger.charge("three", Entry(kind="counts", what="w", attributes=(), events=((grows, 1),)))


def test_sampled_runs_cost_more_than_they_can() -> None:
    """Under Gaussian composition a run without mu is taken for the worst that its epsilon allows."""
    policy = Policy(dataset="d", budget=Budget(epsilon=20.0, delta=1e-5), finding_delta=5e-6)
    from kamino.privacy.accounting.accountant import Tally
    from kamino.privacy.durable.policing import RunState

    run = RunState(planned=planned("one", sampled=True), tallies={each: Tally() for each in Neighbours}, charged=[])
    cost = cost_of_run(run, policy)
    # Randomised response of epsilon 1 is exactly as telling as this at equal errors of both kinds.
    assert math.sqrt(cost.amount) == pytest.approx(1.2322, rel=1e-3)
    assert cost.delta == 1e-6
    # The trade-off of the Gaussian mechanism is below that of randomised response everywhere.
    from statistics import NormalDist

    normal = NormalDist()
    for error in (k / 200 for k in range(1, 200)):
        gauss = normal.cdf(normal.inv_cdf(1 - error) - math.sqrt(cost.amount))
        response = max(0.0, 1 - math.e * error, (1 - error) / math.e)
        assert gauss <= response + 1e-12


@examples(50)
@given(
    shares=st.lists(st.floats(1e-6, 0.05), min_size=1, max_size=12), deltas=st.lists(st.floats(1e-9, 3e-7), max_size=4)
)
def test_totals_cost_what_the_accountant_says(shares: list[float], deltas: list[float]) -> None:
    """The totals of a filter stand for no less than the price of all events together."""
    import tempfile

    policy = Policy(dataset="d", budget=Budget(epsilon=9.0, delta=1e-5), finding_delta=2e-6)
    events = []
    with tempfile.TemporaryDirectory() as folder, DurableLedger.open(Path(folder) / "l") as ledger:
        for number, share in enumerate(shares):
            ledger.reserve(planned(f"r{number}", gaussian=share, finding_delta=1e-6))
            own = [gaussian(share * 0.999), *(delta_event(each) for each in deltas[number : number + 1])]
            for entry in own:
                ledger.charge(f"r{number}", entry)
                events += entry.events
            ledger.close_run(f"r{number}", DONE)
        total = total_cost(ledger.runs.values(), policy)
        price = ledger.price("d", delta=policy.budget.delta, neighbours=Neighbours.ADD_REMOVE)
    assert price == pytest.approx(epsilon(events, delta=policy.budget.delta))
    assert epsilon_of_total(total, policy) >= price * (1 - 1e-9)

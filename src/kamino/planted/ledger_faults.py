"""Faults in what is charged, in the price of it, and in what a durable ledger admits."""

from __future__ import annotations

from functools import partial

from kamino.audit.probes.charged_first import CHARGING
from kamino.audit.probes.policy_totals import POLICY
from kamino.audit.probes.prices_again import PRICES
from kamino.planted.fault import Fault, edited
from kamino.privacy import Gate, Ledger, ledger, published_price
from kamino.privacy.accounting import accountant, calibration, meaning
from kamino.privacy.accounting.accountant import Tally
from kamino.privacy.durable import policing, store

PRICE_FAULTS = (
    Fault(
        name="equal Gaussian releases priced once",
        wrong="Of Gaussian releases that are charged together one is priced.",
        plant=partial(edited, Tally, "plus", "self.gaussian + count * cost", "self.gaussian + cost"),
        check=PRICES,
    ),
    Fault(
        name="delta events priced once",
        wrong="Of delta events that are charged together one is priced.",
        plant=partial(edited, Tally, "plus", "self.delta + count * event.delta", "self.delta + event.delta"),
        check=PRICES,
    ),
    Fault(
        name="later sampled events in the place of earlier ones",
        wrong="Equal sampled events that are charged one by one are priced as the last of them.",
        plant=partial(edited, Tally, "plus", "joined[event] += count", "joined[event] = count"),
        check=PRICES,
    ),
    Fault(
        name="the other relation's multiplier",
        wrong="Gaussian releases are priced for a row more or less under both relations.",
        plant=partial(edited, Tally, "plus", "event.multiplier(neighbours)", "event.noise_multiplier"),
        check=PRICES,
    ),
    Fault(
        name="all of delta for noise",
        wrong="What delta events take of delta is left to Gaussian releases as well.",
        plant=partial(edited, accountant, "epsilon_of", "left = delta - total.delta", "left = delta"),
        check=PRICES,
    ),
    Fault(
        name="Gaussian releases left out beside sampled ones",
        wrong="Where there are sampled releases only these are priced.",
        plant=partial(edited, accountant, "compose", "if total.gaussian > 0:", "if False:"),
        check=PRICES,
    ),
    Fault(
        name="Gaussian releases beside sampled ones at half of their distance",
        wrong="Beside sampled releases, Gaussian ones are priced as if a row moved them half as far.",
        plant=partial(
            edited,
            accountant,
            "compose",
            "ratio = pld.PLDAccountant(relation.REPLACE_ONE, grid), 2.0",
            "ratio = pld.PLDAccountant(relation.REPLACE_ONE, grid), 4.0",
        ),
        check=PRICES,
    ),
    Fault(
        name="a budget that allows a little more",
        wrong="The limit on Gaussian releases lies a thousandth above the exact one, where delta is small.",
        plant=partial(
            edited,
            calibration,
            "max_mu",
            "return guess if sound == guess else (1 - _MARGIN) * sound",
            "return 1.001 * guess",
        ),
        check=PRICES,
    ),
    Fault(
        name="delta that is set aside spent twice",
        wrong="Noise is planned for all of delta, also where categories take a part of it.",
        plant=partial(edited, calibration, "max_mu", "left = budget.delta - reserved_delta", "left = budget.delta"),
        check=PRICES,
    ),
    Fault(
        name="the price under replace not doubled",
        wrong="What is promised under replace is the price of a row more or less.",
        plant=partial(edited, calibration, "most_under_replace", "2 * max_mu(budget)", "max_mu(budget)"),
        check=PRICES,
    ),
    Fault(
        name="calibrated to a tenth more",
        wrong="Noise for sampled releases is searched for a price above the budget.",
        plant=partial(
            edited,
            calibration,
            "calibrate",
            "_calibrate_by_price(events, budget)",
            "_calibrate_by_price(events, replace(budget, epsilon=1.1 * budget.epsilon))",
        ),
        check=PRICES,
    ),
    Fault(
        name="a guess said to be worth less",
        wrong="What an attacker can guess is told as if the noise were twice as large.",
        plant=partial(
            edited, meaning, "meaning_of_budget", "of_gaussian(max_mu(budget))", "of_gaussian(max_mu(budget) / 2)"
        ),
        check=PRICES,
    ),
    Fault(
        name="half of what was charged published",
        wrong="Whoever derives a price from a published ledger counts each event once.",
        plant=partial(edited, published_price, "_events", "yield from entry.events", "yield from entry.events[:1]"),
        check=CHARGING,
    ),
)
CHARGE_FAULTS = (
    Fault(
        name="drawn before it is charged",
        wrong="A release that is refused has drawn its noise.",
        plant=partial(
            edited,
            Gate,
            "publish",
            "    self.charge(entry)\n    return self.play(entry, truth=truth, answer=answer)",
            "    made = self.play(entry, truth=truth, answer=answer)\n    self.charge(entry)\n    return made",
        ),
        check=CHARGING,
    ),
    Fault(
        name="each release compared with the whole budget",
        wrong="A ledger asks whether a release fits into the budget, and not whether all do.",
        plant=partial(edited, Ledger, "charge", "self._tallies = tallies", "pass"),
        check=CHARGING,
    ),
    Fault(
        name="a budget of a tenth more",
        wrong="A ledger admits releases of a little more than its budget.",
        plant=partial(
            edited, ledger, "_fits", "reserved_delta=total.delta) ** 2", "reserved_delta=total.delta) ** 2 * 1.1"
        ),
        check=CHARGING,
    ),
    Fault(
        name="sampled releases admitted without a price",
        wrong="Sampled releases are admitted as long as delta is left.",
        plant=partial(
            edited, ledger, "_fits", "if total.sampled:", "if total.sampled:\n        return True\n    if False:"
        ),
        check=CHARGING,
    ),
    Fault(
        name="delta that is set aside taken again and again",
        wrong="What a release takes of the delta that was set aside is still there for the next.",
        plant=partial(edited, Ledger, "charge", "max(0.0, self._aside - entry.from_aside)", "self._aside"),
        check=CHARGING,
    ),
    Fault(
        name="delta set aside without a charge",
        wrong="Delta is set aside for categories, and not charged.",
        plant=partial(edited, Ledger, "set_aside", "DeltaEvent(delta=spent)", "DeltaEvent(delta=0.0)"),
        check=CHARGING,
    ),
    Fault(
        name="a sealed part that costs nothing",
        wrong="What was sealed is not taken from the budget of what follows.",
        plant=partial(
            edited,
            Ledger,
            "open_budget",
            "epsilon=self.budget.epsilon - sum(part.epsilon[own] for part in self._sealed)",
            "epsilon=self.budget.epsilon",
        ),
        check=CHARGING,
    ),
    Fault(
        name="the delta of a sealed part left to what follows",
        wrong="A sealed part and what follows it are both priced at all of delta.",
        plant=partial(
            edited,
            Ledger,
            "open_budget",
            "delta=self.budget.delta - sum(part.delta for part in self._sealed)",
            "delta=self.budget.delta",
        ),
        check=CHARGING,
    ),
)
POLICY_FAULTS = (
    Fault(
        name="the delta of finished runs forgotten",
        wrong="A policy counts what runs set aside of delta, until they are done.",
        plant=partial(
            edited,
            policing,
            "cost_of_run",
            "Cost(amount=spent.gaussian, delta=spent.delta)",
            "Cost(amount=spent.gaussian, delta=0.0)",
        ),
        check=POLICY,
    ),
    Fault(
        name="unfinished runs counted by what they spent",
        wrong="What a run that is not finished may still spend is given to others.",
        plant=partial(
            edited,
            policing,
            "cost_of_run",
            "    if not run.is_open:\n        return Cost(amount",
            "    if True:\n        return Cost(amount",
        ),
        check=POLICY,
    ),
    Fault(
        name="runs that were given up forgotten",
        wrong="A run that was given up costs nothing, whatever it released.",
        plant=partial(
            edited,
            policing,
            "total_cost",
            "if run.planned.dataset == policy.dataset",
            "if run.planned.dataset == policy.dataset and run.outcome != 'given up'",
        ),
        check=POLICY,
    ),
    Fault(
        name="sampled runs counted by the releases they made",
        wrong="A run of sampled releases counts with what mu² says of it, which is nothing.",
        plant=partial(
            edited, policing, "cost_of_run", "if spent.sampled or (run.is_open and planned.sampled):", "if False:"
        ),
        check=POLICY,
    ),
    Fault(
        name="epsilon for mu",
        wrong="A run of sampled releases is taken for a Gaussian mechanism of mu = epsilon / 4.",
        plant=partial(edited, policing, "_mu_of_pure", "return -2", "return epsilon / 4 if epsilon else -2"),
        check=POLICY,
    ),
    Fault(
        name="closed runs given back by basic composition",
        wrong="By basic composition a run that is done costs nothing.",
        plant=partial(
            edited, policing, "cost_of_run", "if not run.is_open and not run.charged:", "if not run.is_open:"
        ),
        check=POLICY,
    ),
    Fault(
        name="one bound of two kept",
        wrong="A policy compares mu², and not delta.",
        plant=partial(edited, policing, "keeps", "and total.delta <= bound.delta * (1 + ROUNDING)", ""),
        check=POLICY,
    ),
    Fault(
        name="the run that asks not counted",
        wrong="A run is admitted if the earlier ones keep the policy.",
        plant=partial(
            edited, policing, "decide", "total_cost([*earlier, asked], candidate)", "total_cost(earlier, candidate)"
        ),
        check=POLICY,
    ),
    Fault(
        name="charges over what was set aside",
        wrong="A run may be charged for more than was set aside for it.",
        plant=partial(
            edited,
            store,
            "_over",
            "if any(after[each].gaussian > reserved_gaussian(planned, each) for each in Neighbours):",
            "if False:",
        ),
        check=POLICY,
    ),
)
LEDGER_FAULTS = (*PRICE_FAULTS, *CHARGE_FAULTS, *POLICY_FAULTS)

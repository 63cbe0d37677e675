"""Faults in what is charged, in the price of it, and in what a durable ledger admits."""

from __future__ import annotations

from functools import partial

from kamino.audit.planted.fault import Fault, edited
from kamino.audit.probes.policy_totals import POLICY
from kamino.privacy.durable import policing

LEDGER_FAULTS = (
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
)

"""Does the audit notice? Faults are planted in the code, one at a time: each must be caught, and clean code pass."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kamino.audit.auditing import Audit, Finding, Track, audit, untracked
from kamino.audit.probes import PROBES, Probe
from kamino.audit.subjects import DEFAULT, NEURAL, Subject
from kamino.planted.all_faults import FAULTS
from kamino.planted.fault import Fault

# Enough games to show a fault; a bound near the claim needs more.
FEW_RUNS = 2_000
_TRIES = 3


@dataclass(frozen=True, kw_only=True)
class Caught:
    """A planted fault, the check that must see it, and what that check said; nothing if it was missed."""

    fault: str
    wrong: str
    check: str
    said: str

    @property
    def is_caught(self) -> bool:
        """Whether the check saw the fault."""
        return bool(self.said)


@dataclass(frozen=True, kw_only=True)
class SelfTest:
    """What became of the planted faults, and what the checks found in the clean code. Made-up tables only: public."""

    faults: tuple[Caught, ...]
    clean: tuple[Audit, ...]
    probed: tuple[Finding, ...] = ()
    """What the probes found in the clean code."""
    sound: tuple[Finding, ...] = ()
    """What checks found in the clean code on the subjects in which they must see faults, where these are others."""
    left_out: int = 0
    """Faults that were not planted, for want of the neural extra."""

    @property
    def passed(self) -> bool:
        """Whether every fault was caught and the clean code has no problem."""
        return all(each.is_caught for each in self.faults) and self.is_clean

    @property
    def is_clean(self) -> bool:
        """Whether neither checks nor probes found a problem in the clean code."""
        found = (*self.probed, *self.sound)
        return all(each.passed for each in self.clean) and not any(each.problems for each in found)

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `json.dumps` takes."""
        return {
            "passed": self.passed,
            "faults": [{**asdict(each), "caught": each.is_caught} for each in self.faults],
            "clean": [each.to_json() for each in self.clean],
            "probes": [asdict(each) for each in self.probed],
            "sound": [asdict(each) for each in self.sound],
            "left_out": self.left_out,
        }


def self_test(*, runs: int = FEW_RUNS, track: Track = untracked, neural: bool | None = None) -> SelfTest:
    """Audit the clean code on all subjects and by all probes, then plant every fault and look whether it is caught.

    Without `neural`, the neural backend is tested where its extra is installed.

    Guarantees:
        Every fault is caught.  [test_every_planted_fault_is_caught]
        The clean code passes.  [test_the_clean_code_passes_the_audit, test_the_clean_code_passes_the_probes]
        A check that catches the clean code fails it.  [test_a_check_that_catches_the_clean_code_fails_the_self_test]
    """
    with_neural = has_neural() if neural is None else neural
    makers: Sequence[Callable[..., Subject]] = (*DEFAULT, *(NEURAL if with_neural else ()))
    clean = [audit(make(), runs=runs) for make in track("clean code")(makers)]
    probes: Iterable[Probe] = track("probes")(PROBES)
    probed = [Finding(check=probe.name, problems=probe.find()) for probe in probes]
    planted = [fault for fault in FAULTS if with_neural or not fault.neural]
    others = [fault for fault in planted if fault.subject is not None and fault.subject not in makers]
    tried: Iterable[Fault] = track("clean code, where faults show")(others)
    sound = [Finding(check=f"{fault.check.name} ({fault.name})", problems=fault.look()) for fault in tried]
    faults: Iterable[Fault] = track("planted faults")(planted)
    return SelfTest(
        clean=tuple(clean),
        probed=tuple(probed),
        sound=tuple(sound),
        faults=tuple(catch(fault) for fault in faults),
        left_out=len(FAULTS) - len(planted),
    )


def catch(fault: Fault) -> Caught:
    """Plant one fault, run its check or its probe, and take the fault out again.

    Guarantees:
        The code is as before.  [test_faults_are_taken_out_again]
    """
    problems: tuple[str, ...] = ()
    with fault.plant(), contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a fault makes numpy say is not asked
        # What a run asks for follows from its noise, and what training sees from its samples: in one run of about fifty
        # none of its releases shows the fault.
        for _ in range(_TRIES):
            problems = problems or fault.look()
    return Caught(fault=fault.name, wrong=fault.wrong, check=fault.check.name, said=problems[0] if problems else "")


def has_neural() -> bool:
    """Whether the neural extra is installed."""
    import importlib.util

    return all(importlib.util.find_spec(name) is not None for name in ("jax", "optax"))

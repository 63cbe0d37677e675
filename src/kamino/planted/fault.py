"""What a planted fault is, and what plants one: a change of a function that is taken out again.

Most are changes of a few characters in the real source, as `edited` makes them: should the code change, so that they
no longer fit, planting them fails and says so.

>>> from kamino.privacy import discrete_gaussian
>>> with edited(discrete_gaussian, "scale_for", "sigma**2 + ", "sigma**2 - "):
...     round(discrete_gaussian.scale_for(1.0), 3)
0.935
>>> round(discrete_gaussian.scale_for(1.0), 3)
1.061
"""

from __future__ import annotations
import __future__

import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from kamino.audit.auditing import Check, observe
from kamino.audit.probes import Probe
from kamino.audit.subjects import Subject
from kamino.privacy import Gate
from kamino.privacy.plan_guard import PlanGuard

PLANTED: list[object] = []
"""What stands in the place of something else at the moment."""
Plant: TypeAlias = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault: its name, what is wrong, how to plant it, and what must see it.

    That is a check of a run, with the subject in which the fault shows, or a probe.
    """

    name: str
    wrong: str
    plant: Plant
    check: Check | Probe
    subject: Callable[[], Subject] | None = None
    runs: int = 1_000
    neural: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.check, Check) != (self.subject is not None):
            raise ValueError(f"the fault {self.name!r} needs a subject for a check, and none for a probe")

    def look(self) -> tuple[str, ...]:
        """Return what the check or the probe finds in the code as it is now."""
        if isinstance(self.check, Probe):
            return self.check.first()
        assert self.subject is not None, "it was looked at"
        with unguarded():
            return self.check.first(observe(self.subject(), runs=self.runs))


@contextmanager
def unguarded() -> Iterator[None]:
    """Let runs release what they did not plan: a guard refuses some faults at once, and checks are tried without it.

    Guarantees:
        With the guard, a run that charges for something else is refused.  [test_the_guard_refuses_faults_of_noise]
    """
    clean = PlanGuard.refuses
    PlanGuard.refuses = False
    try:
        yield
    finally:
        PlanGuard.refuses = clean


@contextmanager
def patched(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Put something in the place of a name of a module or a class, which must be its own and no inherited one."""
    clean = owner.__dict__[name]
    setattr(owner, name, value)
    _forget()
    PLANTED.append(value)
    try:
        yield
    finally:
        setattr(owner, name, clean)
        _forget()
        PLANTED.remove(value)


@contextmanager
def all_of(*plants: AbstractContextManager[None]) -> Iterator[None]:
    """Several patches together."""
    with ExitStack() as stack:
        for each in plants:
            stack.enter_context(each)
        yield


def edited(owner: Any, name: str, old: str, new: str) -> AbstractContextManager[None]:
    """Change the source of a function of a module or a class in one place, wherever the function was imported to."""
    clean, planted = changed(owner, name, old, new)
    return patched(owner, name, planted) if inspect.isclass(owner) else everywhere(clean, planted)


def changed(owner: Any, name: str, old: str, new: str) -> tuple[Any, Any]:
    """Return a function of a module or a class, and what it is with another source in one place."""
    clean = owner.__dict__.get(name)
    if clean is None:
        raise LookupError(f"the fault no longer fits: {owner.__name__} has no {name} of its own")
    function = inspect.unwrap(getattr(clean, "fget", None) or getattr(clean, "__func__", clean))
    source = textwrap.dedent(inspect.getsource(function))
    if source.count(old) != 1:
        raise LookupError(f"the fault no longer fits: {owner.__name__}.{name} has not {old!r} in just one place")
    flags = __future__.annotations.compiler_flag
    code = compile(source.replace(old, new), inspect.getfile(function), "exec", flags=flags, dont_inherit=True)
    made: dict[str, Any] = {}
    exec(code, function.__globals__, made)
    return clean, made[name]


@contextmanager
def everywhere(clean: Any, planted: Any) -> Iterator[None]:
    """Put a function, or anything else, in the place of another in all modules of Kamino that hold it."""
    _swap(clean, planted)
    _forget()
    PLANTED.append(planted)
    try:
        yield
    finally:
        # Modules that were imported meanwhile hold it as well.
        _swap(planted, clean)
        _forget()
        PLANTED.remove(planted)


def _forget() -> None:
    """Empty all caches: what one code computed is not what another would."""
    for module in [each for key, each in sys.modules.items() if key.split(".")[0] == "kamino"]:
        for value in list(vars(module).values()):
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def _swap(old: Any, new: Any) -> None:
    for module in [each for key, each in sys.modules.items() if key.split(".")[0] == "kamino"]:
        for name in [name for name, value in vars(module).items() if value is old]:
            setattr(module, name, new)


def now(owner: Any, name: str) -> Any:
    """What stands in a module under a name that it imported."""
    return getattr(owner, name)


class Through:
    """A gate with some of its answers replaced; all else is the gate's."""

    def __init__(self, gate: Gate, **replaced: Any) -> None:
        self._gate = gate
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gate, name)

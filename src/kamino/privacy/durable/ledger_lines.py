"""What the lines of a durable ledger say, as types; all that is read is checked, since a file may come from anybody.

The kinds of lines: `ledger` (the first), `policy` (for a dataset; the last one counts), `run` (a run is allowed, and
its whole budget set aside), `charge` (one release of it, before it is drawn), `stored` (it was drawn and is in the
run's file of stored releases, before anybody sees it) and `close` (the run makes no more releases). In format 1 there
were no `stored` lines; a `format` line says that the runs behind it have them. No line holds a private value, nor a
time but that at which a run began, before it read anything.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from kamino.errors import KaminoError, LedgerError
from kamino.limits import MAX_COUNT, MAX_NAME_CHARS
from kamino.privacy.accounting.budget import Budget, Neighbours
from kamino.privacy.accounting.events import DeltaEvent, Event, Events, GaussianEvent, PoissonGaussianEvent
from kamino.privacy.durable.hash_chain import canonical
from kamino.privacy.ledger import Entry

FORMAT = 2
_FORMATS = (1, FORMAT)
_HEX = frozenset("0123456789abcdef")
_HEX_CHARS = 64
_EVENTS: Mapping[str, type[Event]] = {kind.__name__: kind for kind in (GaussianEvent, PoissonGaussianEvent, DeltaEvent)}


class Composition(Enum):
    """How the runs of a dataset add up."""

    GAUSSIAN = "gaussian"
    """All releases together, as one Gaussian mechanism: mu² adds up."""
    BASIC = "basic"
    """Epsilon adds up over runs, and so does delta."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The most that all runs about a dataset may cost together.

    `unit` is the column that says whose a row is, None for single rows: runs about another unit are refused.
    `finding_delta` is the part of delta that finding categories may take, in all runs together; None where it is still
    to be decided, with the first run (see `kamino.privacy.durable.policing`).
    """

    dataset: str
    budget: Budget
    unit: str | None = None
    composition: Composition = Composition.GAUSSIAN
    finding_delta: float | None = None

    def __post_init__(self) -> None:
        _check_names(self.dataset, self.unit)
        if not self.budget.is_private:
            raise LedgerError("a policy needs a finite epsilon; found inf")
        if self.finding_delta is not None and not 0 <= self.finding_delta < self.budget.delta:
            raise LedgerError(
                f"found {self.finding_delta:g} of delta for finding categories, expected less than the policy's "
                f"delta, {self.budget.delta:g}"
            )

    def to_body(self) -> dict[str, Any]:
        """The line."""
        return {
            "kind": "policy",
            "dataset": self.dataset,
            **_budget_body(self.budget),
            "unit": self.unit,
            "composition": self.composition.value,
            "finding_delta": self.finding_delta,
        }


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """A run as it is entered, before it reads anything: what it may spend at most.

    `plan` is a hash of all that decides its releases, besides the table. `gaussian` is the most mu² of its Gaussian
    releases under its own relation, and `finding_delta` the most that its delta events take. With `sampled`, it may
    make sampled releases, which mu² does not bound: the whole run is taken for (epsilon, delta)-private then.
    """

    run: str
    dataset: str
    command: str
    plan: str
    started: str
    version: str
    budget: Budget
    unit: str | None
    max_rows: int
    gaussian: float
    finding_delta: float
    sampled: bool
    mark: str

    def __post_init__(self) -> None:
        _check_names(self.run, self.dataset, self.command, self.plan, self.started, self.version, self.unit)
        if not self.mark.isprintable() or not (self.gaussian >= 0 and self.finding_delta >= 0):
            raise LedgerError("found a run with a mark or a price that makes no sense")

    def to_body(self) -> dict[str, Any]:
        """The line."""
        plain = {name: value for name, value in vars(self).items() if name != "budget"}
        return {"kind": "run", **plain, **_budget_body(self.budget)}


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One release of a run, numbered from 1; `entry` is a hash of all that is public about it."""

    run: str
    number: int
    entry: str
    events: Events


@dataclass(frozen=True, kw_only=True)
class StoredRelease:
    """A release that was drawn and stored: its number in the run, the hash of its line in the file of stored releases,
    which vouches for all lines before it, and the key that opens it there.
    """

    run: str
    number: int
    hash: str
    key: str

    def to_body(self) -> dict[str, Any]:
        """The line."""
        return {"kind": "stored", **vars(self)}


def charge_body(run: str, number: int, entry: Entry) -> dict[str, Any]:
    """The line of a release."""
    return {"kind": "charge", "run": run, "number": number, "entry": entry_body(entry)}


def close_body(run: str, outcome: str) -> dict[str, Any]:
    """The line that ends a run: `outcome` is "done" or "given up"."""
    return {"kind": "close", "run": run, "outcome": outcome}


def header_body(identity: str, version: str) -> dict[str, Any]:
    """The first line."""
    return {"kind": "ledger", "format": FORMAT, "id": identity, "version": version}


def format_body() -> dict[str, Any]:
    """The line of a file of an earlier format behind which runs are of this one."""
    return {"kind": "format", "format": FORMAT}


def entry_body(entry: Entry) -> dict[str, Any]:
    """A release as plain data, exactly: numbers that are not finite are texts."""
    return {
        "kind": entry.kind,
        "what": entry.what,
        "attributes": list(entry.attributes),
        "events": [{"type": type(event).__name__, "count": count, **asdict(event)} for event, count in entry.events],
        "sigma": _number(entry.sigma),
        "sensitivity": _number(entry.sensitivity),
        "grid": _number(entry.grid),
        "shape": list(entry.shape),
        "parameters": [[name, _number(value)] for name, value in entry.parameters],
        "from_aside": _number(entry.from_aside),
    }


def entry_hash(body: Mapping[str, Any]) -> str:
    """A short name of a release: two that differ in anything have two."""
    return hashlib.sha256(canonical(body).encode("ascii")).hexdigest()


def read_policy(body: Mapping[str, Any]) -> Policy:
    """Read a line of its kind; raises a `LedgerError` that says what is wrong, as all readers here do."""
    unit, finding = body.get("unit"), body.get("finding_delta")
    found: Policy = _made(
        Policy,
        dataset=_name(body, "dataset"),
        budget=_budget(body),
        unit=None if unit is None else _name(body, "unit"),
        composition=_member(Composition, body, "composition"),
        finding_delta=None if finding is None else _real(body, "finding_delta"),
    )
    return found


def read_run(body: Mapping[str, Any]) -> PlannedRun:
    """Read a line of its kind."""
    unit = body.get("unit")
    found: PlannedRun = _made(
        PlannedRun,
        **{name: _name(body, name) for name in ("run", "dataset", "command", "plan", "started", "version")},
        budget=_budget(body),
        unit=None if unit is None else _name(body, "unit"),
        max_rows=_whole(body, "max_rows", least=1),
        gaussian=_real(body, "gaussian"),
        finding_delta=_real(body, "finding_delta"),
        sampled=_of(bool, body, "sampled"),
        mark=_of(str, body, "mark"),
    )
    return found


def read_charge(body: Mapping[str, Any]) -> Charge:
    """Read a line of its kind."""
    entry = _of(dict, body, "entry")
    listed = _of(list, entry, "events")
    return Charge(
        run=_name(body, "run"),
        number=_whole(body, "number", least=1),
        entry=entry_hash(entry),
        events=tuple(_event(each) for each in listed),
    )


def read_stored(body: Mapping[str, Any]) -> StoredRelease:
    """Read a line of its kind."""
    hashes = {name: _of(str, body, name) for name in ("hash", "key")}
    if any(len(text) != _HEX_CHARS or set(text) - _HEX for text in hashes.values()):
        raise LedgerError(f"found no hash and key of {_HEX_CHARS} digits")
    return StoredRelease(run=_name(body, "run"), number=_whole(body, "number", least=1), **hashes)


def read_close(body: Mapping[str, Any]) -> tuple[str, str]:
    """Read a line of its kind: which run, and how it ended."""
    return _name(body, "run"), _name(body, "outcome")


def read_header(body: Mapping[str, Any]) -> tuple[str, int]:
    """The id of a ledger, and its format; refuses a file of hashed lines that is none, or one of a newer Kamino."""
    if body.get("kind") != "ledger":
        raise LedgerError("found something else, expected a ledger")
    return str(body.get("id")), read_format(body)


def read_format(body: Mapping[str, Any]) -> int:
    """The format that a line names."""
    found = body.get("format")
    if isinstance(found, bool) or not isinstance(found, int) or found not in _FORMATS:
        raise LedgerError(
            f"found a ledger of format {str(found)[:20]}, expected {FORMAT} or an earlier one; it was made by "
            "another version of Kamino, use that one or a newer"
        )
    return found


def _budget_body(budget: Budget) -> dict[str, Any]:
    return {"epsilon": budget.epsilon, "delta": budget.delta, "neighbours": budget.neighbours.value}


def _budget(body: Mapping[str, Any]) -> Budget:
    found: Budget = _made(
        Budget,
        epsilon=_real(body, "epsilon"),
        delta=_real(body, "delta"),
        neighbours=_member(Neighbours, body, "neighbours"),
    )
    return found


def _event(body: object) -> tuple[Event, int]:
    name = body.get("type") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(name, str) or name not in _EVENTS:
        raise LedgerError("found an event of a kind that cannot be priced")
    kind = _EVENTS[name]
    fields = {name: _real(body, name) for name in body if name not in ("type", "count")}
    return _made(kind, **fields), _whole(body, "count", least=1)


def _made(kind: Any, **fields: Any) -> Any:
    """Make a value whose own checks may refuse."""
    try:
        return kind(**fields)
    except LedgerError:
        raise
    except (KaminoError, TypeError) as problem:
        raise LedgerError(f"found a wrong {kind.__name__}: {str(problem).rstrip('.')}") from None


def _number(value: float) -> float | str:
    return float(value) if math.isfinite(value) else str(float(value))


def _of(kind: type[Any], body: Mapping[str, Any], name: str) -> Any:
    value = body.get(name)
    if not isinstance(value, kind):
        raise LedgerError(f"found no {name!r} that is a {kind.__name__}")
    return value


def _name(body: Mapping[str, Any], name: str) -> str:
    text = str(_of(str, body, name))
    _check_names(text)
    return text


def _check_names(*texts: str | None) -> None:
    """Refuse what could not be shown on a terminal, where a file may come from anybody."""
    for text in texts:
        if text is not None and not (0 < len(text) <= MAX_NAME_CHARS and text.isprintable()):
            raise LedgerError(
                f"found a name of {len(text)} characters, expected 1 to {MAX_NAME_CHARS}, all of them printable"
            )


def _real(body: Mapping[str, Any], name: str) -> float:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LedgerError(f"found no {name!r} that is a number")
    try:
        return float(value)
    except OverflowError:
        raise LedgerError(f"found {name!r} beyond any number") from None


def _whole(body: Mapping[str, Any], name: str, *, least: int) -> int:
    value = body.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_COUNT:
        raise LedgerError(f"found no {name!r} that is a whole number from {least} to {MAX_COUNT:,}")
    return value


def _member(kind: type[Any], body: Mapping[str, Any], name: str) -> Any:
    try:
        return kind(body.get(name))
    except ValueError:
        raise LedgerError(f"found {name!r} that is none of {', '.join(each.value for each in kind)}") from None

"""The checks of an audit, each a general one, and what they find in a subject.

None of them looks for a particular fault: `kamino.planted.self_test` plants faults to see that they are noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from kamino.audit.playing import GameResult, affordable, play, questions_of, worst_pair
from kamino.audit.repricing import price_problems
from kamino.audit.subjects import Subject
from kamino.privacy import Gate, SecureNoise
from kamino.privacy.ledger import Ledger
from kamino.testing.compensating import compensate
from kamino.testing.noise_checks import noise_problems
from kamino.testing.replay import Recording, ReplayReport, record

Track: TypeAlias = Callable[[str], Callable[[Iterable[Any]], Iterable[Any]]]
"""Shows how far a loop is, given what it does."""


def untracked(label: str) -> Callable[[Iterable[Any]], Iterable[Any]]:
    """Show nothing."""
    del label
    return iter


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Observation:
    """A subject that was run once with noise of the operating system, all its releases, and its ledger.

    It holds private data.
    """

    subject: Subject
    recording: Recording
    ledger: Ledger
    runs: int | None = None
    track: Track = untracked
    played: list[GameResult] = field(default_factory=list)
    _near: dict[str, ReplayReport] = field(default_factory=dict)

    def near(self) -> dict[str, ReplayReport]:
        """Return what a replay on each neighbour found, with the truths on both; played once."""
        return dict(self.plays())

    def plays(self) -> Iterator[tuple[str, ReplayReport]]:
        """Replay on one neighbour after the other, as far as somebody asks."""
        for name, table in self.track("neighbours")(list(self.subject.near.items())):
            if name not in self._near:
                self._near[name] = self.recording.play(table)
            yield name, self._near[name]


def observe(subject: Subject, *, runs: int | None = None, track: Track = untracked) -> Observation:
    """Run a subject on its table, with noise of the operating system, and keep everything."""
    recording, ledger = _recorded(subject)
    return Observation(subject=subject, recording=recording, ledger=ledger, runs=runs, track=track)


def _recorded(subject: Subject) -> tuple[Recording, Ledger]:
    gates: list[Gate] = []

    def run(table: Any, gate: Gate) -> object:
        gates.append(gate)
        return subject.run(table, gate)

    recording = record(run, subject.table, budget=subject.budget, unit=subject.unit, noise=SecureNoise())
    return recording, gates[0].ledger


def _on_neighbours(seen: Observation) -> Iterator[str]:
    for name, report in seen.plays():
        yield from (f"{name}: {problem}" for problem in report.problems)


def _on_strangers(seen: Observation) -> Iterator[str]:
    tables = list(seen.subject.strange.items())
    for name, table in seen.track("other tables")(tables):
        yield from (f"{name}: {problem}" for problem in seen.recording.play(table, neighbour=False).problems)


def _in_mechanisms(seen: Observation) -> tuple[str, ...]:
    subject = seen.subject
    if subject.is_slow:
        return ()  # the mechanisms of the default backend, which are made again there
    tables = seen.track("mechanisms")(list(subject.strange.values()))
    return compensate(subject.run, subject.table, tables, budget=subject.budget, unit=subject.unit)


def _in_noise(seen: Observation) -> tuple[str, ...]:
    """Two runs, looked at together: nothing of one may be in the other. Of slow ones the first, and its samples."""
    if not seen.subject.is_slow:
        second, _ = _recorded(seen.subject)
        return noise_problems((*seen.recording.records, *second.records))
    from kamino.audit.sampled_game import descents_of, draw_problems

    return (*noise_problems(seen.recording.records), *draw_problems(descents_of(seen.ledger)))


def _in_price(seen: Observation) -> tuple[str, ...]:
    return price_problems(seen.recording.records, seen.ledger)


def _in_game(seen: Observation) -> tuple[str, ...]:
    """The game is kept in the observation, for its bound."""
    if not seen.ledger.budget.is_private:
        return ()
    sampled: list[Any] = []
    left_out = 0
    problems: tuple[str, ...] = ()
    if any(entry.kind in ("gradients", "sample") for entry in seen.ledger.entries):
        from kamino.audit.sampled_game import descents_of, loop_problems, num_left_out

        sampled, left_out = list(descents_of(seen.ledger)), num_left_out(seen.ledger)
        problems = loop_problems(sampled)
    name, pairs, mu = worst_pair({name: report.pairs for name, report in seen.near().items()})
    questions = [*questions_of(pairs, seen.ledger.budget.neighbours), *sampled]
    runs = seen.runs or affordable(questions, seen.ledger)
    track = seen.track(f"{runs:,} games")
    result = play(questions, seen.ledger, pair=name, runs=runs, mu=mu, left_out=left_out, track=track)
    seen.played.append(result)
    return (*problems, *result.problems)


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check: what it does, what it means if nothing is found, and what it cannot show."""

    name: str
    does: str
    shows: str
    cannot: str
    search: Callable[[Observation], Iterable[str]]

    def find(self, seen: Observation) -> tuple[str, ...]:
        """Return all problems that the check finds."""
        return tuple(self.search(seen))

    def first(self, seen: Observation) -> tuple[str, ...]:
        """Return the first problem, or nothing: enough to see that something is wrong."""
        return tuple(problem for problem, _ in zip(self.search(seen), range(1), strict=False))


NEIGHBOURS = Check(
    name="neighbours",
    does="The run is repeated on neighbours of the table, the extreme ones included, with the recorded releases.",
    shows="On these, nothing leaves around the releases, and no true answer moves further than declared.",
    cannot="Other neighbours were not tried; that sensitivities hold for all is proved in the code, not here.",
    search=_on_neighbours,
)
STRANGERS = Check(
    name="other tables",
    does="The same on tables that are no neighbours: empty, all null, longer, shorter, shuffled, odd cells.",
    shows="What comes out follows from the releases alone: no count, type, order or error from the table.",
    cannot="Reading the file is not repeated, and neither time nor memory is compared.",
    search=_on_strangers,
)
MECHANISMS = Check(
    name="mechanisms",
    does="Each release is made again on another table, with the noise changed by what the truth moved.",
    shows="A mechanism shows truth plus noise, and nothing else of the truth.",
    cannot="Sampled releases draw from coins of their own and are left out; see the games.",
    search=_in_mechanisms,
)
NOISE = Check(
    name="noise",
    does="The noise of two runs is looked at: what was released less what is true.",
    shows="It is fresh in every release and coordinate, centred, and as large as declared.",
    cannot="Its distribution is tested elsewhere, on many more draws; gradients have rounded floating-point noise.",
    search=_in_noise,
)
PRICE = Check(
    name="price",
    does="What was released is priced again from its noise, without the library that priced the ledger.",
    shows="The ledger covers all releases, their noise and their delta, and the total is within the budget.",
    cannot="Sensitivities are taken as declared, and both prices are numerical.",
    search=_in_price,
)
GAME = Check(
    name="games",
    does="On the worst neighbour found, a player who knows both tables guesses from the releases which was used.",
    shows="He wins as often as the claim allows, and not more: a lower bound of epsilon beside the claim.",
    cannot="A lower bound is no proof: a better pair or player may exist. Events as rare as delta are not seen.",
    search=_in_game,
)
CHECKS = (NEIGHBOURS, STRANGERS, MECHANISMS, NOISE, PRICE, GAME)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one check found; no problems means that it passed. Problems hold no value of the table."""

    check: str
    problems: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What all checks found in one subject. For the owner of the table, not for release."""

    subject: str
    epsilon: float
    delta: float
    releases: int
    findings: tuple[Finding, ...]
    game: GameResult | None = None

    @property
    def passed(self) -> bool:
        """Whether no check found a problem."""
        return not any(finding.problems for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return plain data that `json.dumps` takes."""
        found = asdict(self)
        if self.game is not None:
            found["game"] |= {"ratio": self.game.ratio}
        return {**found, "passed": self.passed}


def audit(
    subject: Subject, *, runs: int | None = None, track: Track = untracked, checks: Sequence[Check] = CHECKS
) -> Audit:
    """Run all checks on a subject; without `runs`, with as many games as take less than a minute.

    Guarantees:
        The clean code passes.  [test_the_clean_code_passes_the_audit]
        Every planted fault is found by a check.  [test_every_planted_fault_is_caught]
    """
    seen = observe(subject, runs=runs, track=track)
    findings = tuple(Finding(check=check.name, problems=check.find(seen)) for check in checks)
    return Audit(
        subject=subject.name,
        epsilon=subject.budget.epsilon,
        delta=subject.budget.delta,
        releases=len(seen.ledger.entries),
        findings=findings,
        game=seen.played[-1] if seen.played else None,
    )

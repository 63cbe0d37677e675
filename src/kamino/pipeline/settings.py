"""What a run is asked to do. Public, and the same for every table."""

from __future__ import annotations

import enum
import math
import numbers
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any

from kamino.errors import InputError, PrivacyError
from kamino.limits import MAX_UNIT_ROWS
from kamino.privacy import Budget, Neighbours, PrivacyUnit
from kamino.sampling import Sampling

# Says that one row is the unit whose privacy is promised, where that is not taken for granted.
ROW = "row"


class Backend(enum.StrEnum):
    """Which tuple model is fitted."""

    MARGINAL = "marginal"
    NEURAL = "neural"


class SequenceMode(enum.StrEnum):
    """How the order of attributes is chosen; `PAPER` is the paper's Algorithm 4 as printed."""

    PLANNED = "planned"
    RANDOM = "random"
    PAPER = "paper"


class Training(enum.StrEnum):
    """How the neural backend is trained: as the budget asks for, or with the paper's own networks and ranges."""

    FITTED = "fitted"
    PRINTED = "printed"


class WeightMode(enum.StrEnum):
    """How the weights of soft constraints are found: by matching rates, or by the paper's Algorithm 5."""

    MATCHING = "matching"
    PAPER = "paper"


class Engine(enum.StrEnum):
    """Where counts are computed: in memory, in passes over a file or a table of a database, or on the executors of
    Spark; `AUTO` chooses by kind and size.
    """

    AUTO = "auto"
    MEMORY = "memory"
    STREAMED = "streamed"
    SPARK = "spark"


class Preset(enum.StrEnum):
    """A set of choices that belong together."""

    DEFAULT = "default"
    PAPER = "paper"
    """The paper's own way, with its errors mended."""
    PRINTED = "printed"
    """The same as the paper prints it, where that keeps its promises."""


# The panel of `--help` with choices of the method.
METHOD = "Method"


@dataclass(frozen=True, kw_only=True)
class Flag:
    """How a setting is given on the command line: its flags, what `--help` says, and the panel where it stands."""

    names: tuple[str, ...]
    help: str
    panel: str | None = None
    # Whether `--help` shows the least that the setting may be.
    bounded: bool = True


def _said(text: str, *flags: str, least: int | None = None, **shown: Any) -> Mapping[str, Any]:
    """What a field of `Settings` does, in Python and on the command line, and the least that it may be."""
    return {"text": text, "flag": Flag(names=flags, **shown) if flags else None, "least": least}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The choices of one run. Every field may be published.

    Each field says what it does, in Python and on the command line; `Synthesizer` and the options follow.

    Guarantees:
        A value of a wrong type is refused by name.  [test_wrong_types_are_told]
        Every field is a keyword of `Synthesizer`, in the words of the field.  [test_every_setting_is_a_keyword]
        Every flag is an option, with the words of the field.  [test_help_is_as_it_was]
    """

    epsilon: float = field(
        default=1.0,
        metadata=_said(
            "the privacy loss that is allowed; smaller is more private, infinity is not private.",
            "-e",
            "--epsilon",
            help="Privacy loss allowed; smaller is more private. inf: not private.",
        ),
    )
    delta: float = field(
        default=1e-6,
        metadata=_said(
            "the chance that is allowed for a larger loss than epsilon; below one over the number of rows.",
            "-d",
            "--delta",
            help="Chance allowed for more than epsilon.",
        ),
    )
    neighbours: Neighbours = field(
        default=Neighbours.ADD_REMOVE,
        metadata=_said(
            'which two tables no one can tell apart: "add_remove", one has a row more (the default), or "replace", one '
            "row differs.",
            "--neighbours",
            help="One person's data is a row more or less, or a row replaced.",
            panel=METHOD,
        ),
    )
    unit: str | None = field(
        default=None,
        metadata=_said(
            'the column that says whose a row is, to protect all rows of a person; needs `max_rows`. Or "row", to say '
            "that one row is what is protected; asked for where a column looks like the id of a person.",
            "--unit",
            help="Whose privacy: a column that says whose a row is, to hide all rows of one person together (with "
            "--max-rows); or row, to hide one row. Asked for where a column looks like the id of a person.",
        ),
    )
    max_rows: int | None = field(
        default=None,
        metadata=_said(
            "how many rows of one unit are kept, chosen at random; the more, the more noise.",
            "--max-rows",
            help="Rows kept of one unit.",
            least=1,
        ),
    )
    trust_domain: bool = field(
        default=False,
        metadata=_said(
            "say that types, values and ranges in the table are public, and use them. Otherwise what the schema does "
            "not declare is found within the budget.",
            "--trust-domain",
            help="Types, values and ranges in the table are public: use them.",
        ),
    )
    discovery_share: float | None = field(
        default=None,
        metadata=_said(
            "the part of the budget that finding types and domains takes, if some are missing; None to have it follow "
            "from the number of columns and the noisy number of rows.",
        ),
    )
    anyway: bool = field(
        default=False,
        metadata=_said(
            "go on where most columns turn out useless with the domains that were found, or hidden by noise.",
            "--anyway",
            help="Go on even if most columns turn out useless: not found, or hidden by noise.",
        ),
    )
    value_lists: tuple[tuple[str, str], ...] = field(
        default=(),
        metadata=_said(
            'columns whose values are those of a public list, such as `[("state", "us-states")]`.',
            "--public-list",
            help="COLUMN=LIST: its values are those of a public list (country-codes, currency-codes, us-states, "
            "us-state-codes); may be repeated.",
        ),
    )
    backend: Backend = field(
        default=Backend.MARGINAL,
        metadata=_said(
            'the model: "marginal" (the default), or "neural".',
            "--backend",
            help="The model: marginal, or neural.",
            panel=METHOD,
        ),
    )
    sampling: Sampling = field(
        default=Sampling.CONSTRAINT_AWARE,
        metadata=_said(
            'how rows are drawn: "constraint-aware" (the default), "row-by-row" and others of `kamino.Sampling`.',
            "--sampling",
            help="How rows are drawn; constraint-aware, row-by-row and printed keep hard constraints.",
            panel=METHOD,
        ),
    )
    sequence: SequenceMode = field(
        default=SequenceMode.PLANNED,
        metadata=_said(
            'how attributes are ordered: "planned" (the default), "random" or "paper".',
            "--sequence",
            help="How attributes are ordered.",
            panel=METHOD,
        ),
    )
    weights: WeightMode = field(
        default=WeightMode.MATCHING,
        metadata=_said(
            'how soft constraints are weighed: "matching" (the default) or "paper".',
            "--weights",
            help="How soft constraints are weighed.",
            panel=METHOD,
        ),
    )
    training: Training = field(
        default=Training.FITTED,
        metadata=_said(
            'how the neural backend is trained: "fitted" to the budget, or "printed", as the paper has it.',
            "--training",
            help="The neural model: fitted to the budget, or as the paper prints it (needs kamino-synth[neural]).",
            panel=METHOD,
        ),
    )
    sweeps: int = field(
        default=4,
        metadata=_said(
            "how often rows are drawn again for soft constraints (4).",
            "--sweeps",
            help="How often rows are drawn again for soft constraints (4; paper: 0).",
            panel=METHOD,
            least=0,
        ),
    )
    candidates: int = field(
        default=10,
        metadata=_said(
            "how many values of a number are tried for a row, by row-by-row sampling (10).",
            "--candidates",
            help="Values tried for a number, by row-by-row (10).",
            panel=METHOD,
            least=1,
        ),
    )
    jobs: int = field(
        default=1,
        metadata=_said(
            "parts of a neural model trained at a time (1).",
            "--jobs",
            help="Parts of a neural model trained at a time (1).",
            panel=METHOD,
            least=1,
        ),
    )
    cluster: str | None = field(
        default=None,
        metadata=_said(
            "the address of a Dask cluster that trains them, which then sees private rows.",
            "--cluster",
            help="Address of a Dask cluster to train on; it sees private rows.",
            panel=METHOD,
        ),
    )
    engine: Engine = field(
        default=Engine.AUTO,
        metadata=_said(
            'where counts are computed: "memory", "streamed" (in passes over Parquet, CSV, DuckDB or PostgreSQL, for '
            'tables that are larger than memory), "spark" (on its executors), or "auto", by kind and size of the '
            "table.",
            "--engine",
            help="Where counts are computed: memory; streamed, for tables larger than that; spark. By default by kind "
            "and size.",
            panel=METHOD,
        ),
    )
    accept: bool = field(
        default=False,
        metadata=_said(
            "mark what is drawn for release although epsilon is above 10, delta is above one over the rows, or real "
            "ids of persons, or values that one row alone has, are written because domains are trusted.",
            "--accept",
            help="Mark the table for release although epsilon is above 10, delta is above 1/rows or 0.01, or "
            "--trust-domain writes real ids of persons, or values that one row alone has (names, addresses, comments).",
        ),
    )
    seed: int | None = field(
        default=None,
        metadata=_said(
            'for tests only; fixes noise and draws, and marks the run "not for release".',
            "--seed",
            help="For tests only: repeats the run, to the byte on one machine with the same versions, and marks it "
            "'not for release'.",
            bounded=False,
            least=0,
        ),
    )
    # Fixes choices that cost no privacy and nothing else, so that a run can go on as it began; for nobody to give.
    draw_seed: int | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            kind = _CHOICES.get(each.name)
            fit = _choice(each.name, kind, value) if kind is not None else _of_type(each.name, str(each.type), value)
            object.__setattr__(self, each.name, fit)
        object.__setattr__(self, "value_lists", _pairs("value_lists", self.value_lists))
        if self.discovery_share is not None and not 0 < self.discovery_share < 0.95:
            raise PrivacyError(f"discovery_share is {self.discovery_share}; expected a number between 0 and 0.95.")
        if not self.is_by_row and (self.unit is None) != (self.max_rows is None):
            raise PrivacyError("unit and max_rows belong together: whose rows, and how many of them are kept.")
        if self.max_rows is not None and self.max_rows > MAX_UNIT_ROWS:
            raise PrivacyError(
                f"max_rows is {self.max_rows:,}; expected at most {MAX_UNIT_ROWS:,}: noise grows with it."
            )
        for each in fields(self):
            value, least = getattr(self, each.name), each.metadata.get("least")
            if least is not None and value is not None and value < least:
                raise InputError(f"found {each.name} {value}; expected {least} or more")
        _ = self.budget, self.privacy_unit

    @property
    def budget(self) -> Budget:
        """The privacy budget."""
        return Budget(epsilon=self.epsilon, delta=self.delta, neighbours=self.neighbours)

    @property
    def chance(self) -> int | None:
        """The seed of choices that cost no privacy: orders by chance, weights, rows; None for one of the system."""
        return self.seed if self.seed is not None else self.draw_seed

    @property
    def privacy_unit(self) -> PrivacyUnit:
        """Whose privacy is promised."""
        return PrivacyUnit() if self.is_by_row else PrivacyUnit(column=self.unit, max_rows=self.max_rows or 1)

    @property
    def is_by_row(self) -> bool:
        """Whether somebody said that one row is the privacy unit; a column of that name comes with `max_rows`."""
        return self.unit == ROW and self.max_rows is None

    @staticmethod
    def of(preset: Preset | str = Preset.DEFAULT, **given: Any) -> Settings:
        """The choices of a preset, but for those given; None stands for a choice that is not given.

        >>> Settings.of("paper", sweeps=0).backend.value
        'neural'

        Guarantees:
            What is given wins over the preset.  [test_what_is_given_wins_over_the_preset]
        """
        known = [each.name for each in fields(Settings)]
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise InputError(f"found unknown settings: {', '.join(unknown)}; expected some of {', '.join(known)}")
        chosen = {name: value for name, value in given.items() if value is not None}
        return Settings(**{**PRESETS[_choice("preset", Preset, preset)], **chosen})

    def to_json(self) -> dict[str, Any]:
        """Plain data that `json.dumps` takes, without facts of one run or machine; an infinite epsilon is null."""
        given = {name: value for name, value in asdict(self).items() if name not in _OF_ONE_MACHINE}
        plain = {name: value.value if isinstance(value, enum.Enum) else value for name, value in given.items()}
        return {
            **plain,
            "epsilon": None if math.isinf(self.epsilon) else self.epsilon,
            "value_lists": [list(each) for each in self.value_lists],
        }

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Settings:
        """Read what `to_json` wrote; what it lacks is as by default."""
        epsilon = document.get("epsilon", 1.0)
        return Settings(**{**document, "epsilon": math.inf if epsilon is None else epsilon})


# What changes nothing that a run lets out, or belongs to one run.
_OF_ONE_MACHINE = ("jobs", "cluster", "engine", "draw_seed")

_CHOICES: Mapping[str, type[enum.Enum]] = MappingProxyType(
    {
        "neighbours": Neighbours,
        "backend": Backend,
        "sampling": Sampling,
        "sequence": SequenceMode,
        "weights": WeightMode,
        "training": Training,
        "engine": Engine,
    }
)

PRESETS: Mapping[Preset, Mapping[str, Any]] = MappingProxyType(
    {
        Preset.DEFAULT: {},
        Preset.PAPER: {
            "backend": Backend.NEURAL,
            "sequence": SequenceMode.PAPER,
            "sampling": Sampling.ROW_BY_ROW,
            "sweeps": 0,
            "neighbours": Neighbours.REPLACE,
        },
        Preset.PRINTED: {
            "backend": Backend.NEURAL,
            "sequence": SequenceMode.PAPER,
            "sampling": Sampling.PRINTED,
            "weights": WeightMode.PAPER,
            "training": Training.PRINTED,
            "sweeps": 0,
            "neighbours": Neighbours.REPLACE,
        },
    }
)


# What the fields of plain types take, what they keep it as, and its name for people.
_TYPES: Mapping[str, tuple[type, type, str]] = MappingProxyType(
    {
        "float": (numbers.Real, float, "a number"),
        "int": (numbers.Integral, int, "a whole number"),
        "str": (str, str, "text"),
        "bool": (bool, bool, "True or False"),
    }
)


def _of_type(name: str, annotation: str, value: Any) -> Any:
    """The value as the annotation of its field has it; numbers of numpy become Python's."""
    plain = annotation.removesuffix(" | None")
    if plain not in _TYPES or (value is None and plain != annotation):
        return value
    taken, kept, words = _TYPES[plain]
    if not isinstance(value, taken) or (isinstance(value, bool) and kept is not bool):
        raise InputError(f"found {name} {value!r} of type {type(value).__name__}; expected {words}")
    return kept(value)


def _pairs(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    """Pairs of texts, from a sequence of them or from a mapping."""
    listed = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(listed, list | tuple) or not all(
        isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(each, str) for each in pair)
        for pair in listed
    ):
        raise InputError(f"found {name} {value!r}; expected pairs of texts, such as [('state', 'us-states')]")
    return tuple((first, second) for first, second in listed)


def _choice(name: str, kind: type[enum.Enum], value: object) -> Any:
    """The member of an enumeration that a word names."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(each.value for each in kind)
        raise InputError(f"found {name} {value!r}; expected one of {known}") from None

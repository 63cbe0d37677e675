"""What is asked of the parts of a model file before any of them is used: the file may come from anybody."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields as fields_of
from typing import TYPE_CHECKING, Any, NoReturn, get_args, get_origin, get_type_hints

import pyarrow as pa

from kamino.constraints import Constraints, print_constraint
from kamino.constraints.analysis.classify import dependency_of
from kamino.engine.discovery import FoundDomains
from kamino.engine.lost_cells import Lost
from kamino.errors import KaminoError, ModelError
from kamino.io.frame_types import FrameKind
from kamino.layout.offsets import Offsets
from kamino.layout.table_layout import Layout
from kamino.model.saved import Fields, shown
from kamino.pipeline.plan.bound_schema import bind_constraints
from kamino.pipeline.plan.hints import model_attributes
from kamino.pipeline.plan.references import References, from_json
from kamino.pipeline.settings import Settings
from kamino.privacy import Neighbours
from kamino.privacy.noise import NOT_FOR_RELEASE, NOT_PRIVATE
from kamino.sampling.drawn_groups import GroupSizes
from kamino.sampling.soft.weights import FoundWeights
from kamino.schema import Schema

if TYPE_CHECKING:
    from kamino.pipeline.fitted import Fitted

# A list of JSON takes sixty bytes and more in memory for two in the file, a value of YAML a thousand for two.
_MOST_BRACKETS = 1_000_000
_MOST_YAML_VALUES = 500_000
_MOST_CONSTRAINT_TEXT = 1 << 20
_MOST_SHOWN = 300
_LISTS = ("schema.yaml",)
_WIDE = f", {_MOST_YAML_VALUES:,} values in all; declare a column of more as integer or key, or draw without saving"
_MOST_SWEEPS = 1_000_000
_MOST_ROWS_OF_A_GROUP = 1 << 40
# Of numbers that are squared, multiplied by counts or inverted, and stay numbers.
_LARGEST = 1e100
# What reading damaged texts raises. Anything else is a fault of ours, and must be seen.
_DAMAGE = (
    KaminoError,
    ValueError,
    LookupError,
    TypeError,
    ArithmeticError,
    AttributeError,
    RecursionError,
    pa.ArrowException,
)


@contextmanager
def refusing_damage(
    source: str,
    *,
    what: str = "model file",
    remedy: str = "fit the model again",
    error: type[KaminoError] = ModelError,
) -> Iterator[None]:
    """Turn whatever a damaged file raises into one error of one line.

    Guarantees:
        A crafted file is refused in one line, whatever is in it.  [test_crafted_models_are_refused]
    """
    try:
        yield
    except _DAMAGE as problem:
        reason = str(problem) if isinstance(problem, KaminoError) else type(problem).__name__
        line = " ".join("".join(c if c.isprintable() else " " for c in reason[: 4 * _MOST_SHOWN]).split())
        if len(line) > _MOST_SHOWN:
            line = f"{line[:_MOST_SHOWN]}..."
        raise error(f"{source}: the {what} is damaged: {line.rstrip('.')}; {remedy}") from None


def check_sizes(texts: Mapping[str, str]) -> None:
    """Refuse parts that would take far more memory than they have bytes; what is refused here is not saved either."""
    for part, text in texts.items():
        if part.endswith(".json"):
            fits = text.count("[") + text.count("{") <= _MOST_BRACKETS
        elif part.endswith(".yaml"):
            fits = sum(map(text.count, ",:\n[{")) <= _MOST_YAML_VALUES
        else:
            fits = len(text) <= _MOST_CONSTRAINT_TEXT
        if not fits:
            raise ModelError(f"{part} has more in it than any model file may hold{_WIDE if part in _LISTS else ''}")


def read_json(text: str, *, part: str) -> Any:
    """Read a JSON part; numbers that are none and names given twice are refused."""

    def refuse_constant(word: str) -> NoReturn:
        raise ModelError(f"{part} has {word} in the place of a number")

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise ModelError(f"{part} has a name twice in one object")
        return found

    return json.loads(text, parse_constant=refuse_constant, object_pairs_hook=once)


def settings_of(document: object) -> Settings:
    """The settings of a run, each of its kind."""
    fields = Fields(document, where="settings").only(*(each.name for each in fields_of(Settings)))
    return Settings.from_json({name: _setting(fields, name) for name in fields})


def _setting(fields: Fields, name: str) -> Any:
    """The value of a setting, of the kind that its field has; those of an enumeration are texts."""
    plain, optional = _plain_kind(get_type_hints(Settings)[name])
    value = fields.any(name)
    # An infinite epsilon is written as null.
    if value is None and (optional or name == "epsilon"):
        return None
    if plain is bool:
        return fields.flag(name)
    if plain is float:
        return fields.number(name)
    if plain is int:
        least = Settings.__dataclass_fields__[name].metadata.get("least") or 0
        # Anything beyond would be passes over all rows without an end.
        return fields.whole(name, least=least, **({} if optional else {"most": _MOST_SWEEPS}))
    return [_pair(each) for each in fields.items(name)] if get_origin(plain) is tuple else fields.text(name)


def _plain_kind(kind: Any) -> tuple[Any, bool]:
    """A type without its None, and whether it had one."""
    parts = get_args(kind)
    return (parts[0], True) if type(None) in parts else (kind, False)


def frame_of(manifest: Fields, schema: Schema) -> FrameKind:
    """The kind of frame that the table came as, with types of columns that there are."""
    fields = manifest.within("frame").only("library", "types")
    types = fields.within("types").only(*schema)
    kind = FrameKind(library=fields.text("library"), types={name: types.text(name) for name in types})
    problem = FrameKind.problem(kind.library, kind.types)
    if problem:
        raise ModelError(f"frame: {problem}")
    return kind


def _pair(document: object) -> tuple[str, str]:
    match document:
        case [str(name), str(chosen)]:
            return name, chosen
        case _:
            raise ModelError("settings: a value list is not a column with the name of a list")


def constraints_of(text: str, schema: Schema, *, source: str) -> Constraints:
    """Constraints of the schema's attributes that rows are drawn for."""
    parsed = Constraints.parse(text, source=source)
    if len(bind_constraints(parsed, schema)) != len(parsed):
        raise ModelError(f"{source} has a constraint that belongs elsewhere")
    return parsed


def held_of(text: str, layout: Layout, *, source: str) -> Constraints:
    """Constraints that the layout keeps by itself."""
    parsed = Constraints.parse(text, source=source)
    if layout.rules(parsed.bind(layout.types)).drawn.items:
        raise ModelError(f"{source} has a constraint that belongs elsewhere")
    return parsed


def layout_of(document: Any, schema: Schema, constraints: Constraints, *, earlier: object) -> Layout:
    """The layout of the schema's tables; no constraint that rows are drawn for names what is told by a distance.

    Files of `earlier` versions say which dates are, and nothing else.
    """
    of_earlier = [*Layout.of(schema).to_json(), {"kind": Offsets.kind, "differences": earlier}]
    steps = of_earlier if document is None else document
    layout = Layout.from_json(steps, schema)
    kinds = [each.kind for each in layout.recodings]
    if len(set(kinds)) != len(kinds) or not {each.kind for each in Layout.of(schema).recodings} <= set(kinds):
        raise ModelError("layout: its steps are not those of its schema")
    if any(name in layout.differences for constraint in constraints for name in constraint.attributes):
        raise ModelError("layout: a constraint names a date that is modelled by its distance from another")
    return layout


def soft_of(document: object, constraints: Constraints) -> FoundWeights:
    """The weights of soft constraints, each of a constraint that there is."""
    known = {print_constraint(each) for each in constraints if not each.is_hard}
    rates = ("measured", "deviation", "target", "unweighted", "delivered")
    whole = Fields({"soft": document}, where="weights")
    every = whole.objects("soft")
    for fields in every:
        fields.only("constraint", "weight", "per_violation", *rates)
        fields.number("weight", least=0, most=_LARGEST)
        fields.flag("per_violation")
        for name in rates:
            fields.number_or_null(name)
        if fields.text("constraint") not in known:
            raise ModelError(f"{fields.where}: {shown(fields.text('constraint'))} is no soft constraint of the model")
    if len({fields.text("constraint") for fields in every}) != len(every):
        raise ModelError("weights: a constraint has two")
    return FoundWeights.from_json(whole.items("soft"), constraints)


def references_of(document: object, schema: Schema, constraints: Constraints) -> References:
    """The reference tables that the hard dependencies name, and no others."""
    whole = Fields({"references": document}, where="reference tables")
    for fields in whole.objects("references"):
        fields.only("left", "right", "columns")
        names = (*fields.texts("left"), fields.text("right"))
        columns = fields.within("columns").only(*names)
        lengths = {len(columns.items(name)) for name in names}
        if len(lengths) != 1 or not all(v is None or isinstance(v, str) for n in names for v in columns.items(n)):
            raise ModelError(f"{fields.where}: its columns are not texts of one length")
    found = from_json(whole.items("references"), schema)
    if len(found) != len(whole.items("references")) or set(found) != _named(constraints):
        raise ModelError("reference tables: they are not those that the constraints name")
    return found


def _named(constraints: Constraints) -> set[tuple[tuple[str, ...], str]]:
    """The dependencies whose map a reference table is to hold."""
    found = set()
    for each in constraints:
        dependency = dependency_of(each) if each.reference is not None and each.is_hard else None
        if dependency is not None:
            found.add((tuple(sorted(dependency.left)), dependency.right))
    return found


def found_of(document: object, schema: Schema) -> FoundDomains | None:
    """What is known of found domains, of attributes that the schema has; None where none was found."""
    fields = Fields(document, where="found domains").only("types_found", "by_default", "lost")
    if not tuple(fields):
        return None
    lost = fields.within("lost").only(*schema.data_names)
    shares = {}
    for name in lost:
        share = lost.within(name).only("outside", "unreadable", "within")
        shares[name] = Lost(**{each: share.number(each, least=0, most=1) for each in share})
    by_default = fields.texts("by_default")
    if not set(by_default) <= set(shares):
        raise ModelError("found domains: a default is of an attribute that was not found")
    return FoundDomains(
        schema=schema, types_found=fields.flag("types_found"), by_default=tuple(by_default), lost=shares
    )


def groups_of(document: object, schema: Schema) -> dict[str, GroupSizes]:
    """How many rows groups have, for each id of groups that the schema has."""
    whole = Fields(document, where="groups").only(*schema.group_names)
    if set(whole) != set(schema.group_names):
        raise ModelError("groups: an id of the schema has no sizes")
    found = {}
    for name in whole:
        fields = whole.within(name).only("cells", "shares")
        cells, shares = fields.items("cells"), fields.items("shares")
        pairs = all(isinstance(cell, list) and len(cell) == 2 and all(map(_is_size, cell)) for cell in cells)
        if not pairs or not all(isinstance(share, int | float) and 0 <= share <= 1 for share in shares):
            raise ModelError(f"{fields.where}: found cells or shares that are none")
        found[name] = GroupSizes(cells=tuple((first, last) for first, last in cells), shares=tuple(shares))
    return found


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST_ROWS_OF_A_GROUP


def ledger_of(document: object, settings: Settings) -> dict[str, Any]:
    """The ledger, with all that a certificate is made from, for the budget of the settings."""
    fields = Fields(document, where="ledger")
    epsilon, neighbours = fields.number_or_null("epsilon", least=0), fields.text("neighbours")
    stated = (math.inf if epsilon is None else epsilon, fields.number("delta"), neighbours)
    if stated != (settings.epsilon, settings.delta, settings.neighbours.value):
        raise ModelError("ledger: its budget is not that of the settings")
    unit = fields.within("unit")
    unit.text("text")
    mark = fields.text("mark")
    if mark not in ("", NOT_FOR_RELEASE, NOT_PRIVATE) or (mark == NOT_PRIVATE) != (epsilon is None):
        raise ModelError("ledger: its mark is not one that its budget can have")
    if settings.seed is not None and not mark:
        raise ModelError("ledger: the run had a seed, and its mark says nothing of it")
    for relation in Neighbours:
        fields.within("spent_epsilon").number_or_null(relation.value, least=0)
    fields.within("spent_epsilon").only(*(relation.value for relation in Neighbours))
    for entry in fields.objects("entries"):
        _check_entry(entry)
    return dict(fields.items_by_name)


def _check_entry(entry: Fields) -> None:
    entry.text("kind")
    entry.text("what")
    entry.texts("attributes")
    entry.number_or_null("noise_multiplier", least=0, most=_LARGEST)
    for event in entry.objects("events"):
        kind = event.text("type")
        event.whole("count", least=1)
        if kind in ("GaussianEvent", "PoissonGaussianEvent"):
            # Its inverse square is the price: 0 for no noise, and otherwise no number whose square is 0.
            if event.number("noise_multiplier", least=0, most=_LARGEST) < 1 / _LARGEST and event.any(
                "noise_multiplier"
            ):
                raise ModelError(f"{event.where}: noise_multiplier is next to 0")
            if kind == "PoissonGaussianEvent":
                event.number("sampling_rate", least=1 / _LARGEST, most=1)
        elif kind == "DeltaEvent":
            event.number("delta", least=0, most=1)
        else:
            raise ModelError(f"{event.where}: type {shown(kind)} is unknown")


def check_fits(fitted: Fitted) -> None:
    """Refuse a model of other attributes, or of other domains, than its schema's."""
    expected = {each.name: each for each in model_attributes(fitted.codec)}
    if {each.name: each for each in fitted.model.attributes} != expected:
        raise ModelError("the attributes of the model are not those of its schema, or have other domains")

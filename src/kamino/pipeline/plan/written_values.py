"""Real values of single persons, which a table for release would hold because their domain was called public.

Ids are known by the names of their columns. Names, addresses, telephone numbers and comments are known by this, that
they tell most units apart, or that nearly all values of a column are one unit's own. Where `--trust-domain` is said the
table itself is asked for that, as it is asked for the values; where a schema lists values, only the noisy number of
rows is held against them.
"""

from __future__ import annotations

from kamino.advice import Advice, dropping, setting
from kamino.constraints.language.printer import print_name
from kamino.engine import columns_of_single_units
from kamino.errors import InputError
from kamino.pipeline.plan.telling_policy import TELLING
from kamino.pipeline.plan.whose_privacy import id_question, written_ids
from kamino.pipeline.settings import Settings
from kamino.privacy.private import PrivateTable
from kamino.schema import Categorical, Schema, Source


def written_values(schema: Schema, about_units: float | None, unit: str | None = None) -> tuple[str, ...]:
    """The columns whose real values are those of single persons, as far as the schema tells it.

    `about_units` is the noisy number of units, or of rows; what is listed of the column of units is always theirs.

    Guarantees:
        So it is where a schema lists them.  [test_a_schema_that_lists_what_units_own_marks_what_is_made_with_it]
    """
    ids = written_ids(schema)
    units = tuple(name for name in _called_public(schema) if name == unit and name not in ids)
    wide = nearly_all_different(schema, about_units)
    return (*ids, *units, *(name for name in wide if name not in units))


def nearly_all_different(schema: Schema, about_rows: float | None) -> tuple[str, ...]:
    """The columns, but for ids, of which more values were called public than most of the noisy number of rows."""
    if about_rows is None:
        return ()
    ids = written_ids(schema)
    return tuple(name for name in _called_public(schema) if name not in ids and _is_wide(schema, name, about_rows))


def refuse_written_values(private: PrivateTable, schema: Schema, settings: Settings) -> None:
    """Refuse to write real values of single persons into a table for release, unless the owner accepted it.

    A run that is marked anyway, by a seed or for want of noise, goes on. The table is looked at only where the user
    says that the values in it are public, and only for columns whose values are then written as they are.

    Guarantees:
        Nothing is spent before that is said.
        [test_real_ids_of_persons_are_refused, test_values_of_one_person_are_refused]
        No column is looked at that was not called public.  [test_only_columns_called_public_are_looked_at]
    """
    if settings.accept or settings.seed is not None or not settings.budget.is_private:
        return
    ids, own = written_ids(schema), own_values(private, schema, settings)
    if ids or own:
        asked = id_question(ids) if ids else own_question(own, settings)
        more = ("; and ", own_question(own, settings)) if ids and own else ()
        raise Advice.of(asked.code, asked, *more, ". Nothing was spent", about=(*ids, *own)).error(InputError)


def own_values(private: PrivateTable, schema: Schema, settings: Settings) -> tuple[str, ...]:
    """The columns, but for ids, nearly all of whose values are one unit's own; none without `trust_domain`."""
    if not settings.trust_domain:
        return ()
    asked = [name for name in _called_public(schema) if name not in written_ids(schema)]
    return columns_of_single_units(private, asked, settings.privacy_unit.column)


def own_question(found: tuple[str, ...], settings: Settings) -> Advice:
    """What is to be said where real values that are one unit's own would be written."""
    listed = ", ".join(map(print_name, found))
    unit = settings.privacy_unit.column
    each = "one row" if unit is None else f"one {print_name(unit)}"
    one = len(found) == 1
    tells = "tells" if one else "tell"
    return Advice.of(
        "real-values",
        f"found {listed}, nearly all of whose values belong to {each} alone, or which {tells} most of them apart, and "
        f"{'its' if one else 'their'} values called public (",
        *(setting("trust_domain"), "): real ones would be written, whatever epsilon is; expected "),
        f"{{type: key}} for {'it' if one else 'them'} in a schema (values are made up), {{type: categorical}} without "
        "values (what many rows share is found within the budget), ",
        *(dropping(found, print_name), ", or ", setting("accept"), " (real ones are written, on your word)"),
        about=found,
    )


def _is_wide(schema: Schema, name: str, about_rows: float) -> bool:
    attribute = schema[name]
    count = len(attribute.categories) if isinstance(attribute, Categorical) else 0
    return count >= TELLING.few_values and count > TELLING.nearly_all * about_rows


def _called_public(schema: Schema) -> list[str]:
    """The columns whose values are listed as they stand in a table, because somebody called them public."""
    return [
        name
        for name, source in schema.sources.items()
        if source is Source.ASSERTED and isinstance(schema[name], Categorical)
    ]

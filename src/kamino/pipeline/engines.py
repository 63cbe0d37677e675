"""Where counts are computed: in memory, in passes over a table that stays where it is, or on Spark. Nothing that a run
lets out depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kamino.errors import InputError
from kamino.io import Reading, read_table
from kamino.io.databases.catalogue import Catalogue, with_nulls_as_declared
from kamino.io.streams.declared_parts import DeclaredParts
from kamino.io.streams.sources import is_large, open_stream, stream_kind, why_not_streamed
from kamino.io.tables import ALL
from kamino.model.marginal.marginal_schedule import BINS, HISTOGRAMS, REST
from kamino.pipeline.settings import Backend, Engine, Settings, WeightMode
from kamino.privacy.private import PrivateTable

if TYPE_CHECKING:
    from kamino.pipeline.plan.run_plan import RunPlan

# Passes that a model takes whose domains are not known yet.
_USUAL = 15


def choose_engine(source: object, settings: Settings, reading: Reading = ALL) -> Engine:
    """The engine that reads a source: the one that was asked for, or by the kind and the size of its file.

    Raises:
        InputError: an engine was asked for that cannot do what the run needs.

    Guarantees:
        What a run lets out is the same, whichever is chosen.  [test_engines_fit_the_same_model]
    """
    obstacle = _obstacle(settings) or why_not_streamed(
        source, reading, guarded=not settings.trust_domain, by_unit=settings.privacy_unit.column is not None
    )
    asked, is_spark = settings.engine, stream_kind(source) == "spark"
    if asked is Engine.SPARK and not is_spark:
        obstacle = "the table is not one of Spark: expected spark://MASTER with a query, or a data frame of Spark"
    if asked in (Engine.STREAMED, Engine.SPARK) and obstacle is not None:
        raise InputError(f"found --engine {asked}, but {obstacle}. Say --engine memory, or leave it out.")
    in_parts = Engine.SPARK if is_spark else Engine.STREAMED
    if asked is Engine.AUTO:
        return in_parts if obstacle is None and is_large(source, reading.query) else Engine.MEMORY
    return asked if asked is Engine.MEMORY else in_parts


def _obstacle(settings: Settings) -> str | None:
    """Why a run cannot count in passes, whatever it reads."""
    if settings.backend is Backend.NEURAL:
        return "the neural backend trains on rows in memory"
    if settings.weights is WeightMode.PAPER:
        return "weights as in the paper need a sample of rows in memory"
    return None


def read_private(
    source: object, settings: Settings, reading: Reading = ALL, catalogue: Catalogue | None = None
) -> PrivateTable:
    """Read and seal a table, or what reads it in parts.

    Columns in which a database allows no null have none.
    """
    guarded = not settings.trust_domain
    if choose_engine(source, settings, reading) is not Engine.MEMORY:
        stream = open_stream(source, reading.query, private=guarded)
        return PrivateTable(stream if catalogue is None else DeclaredParts(stream, catalogue))
    rows = read_table(source, private=guarded, reading=reading)
    return PrivateTable(with_nulls_as_declared(rows, catalogue))


def describe_engine(engine: Engine, plan: RunPlan) -> str:
    """Say in a line where counts are computed, and for the streamed engine in how many passes, about."""
    if engine is Engine.MEMORY:
        return "Counts are computed in memory (--engine memory)."
    if engine is Engine.SPARK:
        return f"Counts are computed by Spark, in about {count_passes(plan)} jobs over the table (--engine spark)."
    return (
        f"Counts are computed in about {count_passes(plan)} passes over the table, which is read in parts (--engine "
        "streamed); columns whose codes fit in memory are read once."
    )


def count_passes(plan: RunPlan) -> int:
    """About how many passes a streamed run makes; what is not planned before domains are found, by a usual number.

    First histograms of all attributes are one pass, and so are the second ones, the marginals of a round, and what is
    left at the end; every other release is one.
    """
    found = 1
    for part in dict.fromkeys(release.part for release in plan.schedule.releases):
        releases = plan.schedule.part(part)
        if part == HISTOGRAMS:
            found += 1 + len(releases) - len({each.attributes for each in releases})
        else:
            found += 1 if part in (BINS, REST) else len(releases)
    return found if plan.is_complete else found + _USUAL

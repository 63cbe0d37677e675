"""Where counts are computed: in memory, in passes over a table that stays where it is, or on Spark. Nothing that a run
lets out depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

import pyarrow as pa

from kamino.advice import Advice, setting
from kamino.errors import InputError
from kamino.io import Reading, read_table
from kamino.io.databases.catalogue import Catalogue, with_nulls_as_declared
from kamino.io.streams.declared_parts import DeclaredParts
from kamino.io.streams.sources import is_large, open_stream, stream_kind, why_not_streamed
from kamino.io.tables import ALL
from kamino.io.written_cells import WrittenParts
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
    obstacle = _why_whole(source, settings, reading)
    asked, is_spark = settings.engine, stream_kind(source) == "spark"
    if asked is Engine.SPARK and not is_spark:
        obstacle = "the table is not one of Spark: expected spark://MASTER with a query, or a data frame of Spark"
    if asked in (Engine.STREAMED, Engine.SPARK) and obstacle is not None:
        raise Advice.of(
            "engine-cannot-read",
            *("found ", setting("engine", asked), f", but {obstacle}. Say ", setting("engine", Engine.MEMORY)),
            ", or leave it out.",
        ).error(InputError)
    in_parts = Engine.SPARK if is_spark else Engine.STREAMED
    if asked is Engine.AUTO:
        return in_parts if obstacle is None and is_large(source, reading.query) else Engine.MEMORY
    return asked if asked is Engine.MEMORY else in_parts


def told_engine(source: object, settings: Settings, reading: Reading = ALL) -> Engine:
    """The engine as far as it may be told: AUTO where the size of the table decides, which is private.

    Raises:
        InputError: as `choose_engine` does.

    Guarantees:
        How large a file is does not show.  [test_what_is_told_of_the_engine_depends_on_no_size]
    """
    if settings.engine is not Engine.AUTO or stream_kind(source) == "spark":
        return choose_engine(source, settings, reading)
    return Engine.MEMORY if _why_whole(source, settings, reading) is not None else Engine.AUTO


def _why_whole(source: object, settings: Settings, reading: Reading) -> str | None:
    """Why a run cannot count in passes over this source, by its kind and the options; None if it can."""
    return _obstacle(settings) or why_not_streamed(
        source, reading, guarded=not settings.trust_domain, by_unit=settings.privacy_unit.column is not None
    )


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
    if choose_engine(source, settings, reading) is not Engine.MEMORY:
        stream = open_stream(source, reading.query, private=not settings.trust_domain)
        written = stream if not reading.cells else WrittenParts(source=stream, cells=reading.cells)
        return PrivateTable(written if catalogue is None else DeclaredParts(written, catalogue))
    return PrivateTable(read_whole(source, settings, reading, catalogue))


def read_whole(
    source: object, settings: Settings, reading: Reading = ALL, catalogue: Catalogue | None = None
) -> pa.Table:
    """Read a table into memory, whatever engine was asked for. Its rows are private: whoever calls this seals them."""
    rows = read_table(source, private=not settings.trust_domain, reading=reading)
    return with_nulls_as_declared(rows, catalogue)


def describe_engine(engine: Engine, plan: RunPlan) -> str:
    """Say in a line where counts are computed, and for the streamed engine in how many passes, about.

    Where the size of the table decides (AUTO), both ways are told, and not which it is.
    """
    whole, streamed, spark = (setting("engine", kind) for kind in ("memory", "streamed", "spark"))
    in_parts = (
        f"in about {count_passes(plan)} passes over the table, which is read in parts ({streamed}); columns whose "
        "codes fit in memory are read once"
    )
    match engine:
        case Engine.MEMORY:
            return f"Counts are computed in memory ({whole})."
        case Engine.SPARK:
            return f"Counts are computed by Spark, in about {count_passes(plan)} jobs over the table ({spark})."
        case Engine.STREAMED:
            return f"Counts are computed {in_parts}."
        case Engine.AUTO:
            return f"Counts are computed in memory ({whole}) or, if the table is large, {in_parts}."
        case _:
            assert_never(engine)


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

"""A data frame of Spark as a table in parts, and as a table that is counted where it is: on its executors."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kamino.errors import InputError
from kamino.io.databases.queries import refuse_writing
from kamino.io.normalise import normalise_table
from kamino.io.streams.cutting import PART_ROWS, cut_evenly
from kamino.io.streams.spark_session import spark_session

WHERE = "Spark"
# Beside the columns of the table while the rows of a unit are chosen.
_HASHES = ("kamino_unit_high", "kamino_unit_low", "kamino_row")
Counts = list[NDArray[np.int64]]


def open_spark_query(address: str, statement: str) -> Any:
    """The data frame of a query that reads."""
    refuse_writing(statement, dialect="spark", where=WHERE)
    session = spark_session(address)
    with _telling():
        return session.sql(statement)


class SparkParts:
    """The rows of a data frame of Spark. They have no order, and stay where they are wherever that is possible.

    Guarantees:
        The rows and types are those of the frame read as a whole.  [test_streams_read_what_readers_read]
        Counts that are made on executors are those of the table.  [test_spark_counts_where_the_rows_are]
    """

    is_ordered = False

    def __init__(self, frame: Any, *, private: bool = False, part_rows: int = PART_ROWS) -> None:
        self._frame, self._private, self._part_rows = frame, private, part_rows
        with _telling():
            from pyspark.sql.pandas.types import to_arrow_schema

            empty = to_arrow_schema(frame.schema).empty_table()
        self.schema: pa.Schema = _plain(empty, private).schema

    def __repr__(self) -> str:
        return "SparkParts(1 frame)"

    def parts(self, names: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Read the named columns part by part, partition after partition."""
        wanted = list(self.schema.names if names is None else names)
        fields = pa.schema([self.schema.field(name) for name in wanted])
        return cut_evenly(self._batches(wanted), fields, self._part_rows)

    def count(self, work: Callable[[pa.Table], Counts], names: Sequence[str]) -> Counts:
        """Let executors call `work` on parts of the named columns, and add up the arrays that it gives.

        No rows give what `work` makes of an empty part: a frame without rows may have no partitions either.
        """
        private, rows = self._private, self._part_rows
        fields = pa.schema([self.schema.field(name) for name in names])

        def count_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            plain = (each for batch in batches for each in _plain_batches(batch, private))
            total: Counts = []
            for part in cut_evenly(plain, fields, rows):
                total = _added(total, work(part))
            yield pa.record_batch({"counts": [pickle.dumps(total, protocol=5)]})

        with _telling():
            made = self._selected(names).mapInArrow(count_partition, "counts binary")
            found: Counts = made.rdd.map(lambda row: pickle.loads(row[0])).treeAggregate([], _added, _added)
        return _added(work(fields.empty_table()), found)

    def keep_lowest(
        self, hashes: Callable[[pa.Table], tuple[NDArray[np.uint64], NDArray[np.uint64]]], max_rows: int
    ) -> SparkParts:
        """The rows of each unit with the lowest hashes. `hashes` gives two numbers of a unit and one of a row."""
        from pyspark.sql import Window
        from pyspark.sql.functions import col, row_number

        private = self._private

        def with_hashes(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                units, rows = hashes(_plain(pa.Table.from_batches([batch]), private))
                numbers = (_signed(units[:, 0]), _signed(units[:, 1]), _signed(rows))
                arrays = [*batch.columns, *map(pa.array, numbers)]
                yield pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *_HASHES])

        with _telling():
            kinds = self._frame.schema
            for name in _HASHES:
                kinds = _copied(kinds).add(name, "long")
            hashed = self._selected(self.schema.names).mapInArrow(with_hashes, kinds)
            place = row_number().over(Window.partitionBy(*_HASHES[:2]).orderBy(_HASHES[2]))
            kept = hashed.withColumn("kamino_place", place).filter(col("kamino_place") <= max_rows)
            return SparkParts(kept.drop(*_HASHES, "kamino_place"), private=private, part_rows=self._part_rows)

    def _selected(self, names: Sequence[str]) -> Any:
        return self._frame.select(*("`" + name.replace("`", "``") + "`" for name in names))

    def _batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        private = self._private

        def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for each in _plain_batches(batch, private):
                    sink = pa.BufferOutputStream()
                    with pa.ipc.new_stream(sink, each.schema) as writer:
                        writer.write_batch(each)
                    yield pa.record_batch({"part": pa.array([sink.getvalue().to_pybytes()], pa.binary())})

        with _telling():
            for row in self._selected(names).mapInArrow(packed, "part binary").toLocalIterator(prefetchPartitions=True):
                with pa.ipc.open_stream(row[0]) as reader:
                    yield from reader


def _copied(kinds: Any) -> Any:
    """The same fields in a structure of their own: `add` changes the one that it is called on."""
    from pyspark.sql.types import StructType

    return StructType(list(kinds.fields))


def _plain(table: pa.Table, private: bool) -> pa.Table:
    return normalise_table(table, where=WHERE, private=private)


def _plain_batches(batch: pa.RecordBatch, private: bool) -> list[pa.RecordBatch]:
    found: list[pa.RecordBatch] = _plain(pa.Table.from_batches([batch]), private).to_batches()
    return found


def _signed(numbers: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Numbers with a sign in the same order, for an engine that has no others."""
    return (numbers ^ np.uint64(1 << 63)).view(np.int64)


def _added(first: Counts, second: Counts) -> Counts:
    if not first or not second:
        return first or second
    return [one + other for one, other in zip(first, second, strict=True)]


@contextmanager
def _telling() -> Iterator[None]:
    """Say what went wrong in the block, without any value of the table: Spark quotes rows and paths in its errors."""
    from py4j.protocol import Py4JError
    from pyspark.errors import AnalysisException, ParseException, PySparkException

    try:
        with warnings.catch_warnings():
            # Spark warns of versions of pandas, which is not asked to do anything here.
            warnings.simplefilter("ignore")
            yield
    except (AnalysisException, ParseException) as error:
        condition = error.getCondition() or type(error).__name__
        raise InputError(
            f"{WHERE}: the query is wrong ({condition}). Expected a SELECT on tables and columns that are there."
        ) from None
    except (PySparkException, Py4JError, ConnectionError, EOFError) as error:
        raise InputError(
            f"{WHERE}: a job has failed ({type(error).__name__}); the details may quote values and are left out. Look "
            "into the logs of Spark."
        ) from None

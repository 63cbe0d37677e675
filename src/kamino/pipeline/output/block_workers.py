"""Blocks of a long table drawn by several processes, on this machine or on a cluster: the same rows, whoever draws.

A block depends on its number, on the model and on the first block only, all of which may be published. So workers are
told these three, and give back codes.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kamino.advice import Advice, named
from kamino.arrays import IntArray
from kamino.errors import InputError, SamplingError
from kamino.io.bundle import Bundle
from kamino.pipeline.fitted import Fitted
from kamino.pipeline.output.block_world import BlockWorld

# The codes of a block, in the smallest type that holds them.
Block: TypeAlias = dict[str, npt.NDArray[np.integer[Any]]]

#: More processes than this are a mistake.
MOST_WORKERS = 256
_COMMAND = "from kamino.pipeline.output.block_workers import serve; serve()"


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Who draws blocks: so many processes of this machine, or a cluster.

    >>> Workers.of("4").number, Workers.of("tcp://10.0.0.1:8786").cluster
    (4, 'tcp://10.0.0.1:8786')
    >>> Workers.of("spark://local[2]").cluster
    'spark://local[2]'
    """

    number: int = 1
    cluster: str | None = None

    @staticmethod
    def of(given: int | str | None) -> Workers:
        """Read a number of processes, `tcp://…` of a Dask scheduler, or `spark://…` of a Spark master."""
        text = "1" if given is None else str(given)
        if text.partition("://")[0] in ("tcp", "tls", "spark"):
            return Workers(cluster=text)
        if isinstance(given, bool) or not text.isdigit() or not 1 <= int(text) <= MOST_WORKERS:
            raise InputError(
                f"found workers {text!r}; expected a number of processes from 1 to {MOST_WORKERS}, tcp://HOST:PORT of "
                "a Dask scheduler, or spark://MASTER"
            )
        return Workers(number=int(text))


#: Nobody but the process that writes the table.
ALONE = Workers()


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockJob:
    """All that a worker needs to draw blocks. Public, as the model and what is drawn from it."""

    bundle: Bundle
    first: Mapping[str, npt.NDArray[np.integer[Any]]]
    num_rows: int
    block_rows: int
    root: int

    @staticmethod
    def of(fitted: Fitted, first: Mapping[str, IntArray], num_rows: int, block_rows: int, root: int) -> BlockJob:
        """The job of a table whose first block is there."""
        saved = fitted.to_bundle()
        bundle = Bundle(texts=dict(saved.texts), arrays={name: np.asarray(each) for name, each in saved.arrays.items()})
        small = compact(fitted, first)
        return BlockJob(bundle=bundle, first=small, num_rows=num_rows, block_rows=block_rows, root=root)

    def numbers(self) -> range:
        """The numbers of the blocks after the first."""
        return range(1, -(-self.num_rows // self.block_rows))


class BlockDrawer:
    """Draws blocks of a job, in any order."""

    def __init__(self, job: BlockJob) -> None:
        self._job = job
        self._fitted = Fitted.from_bundle(job.bundle, source="job")
        first = {name: codes.astype(np.int64) for name, codes in job.first.items()}
        self._world = BlockWorld.of(self._fitted, self._fitted.plan_for(job.num_rows), first, job.root)

    def draw(self, number: int) -> Block:
        """Draw the block of this number."""
        rows = min(self._job.block_rows, self._job.num_rows - number * self._job.block_rows)
        return compact(self._fitted, self._world.draw(self._fitted, number, rows, self._job.root))


def compact(fitted: Fitted, columns: Mapping[str, npt.NDArray[np.integer[Any]]]) -> Block:
    """The same codes in the smallest type that holds them."""
    codec = fitted.codec
    return {name: codes.astype(np.min_scalar_type(max(codec[name].size - 1, 0))) for name, codes in columns.items()}


def draw_by_workers(job: BlockJob, workers: Workers) -> Iterator[Block]:
    """Draw all blocks after the first, and give them in their order.

    Raises:
        SamplingError: a worker has ended early.

    Guarantees:
        The result does not depend on how many workers there are, or where.  [test_workers_draw_the_same_table]
        A worker that is killed is told in a line.  [test_a_killed_worker_is_told]
    """
    if workers.cluster is None:
        return _by_processes(job, min(workers.number, len(job.numbers())))
    if workers.cluster.startswith("spark:"):
        return _by_spark(job, workers.cluster)
    return _by_dask(job, workers.cluster)


def _by_processes(job: BlockJob, number: int) -> Iterator[Block]:
    """Let the processes take turns. One that is ahead waits until its block is taken, so that memory is bounded."""
    if number == 0:
        return
    env = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **os.environ}
    command = [sys.executable, "-c", _COMMAND]
    started = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) for _ in range(number)]
    try:
        for turn, each in enumerate(started):
            assert each.stdin is not None, "it was asked for"
            with suppress(BrokenPipeError), each.stdin:
                pickle.dump((job, tuple(job.numbers()[turn::number])), each.stdin, protocol=5)
        for place in job.numbers():
            yield _received(started[(place - 1) % number])
    finally:
        for each in started:
            each.kill()
            each.wait()
            if each.stdout is not None:
                each.stdout.close()


def _received(worker: subprocess.Popen[bytes]) -> Block:
    assert worker.stdout is not None, "it was asked for"
    try:
        block, failure = pickle.load(worker.stdout)
    except (EOFError, pickle.UnpicklingError):
        raise Advice.of(
            "worker-ended",
            "a worker that draws rows has ended early; nothing was written. Was it killed for its memory? Ask for "
            "fewer ",
            named("workers"),
        ).error(SamplingError) from None
    if failure is not None:
        raise failure
    found: Block = block
    return found


def serve() -> None:
    """What a worker process does: it reads a job from its input, and writes blocks to its output.

    What is read comes from the process that started it.
    """
    out: IO[bytes] = sys.stdout.buffer
    sys.stdout = sys.stderr
    with suppress(BrokenPipeError, KeyboardInterrupt):
        job, numbers = pickle.load(sys.stdin.buffer)
        for block, failure in _drawn(job, numbers):
            pickle.dump((block, failure), out, protocol=5)
            out.flush()


def _drawn(job: BlockJob, numbers: Sequence[int]) -> Iterator[tuple[Block | None, Exception | None]]:
    try:
        drawer = BlockDrawer(job)
        for number in numbers:
            yield drawer.draw(number), None
    except Exception as failure:
        yield None, failure


@lru_cache(maxsize=1)
def _drawer_of(packed: bytes) -> BlockDrawer:
    return BlockDrawer(pickle.loads(packed))


def draw_one(packed: bytes, number: int) -> Block:
    """Draw a block of a packed job; what the job fixes is made once in a process."""
    return _drawer_of(packed).draw(number)


def _by_dask(job: BlockJob, address: str) -> Iterator[Block]:
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "workers of a Dask cluster need the package distributed, which is not installed. Install it with: pip "
            "install distributed"
        ) from None
    try:
        client = Client(address, timeout=30, set_as_default=False)
    except OSError:
        raise InputError(f"{address}: no Dask scheduler answers there. Start one, or check the address.") from None
    with client:
        packed = client.scatter(pickle.dumps(job, protocol=5), broadcast=True)
        ahead = 2 * max(1, len(client.scheduler_info()["workers"]))
        numbers, waiting = iter(job.numbers()), []
        for number in numbers:
            waiting.append(client.submit(draw_one, packed, number, pure=False))
            if len(waiting) >= ahead:
                yield waiting.pop(0).result()
        while waiting:
            yield waiting.pop(0).result()


def _by_spark(job: BlockJob, address: str) -> Iterator[Block]:
    from kamino.io.streams.spark_session import spark_session

    context = spark_session(address).sparkContext
    packed = context.broadcast(pickle.dumps(job, protocol=5))
    numbers = context.parallelize(list(job.numbers()), max(1, len(job.numbers())))
    yield from numbers.map(lambda number: draw_one(packed.value, number)).toLocalIterator(prefetchPartitions=True)

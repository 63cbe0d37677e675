"""A session of Spark: the one that runs in this process, or a new one at a given master."""

from __future__ import annotations

import os
import sys
from typing import Any

from kamino.errors import InputError

SCHEME = "spark://"


def is_spark_frame(source: object) -> bool:
    """Whether a source is a data frame of Spark; nothing is imported to find out."""
    kind = type(source)
    return kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame"


def spark_session(address: str) -> Any:
    """The session at `spark://HOST:PORT`, or `spark://local[2]` for one of this machine with two cores.

    A session that is there already is used as it is.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise InputError(
            "reading from Spark needs the package pyspark, which is not installed. Install it with: pip install "
            "'kamino-synth[spark]'"
        ) from None
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    rest = address[len(SCHEME) :]
    master = rest if rest.startswith("local") else address
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    try:
        builder = SparkSession.builder.master(master).appName("kamino")
        builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        return builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    except (PySparkException, OSError, RuntimeError) as error:
        raise InputError(
            f"{address}: no session of Spark can be started ({type(error).__name__}). Expected spark://HOST:PORT or "
            "spark://local[2], and Java 17 or newer."
        ) from None

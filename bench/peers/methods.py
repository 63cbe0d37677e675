"""The methods that are compared: where each lives, what it was given, how often it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
OURS = "kamino"


@dataclass(frozen=True, kw_only=True)
class Method:
    """One row of the comparison. `peer` is a folder with requirements and a script; `key` names the method there."""

    name: str
    peer: str
    key: str
    given: str
    runs: int = 1

    @property
    def is_ours(self) -> bool:
        """Whether it runs in this project's own environment."""
        return self.peer == OURS

    @property
    def script(self) -> Path:
        """What the peer's process runs."""
        return HERE / self.peer / "synthesize.py"

    @property
    def requirements(self) -> Path:
        """What the peer's environment holds."""
        return HERE / self.peer / "requirements.txt"


DPMM_GIVEN = (
    "its own pipeline: categories and bounds given, integers of at most 32 values as categories, other numbers by its "
    "PrivTree discretiser with 0.1 of epsilon 1, the model with 0.9; one process; for AIM its own cap of 80 MB"
)
METHODS = (
    Method(
        name="kamino",
        peer=OURS,
        key="default",
        given="the command line with its defaults: domains as public, the constraints (soft ones as soft)",
        runs=3,
    ),
    Method(
        name="DP-VAE (ours, small)",
        peer="dp_vae",
        key="dp_vae",
        given="integers of at most 128 values one-hot, other numbers in 32 bins of equal width over the public bounds, "
        "columns of over 1,000 values as two digits; the budget all for DP-SGD (1,000 steps, batches of about 512)",
    ),
    Method(
        name="SmartNoise MST",
        peer="smartnoise",
        key="mst",
        given="a transformer for each column: labels for categories and for integers of under 150 values (its own "
        "rule), 32 bins over the public bounds for other numbers, so that all of the budget goes to the model",
    ),
    Method(
        name="SmartNoise PATE-CTGAN",
        peer="smartnoise",
        key="patectgan",
        given="one-hot labels as for MST, other numbers scaled by the public bounds; default parameters",
    ),
    Method(name="dpmm PrivBayes", peer="dpmm", key="privbayes", given=DPMM_GIVEN),
    Method(name="dpmm MST", peer="dpmm", key="mst", given=DPMM_GIVEN),
    Method(name="dpmm AIM", peer="dpmm", key="aim", given=DPMM_GIVEN),
    Method(
        name="kamino, printed preset",
        peer=OURS,
        key="printed",
        given="the command line with --preset printed: the paper's own algorithms, neighbours that differ in one row",
    ),
)


def method_named(name: str) -> Method:
    """The method of that name."""
    return next(method for method in METHODS if method.name == name)

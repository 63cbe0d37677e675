"""Every example runs and prints what it printed when it was written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.forked import forks

EXAMPLES = Path(__file__).parents[2] / "examples"
EXPECTED = {
    "replay_a_pipeline.py": "mean_age passes\nmean_age_that_peeks leaks\n",
    "check_a_table.py": "1 of 6 (fd)\n   rows 3, 4\n1 of 6 (order)\n   rows 3, 2\n1 of 4 (unary)\n   rows 1\n",
    "synthesize_a_table.py": "1000 rows, for release\n" + 6 * "0 violations\n" + "{'M'}\n",
}


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_example_runs(path: Path, tmp_path: Path) -> None:
    ran = forks().run(path.read_text(encoding="utf-8"), folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    if path.name in EXPECTED:
        assert ran.stdout == EXPECTED[path.name]

"""Draw docs/report.png: the top of the quality report of a public table, as a browser shows it.

python -m bench.report_picture FOLDER/adult/adult.csv FOLDER/adult/adult.ic docs/report.png

The report shows the true table, so the table must be a public one. Needs Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kamino.constraints import Constraints, value_types
from kamino.evaluate.report.document import internal_report
from kamino.evaluate.report.page import render_page
from kamino.evaluate.report.statement import statement_of
from kamino.io import read_table
from kamino.pipeline import Synthesizer

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1100,1690",
)


def page(data: Path, constraints: Path) -> str:
    """The report of a table and its synthetic copy."""
    private = read_table(data)
    rules = Constraints.parse(constraints.read_text(encoding="utf-8"), types=value_types(private))
    made = Synthesizer(constraints=rules, epsilon=1.0, trust_domain=True).fit(private)
    synthetic = made.sample()
    statement = statement_of(made.certificate(synthetic), ledger=made.ledger)
    document = internal_report(private, synthetic, rules, certificate=statement)
    document["sources"] = {"true": data.name, "synthetic": "synthetic.csv"}
    return render_page(document)


def main() -> int:
    """Write the picture."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None or len(sys.argv) != 4:
        print("needs Chromium, and three arguments: TABLE CONSTRAINTS PICTURE", file=sys.stderr)
        return 2
    data, constraints, picture = (Path(each).resolve() for each in sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        html = Path(folder) / "report.html"
        html.write_text(page(data, constraints), encoding="utf-8")
        profile = f"--user-data-dir={folder}/profile"
        command = [browser, *FLAGS, profile, f"--screenshot={picture}", html.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    return 0


if __name__ == "__main__":
    sys.exit(main())

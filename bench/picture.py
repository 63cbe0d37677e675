"""Draw the picture in the README: what `kamino demo` prints, as an SVG without outside fonts.

python bench/picture.py docs/demo.svg
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from kamino.cli.commands.demo import run_demo

WIDTH = 124


def main() -> int:
    """Run the demo on a recording console and write what it shows."""
    recorder = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False, force_terminal=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        made = Path("kamino-demo")
        made.mkdir()
        run_demo(recorder, rows=20_000, epsilon=1.0, folder=made)
    picture = recorder.export_svg(title="kamino demo")
    picture = re.sub(r"@font-face\s*{[^}]*}", "", picture)
    picture = re.sub(r"<!--.*?-->", "", picture, flags=re.DOTALL)
    Path(sys.argv[1]).write_text(picture.replace("Fira Code, monospace", "monospace"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The readers that odd rows are tried on.

To add one, write a function that makes a source of cells, and enter an `OddReader` here.
"""

from __future__ import annotations

from tests.io.odd_columnar import COLUMNAR
from tests.io.odd_files import FILES
from tests.io.odd_frames import FRAMES
from tests.io.odd_reading import OddReader

READERS: tuple[OddReader, ...] = (*FRAMES, *COLUMNAR, *FILES)

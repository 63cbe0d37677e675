"""How many examples hypothesis tries: the numbers of `make test`, which a profile scales."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import settings

# A profile that tries so many examples by default tries exactly as many as a test names.
WHOLE = 100


def examples(count: int = WHOLE, **others: Any) -> settings:
    """The settings of a test that tries `count` examples in `make test`; a twentieth of them in `make quick`."""
    return settings(max_examples=max(math.ceil(count * settings.default.max_examples / WHOLE), 1), **others)

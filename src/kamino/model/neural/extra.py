"""What the backend needs beyond Kamino's own dependencies."""

from __future__ import annotations

from importlib.util import find_spec

from kamino.errors import ModelError


def require(*modules: str, package: str = "kamino-synth[neural]") -> None:
    """Raise a `ModelError` that says how to install what is missing."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ModelError(
            f"the neural backend needs {' and '.join(missing)}, which is not installed: pip install '{package}'."
        )

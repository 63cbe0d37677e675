"""Parameters of an object, as scikit-learn handles them: read, changed, copied, shown."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from kamino.constraints.collection import Constraints
from kamino.errors import InputError
from kamino.limits import cut
from kamino.schema.files.messages import did_you_mean
from kamino.schema.schema import Schema


class Parameterised:
    """An object whose parameters are the arguments of its `__init__`, kept in `_given` as they were given.

    Guarantees:
        `sklearn.base.clone` makes an equal one that is not fitted.  [test_sklearn_clones_a_synthesizer]
    """

    _given: Mapping[str, Any]
    # Parameters that the text shows also where they are as by default.
    _always_shown: ClassVar[tuple[str, ...]] = ()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as they were given."""
        del deep  # none of them has parameters of its own
        return dict(self._given)

    def set_params(self, **params: Any) -> Self:
        """Change some parameters by name and return the object. What was fitted stays as it is until the next fit."""
        unknown = [name for name in params if name not in self._given]
        if unknown:
            raise InputError(
                f"found unknown parameter {unknown[0]!r}.{did_you_mean(unknown[0], self._given)} "
                f"Parameters: {', '.join(self._given)}."
            )
        self._take({**self._given, **params})
        return self

    def _take(self, given: Mapping[str, Any]) -> None:
        """Check parameters and keep them; if they are refused, those from before stay."""
        raise NotImplementedError

    def shown_params(self) -> dict[str, str]:
        """The parameters that are not as by default, in few words."""
        defaults = {name: each.default for name, each in inspect.signature(type(self)).parameters.items()}
        return {
            name: shown_value(value)
            for name, value in self._given.items()
            if name in self._always_shown or not _same(value, defaults[name])
        }


def shown_value(value: object) -> str:
    """A parameter in few words: a schema or constraints by their size, a long text by its beginning."""
    if isinstance(value, Schema):
        return f"<Schema of {len(value)} attributes>"
    if isinstance(value, Constraints):
        return f"<{len(value)} Constraints>"
    return repr(cut(value) if type(value) is str else getattr(value, "value", value))


def _same(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and value == default)

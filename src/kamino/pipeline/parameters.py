"""Parameters of an object, as scikit-learn handles them: read, changed, copied, shown."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from kamino.constraints.collection import Constraints
from kamino.errors import KeywordError
from kamino.limits import cut
from kamino.schema.files.messages import did_you_mean
from kamino.schema.schema import Schema


class Parameterised:
    """An object whose parameters are the arguments of its `__init__`, kept in `_given` as they were given.

    Guarantees:
        `sklearn.base.clone` makes an equal one that is not fitted.  [test_sklearn_clones_a_synthesizer]
    """

    _given: Mapping[str, Any]
    # What people call a parameter elsewhere, with what to say here.
    _elsewhere: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        # What `__new__` takes is no part of what people see.
        signature = inspect.signature(cls.__init__)
        own = [each for name, each in signature.parameters.items() if name != "self"]
        cls.__signature__ = signature.replace(parameters=own, return_annotation=inspect.Signature.empty)  # type: ignore[attr-defined]

    def __new__(cls, *given: object, **named: object) -> Self:
        """Refuse a keyword that is not known, and say which is.

        Guarantees:
            Names from other libraries are answered.  [test_a_wrong_keyword_is_told_in_one_line]
        """
        refuse_unknown(named, cls.__signature__.parameters, cls._elsewhere)  # type: ignore[attr-defined]
        return super().__new__(cls)

    # Parameters that the text shows also where they are as by default.
    _always_shown: ClassVar[tuple[str, ...]] = ()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as they were given."""
        del deep  # none of them has parameters of its own
        return dict(self._given)

    def set_params(self, **params: Any) -> Self:
        """Change some parameters by name and return the object. What was fitted stays as it is until the next fit."""
        refuse_unknown(params, self._given, self._elsewhere)
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


def refuse_unknown(named: Iterable[str], known: Iterable[str], elsewhere: Mapping[str, str]) -> None:
    """Refuse a parameter that is not known, with what is meant by it here, or the nearest that there is."""
    for name in named:
        if name not in set(known):
            hint = f" {elsewhere[name]}" if name in elsewhere else did_you_mean(name, known)
            raise KeywordError(f"found unknown parameter {name!r}.{hint} Parameters: {', '.join(known)}.")


def shown_value(value: object) -> str:
    """A parameter in few words: a schema or constraints by their size, a long text by its beginning."""
    if isinstance(value, Schema):
        return f"<Schema of {len(value)} attributes>"
    if isinstance(value, Constraints):
        return f"<{len(value)} Constraints>"
    return repr(cut(value) if type(value) is str else getattr(value, "value", value))


def _same(value: object, default: object) -> bool:
    return value is default or (type(value) is type(default) and value == default)

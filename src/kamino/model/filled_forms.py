"""JSON from anybody as forms: named values of known kinds, checked all at once by pydantic.

What does not fit raises a `ModelError` of one line, which names the place and no value.

>>> class Size(Form):
...     size: Whole
>>> filled(Size, {"size": 3}, where="attribute 1").size
3
>>> filled(Size, {"size": "3"}, where="attribute 1")
Traceback (most recent call last):
    ...
kamino.errors.ModelError: attribute 1: size is not a whole number
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from kamino.errors import ModelError
from kamino.model.saved import shown

_LARGEST = 1e300
Number = Annotated[float, Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, le=_LARGEST, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=0, le=2**62)]
Count = Annotated[int, Field(ge=1, le=2**62)]


class Form(BaseModel):
    """Named values of a file, each of its kind. Names that a form does not have are passed over."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")


class ClosedForm(Form):
    """A form that has no other names."""

    model_config = ConfigDict(extra="forbid")


Filled = TypeVar("Filled", bound=Form)

_KINDS = {
    "int_type": "is not a whole number",
    "int_from_float": "is not a whole number",
    "float_type": "is not a finite number",
    "finite_number": "is not a finite number",
    "string_type": "is not a text",
    "bool_type": "is neither true nor false",
    "list_type": "is not a list",
    "tuple_type": "is not a list",
    "dict_type": "is not a set of named values",
    "model_type": "is not a set of named values",
    "missing": "is missing",
}


def filled(form: type[Filled], document: object, *, where: str) -> Filled:
    """A form filled with what a file says.

    Raises:
        ModelError: something is missing, unknown or of another kind; one line that names the first such place.

    Guarantees:
        What is refused is named, and no value but a name is shown.  [test_forms_say_what_does_not_fit]
    """
    try:
        return form.model_validate(document)
    except ValidationError as problem:
        raise ModelError(_line(problem.errors(include_url=False)[0], where)) from None


def _line(fault: ErrorDetails, where: str) -> str:
    """The place of a fault and what is wrong there: `where: entries 3: sigma is missing`."""
    place = where
    names = [*fault["loc"]]
    if fault["type"] == "extra_forbidden":
        return f"{_joined(place, names[:-1])}: {shown(names[-1])} is unknown"
    if fault["type"] == "value_error":
        return f"{_joined(place, names)}: {fault['ctx']['error']}"
    said = _KINDS.get(fault["type"])
    if said is None:
        limits = fault.get("ctx", {})
        bound = next((f"{word} {limits[key]:g}" for key, word in _BOUNDS.items() if key in limits), None)
        said = f"is not {bound}" if bound else "is of another kind"
    return f"{_joined(place, names)} {said}"


_BOUNDS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}


def shown_name(name: str) -> str:
    """A name as it may stand in a message."""
    return name if name.isidentifier() and len(name) <= 40 else shown(name)


def _joined(place: str, names: list[Any]) -> str:
    for name in names:
        place = f"{place} {name}" if isinstance(name, int) else f"{place}: {shown_name(name)}"
    return place

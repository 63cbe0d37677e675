"""YAML as people mean it: `no` is text, `1e3` is a number, a name is text, nothing is given twice.

PyYAML follows YAML 1.1, where the country code NO is false, 12:30 is 750 and 010 is 8. Here only `true`, `false`,
`null` and decimal numbers are special (the core of YAML 1.2). Dates stay text; whoever expects one reads it.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import yaml

from kamino.errors import SchemaError

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_NULL = re.compile(r"null|~|")
_BOOL = re.compile(r"true|false")


class _Loader(yaml.SafeLoader):
    """Knows fewer special words than its parent."""


class _Dumper(yaml.SafeDumper):
    """Quotes whatever this module or YAML 1.1 would not read as text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("null", _NULL, ["n", "~", ""]),
    ("bool", _BOOL, list("tf")),
    ("int", _INTEGER, list("-+0123456789")),
    ("float", _FLOAT, list("-+.0123456789")),
):
    _whole = re.compile(rf"(?:{_pattern.pattern})\Z")
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _whole, _first)


def _construct_float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Decimal:
    special = re.fullmatch(r"([-+]?)\.(inf|nan)", node.value, re.IGNORECASE)
    return Decimal("".join(special.groups()) if special else node.value)


def _construct_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[str, Any]:
    """Read names as text, whatever they look like, and refuse the second of two equal names."""
    result: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.value in result:
            found = f"{key.value!r} for the second time" if isinstance(key, yaml.ScalarNode) else "a compound name"
            raise yaml.constructor.ConstructorError(None, None, f"found {found}", key.start_mark)
        result[key.value] = loader.construct_object(value, deep=True)
    return result


_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)
_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def _represent_decimal(dumper: yaml.SafeDumper, value: Decimal) -> yaml.ScalarNode:
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    tag = "float" if "." in text else "int"
    return dumper.represent_scalar(f"tag:yaml.org,2002:{tag}", text)


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    # Line breaks that are not "\n" would be folded into one that is, except between double quotes.
    style = '"' if re.search("[\x85\u2028\u2029]", value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(Decimal, _represent_decimal)
_Dumper.add_representer(str, _represent_text)


def load_yaml(text: str, *, source: str) -> tuple[Any, yaml.Node | None]:
    """Return the content of `text` and its tree, in which `position_in` finds places."""
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        return (None if node is None else loader.construct_document(node)), node
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise SchemaError(f"{source}{place}: {error.problem or 'cannot be read'}: expected YAML") from None
    except yaml.YAMLError as error:
        raise SchemaError(f"{source}: {str(error).splitlines()[0]}: expected YAML") from None
    finally:
        if loader is not None:
            loader.dispose()


def position_in(node: yaml.Node | None, path: tuple[str | int, ...]) -> str:
    """Return `:line:column` of the last part of `path` that the text has."""
    for part in path:
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == part), node)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
    return "" if node is None else f":{node.start_mark.line + 1}:{node.start_mark.column + 1}"


def dump_yaml(content: Any) -> str:
    """Return `content` as YAML, in its own order, one line for each attribute where it fits."""
    text: str = yaml.dump(
        content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
    )
    return text

"""YAML as people mean it: `no` is text, `1e3` is a number, a name is text, nothing is given twice.

PyYAML follows YAML 1.1, where the country code NO is false, 12:30 is 750 and 010 is 8. Here only `true`, `false`,
`null` and decimal numbers are special (the core of YAML 1.2). Dates stay text; whoever expects one reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import yaml

from kamino.errors import SchemaError, visible
from kamino.limits import MAX_DEPTH, MAX_NODES, number_problem, text_problem

_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
_NULL = re.compile(r"null|~|")
_BOOL = re.compile(r"true|false")


class _Loader(yaml.SafeLoader):
    """Knows fewer special words than its parent, and goes no deeper than the limit."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.depth > MAX_DEPTH:
            problem = f"found more than {MAX_DEPTH} levels within each other"
            raise yaml.composer.ComposerError(None, None, problem, self.peek_event().start_mark)  # type: ignore[no-untyped-call]
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


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
    return Decimal("".join(special.groups()) if special else _number(node, _FLOAT))


def _construct_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    return int(_number(node, _INTEGER))


def _number(node: yaml.ScalarNode, pattern: re.Pattern[str]) -> str:
    """The text of a number, unless it is none (a tag may say so of any text) or beyond the limits."""
    text = str(node.value)
    problem = number_problem(text) if pattern.fullmatch(text) else "found text that is tagged as a number"
    if problem:
        raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
    return text


def _construct_bool(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> bool:
    if not _BOOL.fullmatch(str(node.value)):
        raise yaml.constructor.ConstructorError(None, None, "found text that is tagged as a boolean", node.start_mark)
    return bool(node.value == "true")


def _refuse_tag(loader: yaml.SafeLoader, node: yaml.Node) -> None:
    raise yaml.constructor.ConstructorError(None, None, "found an unknown tag", node.start_mark)


def _construct_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[str, Any]:
    """Read names as text, whatever they look like, and refuse the second of two equal names."""
    result: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.value in result:
            found = f"{key.value!r} for the second time" if isinstance(key, yaml.ScalarNode) else "a compound name"
            raise yaml.constructor.ConstructorError(None, None, f"found {found}", key.start_mark)
        result[key.value] = loader.construct_object(value, deep=True)
    return result


# What is not one of these kinds has no place in a schema.
for _tag in ("binary", "timestamp", "omap", "pairs", "set"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", _refuse_tag)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:bool", _construct_bool)
_Loader.add_constructor("tag:yaml.org,2002:map", _construct_mapping)


def _represent_decimal(dumper: yaml.SafeDumper, value: Decimal) -> yaml.ScalarNode:
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    tag = "float" if "." in text else "int"
    return dumper.represent_scalar(f"tag:yaml.org,2002:{tag}", text)


def _represent_text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    # Line breaks that are not "\n" would be folded into one that is, and only double quotes have escapes.
    style = '"' if visible(value, keep="\n") != value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(Decimal, _represent_decimal)
_Dumper.add_representer(str, _represent_text)
# Of text that is plain, nothing is hidden.
_PLAIN_TEXT = {"yaml_representers": _Dumper.yaml_representers | {str: yaml.SafeDumper.yaml_representers[str]}}
_TABLES = ("yaml_implicit_resolvers", "yaml_representers", "ignore_aliases")
#: The same with the emitter of libyaml, which is several times as fast, where PyYAML was built with it.
_FAST: type[yaml.SafeDumper] | None = (
    type("_FastDumper", (yaml.CSafeDumper,), {name: getattr(_Dumper, name) for name in _TABLES} | _PLAIN_TEXT)
    if yaml.__with_libyaml__
    else None
)

#: The reader with the parser of libyaml, which knows nothing of depth: see `_load_written`.
_FAST_LOADER: type[yaml.SafeLoader] | None = (
    type(
        "_FastLoader",
        (yaml.CSafeLoader,),
        {name: getattr(_Loader, name) for name in ("yaml_implicit_resolvers", "yaml_constructors")},
    )
    if yaml.__with_libyaml__
    else None
)
#: Shorter texts are read as fast as they are looked at twice.
_LONG = 10_000
#: Deep levels, or what may be such; what is written here has lists of values at most, inside four levels of names.
_DEEP = re.compile(r"[\[{][^\]}]*[\[{]|^ {20}|[-?] [-?] ", re.MULTILINE)


def load_yaml(text: str, *, source: str) -> tuple[Any, yaml.Node | None]:
    """Return the content of `text` and its tree, in which `position_in` finds places.

    Guarantees:
        Neither depends on how PyYAML was built.  [test_both_parsers_read_the_same]
    """
    problem = text_problem(text)
    if problem:
        raise SchemaError(f"{source}: {problem}")
    written = _load_written(text)
    if written is not None:
        return written
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is not None and _written_out(node, {}) > MAX_NODES:
            raise SchemaError(f"{source}: found aliases that stand for too much, expected them written out")
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


def _load_written(text: str) -> tuple[Any, yaml.Node] | None:
    """Return the content of a long text that `dump_yaml` wrote, and its tree, by the parser of libyaml; else None.

    That parser reads some texts otherwise, and tells other errors. So what it has read is written again: if that is the
    text, it is the content, for `load_yaml` reads what `dump_yaml` writes.
    """
    if _FAST_LOADER is None or len(text) < _LONG or not text.isascii() or _DEEP.search(text):
        return None
    loader = _FAST_LOADER(text)
    try:
        node = loader.get_single_node()
        if node is None or _written_out(node, {}) > MAX_NODES:
            return None
        content = loader.construct_document(node)
        return (content, node) if _is_plain(content) and dump_yaml(content) == text else None
    except yaml.YAMLError:
        return None
    finally:
        loader.dispose()


def _written_out(node: yaml.Node, known: dict[int, int]) -> int:
    """The number of nodes once every alias is written out; beyond any limit if one stands for itself."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = MAX_NODES + 1
        pairs = isinstance(node, yaml.MappingNode)
        parts = [part for item in node.value for part in (item if pairs else (item,))]
        known[id(node)] = 1 + sum(_written_out(part, known) for part in parts)
    return known[id(node)]


def position_in(node: yaml.Node | None, path: tuple[str | int, ...]) -> str:
    """Return `:line:column` of the last part of `path` that the text has."""
    for part in path:
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == part), node)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
    return "" if node is None else f":{node.start_mark.line + 1}:{node.start_mark.column + 1}"


def dump_yaml(content: Any) -> str:
    """Return `content` as YAML, in its own order, one line for each attribute where it fits.

    Guarantees:
        The text does not depend on how PyYAML was built.  [test_both_emitters_write_the_same]
        Nothing that a terminal obeys is left in it.  [test_commands_print_nothing_a_terminal_obeys]
    """
    dumper = _FAST if _FAST is not None and _is_plain(content) else _Dumper
    text: str = yaml.dump(
        content, Dumper=dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100
    )
    # What is hidden stands between double quotes, where an escape means the same.
    return visible(text, keep="\n")


def _is_plain(content: Any) -> bool:
    """Whether all text is printable ASCII and no name is empty: of anything else, the two emitters write some apart."""
    if isinstance(content, str):
        return content.isascii() and content.isprintable()
    if isinstance(content, Mapping):
        return all(name != "" and _is_plain(name) and _is_plain(value) for name, value in content.items())
    return all(map(_is_plain, content)) if isinstance(content, list | tuple) else True

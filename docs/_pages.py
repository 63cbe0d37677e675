"""What pages of the site are filled with when it is built: help of the commands, fields of a schema, policy.

`make docs` runs it as a hook of mkdocs. A page says where with a line `<!-- commands -->`,
`<!-- fields -->` or `<!-- policy -->`.
"""

from __future__ import annotations

from typing import Any, get_args

COMMANDS_MARK, FIELDS_MARK, POLICY_MARK = "<!-- commands -->", "<!-- fields -->", "<!-- policy -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill a page in; links that leave the folder, which a reader of the repository can follow, become plain text."""
    import re

    markdown = re.sub(r"\[([^\]]+)\]\(\.\./(?:\.\./)?(?:examples|tests|bench|src)[^)]*\)", r"\1", markdown)
    if COMMANDS_MARK in markdown:
        markdown = markdown.replace(COMMANDS_MARK, commands())
    if FIELDS_MARK in markdown:
        markdown = markdown.replace(FIELDS_MARK, fields())
    if POLICY_MARK in markdown:
        markdown = markdown.replace(POLICY_MARK, policies())
    return markdown


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page on which an example of a docstring became a quotation; `_examples.py` puts them between fences."""
    import re

    if re.search(r"<blockquote>\s*<blockquote>\s*<blockquote>", output):
        raise ValueError(f"{page.file.src_uri}: found an example that is shown as a quotation, expected code")
    return output


def commands() -> str:
    """Every command with its help and its options, as it prints them."""
    from kamino.cli.app import COMMANDS, load_command

    parts = []
    for name in COMMANDS:
        command = load_command(name)
        subcommands = getattr(command, "commands", None)
        found = [(f"{name} {sub}", each) for sub, each in subcommands.items()] if subcommands else [(name, command)]
        parts += [_command(title, each) for title, each in found]
    return "\n\n".join(parts)


def _command(title: str, command: Any) -> str:
    lines = [f"## kamino {title}", "", *(line.strip() for line in (command.help or "").splitlines())]
    rows = []
    for each in command.params:
        said = (getattr(each, "help", None) or "").replace("|", "\\|").replace("\\[", "[")
        names = ", ".join(
            f"`{name}`" for name in (*each.opts, *each.secondary_opts) if each.param_type_name == "option"
        )
        rows.append(f"| {names or f'`{(each.metavar or each.name or str()).upper()}`'} | {said} |")
    return "\n".join([*lines, "", "| option | |", "| --- | --- |", *rows])


def fields() -> str:
    """Every type of attribute with its fields."""
    from kamino.schema import Attribute

    union = get_args(Attribute)[0] if not isinstance(get_args(Attribute)[0], type) else Attribute
    parts = []
    for kind in get_args(union):
        summary = (kind.__doc__ or "").strip().splitlines()[0]
        rows = [f"| `{name}` | {field.description or ''} |" for name, field in kind.model_fields.items()]
        parts.append("\n".join([f"## {kind.__name__}", "", summary, "", "| field | |", "| --- | --- |", *rows]))
    return "\n\n".join(parts)


def policies() -> str:
    """Every policy with its values and their reasons."""
    from kamino.engine.finding_policy import FINDING
    from kamino.pipeline.plan.telling_policy import TELLING
    from kamino.policy import reasons

    parts = []
    for title, policy in (("Finding types and domains", FINDING), ("Refusing, marking and telling", TELLING)):
        summary = (type(policy).__doc__ or "").strip().splitlines()[0]
        rows = [f"| `{name}` | {value:g} | {why} |" for name, (value, why) in reasons(policy).items()]
        parts.append("\n".join([f"## {title}", "", summary, "", "| value | | why |", "| --- | --- | --- |", *rows]))
    return "\n\n".join(parts)

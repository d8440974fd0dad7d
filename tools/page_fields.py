"""What a field of a record means, for the pages of the API: the comment behind it, or the description of its setting.

Griffe, which reads the code for mkdocstrings, takes only a string below a field for its docstring, and shows
``Field(0, ge=0)`` where the default is 0, ``eqx.field(static=True)`` where there is none.
"""

import ast
import re
from typing import Any

import griffe

FIELD = ("Field(", "eqx.field(", "field(")
COMMENT = re.compile(r"#\s+(?!type:|noqa|fmt:)(.+)$")


def meaning(line: str, value: str | None) -> str | None:
    """What the last line of a field and its value say about it; None if nothing."""
    found = COMMENT.search(line)
    if found:
        return found[1]
    text = _options(value).get("description")
    return text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else None


def default(value: str | None) -> str | None:
    """The default that a ``Field(…)`` holds; other values as they are, None if there is no default."""
    if value is None or not value.startswith(FIELD):
        return value
    options = _options(value)
    factory = options.get("default_factory")
    if isinstance(factory, ast.Name):
        return {"dict": "{}", "list": "[]", "tuple": "()"}.get(factory.id, f"{factory.id}()")
    return ast.unparse(options["default"]) if "default" in options else None


def _options(value: str | None) -> dict[str, ast.expr]:
    call = ast.parse(value or "None", mode="eval").body
    if not isinstance(call, ast.Call) or not (value or "").startswith(FIELD):
        return {}
    named = {each.arg: each.value for each in call.keywords if each.arg}
    return {"default": call.args[0], **named} if call.args else named


class Fields(griffe.Extension):
    """Gives every field its default, and one without a docstring what its line tells."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **others: Any) -> None:
        """Called by griffe for each attribute that it has read."""
        if not (attr.endlineno and attr.parent and attr.parent.is_class):
            return
        value = str(attr.value) if attr.value is not None else None
        said = meaning(attr.lines_collection[attr.filepath][attr.endlineno - 1], value)
        if said and attr.docstring is None:
            attr.docstring = griffe.Docstring(said, parent=attr)
        attr.value = default(value) if value and value.startswith(FIELD) else attr.value

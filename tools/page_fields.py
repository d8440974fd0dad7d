"""What a field of a record means, for the pages of the API: the comment behind it, or the description of its setting.

Griffe, which reads the code for mkdocstrings, takes only a string below a field for its docstring.
"""

import ast
import re
from typing import Any

import griffe

COMMENT = re.compile(r"#\s+(?!type:|noqa|fmt:)(.+)$")


def meaning(line: str, value: str | None) -> str | None:
    """What the last line of a field and its value say about it, as a sentence; None if nothing."""
    found = COMMENT.search(line)
    said = found[1] if found else _description(value)
    return said[0].upper() + said[1:] if said else None


def _description(value: str | None) -> str | None:
    if not value or not value.startswith("Field("):
        return None
    call = ast.parse(value, mode="eval").body
    named = {each.arg: each.value for each in call.keywords} if isinstance(call, ast.Call) else {}
    text = named.get("description")
    return text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else None


class Fields(griffe.Extension):
    """Gives every field without a docstring the one that its line tells."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **others: Any) -> None:
        """Called by griffe for each attribute that it has read."""
        if attr.docstring is None and attr.endlineno and attr.parent and attr.parent.is_class:
            line = attr.lines_collection[attr.filepath][attr.endlineno - 1]
            said = meaning(line, str(attr.value) if attr.value is not None else None)
            if said:
                attr.docstring = griffe.Docstring(said, parent=attr)

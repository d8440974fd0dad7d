"""Document the fields of records on the reference pages with the comment after a field or its description.

Griffe, which reads the code for mkdocstrings, accepts only a string below a field as its docstring, and shows
``Field(0, ge=0)`` where the default is 0.
"""

import ast
import re
from collections.abc import Iterator
from typing import Any

import griffe

SPEC = "regretless.spec.Spec"
KEYWORD = griffe.ParameterKind.keyword_only
FIELD = ("Field(", "eqx.field(", "field(")
COMMENT = re.compile(r"#\s+(?!type:|noqa|fmt:)(.+)$")


def meaning(line: str, value: str | None) -> str | None:
    """Return the comment after a field, or the description in its value, or None."""
    match = COMMENT.search(line)
    if match:
        return match[1]
    text = _options(value).get("description")
    return text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else None


def default(value: str | None) -> str | None:
    """Return the default inside a ``Field(…)``, or None without a default; return other values unchanged."""
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
    named = {word.arg: word.value for word in call.keywords if word.arg}
    return {"default": call.args[0], **named} if call.args else named


class Fields(griffe.Extension):
    """Give every field its default, and its comment if it has no docstring."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **others: Any) -> None:
        """Complete one attribute; griffe calls this for each one that it reads."""
        if not (attr.endlineno and attr.parent and attr.parent.is_class):
            return
        value = str(attr.value) if attr.value is not None else None
        comment = meaning(attr.lines_collection[attr.filepath][attr.endlineno - 1], value)
        if comment and attr.docstring is None:
            attr.docstring = griffe.Docstring(comment, parent=attr)
        attr.value = default(value) if value and value.startswith(FIELD) else attr.value

    def on_package(self, *, pkg: griffe.Module, **others: Any) -> None:
        """Give specifications and modules their constructor; griffe calls this when everything is read."""
        kinds = {item: kind for item in _classes(pkg) if (kind := _kind(item)) is not None}
        for item, kind in kinds.items():
            fields = {field.name: field for base in reversed([item, *item.mro()]) for field in _fields(base)}
            item.set_member("__init__", _constructor(item, list(fields.values()), kind))
        for item in kinds:
            if item.docstring is not None and "Parameters\n" in item.docstring.value:
                for field in _fields(item):  # they are documented as parameters
                    item.del_member(field.name)


def _kind(item: griffe.Class) -> griffe.ParameterKind | None:
    """Return how a class takes its fields in a generated constructor, or None if it has no such constructor."""
    ancestors = item.mro()
    if any(base.path == SPEC for base in ancestors):
        return KEYWORD
    written = any("__init__" in base.members for base in (item, *ancestors))
    modules = any(
        str(base) in ("eqx.Module", "NamedTuple") for ancestor in (item, *ancestors) for base in ancestor.bases
    )
    return griffe.ParameterKind.positional_or_keyword if modules and not written else None


def _classes(module: griffe.Module) -> Iterator[griffe.Class]:
    for member in list(module.members.values()):
        if member.is_alias:
            continue
        if isinstance(member, griffe.Module):
            yield from _classes(member)
        elif isinstance(member, griffe.Class):
            yield member


def _fields(item: griffe.Class) -> list[griffe.Attribute]:
    """Return the fields of a class that are arguments of its constructor."""
    return [
        member
        for member in item.members.values()
        if isinstance(member, griffe.Attribute)
        and member.annotation is not None
        and "instance-attribute" in member.labels
        and not member.name.startswith("_")
    ]


def _constructor(item: griffe.Class, fields: list[griffe.Attribute], kind: griffe.ParameterKind) -> griffe.Function:
    arguments = [
        griffe.Parameter(field.name, annotation=field.annotation, kind=kind, default=field.value) for field in fields
    ]
    first = griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)
    return griffe.Function("__init__", parent=item, parameters=griffe.Parameters(first, *arguments), returns="None")

"""Modules as source: where a module's file is, what it imports, and a hash of what it says. Nothing is imported to find out."""

import ast
import functools
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from regretless.errors import SettingsError

SILENT_FIELDS = {"ctx", "kind", "type_comment"}
SHARED_FOLDERS = {"site-packages", "dist-packages"}
"""Folders whose modules have nothing to do with each other."""

Import = tuple[str, str]  # a module, and a name imported from it: empty for the module itself


class Source(NamedTuple):
    """A module: its file, the folders of a package, its imports, a hash of its code without comments and docstrings, and the
    modules that a registry in it imports later (``Later("module", "attribute")``).
    """

    path: str | None  # None: it has no file, as a namespace package or a built-in module
    folders: tuple[str, ...]
    imports: tuple[Import, ...]
    digest: str
    later: tuple[str, ...] = ()


class Surroundings:
    """The code that belongs to some root modules: their top-level packages, and what lies beside a root that is one file."""

    def __init__(self, roots: tuple[str, ...], package: str):
        self.packages = {package, *(root.partition(".")[0] for root in roots)}
        places = (locate(name) for name in self.packages)
        alone = {os.path.dirname(place[0]) for place in places if place and place[0] and not place[1]}
        self.folders = {folder for folder in alone if os.path.basename(folder) not in SHARED_FOLDERS}

    def holds(self, module: str) -> bool:
        """Whether a module belongs here."""
        top = module.partition(".")[0]
        if top in self.packages:
            return True
        place = locate(top) if self.folders else None
        if place is None:
            return False
        homes = place[1] or ([place[0]] if place[0] else [])
        return any(os.path.dirname(home) in self.folders for home in homes)


def find(name: str) -> Source | None:
    """The source of a module; None if there is no module of this name."""
    place = locate(name)
    if place is None:
        return None
    path, folders = place
    if path is None:
        return Source(None, tuple(folders), (), "no file")
    try:
        about = os.stat(path)
        return _read(name, path, tuple(folders), about.st_mtime_ns, about.st_size)
    except OSError as error:
        raise SettingsError(f"cannot read the source of the module {name}, {path}: {error.strerror}") from None


def parents(name: str) -> list[str]:
    """The packages that a module lies in.

    >>> parents("a.b.c")
    ['a', 'a.b']
    """
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts))]


def locate(name: str) -> tuple[str | None, list[str]] | None:
    """The file of a module, if it has one, and the folders of a package; None if there is no such module."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        about = vars(loaded)
        file = about.get("__file__")
        return (file if file and os.path.isfile(file) else None), [str(each) for each in about.get("__path__") or ()]
    above = name.rpartition(".")[0]
    within = locate(above) if above else None
    if above and not (within and within[1]):
        return None
    try:
        spec = _spec(name, within[1] if within else None)
    except KeyError:  # Python's finder asks for the parent of a namespace package, which nobody has imported
        inside = [os.path.join(folder, name.rpartition(".")[2]) for folder in (within[1] if within else [])]
        return None, [folder for folder in inside if os.path.isdir(folder)]
    if spec is None:
        return None
    file = spec.origin if spec.has_location and os.path.isfile(spec.origin) else None
    return file, [str(each) for each in spec.submodule_search_locations or ()]


def _spec(name: str, path: list[str] | None) -> Any:
    """What Python's finders know of a module, given the folders of its parent, which need not be imported."""
    for finder in sys.meta_path:
        find_spec = getattr(finder, "find_spec", None)
        spec = find_spec(name, path) if find_spec else None
        if spec is not None:
            return spec
    return None


@functools.lru_cache(maxsize=4096)
def _read(name: str, path: str, folders: tuple[str, ...], changed: int, size: int) -> Source:
    content = Path(path).read_bytes()
    try:
        if not path.endswith(".py"):
            raise ValueError("compiled")
        tree = ast.parse(content)
        words: list[str] = []
        _write(tree, words)
        digest = hashlib.sha256("".join(words).encode("utf-8", "surrogatepass"))
    except (SyntaxError, ValueError, RecursionError):  # no source that can be followed: every byte counts
        return Source(path, folders, (), hashlib.sha256(content).hexdigest())
    package = name if folders else name.rpartition(".")[0]
    imports = {*_imports(tree, package), *((name, each) for each in _exported(tree) if folders)}
    return Source(path, folders, tuple(sorted(imports)), digest.hexdigest(), tuple(sorted(set(_later(tree)))))


def _write(value: Any, words: list[str]) -> None:
    """A syntax tree as text, the same in every version of Python: no places, no empty fields, no strings that stand alone."""
    if isinstance(value, ast.AST):
        words.append(f"{type(value).__name__}(")
        for field, each in ast.iter_fields(value):
            if each is not None and each != [] and field not in SILENT_FIELDS:
                words.append(f"{field}=")
                _write(each, words)
        words.append(")")
    elif isinstance(value, list):
        words.append("[")
        for each in value:
            if not (isinstance(each, ast.Expr) and _string(each.value) is not None):
                _write(each, words)
                words.append(",")
        words.append("]")
    else:
        words.append(repr(value))


def _imports(node: ast.AST, package: str) -> Iterator[Import]:
    """Every import in a tree, function bodies included, blocks for type checkers left out."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, "") for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        module = ".".join([*above, *([node.module] if node.module else [])])
        yield from ((module, "" if alias.name == "*" else alias.name) for alias in node.names if module)
    elif isinstance(node, ast.Call) and _name(node.func) in ("import_module", "__import__") and node.args:
        module = _string(node.args[0]) or ""
        if module and not module.startswith("."):
            yield module, ""
    if isinstance(node, ast.If) and _name(node.test) == "TYPE_CHECKING":
        children: Any = node.orelse
    else:
        children = ast.iter_child_nodes(node)
    for child in children:
        yield from _imports(child, package)


def _later(tree: ast.AST) -> Iterator[str]:
    """The modules of parts that a registry names and does not import."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and _name(node.func) == "Later"
            and node.args
            and (module := _string(node.args[0]))
        ):
            yield module


def _exported(tree: ast.Module) -> Iterator[str]:
    """The names in ``__all__``; those of a package may be modules, which a star import loads."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(_name(target) == "__all__" for target in node.targets):
            yield from (word for each in getattr(node.value, "elts", ()) if (word := _string(each)))


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _string(node: ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None

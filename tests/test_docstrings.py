"""Every public name has a docstring with its parameters, in numpydoc's form."""

import importlib
import inspect
import re

import pytest

import regretless as rg

PACKAGES = (
    "regretless",
    "regretless.benchmarks",
    "regretless.experiments",
    "regretless.experiments.report",
    "regretless.feedback",
    "regretless.models",
    "regretless.client",
    "regretless.oracles",
    "regretless.policies",
    "regretless.serve",
    "regretless.simulation",
    "regretless.stats",
    "regretless.surrogates",
    "regretless.testing",
)
SECTION = re.compile(r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", re.MULTILINE | re.DOTALL)


def public_objects():
    """Iterate over names and public classes and functions of the library, each once."""
    seen = set()
    for package in PACKAGES:
        module = importlib.import_module(package)
        exported = getattr(module, "__all__", None)
        for name in exported or vars(module):
            value = getattr(module, name)
            home = getattr(value, "__module__", None) or ""
            ours = home.startswith("regretless") if exported else home == package and not name.startswith("_")
            if ours and (inspect.isclass(value) or inspect.isfunction(value)) and id(value) not in seen:
                seen.add(id(value))
                yield f"{package}.{name}", value


def methods(kind):
    """Iterate over the public methods of a class that the library defines, each with those that it overrides."""
    for name in dir(kind):
        owners = [base for base in kind.__mro__ if name in vars(base)]
        value = inspect.unwrap(getattr(kind, name))
        is_method = callable(value) and not inspect.isclass(value) and name not in getattr(kind, "__annotations__", {})
        if is_method and not name.startswith("_") and owners[0].__module__.startswith("regretless"):
            overridden = [getattr(owner, name) for owner in owners]
            yield f"{owners[0].__module__}.{owners[0].__qualname__}.{name}", list(map(inspect.unwrap, overridden))


def parameters(value):
    if inspect.isclass(value) and issubclass(value, rg.Spec):
        return list(value.model_fields)
    protocol = getattr(value, "_is_protocol", False)
    names = [] if protocol else inspect.signature(value).parameters
    return [name for name in names if name not in ("self", "args", "kwargs") and not name.startswith("_")]


def missing(value, text):
    """Return the parameters that a docstring does not describe."""
    section = SECTION.search(inspect.cleandoc(text))
    heads = re.findall(r"^(\S.*?)(?: :.*)?$", section[1], re.MULTILINE) if section else []
    described = {name.strip("*` ") for head in heads for name in head.split(",")}
    return [name for name in parameters(value) if name not in described]


@pytest.mark.parametrize(("name", "value"), [pytest.param(*item, id=item[0]) for item in public_objects()])
def test_parameters_are_described(name, value):
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    assert text, f"{name} has no docstring"
    if not (inspect.isclass(value) and issubclass(value, Exception)):
        assert missing(value, text) == []
    if inspect.isclass(value):
        for method, functions in methods(value):
            undescribed = [missing(function, function.__doc__) for function in functions if function.__doc__]
            assert [] in undescribed, f"{method}: not described {undescribed}"

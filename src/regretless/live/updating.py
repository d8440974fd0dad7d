"""Numbers of a policy's settings that change while it works."""

from collections.abc import Iterator, Mapping
from typing import Any

from regretless.errors import SettingsError
from regretless.live.assembly import Options, Plan
from regretless.live.core import Core
from regretless.live.framing import Position
from regretless.live.kernel import Kernel
from regretless.policies.base import Policy
from regretless.policies.building import require_effect
from regretless.problem import form_of


def update(core: Core, changes: Mapping[str, Any], position: Position | None = None) -> dict[str, Any]:
    """Goes on with other numbers; what was learnt stays. ``position``: of a record that is in the log already."""
    plan, rest = core.plan, dict(changes)
    if "budget" in rest and plan.incumbent is not None:
        plan = plan._replace(options=_with_budget(plan.options, rest.pop("budget")))
    if rest or not changes:
        plan = _with_settings(core, plan, rest)
    kernel = plan.kernel(_instance(core))
    after = {**(plan.setting_names() or {}), "budget": plan.options.budget}
    if not _same_form(core, kernel):
        names: dict[str, Any] = core.plan.setting_names() or {}
        told = ", ".join(f"{name} from {names[name]!r} to {after[name]!r}" for name in rest)
        raise SettingsError(
            f"update: changing {told} would change the form of what was learnt; make a new learner for that, or change one "
            f"of {_said(core, names)}"
        )
    changed = {name: after[name] for name in changes}
    if position is None:
        position = core.write("settings", {"settings": changed}, {})
    core.books.change(kernel, position)
    core.plan = plan
    core.config = {**core.config, "settings": plan.setting_names(), "options": plan.options.model_dump()}
    return changed


def _with_budget(options: Options, budget: Any) -> Options:
    return Options.checked(**{**options.model_dump(), "budget": budget})


def _with_settings(core: Core, plan: Plan, changes: Mapping[str, Any]) -> Plan:
    """The plan with other numbers of the policy's; refuses what is no number of its."""
    if isinstance(plan.policy, Policy):
        raise SettingsError("update: expected a policy by name; this learner's is an object, whose numbers are fixed")
    names: dict[str, Any] = plan.setting_names() or {}
    if not changes:
        raise SettingsError(f"update: expected a setting and its new value, such as one of {_said(core, names)}")
    for name in changes:
        if name not in names:
            raise SettingsError(f"update: unknown setting {name!r}; those that can change are {_said(core, names)}")
        if not _is_number(names[name]):
            raise SettingsError(f"update: {name!r} is no number; those that can change are {_said(core, names)}")
    settings = plan.spec().replace(**changes)
    require_effect(settings, changes, core.books.kernel.problem)
    return plan._replace(settings=settings)


def _instance(core: Core) -> Any:
    return core.books.kernel.problem.example_instance() if core.books.form_fixed else None


def _same_form(core: Core, kernel: Kernel) -> bool:
    return form_of(kernel.state_form) == form_of(core.books.kernel.state_form)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _said(core: Core, names: Mapping[str, Any]) -> str:
    """The settings whose value can change, with their values."""
    found = [name for name, value in names.items() if _is_number(value) and _can_change(core, names, name, value)]
    return ", ".join(f"{name} ({names[name]!r})" for name in found) or "none of this policy's"


def _can_change(core: Core, names: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether another value near this one leaves the form of the state as it is."""
    kernels = [kernel for other in _near(value) for kernel in _tried(core, {**names, name: other})]
    return bool(kernels) and all(_same_form(core, kernel) for kernel in kernels)


def _near(value: Any) -> list[Any]:
    return [value + 1, value - 1] if isinstance(value, int) else [1.1 * value + 0.01, 0.9 * value]


def _tried(core: Core, names: Mapping[str, Any]) -> Iterator[Kernel]:
    assert isinstance(core.plan.policy, str)
    try:
        plan = core.plan._replace(settings=core.plan.spec().replace(**names))
        yield plan.kernel(_instance(core))
    except SettingsError:
        return

"""Policies from specifications and names: the one place that builds and scales a policy."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from regretless.errors import SettingsError
from regretless.policies.base import REGISTRY, Policy, PolicySpec
from regretless.policies.scaling import Scaled
from regretless.problem import Problem
from regretless.spec import Spec


class Unscaled(PolicySpec):
    """A policy that meets contexts and costs in their own units, whatever its surroundings say.

    Parameters
    ----------
    policy : PolicySpec
        The policy, or its name.
    """

    policy: PolicySpec

    if not TYPE_CHECKING:

        def __init__(self, policy: PolicySpec | str) -> None:
            super().__init__(policy=policy)

    else:

        def __init__(self, policy: PolicySpec) -> None: ...

    def unused(self, problem: Problem) -> dict[str, str]:
        return {f"policy.{name}": reason for name, reason in self.policy.unused(problem).items()}

    def build(self, problem: Problem) -> Policy:
        """Return the policy for a problem."""
        return self.policy.build(problem)


def build_policy(
    policy: str | PolicySpec | Policy, problem: Problem, scaling: bool = True, *, check_effect: bool = True
) -> Policy:
    """Return a policy for a problem.

    Parameters
    ----------
    policy : str, PolicySpec or Policy
        A name, a specification, or a policy that was built for the same problem.
    problem : Problem
        What the policy is played on.
    scaling : bool, default True
        Whether the policy meets contexts and costs of order one (see ``Scaled``); ``Unscaled(spec)`` switches it off.
    check_effect : bool, default True
        Whether settings without effect on the problem are refused; tuned presets may contain some.

    Raises
    ------
    SettingsError
        If the policy cannot be used on the problem, or a setting that differs from its default has no effect on it.

    Examples
    --------
    >>> import regretless as rg
    >>> problem = rg.Problem(rg.oracles.top_k(4, 2), context=3, feedback="bandit")
    >>> type(rg.policies.build_policy("greedy", problem)).__name__
    'Scaled'
    """
    if isinstance(policy, Policy):
        policy.problem.require_played_on(problem, "policy")
        return policy if not scaling or isinstance(policy, Scaled) else Scaled(problem, policy)
    spec: PolicySpec = PolicySpec.coerce(policy)
    if check_effect:
        require_effect(spec, spec.changed_names(), problem)
    built = spec.build(problem)
    return Scaled(problem, built) if scaling and not isinstance(spec, Unscaled) else built


def require_effect(spec: Spec, names: Iterable[str], problem: Any) -> None:
    """Raise SettingsError if one of the settings ``names`` has no effect on a problem."""
    idle = spec.unused(problem)
    for name in names:
        for pattern, reason in idle.items():
            if name == pattern or (pattern.endswith(".") and name.startswith(pattern)):
                owner = spec.describe_class()
                raise SettingsError(f"setting {name!r} has no effect on {owner} here: {reason}")


def owners(name: str) -> list[str]:
    """Return the policies that have a setting of this dotted name, whichever of their parts it belongs to."""
    head, _, rest = name.partition(".")
    policies = []
    for policy, spec in REGISTRY.usable().items():
        field = spec.model_fields.get(head)
        if field is not None and (not rest or isinstance(field.default, Spec)):
            policies.append(policy)
    return policies

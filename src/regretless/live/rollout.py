"""The incumbent: who or what decides wherever the learner may not."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from regretless.errors import OracleError, SettingsError
from regretless.live.engine import Engine, with_solution
from regretless.live.feedback_parser import parse_vector
from regretless.oracles.base import Oracle
from regretless.policies.guard import INCUMBENT
from regretless.problem import Problem
from regretless.types import Decision, Instance


class Incumbent:
    """Decide as before: by fixed numbers, or by a function of the context (and of the instance, if there are any)."""

    def __init__(self, given: Any, problem: Problem):
        self.problem = problem
        self.function: Callable[..., Any] | None = given if callable(given) else None
        self.fixed: np.ndarray | None = None
        if self.function is None:
            self.fixed = parse_vector("incumbent", given, problem.dim)
            require_support(problem.oracle, self.fixed, "incumbent")

    def describe(self) -> Any:
        """Return the incumbent as JSON data: its numbers, or the mark that it is a function."""
        return "function" if self.fixed is None else self.fixed.tolist()

    def replace(self, engine: Engine, draft: Any, *, certain: bool) -> Decision:
        """Return the incumbent's decision in place of a draft, with the probability with which it decides."""
        w = self._decide(engine, np.asarray(draft.context), draft.instance)
        zeros = np.zeros_like(draft.cost_sample)
        return with_solution(
            draft,
            w,
            jax.tree.map(np.zeros_like, draft.aux),
            cost_sample=zeros,
            noise=zeros,
            member=np.asarray(INCUMBENT, draft.member.dtype),
            log_density=np.zeros_like(draft.log_density) if certain else draft.log_density,
        )

    def _decide(self, engine: Engine, context: np.ndarray, instance: Instance) -> np.ndarray:
        has_instances, oracle = engine.problem.has_instances, engine.oracle
        if self.fixed is not None:
            batch = jax.tree.map(lambda leaf: leaf[None], instance)
            if has_instances and not oracle.contained(self.fixed[None], batch)[0]:
                raise OracleError(
                    "incumbent: the fixed decision is not feasible now; give a function of context and instance instead"
                )
            return self.fixed
        assert self.function is not None
        columns = self.problem.columns
        shown = context if columns is None else columns.decode(context)
        try:
            returned = self.function(shown, instance) if has_instances else self.function(shown)
        except Exception as error:
            raise OracleError(f"incumbent: its function failed: {type(error).__name__}: {error}") from error
        w = parse_vector("the incumbent's decision", returned, self.problem.dim)
        require_support(oracle, w, "incumbent")
        return w


def require_support(oracle: Oracle, w: np.ndarray, name: str) -> None:
    """Refuse a decision with more coordinates other than zero than any of the feasible set has."""
    if np.count_nonzero(w) > oracle.support:
        raise SettingsError(
            f"{name}: expected at most {oracle.support} coordinates other than zero, as in every decision of this "
            f"feasible set, got {np.count_nonzero(w)}"
        )

"""``adaptive`` with its learners, from its settings and the problem's size."""

import jax.numpy as jnp
from pydantic import Field

from regretless.policies.adaptive.ensemble import Ensemble, EnsemblePolicy
from regretless.policies.adaptive.linear import Linear, coefficients, numbers
from regretless.policies.adaptive.measured import one_by_one
from regretless.policies.adaptive.policy import AdaptivePolicy
from regretless.policies.base import PolicySpec
from regretless.problem import Problem
from regretless.spec import number

LIMIT = 5000
"""Most coefficients of one covariance factor (100 MB in single precision); without it only the networks learn."""


RIDGE, SHARED, CLIPPING, FLOOR = 0.3, 0.5, 4.0, 1.0
LOG_FLOOR = 0.3
"""The share that is in the networks' loss and in the errors that decide who has a say, too; where only totals are seen."""

ROW_RIDGE, MEAN_RIDGE = 3.0, 0.15
"""Coefficients that all coordinates share are few and soon known: a weak prior is enough."""


def row_exploration(features: int) -> float:
    """The share of the exploration that feature rows need: little where few coefficients are soon known."""
    return min(max(features / 120, 0.1), 1.0)


LEADS = {"fading": 0.3}
ROW_LEADS = {"log_linear": 0.01}
"""How much smaller (a logarithm) some learners' errors have to be before they have a say: the fading one's, which has much to
forget of context vectors, and the log-linear one's of feature rows, which may predict a total better and decide worse."""

APART = 2.0
"""How much more optimism where every row measures one coordinate: of what was not chosen nothing was seen."""


class Adaptive(PolicySpec):
    """Linear, log-linear and fading linear learners and a small ensemble of networks; their joint prediction decides.

    The defaults are meant for every problem.

    Parameters
    ----------
    exploration : float, default 0.2
        Spread of the draws, in posterior standard deviations.
    optimism : float, default 1.0
        Prior deviations by which what was not tried yet is believed to cost less.
    forgetting : float, default 0.005
        Share that the fading learner forgets per step.
    memory : float, default 100.0
        Rounds over which a learner's errors are averaged.
    temperature : float, default 1.0
        Low: the learner with the smallest error decides alone.
    margin : float, default 0.4
        Logarithm of the error ratio beyond which a learner gets no weight.
    networks : int, default 3
        In the ensemble; 0 for none.
    steps : int, default 4
        Of the ensemble's training after each round.
    early_steps : int, default 8
        If above ``steps``: the same in the first 100 rounds, then falling.
    """

    exploration: float = Field(default=0.2, ge=0, description="spread of the draws, in posterior standard deviations")
    optimism: float = Field(
        default=1.0, ge=0, description="prior deviations by which untried costs are believed to be lower"
    )
    forgetting: float = Field(default=0.005, ge=0, lt=1, description="share that the fading learner forgets per step")
    memory: float = Field(default=100.0, ge=1, description="rounds over which a learner's errors are averaged")
    temperature: float = Field(default=1.0, gt=0, description="low: the learner with the smallest error decides alone")
    margin: float = Field(
        default=0.4, gt=0, description="logarithm of the error ratio beyond which a learner gets no weight"
    )
    networks: int = Field(default=3, ge=0, le=64, description="in the ensemble; 0: none")
    steps: int = Field(default=4, ge=1, le=1000, description="of the ensemble's training after each round")
    early_steps: int = Field(
        default=8, ge=1, le=1000, description="if above steps: the same in the first 100 rounds, then falling"
    )

    def build(self, problem: Problem) -> AdaptivePolicy:
        """Return the policy for a problem."""
        by_row = len(problem.context_shape) == 2
        share = row_exploration(problem.context_shape[-1]) if by_row else 1.0
        own = {
            "intercept_ridge": RIDGE, "slope_ridge": ROW_RIDGE if by_row else RIDGE, "mean_ridge": MEAN_RIDGE,
            "shared": 0.0 if by_row else SHARED, "clipping": CLIPPING, "exploration": self.exploration * share,
            "optimism": self.optimism * (APART if one_by_one(problem) else 1.0), "floor": FLOOR,
        }  # fmt: skip
        log_floor = LOG_FLOOR if problem.feedback.total_only else FLOOR
        learners: dict[str, Linear | EnsemblePolicy] = {}
        if coefficients(problem) <= LIMIT:
            learners["linear"] = Linear(problem, **numbers(**own, forgetting=0.0))
            learners["log_linear"] = Linear(problem, **numbers(**own | {"floor": log_floor}, forgetting=0.0), log=True)
            if self.forgetting:
                learners["fading"] = Linear(problem, **numbers(**own, forgetting=self.forgetting))
        if self.networks or not learners:
            trained = Ensemble(members=max(self.networks, 1), steps=self.steps, early_steps=self.early_steps)
            learners["networks"] = trained.build(problem)
        leads = ROW_LEADS if by_row else LEADS
        return AdaptivePolicy(
            problem, tuple(learners.values()), number(self.memory), number(self.temperature),
            number(self.margin), jnp.asarray([leads.get(name, 0.0) for name in learners]),
            jnp.asarray([name == "networks" and len(learners) > 1 for name in learners]),
            tuple(learners),
        )  # fmt: skip

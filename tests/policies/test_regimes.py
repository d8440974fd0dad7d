"""Every policy is simulated in every regime, and with every model that it can have: it stays finite and feasible.

In the first regime, with the first model, it is simulated in ``tests/simulate/test_hosted.py``.
"""

import numpy as np
import pytest

from regretless import feedback, models, policies
from regretless.simulation.simulator import simulate
from toys import SMALL, Toy, make, models_of

TOY = Toy()
FIRST, *OTHERS = models.REGISTRY
MODES = list(feedback.REGISTRY)
PLAYED = [
    *((FIRST, mode) for mode in MODES[1:]),
    *((model, MODES[i % len(MODES)]) for i, model in enumerate(OTHERS, 1)),
]
"""The other models in one regime each; dfhpg meets two with each of them in its contract."""


LARGE = {"adaptive", "ensemble", "dfhpg_auto", *(n for n, spec in policies.REGISTRY.items() if not spec.by_default)}
"""Simulated in two regimes of three, or fewer: the contract meets them in all."""


@pytest.mark.parametrize(("model", "mode"), PLAYED)
def test_runs_and_stays_finite(model, mode):
    names = [name for name in policies.REGISTRY if model in models_of(name) and (mode != "full" or name not in LARGE)]
    everyone = {name: make(name, TOY, mode, model, **SMALL.get(model, {})) for name in names}
    for trace in simulate(everyone, TOY, feedback=mode, seeds=range(2), horizon=30).values():
        assert trace.regret.shape == (2, 30)
        assert not trace.diverged
        assert np.all(trace.regret >= -1e-6)
        assert np.all(trace.diagnostics["complete"])

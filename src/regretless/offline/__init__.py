"""Train decision-focused models offline, on complete costs or on logs of decisions.

>>> import numpy as np, regretless as rg
>>> rng = np.random.default_rng(0)
>>> x = rng.normal(size=(200, 3))
>>> data = rg.offline.Dataset(x, x @ rng.normal(size=(3, 6)) + 4.0, rg.oracles.top_k(6, 2))
>>> train, test = data.split(0.8, 0.2)
>>> fit = rg.offline.fit("gaussian_linear", train, surrogate="spo_plus")
>>> rg.offline.score(fit, test).relative_regret < 0.01
True
"""

from typing import TYPE_CHECKING

from regretless.registry import lazy_exports

if TYPE_CHECKING:
    from regretless.offline.data import Dataset as Dataset
    from regretless.offline.logs import estimate_costs as estimate_costs
    from regretless.offline.logs import simulated_log as simulated_log
    from regretless.offline.scoring import Comparison as Comparison
    from regretless.offline.scoring import OfflineScore as OfflineScore
    from regretless.offline.scoring import compare as compare
    from regretless.offline.scoring import score as score
    from regretless.offline.training import EpochMetrics as EpochMetrics
    from regretless.offline.training import Fit as Fit
    from regretless.offline.training import Training as Training
    from regretless.offline.training import fit as fit

__all__, __getattr__, __dir__ = lazy_exports(__name__)

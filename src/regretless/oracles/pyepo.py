"""PyEPO optimisation models as oracles (the extra ``pyepo``)."""

import threading
from typing import Any

import numpy as np

from regretless.errors import SettingsError
from regretless.extras import require
from regretless.oracles.callback import ExternalOracle


def from_pyepo(model: Any) -> ExternalOracle:
    """Return a PyEPO model as an oracle: ``w*(c)`` by ``model.setObj(c)`` and ``model.solve()``.

    A model that maximises receives ``−c``, so that costs stay costs on this side: predict and report costs, minus the
    rewards of the model. If a model predicts the cost of some variables only, the decision holds those variables;
    known fixed costs on top are refused, because the cost of a decision would no longer be ``c·w``.

    One cost vector is solved after the other, by one thread at a time, because a PyEPO model holds its objective as
    state. The model must not be used elsewhere meanwhile. An exception in it becomes an OracleError that names the
    row.

    Parameters
    ----------
    model : pyepo.model.opt.optModel
        Any model with a linear objective.

    Raises
    ------
    SettingsError
        If it is not such a model.
    MissingExtraError
        If PyEPO is not installed.
    """
    sign = _sign(model)
    problem = getattr(model, "problem", None)  # of a model that was compiled from PyEPO's modelling language
    if problem is not None and problem.obj_Q is not None:
        raise SettingsError(f"expected a linear objective c·w, got {model!r} with a quadratic term; take that term out")
    if problem is not None and np.any(problem.fixed_cost):
        raise SettingsError(
            f"expected a model whose whole objective is predicted, got {model!r} with known fixed costs; predict the "
            "cost of those variables too, and put what is known into the features"
        )
    predicted = None if model.c_pred_index is None else np.asarray(model.c_pred_index)
    lock = threading.Lock()

    def solve(cost: np.ndarray) -> np.ndarray:
        with lock:
            return _solve(model, sign * cost, predicted)

    return ExternalOracle(solve, int(model.num_cost))


def _sign(model: Any) -> float:
    """Return 1 for a model that minimises, −1 for one that maximises; refuse anything else."""
    EPO, optModel = require("pyepo", extra="pyepo").EPO, require("pyepo.model.opt", extra="pyepo").optModel
    if not isinstance(model, optModel):
        kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise SettingsError(
            f"expected an instance of pyepo's optModel, got {kind}; for a function use oracles.external"
        )
    if model.modelSense not in (EPO.MINIMIZE, EPO.MAXIMIZE):
        raise SettingsError(
            f"expected {model!r} to have modelSense EPO.MINIMIZE or EPO.MAXIMIZE, got {model.modelSense!r}"
        )
    return 1.0 if model.modelSense == EPO.MINIMIZE else -1.0


def _solve(model: Any, objective: np.ndarray, predicted: np.ndarray | None) -> np.ndarray:
    """Solve once; the model may return a tensor, a list or an array."""
    model.setObj(objective)
    solution, _ = model.solve()
    w = np.asarray(solution.detach().cpu() if hasattr(solution, "detach") else solution, float)
    return w if predicted is None else w[predicted]

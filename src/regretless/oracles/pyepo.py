"""A PyEPO optimisation model as an oracle (the extra ``regretless[pyepo]``)."""

import threading
from typing import Any

import numpy as np

from regretless.errors import SettingsError
from regretless.oracles.callback import External


def from_pyepo(model: Any) -> External:
    """``w*(c)`` by ``model.setObj(c)`` and ``model.solve()``, for any ``pyepo.model.opt.optModel`` with a linear objective.

    A model that maximises is given ``−c``, so that costs stay costs on this side: predict, see and report costs, minus the
    rewards of the model. Of a model that predicts the cost of some variables only, the decision holds those variables; known
    fixed costs on top are refused, for the cost of a decision would no longer be ``c·w``.

    One cost vector is solved after the other, by one thread at a time, because a PyEPO model holds its objective as state. The
    model must not be used elsewhere meanwhile. An exception in it becomes an OracleError that names the row.
    """
    sign = _sign(model)
    problem = getattr(model, "problem", None)  # of a model that was compiled from PyEPO's own modelling language
    if problem is not None and problem.obj_Q is not None:
        raise SettingsError(f"expected a linear objective c·w, got {model!r} with a quadratic term; take that term out")
    if problem is not None and np.any(problem.fixed_cost):
        raise SettingsError(
            f"expected a model whose whole objective is predicted, got {model!r} with known fixed costs; predict the cost "
            "of those variables too, and let the features say what is known"
        )
    predicted = None if model.c_pred_index is None else np.asarray(model.c_pred_index)
    alone = threading.Lock()

    def solve(cost: np.ndarray) -> np.ndarray:
        with alone:
            return _solved(model, sign * cost, predicted)

    return External(solve, int(model.num_cost))


def _sign(model: Any) -> float:
    """1 for a model that minimises, −1 for one that maximises; refuses what is no model."""
    try:
        from pyepo import EPO
        from pyepo.model.opt import optModel
    except ImportError as error:
        raise ImportError("from_pyepo needs PyEPO; install it with: pip install 'regretless[pyepo]'") from error
    if not isinstance(model, optModel):
        kind = model.__name__ + " itself" if isinstance(model, type) else type(model).__name__
        raise SettingsError(
            f"expected an instance of pyepo's optModel, got {kind}; for a function use oracles.external"
        )
    if model.modelSense not in (EPO.MINIMIZE, EPO.MAXIMIZE):
        raise SettingsError(
            f"expected {model!r} to have modelSense EPO.MINIMIZE or EPO.MAXIMIZE, got {model.modelSense!r}"
        )
    return 1.0 if model.modelSense == EPO.MINIMIZE else -1.0


def _solved(model: Any, objective: np.ndarray, predicted: np.ndarray | None) -> np.ndarray:
    """One solve; a tensor, a list or an array may come back."""
    model.setObj(objective)
    solution, _ = model.solve()
    w = np.asarray(solution.detach().cpu() if hasattr(solution, "detach") else solution, float)
    return w if predicted is None else w[predicted]

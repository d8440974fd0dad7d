"""Costs estimated from logs: direct method, importance weighting and doubly robust scores.

A round shows ``v = H(w) c``, of which the total ``w·c`` and single costs are examples. With ``A = HᵀH`` and a
distribution ``q`` of decisions that does not depend on the context, here the frequencies in the log, the score

    c̃ = f(x) + Σ⁺ · q(w)/p(w|x) · Hᵀ (v − H f(x)),    Σ = E_q A

has the mean ``E[c|x]`` on every decision that the log can measure, whatever the regression ``f`` is, if ``p`` is the
probability with which the log decided like this (Hu et al., "Contextual linear optimization with partial feedback",
2025, where ``q = p``). ``f`` never sees the round that it is used in: it is fitted to the other folds.
"""

import warnings
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import regretless.feedback as feedbacks
from regretless.benchmarks.base import Benchmark, BenchmarkSpec
from regretless.errors import SettingsError
from regretless.live.history import History
from regretless.offline.data import Dataset, draw_rounds, fold_rows
from regretless.oracles.base import Oracle
from regretless.problem import Problem
from regretless.results import Result
from regretless.stats.off_policy import MIN_EFFECTIVE_ROUNDS

Method = Literal["dm", "iw", "dr"]
METHODS = {"dm": "the direct method", "iw": "importance weighting", "dr": "doubly robust scores"}

Regression = Callable[[np.ndarray, np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]
"""Receives contexts ``[n, …]``, measured rows ``[n, m, d]`` (zeros where nothing was measured) and values ``[n, m]``;
returns a function from contexts to costs ``[n, d]``."""

MIN_ROUNDS = 20
"""Rounds below which nothing is estimated."""

CALIBRATION_ERRORS = 5.0
"""Standard errors by which weighted decisions may depend on the context, the most of some 25 moments with heavy tails:
right propensities of a softmax rule reach 3.8 in 5 % of logs."""

MISSING_ERRORS, EXCESS_ERRORS = 3.0, 4.0
"""Standard errors that the mean weight may be below and above 1."""

MOMENT_COLUMNS = 4
"""Principal components of contexts and of decisions whose products the test compares."""

PROBES = 64
"""Feasible decisions that the log has to be able to measure."""

OUTSIDE = 1e-6
"""Share of a decision outside what the log measures, from which on it cannot be learned."""

MAX_COEFFICIENTS = 6000
PENALTIES = np.logspace(-6, 4, 21)


class MeasuredLog(NamedTuple):
    """A log as arrays: what was measured in each round, ``H`` and ``v``."""

    contexts: np.ndarray
    decisions: np.ndarray
    rows: np.ndarray  # [n, m, d], or [n, d] if row j measures coordinate j alone
    values: np.ndarray  # [n, m]

    def take(self, chosen: np.ndarray) -> "MeasuredLog":
        """Return some of the rounds."""
        return MeasuredLog(*(part[chosen] for part in self))

    def matrices(self) -> np.ndarray:
        """Return the rows as matrices, ``[n, m, d]``."""
        return self.rows if self.rows.ndim == 3 else self.rows[:, :, None] * np.eye(self.rows.shape[1])

    def normal_matrix(self) -> np.ndarray:
        """Return the mean of ``HᵀH``."""
        if self.rows.ndim == 2:
            return np.diag(np.mean(self.rows**2, axis=0))
        return np.asarray(np.einsum("nmd,nme->de", self.rows, self.rows, optimize=True) / len(self.rows))

    def missed(self, predictions: np.ndarray) -> np.ndarray:
        """Return ``Hᵀ (v − H f)`` of each round, ``[n, d]``."""
        if self.rows.ndim == 2:
            return self.rows * (self.values - self.rows * predictions)
        errors = self.values - np.einsum("nmd,nd->nm", self.rows, predictions)
        return np.asarray(np.einsum("nmd,nm->nd", self.rows, errors))


def estimate_costs(
    log: History,
    problem: Problem | Oracle,
    method: Method = "dr",
    *,
    propensities: Literal["log", "independent"] = "log",
    regression: Regression | None = None,
    folds: int = 5,
    seed: int = 0,
) -> Dataset:
    """Return a data set with costs that are estimated from totals, parts or other measurements of a log.

    Any loss can be trained on it. ``score`` on it estimates the cost of a model's decisions; with ``"dr"`` and ``"iw"``
    its standard error is that of an unbiased estimate, with ``"dm"`` the error of the regression is not in it.

    Parameters
    ----------
    log : History
        Rounds of any decision maker. Where single costs are known, they are used; else the rows of the problem's own
        measurement, else totals.
    problem : Problem or Oracle
        The feasible set; a problem if the log has rows of its own measurement.
    method : {"dr", "iw", "dm"}, default "dr"
        ``"dm"`` is a regression of what was measured; ``"iw"`` weights what was measured by the probability of its
        decision; ``"dr"`` is the regression plus its weighted errors. All but ``"dm"`` need a log that decides at
        random.
    propensities : {"log", "independent"}, default "log"
        Where the probabilities come from: the log; or ``"independent"``, which says that decisions were drawn without
        looking at the context, with probabilities that are not known.
    regression : callable, optional
        A regression of your own. It receives contexts ``[n, …]``, measured rows ``[n, m, d]`` (zeros where nothing was
        measured) and values ``[n, m]``, and returns a function from contexts to costs ``[n, d]``. By default a linear
        ridge regression whose penalty is chosen by generalised cross-validation.
    folds : int, default 5
        Folds of the cross-fitting: the regression in a round of ``"dr"`` is fitted to the other folds.
    seed : int, default 0
        For the folds.

    Raises
    ------
    SettingsError
        If the log cannot say what other decisions would have cost; the message says why, and what would help.

    Examples
    --------
    >>> import numpy as np, regretless as rg
    >>> rng = np.random.default_rng(0)
    >>> x, items = rng.normal(size=(300, 2)), np.eye(3)[rng.integers(3, size=300)]
    >>> costs = x @ [[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]] + 3.0
    >>> log = rg.History(x, items, totals=np.sum(costs * items, axis=1), propensities=np.full(300, 1 / 3))
    >>> data = rg.offline.estimate_costs(log, rg.oracles.top_k(3, 1))
    >>> data
    Dataset(300 rows, contexts of shape (2,), costs of 3 coordinates, feasible set TopK, costs estimated by doubly
    robust scores)
    >>> bool(np.abs(data.costs - costs).max() < 0.1)
    True
    """
    oracle = problem.oracle if isinstance(problem, Problem) else problem
    if method not in METHODS:
        raise SettingsError(f"estimate_costs: expected the method 'dr', 'iw' or 'dm', got {method!r}")
    if propensities not in ("log", "independent"):
        raise SettingsError(f"estimate_costs: expected propensities 'log' or 'independent', got {propensities!r}")
    known = log.as_costs()[np.flatnonzero(log.seen())]
    if len(known) < MIN_ROUNDS:
        raise SettingsError(
            f"estimate_costs: expected at least {MIN_ROUNDS} rounds of whose cost something is known, got {len(known)}"
        )
    measured = measure(known, problem)
    scale = measured.normal_matrix()
    weights = np.ones(len(known))
    if method == "dm":
        _warn_about(measured, scale, oracle, known)
    else:
        weights = _weights(measured, known.propensities, propensities)
        if gap := _unmeasured(scale, oracle):
            raise SettingsError(f"estimate_costs: {gap}; expected a log that tries them, or method='dm'")
    fit_to = regression or fit_ridge
    costs = np.zeros((len(known), oracle.dim))
    if method == "dm":
        costs = _predict(fit_to, measured, measured)
    elif method == "dr":
        for held_out in fold_rows(len(known), folds, seed):
            others = np.setdiff1d(np.arange(len(known)), held_out)
            costs[held_out] = _predict(fit_to, measured.take(others), measured.take(held_out))
    if method != "dm":
        inverse = np.linalg.pinv(scale, rcond=1e-9, hermitian=True)
        costs = costs + weights[:, None] * measured.missed(costs) @ inverse
    data = Dataset(known.contexts, costs, oracle, instances=known.instances, columns=known.columns)
    data.sense, data.estimated = log.sense, METHODS[method]
    return data


def measure(log: History, problem: Problem | Oracle) -> MeasuredLog:
    """Return what a log measured in each round: single costs if there are any, else own rows, else totals."""
    w = log.decisions
    dim = problem.dim
    if w.shape[1] != dim:
        raise SettingsError(f"estimate_costs: expected decisions of {dim} numbers, got {w.shape[1]}")
    if log.costs is not None and not np.isnan(log.costs).all():
        seen = ~np.isnan(log.costs)
        return MeasuredLog(log.contexts, w, seen.astype(float), np.where(seen, log.costs, 0.0))
    if log.values is not None and isinstance(problem, Problem):
        rule = problem.feedback
        with jax.enable_x64(True):
            form = jax.eval_shape(lambda w: rule.measure(w, None)[0].row_squares(), jnp.asarray(w[0]))
            eye = jnp.eye(form.shape[0])
            rows = np.asarray(jax.vmap(lambda w: jax.vmap(rule.measure(w, None)[0].rmatvec)(eye))(jnp.asarray(w)))
        if rows.shape[:2] != log.values.shape:
            expected = f"{rows.shape[1]} values in each round, the rows of {rule.name!r}"
            raise SettingsError(f"estimate_costs: expected {expected}, got {log.values.shape[1]}")
        seen = ~np.isnan(log.values)
        return MeasuredLog(log.contexts, w, rows * seen[:, :, None], np.where(seen, log.values, 0.0))
    if log.totals is None:
        raise SettingsError(
            "estimate_costs: the log has values of a measurement of its own; pass the problem with this feedback, such "
            "as rg.Problem(oracle, context=…, feedback=…)"
        )
    seen = ~np.isnan(log.totals)[:, None]
    return MeasuredLog(log.contexts, w, (w * seen)[:, None], np.where(seen, log.totals[:, None], 0.0))


def _weights(log: MeasuredLog, chances: np.ndarray | None, source: str) -> np.ndarray:
    """Return ``q(w)/p(w|x)`` of each round; refuse a log without overlap, or whose probabilities cannot be right."""
    count = len(log.decisions)
    _, group, sizes = np.unique(np.round(log.decisions, 9), axis=0, return_inverse=True, return_counts=True)
    weights = np.ones(count)
    if source == "log":
        if chances is None or np.isnan(chances).any():
            missing = "no propensities" if chances is None else f"{int(np.isnan(chances).sum())} rounds without one"
            raise SettingsError(
                f"estimate_costs: importance weights need the probability of each decision, but the log has {missing}; "
                "if decisions were drawn without looking at the context, pass propensities='independent', else "
                "method='dm'"
            )
        if np.all(chances > 1.0 - 1e-9) and len(sizes) > 1:
            raise SettingsError(
                "estimate_costs: every decision of the log was certain (propensity 1), so no context says what another "
                "decision would have cost; expected a log that decides at random, or method='dm'"
            )
        weights = (sizes[group.ravel()] - 1) / (count - 1) / chances
    if source == "log" and np.mean(sizes[group.ravel()] == 1) > 0.5:
        raise SettingsError(
            "estimate_costs: most decisions of the log were made only once, so rounds cannot be weighted by their "
            "probability; expected decisions that come again, propensities='independent', or method='dm'"
        )
    effective = float(weights.sum() ** 2 / max(np.sum(weights**2), 1e-300))
    if effective < MIN_EFFECTIVE_ROUNDS:
        raise SettingsError(
            f"estimate_costs: the {count} rounds are worth {effective:.0f} after weighting, because some decisions "
            f"were very unlikely; at least {MIN_EFFECTIVE_ROUNDS} are needed: expected more rounds, or method='dm'"
        )
    mean, error = float(weights.mean()), float(weights.std() / np.sqrt(count))
    if mean < 1.0 - max(MISSING_ERRORS * error, 0.02):
        raise SettingsError(
            f"estimate_costs: decisions that stand for about {1.0 - mean:.0%} of the log are never made in some "
            "contexts, so nothing says what they would cost there; expected a log that can make every decision in "
            "every context, or method='dm'"
        )
    if mean > 1.0 + max(EXCESS_ERRORS * error, 0.02):
        raise SettingsError(
            f"estimate_costs: the propensities cannot be right: weighted rounds stand for {mean:.2g} times all rounds; "
            "expected the probability with which each logged decision was drawn"
        )
    if (excess := _calibration(log, weights)) > CALIBRATION_ERRORS:
        given = "the propensities of the log" if source == "log" else "propensities='independent'"
        raise SettingsError(
            f"estimate_costs: {given} do not fit its decisions: after weighting, decisions still depend on the context "
            f"({excess:.1f} standard errors); expected the probability with which each decision was drawn, or "
            "method='dm'"
        )
    return np.asarray(weights)


def _calibration(log: MeasuredLog, weights: np.ndarray) -> float:
    """Return by how many standard errors weighted decisions depend on the context, at most over several moments."""
    count = len(weights)
    x, w = _components(log.contexts.reshape(count, -1)), _components(log.decisions)
    products = x[:, :, None] * w[:, None, :]
    moments = [(weights - 1.0)[:, None] * x, weights[:, None] * w, weights[:, None] * products.reshape(count, -1)]
    table = np.concatenate(moments, axis=1)
    table = table[:, table.std(axis=0) > 1e-9]
    return float(np.max(np.abs(table.mean(axis=0)) / table.std(axis=0), initial=0.0) * count**0.5)


def _components(table: np.ndarray) -> np.ndarray:
    """Return the first principal components, with mean 0 and variance 1."""
    centred = table - table.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(u[:, : min(MOMENT_COLUMNS, int(np.sum(s > 1e-9 * (s[0] + 1e-300))))] * np.sqrt(len(table)))


def _unmeasured(scale: np.ndarray, oracle: Oracle) -> str:
    """Return why some decisions cannot be learned from what the log measures; empty if all can."""
    rng = np.random.default_rng(0)
    w = np.asarray(oracle.answer(rng.normal(size=(PROBES, oracle.dim)), _open_instances(oracle)).w)
    inside = np.linalg.pinv(scale, rcond=1e-9, hermitian=True) @ scale
    outside = np.linalg.norm(w - w @ inside, axis=1) > OUTSIDE * (1e-300 + np.linalg.norm(w, axis=1))
    if not outside.any():
        return ""
    never = np.flatnonzero(np.diag(scale) == 0)
    named = f" (coordinates {', '.join(map(str, never[:5]))}{' …' if len(never) > 5 else ''} never show)"
    return f"{outside.mean():.0%} of the feasible decisions have parts that the log never measures" + (
        named if len(never) else ""
    )


def _open_instances(oracle: Oracle) -> Any:
    instance = oracle.example_instance()
    return jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[None], PROBES, axis=0), instance)


def _warn_about(log: MeasuredLog, scale: np.ndarray, oracle: Oracle, history: History) -> None:
    """Warn where a regression has to guess."""
    chances, reasons = history.propensities, []
    if chances is None or np.isnan(chances).any():
        reasons.append("the log has no propensities, so its decisions may follow from the context")
    elif np.all(chances > 1.0 - 1e-9):
        reasons.append("every decision of the log was certain (propensity 1)")
    if gap := _unmeasured(scale, oracle):
        reasons.append(gap)
    if reasons:
        warnings.warn(
            f"estimate_costs: {'; '.join(reasons)}. The regression has to be right where it was not tried.",
            stacklevel=3,
        )


def _predict(regression: Regression, known: MeasuredLog, wanted: MeasuredLog) -> np.ndarray:
    """Return the predictions of a regression that is fitted to ``known``; refuse unusable ones."""
    rows = known.rows if regression is fit_ridge else known.matrices()
    predictions = np.asarray(regression(known.contexts, rows, known.values)(wanted.contexts), np.float64)
    if predictions.shape != wanted.decisions.shape or not np.isfinite(predictions).all():
        expected = f"finite costs of shape {wanted.decisions.shape}"
        raise SettingsError(f"estimate_costs: regression: expected {expected}, got shape {predictions.shape}")
    return predictions


def fit_ridge(contexts: np.ndarray, rows: np.ndarray, values: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a linear ridge regression of costs on contexts, fitted to measured rows.

    Parameters
    ----------
    contexts : array of shape ``[n, p]`` or ``[n, d, p]``
        What was known in each round; feature rows share their coefficients.
    rows : array of shape ``[n, m, d]``, or ``[n, d]``
        What was measured; ``[n, d]`` if row ``j`` measures coordinate ``j`` alone.
    values : array of shape ``[n, m]``
        The results.

    Returns
    -------
    callable
        From contexts to costs ``[n, d]``.
    """
    flat = contexts.reshape(-1, contexts.shape[-1])
    centre, spread = flat.mean(axis=0), flat.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)

    def features(contexts: np.ndarray) -> np.ndarray:
        z = (contexts - centre) / spread
        return np.concatenate([np.ones((*z.shape[:-1], 1)), z], axis=-1)

    sums = rows.sum(axis=2) if rows.ndim == 3 else rows
    level = float(np.sum(sums * values) / max(np.sum(sums**2), 1e-300))  # all costs alike
    rest, z, dim = values - level * sums, features(contexts), rows.shape[-1]
    if contexts.ndim == 3:
        design = np.einsum("nmd,ndk->nmk", rows, z) if rows.ndim == 3 else rows[:, :, None] * z
        used = np.any(design != 0, axis=2)
        shared = solve_ridge(design[used], rest[used])
        return lambda contexts: level + features(contexts) @ shared
    width = z.shape[1]
    if rows.ndim == 2:
        coefficients = np.zeros((dim, width))
        for j in range(dim):
            used = rows[:, j] != 0
            if used.any():
                coefficients[j] = solve_ridge(z[used], rest[used, j])
        return lambda contexts: level + features(contexts) @ coefficients.T
    used = np.any(rows != 0, axis=2)
    if dim * width > MAX_COEFFICIENTS:
        raise SettingsError(
            f"estimate_costs: the linear regression has {dim * width} coefficients, more than {MAX_COEFFICIENTS}; pass "
            "a regression of your own"
        )
    design = np.einsum("nmd,nk->nmdk", rows, z).reshape(*rows.shape[:2], -1)
    joint = solve_ridge(design[used], rest[used]).reshape(dim, width)
    return lambda contexts: level + features(contexts) @ joint.T


def solve_ridge(design: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return ridge coefficients, with the penalty of the lowest generalised cross-validation score.

    Parameters
    ----------
    design : array of shape ``[n, k]``
        Features.
    values : array of shape ``[n]``
        Outcomes.
    """
    count = len(values)
    scale, vectors = np.linalg.eigh(design.T @ design)
    scale = np.maximum(scale, 0.0)
    turned = vectors.T @ (design.T @ values)
    penalties = PENALTIES * max(float(scale.mean()), 1e-300)
    shrunk = turned / (scale + penalties[:, None])
    squares = values @ values - 2.0 * shrunk @ turned + np.sum(scale * shrunk**2, axis=1)
    freedom = np.sum(scale / (scale + penalties[:, None]), axis=1)
    score = np.maximum(squares, 0.0) / np.maximum(1.0 - freedom / count, 1e-3) ** 2
    return np.asarray(vectors @ shrunk[int(np.argmin(score))])


def simulated_log(result: Result, benchmark: Benchmark | BenchmarkSpec | str, *, seed: int | None = None) -> History:
    """Return the rounds of a simulated policy as a log: contexts, decisions, and what was seen of their cost.

    Parameters
    ----------
    result : Result
        A simulation with ``recording=rg.simulation.Recording(decisions=True)``.
    benchmark : Benchmark, BenchmarkSpec or str
        The benchmark that was played.
    seed : int, optional
        The replication; by default the first one.

    Examples
    --------
    >>> import regretless as rg
    >>> keep = rg.simulation.Recording(decisions=True)
    >>> result = rg.simulate("greedy", "topk", seeds=2, horizon=20, recording=keep)
    >>> rg.offline.simulated_log(result, "topk", seed=1)
    History(20 rounds, contexts of shape (5,), decisions of 15 numbers, totals)
    """
    if result.decisions is None:
        raise SettingsError(
            "simulated_log: the result has no decisions; simulate with recording=Recording(decisions=True)"
        )
    seed = result.seeds[0] if seed is None else seed
    if seed not in result.seeds:
        raise SettingsError(f"simulated_log: expected one of the seeds {list(result.seeds)[:10]}, got {seed}")
    w = np.asarray(result.decisions[result.seeds.index(seed)], np.float64)
    contexts, costs, instances, _ = draw_rounds(benchmark, len(w), seed)
    rows = None if instances is None else [jax.tree.map(lambda leaf, i=i: leaf[i], instances) for i in range(len(w))]
    seen = result.config.get("feedback")
    if seen == feedbacks.Full().name:
        return History(contexts, w, costs=costs, instances=rows)
    if seen == feedbacks.SemiBandit().name:
        return History(contexts, w, costs=np.where(w != 0, costs, np.nan), instances=rows)
    return History(contexts, w, totals=np.einsum("nd,nd->n", costs, w), instances=rows)

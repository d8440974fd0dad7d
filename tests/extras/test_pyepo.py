"""Our surrogates against PyEPO's losses: the same gradients, or a relation that is stated and holds exactly.

Both sides get the same predictions, targets and noise, on top-k and on shortest paths, for models that minimise and
for models that maximise. Everything is compared as a gradient in the *cost* ``ĉ``: a model that maximises sees ``−ĉ``
and ``−c``, and its gradient is negated back. Differences that are definitions, not errors:

- guards: we divide by ``λ + 1e-7`` (or ``σ``), PyEPO by ``λ + 1e-8``;
- reduction: PyEPO averages over a batch, we have one prediction per call, so its gradients are ours divided by the
batch;
- PyEPO's solution layers (dbb, nid, imle, aimle, dpo) leave the task loss to the user: here it is ``c·w``;
- its pool is filled from a data set, has no limit and takes ``w*(ĉ)`` at each call; ours starts empty, takes
``w*(c)`` and
  ``w*(ĉ)`` and keeps the last 128. From the same start, and below 128, they hold the same decisions.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from extra import required
from regretless import oracles, surrogates
from regretless.surrogates import pool as pools

torch, func, data = required("torch"), required("pyepo.func"), required("pyepo.data.dataset")
models = required("extras.pyepo_models")

GRID = oracles.grid_edges(3, 3)
OURS = {"topk": oracles.top_k(7, 3), "shortest_path": oracles.shortest_path(GRID)}
DECISIONS = {"topk": models.choices(7, 3), "shortest_path": models.paths(GRID, 0, 8)}
CALLS, DRAWS = 8, 10
GUARD_OURS, GUARD_THEIRS = 1e-7, 1e-8
NOT_IN_PYEPO = {"mse", "mse_spo_plus", "pairwise_diff", "map_c"}
NOT_COMPARED = {"cave", "regularized_frank_wolfe", "lancer"}
"""PyEPO's need solvers that are not installed, project in another way, or learn a loss of their own."""
close = functools.partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-13)
pytestmark = pytest.mark.usefixtures("float64")


class Case(NamedTuple):
    """One feasible set on both sides, with predictions and targets in the cost convention."""

    problem: str
    model: object
    sign: float  # −1 where the model maximises
    predictions: np.ndarray
    targets: np.ndarray

    def tensor(self, costs):
        return torch.tensor(self.sign * np.asarray(costs), requires_grad=True)

    def slope(self, loss, predictions):
        """PyEPO's gradient of ``loss(prediction)`` in the cost."""
        prediction = self.tensor(predictions)
        loss(prediction).backward()
        return self.sign * prediction.grad.numpy()

    def task_cost(self, layer, targets, reduce=torch.sum):
        """``c·w`` of a layer's solutions, reduced over the batch."""
        return lambda prediction: reduce(torch.sum(layer(prediction) * torch.tensor(targets), dim=1))

    def solved(self, costs):
        return torch.tensor(np.asarray(OURS[self.problem].solve(jnp.asarray(costs)).w))


@pytest.fixture(params=[(problem, sense) for problem in OURS for sense in models.SENSES], ids="-".join)
def case(request):
    problem, sense = request.param
    model = models.Listed(DECISIONS[problem], models.SENSES[sense])
    predictions, targets = np.random.default_rng(7).normal(size=(2, CALLS, OURS[problem].dim))
    return Case(problem, model, float(model.modelSense), predictions, targets)


@functools.cache
def compiled(problem, name, options=()):
    surrogate = surrogates.parse(name, dict(options)).build(OURS[problem])
    return surrogate, jax.jit(lambda memory, prediction, target, noise: surrogate(memory, prediction, target, noise))


def ours(case, name, noise=None, **options):
    """Our gradients, prediction by prediction, for surrogates that remember nothing."""
    _, call = compiled(case.problem, name, tuple(options.items()))
    rows = [None] * len(case.predictions) if noise is None else noise
    each = zip(case.predictions, case.targets, rows, strict=True)
    return np.stack([call(None, *map(jnp.asarray, row[:2]), row[2])[0] for row in each])


def guards(size):
    """What PyEPO's gradient is multiplied by when its guard of the divisor ``size`` is replaced by ours."""
    return (size + GUARD_THEIRS) / (size + GUARD_OURS)


def drawn(case, seed=135):
    """The normal noise that a PyEPO module of this seed draws first, as noise on costs."""
    shape = (CALLS, DRAWS, case.predictions.shape[1])
    noise = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return case.sign * noise.numpy()


class Recorded:
    """A PyEPO noise distribution that hands out given noise, call by call."""

    def __init__(self, case, calls):
        self.calls = iter(case.sign * np.asarray(calls))

    def sample(self, size):
        return next(self.calls).reshape(size)


def gamma_noise(case):
    keys = jax.random.split(jax.random.key(3), CALLS)
    return np.stack([compiled(case.problem, "imle")[0].draw(key) for key in keys])


def test_spo_plus(case):
    """Equal; PyEPO's mean over the batch divides by its size."""
    labels = case.solved(case.targets)
    target = case.tensor(case.targets).detach()
    values = torch.sum(target * labels, dim=1, keepdim=True)
    loss = func.SPOPlus(case.model)
    theirs = case.slope(lambda p: loss(p, target, labels, values), case.predictions)
    assert np.any(theirs)
    close(CALLS * theirs, ours(case, "spo_plus"))


@pytest.mark.parametrize("difference", ["backward", "central"])
def test_pg(case, difference):
    """Equal but for the guard of the divisor (σ, or 2σ in the central difference)."""
    loss = func.perturbationGradient(case.model, sigma=0.8, two_sides=difference == "central")
    target = case.tensor(case.targets).detach()
    theirs = CALLS * case.slope(lambda p: loss(p, target), case.predictions)
    assert np.any(theirs)
    size = 1.6 if difference == "central" else 0.8
    close(guards(size) * theirs, ours(case, "pg", step=0.8, difference=difference))


def test_dbb(case):
    """Equal but for the guard, with the task cost summed over the batch."""
    layer = func.blackboxOpt(case.model)
    theirs = case.slope(case.task_cost(layer, case.targets), case.predictions)
    # The task cost of a maximising model is c·w too, so that the layer sees the same slope c in both directions.
    assert np.any(theirs)
    close(guards(10.0) * theirs, ours(case, "dbb"))


def test_dbb_over_a_mean(case):
    """A mean over B rows shrinks the slope that the layer perturbs with: B times the λ, and a Bth of the gradient."""
    layer = func.blackboxOpt(case.model, lambd=10.0 * CALLS)
    theirs = case.slope(case.task_cost(layer, case.targets, torch.mean), case.predictions)
    close((10.0 * CALLS + GUARD_THEIRS) / (10.0 + GUARD_OURS) * theirs, ours(case, "dbb"))


def test_nid(case):
    """Equal."""
    theirs = case.slope(case.task_cost(func.negativeIdentity(case.model), case.targets), case.predictions)
    close(theirs, ours(case, "nid"))


def test_pfyl(case):
    """Equal, given the same noise."""
    loss, labels = func.perturbedFenchelYoung(case.model), case.solved(case.targets)
    theirs = CALLS * case.slope(lambda p: loss(p, labels), case.predictions)
    assert np.any(theirs)
    close(theirs, ours(case, "pfyl", drawn(case)))


def test_dpo(case):
    """Equal but for the guard, given the same noise and without PyEPO's variance reduction."""
    layer = func.perturbedOpt(case.model, variance_reduction=False)
    theirs = case.slope(case.task_cost(layer, case.targets), case.predictions)
    # PyEPO guards n σ, we guard σ.
    close(guards_of_dpo() * theirs, ours(case, "dpo", drawn(case)))


def guards_of_dpo():
    return (DRAWS + GUARD_THEIRS) / DRAWS / (1.0 + GUARD_OURS)


def test_dpo_with_variance_reduction(case):
    """PyEPO's default compares each draw with the mean of the others: ``n/(n−1)`` times ours with ``c·w`` centred."""
    layer = func.perturbedOpt(case.model)
    theirs = guards_of_dpo() * case.slope(case.task_cost(layer, case.targets), case.predictions)
    noise = drawn(case)
    plain = ours(case, "dpo", noise)
    played = OURS[case.problem].solve(jnp.asarray((case.predictions[:, None] + noise).reshape(-1, noise.shape[2]))).w
    spent = np.einsum("bnd,bd->bn", np.asarray(played).reshape(noise.shape), case.targets)
    centre = spent.mean(axis=1, keepdims=True) * noise.mean(axis=1) / (1.0 + GUARD_OURS)
    close(theirs, DRAWS / (DRAWS - 1) * (plain - centre))
    assert np.max(np.abs(theirs - plain)) > 0.1


def test_imle(case):
    """Equal but for the guard, given the same noise."""
    noise = gamma_noise(case)
    layer = func.implicitMLE(case.model, distribution=Recorded(case, noise[None]))
    theirs = case.slope(case.task_cost(layer, case.targets), case.predictions)
    assert np.any(theirs)
    close(guards(10.0) * theirs, ours(case, "imle", noise))


def test_aimle(case):
    """Equal but for the guard, call by call, and the scale ``a`` goes the same way."""
    noise = gamma_noise(case)
    layer = func.adaptiveImplicitMLE(case.model, distribution=Recorded(case, noise))
    surrogate, call = compiled(case.problem, "aimle")
    memory = surrogate.init()
    for prediction, target, xi in zip(case.predictions, case.targets, noise, strict=True):
        size = float(memory.scale) * np.linalg.norm(prediction) / np.linalg.norm(target)
        theirs = case.slope(case.task_cost(layer, target[None]), prediction[None])[0]
        gradient, memory = call(memory, jnp.asarray(prediction), jnp.asarray(target), xi)
        close(guards(size) * theirs, gradient)
        assert float(memory.scale) == pytest.approx(layer.alpha, rel=1e-12)
    assert layer.alpha != 1.0


def test_aimle_over_a_batch(case):
    """In a batch PyEPO has one λ, from the norms of all rows together: our imle with that λ."""
    noise = gamma_noise(case)
    layer = func.adaptiveImplicitMLE(case.model, distribution=Recorded(case, noise[None]))
    theirs = case.slope(case.task_cost(layer, case.targets), case.predictions)
    size = np.linalg.norm(case.predictions) / np.linalg.norm(case.targets)
    close(guards(size) * theirs, ours(case, "imle", noise, lam=size))


def with_pools(case, name, module, arguments, scale=1.0):
    """Our gradients and PyEPO's, call by call from the same pool, with the pool that each call compared."""
    surrogate, call = compiled(case.problem, name)
    dataset = data.optDataset(case.model, np.zeros((CALLS, 1)), case.sign * scale * case.targets)
    loss, memory = module(case.model, dataset=dataset), surrogate.init()
    for w in np.unique(dataset.sols.numpy(), axis=0):
        memory = pools.add(memory, jnp.asarray(w, float))
    for prediction, target in zip(scale * case.predictions, scale * case.targets, strict=True):
        given = {"cost": case.tensor(target[None]).detach(), "solution": case.solved(target[None])}[arguments]
        theirs = case.slope(lambda p, given=given: loss(p, given), prediction[None])[0]
        gradient, memory = call(memory, jnp.asarray(prediction), jnp.asarray(target), None)
        held = np.asarray(memory.decisions)[np.asarray(memory.present())]
        assert {tuple(w) for w in held} == {tuple(w) for w in loss.solpool.numpy()}
        yield np.asarray(gradient), theirs, held, prediction, target


POOLED = [
    ("nce", "noiseContrastiveEstimation", "solution"),
    ("nce_c", "noiseContrastiveEstimation", "solution"),
    ("contrastive_map", "contrastiveMAP", "solution"),
    ("pointwise_ltr", "pointwiseLearningToRank", "cost"),
    ("pairwise_ltr", "pairwiseLearningToRank", "cost"),
    ("listwise_ltr", "listwiseLearningToRank", "cost"),
]


@pytest.mark.parametrize(("name", "module", "arguments"), POOLED)
def test_pooled(case, name, module, arguments):
    """Equal from equal pools; ``nce_c`` has the gradient of ``nce``. PyEPO's pairwise margin is 0, its temperature
    1.
    """
    gradients = list(with_pools(case, name, getattr(func, module), arguments))
    assert any(np.any(theirs) for _, theirs, *_ in gradients)
    for gradient, theirs, *_ in gradients:
        close(gradient, theirs)


def test_listwise_ltr_where_the_softmax_vanishes(case):
    """PyEPO raises the wanted ``q`` to 1e-8 and does not normalise again: ``(q' − Σq' · p) P``, not ``(q − p) P``."""
    clamped = False
    for gradient, theirs, held, prediction, target in with_pools(
        case, "listwise_ltr", func.listwiseLearningToRank, "cost", scale=12.0
    ):
        wanted, given = (np.asarray(jax.nn.softmax(-held @ cost)) for cost in (target, prediction))
        raised = np.maximum(wanted, 1e-8)
        close(theirs, (raised - raised.sum() * given) @ held, rtol=1e-9, atol=1e-12)
        close(gradient, (wanted - given) @ held, rtol=1e-9, atol=1e-12)
        clamped |= bool(np.any(wanted < 1e-8)) and not np.array_equal(theirs, gradient)
        np.testing.assert_allclose(theirs, gradient, atol=2e-8 * len(held))
    assert clamped


def test_spo_caching(case):
    """PyEPO's SPO+ that looks its solution up in the pool (``solve_ratio=0``) has twice the gradient, from the
    same pool.

    Ours adds ``w*(2ĉ − c)`` to the pool first; PyEPO then adds nothing.
    """
    surrogate, call = compiled(case.problem, "spo_caching")
    dataset = data.optDataset(case.model, np.zeros((1, 1)), case.sign * case.targets[:1])
    loss, memory = func.SPOPlus(case.model, solve_ratio=0.0, dataset=dataset), surrogate.init()
    nonzero = 0
    for prediction, target in zip(case.predictions, case.targets, strict=True):
        gradient, memory = call(memory, jnp.asarray(prediction), jnp.asarray(target), None)
        loss.solpool = torch.tensor(np.asarray(memory.decisions)[np.asarray(memory.present())])
        label, seen = case.solved(target[None]), case.tensor(target[None]).detach()
        value = torch.sum(seen * label, dim=1, keepdim=True)
        theirs = case.slope(lambda p, s=seen, w=label, z=value: loss(p, s, w, z), prediction[None])[0]
        close(2.0 * gradient, theirs)
        nonzero += bool(np.any(theirs))
    assert nonzero


def test_every_surrogate_is_compared_or_has_no_counterpart():
    alone = {name.removeprefix("test_") for name in globals() if name.startswith("test_")} & set(surrogates.REGISTRY)
    compared = alone | {row[0] for row in POOLED}
    assert compared | NOT_IN_PYEPO | NOT_COMPARED == set(surrogates.REGISTRY)
    assert not compared & (NOT_IN_PYEPO | NOT_COMPARED)

"""Networks of other libraries: the numbers of the library's own with the same weights, and clear refusals."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import regretless as rg
from regretless import models, testing
from regretless.errors import SettingsError
from regretless.policies.scaling import build_policy
from regretless.spec import Factory
from toys import Toy

nn = pytest.importorskip("torch").nn

WIDTH = 128


def torch_network(inputs, outputs, width=WIDTH):
    return nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, outputs))


def jax_network(inputs, outputs, key):
    return eqx.nn.MLP(inputs, outputs, width_size=WIDTH, depth=1, key=key)


class Flaxlike:
    """An object with the functions of a Flax module."""

    def __init__(self, inputs, outputs, key):
        self.outputs = outputs

    def init(self, key, x):
        return {"kernel": 0.1 * jax.random.normal(key, (len(x), self.outputs)), "bias": jnp.zeros(self.outputs)}

    def apply(self, params, x):
        return x @ params["kernel"] + params["bias"]


def as_torch(layers):
    """The weights of the library's network as the flat array of ``torch_network``."""
    return jnp.concatenate([jnp.ravel(part) for weight, bias in layers for part in (weight.T, bias)])


def as_layers(flat, form):
    """The other way round."""
    layers, place = [], 0
    for weight, bias in form:
        end = place + weight.size
        layers.append(type(form[0])(flat[place:end].reshape(weight.shape[::-1]).T, flat[end : end + bias.size]))
        place = end + bias.size
    return layers


@pytest.mark.parametrize("shape", [(3,), (4, 3)])
def test_a_torch_network_has_the_gradients_of_the_same_one_in_jax(shape):
    with jax.enable_x64(True):
        one = models.Torch(make=torch_network).build(4, shape, 0.3)
        twin = models.GaussianNN(width=WIDTH).build(4, shape, 0.3)
        layers = twin.init(jax.random.key(0))
        flat = as_torch(layers)
        assert one.init(jax.random.key(0)).shape == flat.shape
        x, noise, slope = jax.random.normal(jax.random.key(1), shape), jnp.arange(4.0), jnp.arange(4.0) - 1
        np.testing.assert_allclose(one.mean(flat, x), twin.mean(layers, x), rtol=1e-12)
        for ours, theirs in (
            (one.pullback(flat, x, slope), twin.pullback(layers, x, slope)),
            (
                one.score(flat, x, one.sample(flat, x, noise), noise, False),
                twin.score(layers, x, twin.sample(layers, x, noise), noise, False),
            ),
        ):
            np.testing.assert_allclose(ours, as_torch(theirs), rtol=1e-9, atol=1e-12)
        wanted = jax.grad(lambda x: twin.mean(layers, x) @ slope)(x)
        np.testing.assert_allclose(jax.grad(lambda x: one.mean(flat, x) @ slope)(x), wanted, rtol=1e-9)


@pytest.mark.parametrize("feedback", ["bandit", "semi_bandit"])
def test_dfhpg_learns_the_same_weights_as_with_the_model_in_jax(feedback):
    """Surrogate and score gradients of ten rounds, by autograd and by JAX, from the same weights."""
    problem = Toy().problem(feedback)
    settings = {"surrogate": rg.surrogates.SPOPlus(), "policy_lr": 0.05}
    with jax.enable_x64(True):
        twin = rg.policies.DFHPG(model=models.GaussianNN(width=WIDTH), **settings).build(problem)
        one = rg.policies.DFHPG(model=models.Torch(make=torch_network), **settings).build(problem)
        theirs = twin.init(jax.random.key(0))
        ours = dataclasses.replace(theirs, theta=as_torch(theirs.theta))
        rng = np.random.default_rng(0)
        for t in range(10):
            x, cost = jnp.asarray(rng.normal(size=3)), jnp.asarray(rng.normal(size=4) + 2)
            steps = []
            for policy, state in ((one, ours), (twin, theirs)):
                decision = policy.decide(jax.random.key(t), state, x)
                steps.append(policy.learn(jax.random.key(99 + t), state, decision, problem.observe(decision, cost)))
            (ours, info), (theirs, wanted) = steps
            np.testing.assert_allclose(ours.theta, as_torch(theirs.theta), rtol=1e-6, atol=1e-9)
            np.testing.assert_allclose(info.more["mixed_norm"], wanted.more["mixed_norm"], rtol=1e-6)
        assert not np.allclose(ours.theta, one.init(jax.random.key(0)).theta)


NETWORKS = [models.Torch(make=torch_network), models.Module(make=jax_network), models.Module(make=Flaxlike)]
IDS = ["torch", "equinox", "flax"]


@pytest.mark.parametrize("model", NETWORKS, ids=IDS)
def test_keeps_the_contract(model):
    testing.check_model(model)


@pytest.mark.parametrize("model", NETWORKS, ids=IDS)
@pytest.mark.parametrize("policy", [rg.policies.DFHPG, rg.policies.Thompson, rg.policies.EpsilonGreedy])
def test_is_played_by_every_policy_with_a_model(model, policy):
    result = rg.simulate(policy(model=model), Toy(), seeds=2, horizon=30)
    assert result.diverged == 0
    assert len(np.unique(result.regret.sum(axis=1))) == 2
    again = rg.simulate(policy(model=model), Toy(), seeds=2, horizon=30)
    assert np.array_equal(result.regret, again.regret)


@pytest.mark.parametrize("model", NETWORKS, ids=IDS)
def test_lives_in_a_store(model, tmp_path):
    problem = rg.Problem(rg.oracles.top_k(4, 2), context=3)
    spec = rg.policies.DFHPG(model=model)
    learner, plain = rg.Learner(problem, policy=spec, store=tmp_path / "a.db"), rg.Learner(problem, policy=spec)
    rng = np.random.default_rng(0)
    for t in range(6):
        context, total = rng.normal(size=3), float(rng.normal() + 2)
        choices = [each.decide(context) for each in (learner, plain)]
        assert np.array_equal(*(choice.w for choice in choices))
        for each, choice in zip((learner, plain), choices, strict=True):
            each.learn(choice.id, total=total)
        if t == 3:
            learner.close()
            learner = rg.Learner.open(tmp_path / "a.db", problem, policy=spec)


class Wide(models.Torch):
    """A network with a setting.

    Parameters
    ----------
    width : int, default 8
        Hidden units.
    """

    make: Factory = torch_network
    width: int = 8


def test_a_subclass_adds_settings_and_a_name(monkeypatch):
    monkeypatch.setitem(models.REGISTRY._parts, "wide", Wide)
    spec = rg.policies.parse("dfhpg", {"model": "wide", "model.width": 5})
    assert spec.model == Wide(width=5)
    policy = build_policy(spec, Toy().problem("bandit"), scaling=False)
    assert policy.model.init(jax.random.key(0)).shape == (3 * 5 + 5 + 5 * 4 + 4,)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: rg.policies.DFHPG(model=torch_network(3, 4)), "expected a model .*, got an object of type Sequential"),
        (lambda: models.Torch(make=torch_network(3, 4)), "'make': expected a function or class that makes the part"),
        (
            lambda: models.Torch(make=lambda i, o: 7).build(4, (3,)),
            "expected a torch.nn.Module, got 7",
        ),
        (lambda: models.Torch(make=lambda i, o: nn.Linear(i, 2)).build(4, (3,)), "a network of 3 inputs and 4 outputs"),
        (lambda: models.Module(make=lambda i, o, k: 7).build(4, (3,)), "a network of 3 inputs and 4 outputs"),
        (lambda: models.Module(make=lambda i: 7).build(4, (3,)), "takes 1 positional argument"),
    ],
)
def test_a_wrong_object_is_refused_with_a_sentence(build, message):
    with pytest.raises(SettingsError, match=message):
        build()

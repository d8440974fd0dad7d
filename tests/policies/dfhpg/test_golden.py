"""DFHPG follows the recorded rounds: same decisions, and every quantity of the round within the stated tolerance."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import benchmarks, policies
from regretless.models import networks

# Largest deviation allowed, relative to the largest value of the quantity in the trace: what is computed in float64
# on both sides is held to 1e-9, what inherits the recorded nuisance's float32 to the tolerances that came with the
# values.
TOLERANCE = {
    "mean_prediction": 1e-4,
    "total": 1e-9,
    "alpha": 1e-6,
    "baseline": 6e-3,
    "residual": 6e-3,
    "score_grad_norm": 6e-3,
    "surrogate_grad_norm": 6e-3,
    "mixed_grad_norm": 6e-3,
    "nuisance_after": 6e-3,
    "theta_after": 1e-4,
}
NAMES = {
    "total": "total",
    "alpha": "alpha",
    "baseline": "baseline",
    "residual": "residual",
    "score_norm": "score_grad_norm",
    "plug_in_norm": "surrogate_grad_norm",
    "mixed_norm": "mixed_grad_norm",
}


# The recorded names of settings that are called otherwise here.
DOTTED = {"alpha_max": "alpha.max", "alpha_min": "alpha.min", "nuisance_lr": "nuisance.lr"}


def settings_of(trace: dict[str, np.ndarray], mode: str, **others: str) -> dict[str, object]:
    given = {
        key.removeprefix(f"{mode}/hp_"): value[()] for key, value in trace.items() if key.startswith(f"{mode}/hp_")
    }
    baseline = "moving_average" if given.pop("baseline") == "ema" else "nuisance_induced"
    values = {key: value.item() if hasattr(value, "item") else str(value) for key, value in given.items()}
    settings = {DOTTED.get(key, key): value for key, value in values.items()}
    if mode == "full":  # no nuisance
        settings = {key: value for key, value in settings.items() if not key.startswith("nuisance")}
    else:
        settings["nuisance.precision"] = "double"
    return {**settings, **others, "baseline": baseline}


@pytest.mark.parametrize("mode", ["bandit", "semi_bandit", "full"])
@pytest.mark.parametrize("name", ["topk", "shortest_path", "pricing"])
@pytest.mark.usefixtures("float64")
def test_follows_the_recorded_rounds(golden, name, mode):
    follow(name, mode, golden(f"dfhpg_{name}"))


@pytest.mark.parametrize(("mode", "rounds"), [("bandit", 60), ("semi_bandit", 20), ("full", 60)])
@pytest.mark.usefixtures("float64")
def test_follows_the_recorded_rounds_on_real_prices(golden, mode, rounds):
    """As many rounds as rounding leaves comparable; the recorded contexts and prices are also what the loader reads."""
    trace = golden.energy(mode)
    follow("energy", mode, trace, rounds, **{"alpha.gate": "exponential"})
    benchmark = benchmarks.parse("energy").build()
    assert np.array_equal(benchmark.prices[:120], trace["cost"])
    np.testing.assert_allclose(benchmark.features[:120], trace["context"], rtol=1e-12, atol=1e-12)


def follow(name, mode, trace, rounds=None, **settings):
    """Plays the recorded rounds and holds every quantity against the recorded one."""
    benchmark = benchmarks.parse(name).build()
    problem = benchmark.problem(mode)
    policy = policies.parse("dfhpg", settings_of(trace, mode, **settings)).build(problem)
    state = eqx.tree_at(lambda s: s.theta, policy.init(jax.random.key(0)), jnp.asarray(trace["theta"]))
    if policy.nuisance is not None:
        layers = [
            networks.Dense(jnp.asarray(trace[f"nuisance_w{i}"].T, float), jnp.asarray(trace[f"nuisance_b{i}"], float))
            for i in (1, 2, 3)
        ]
        state = eqx.tree_at(lambda s: s.phi.layers, state, layers)
    environment = trace.get("environment")

    @jax.jit
    def play(state, observation, cost, noise):
        context = observation if name == "energy" else benchmark.context(environment, observation)
        mean = policy.model.mean(state.theta, context)
        sample = policy.sample_with(noise, state, context)
        decision = problem.record(sample, problem.oracle.solve_one(sample.cost), context, None)
        state, info = policy.learn(jax.random.key(0), state, decision, problem.observe(decision, cost))
        after = mean if policy.nuisance is None else policy.nuisance.predict(state.phi, context)
        return state, decision.w, info.scalars(), mean, after

    worst: dict[str, float] = {}

    def compare(quantity, ours, theirs):
        if np.all(np.isnan(theirs)):
            return  # no residual under full feedback
        recorded = trace[f"{mode}/{quantity}"]
        error = float(np.max(np.abs(ours - theirs)) / np.nanmax(np.abs(recorded)))
        worst[quantity] = max(worst.get(quantity, 0.0), error)

    rounds = rounds or len(trace[f"{mode}/total"])
    for t in range(rounds):
        arguments = trace["context"][t], trace["cost"][t], trace[f"{mode}/noise"][t]
        state, w, info, mean, after = play(state, *arguments)
        same = np.allclose(w, trace[f"{mode}/decision"][t], rtol=1e-12, atol=0)
        assert same, f"another decision in round {t + 1}"
        compare("mean_prediction", mean, trace[f"{mode}/mean_prediction"][t])
        for ours, theirs in NAMES.items():
            compare(theirs, info[ours], trace[f"{mode}/{theirs}"][t])
        if policy.nuisance is not None:
            compare("nuisance_after", after, trace[f"{mode}/nuisance_after"][t])
        if t % 10 == 9:
            compare("theta_after", state.theta, trace[f"{mode}/theta_after"][t // 10])
    assert rounds >= 20
    assert {"total", "alpha", "theta_after", "mixed_grad_norm"} <= worst.keys()
    beyond = {quantity: error for quantity, error in worst.items() if error > TOLERANCE[quantity]}
    assert not beyond, f"largest relative deviations beyond tolerance: {beyond}"

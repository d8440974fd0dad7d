"""Policies in plain Python: the same numbers as JAX, one object per replication, and states that survive everything."""

import collections

import numpy as np
import pytest

import regretless as rg
from regretless import policies, testing
from regretless.errors import SettingsError
from regretless.experiments.runner import _package_of, _parts_within, resolve
from regretless.schedules import shifted_inverse
from regretless.spec import Factory
from toys import Toy

OFFSET = 10.0


class Linear:
    """``Greedy`` with a linear model from zero weights, in NumPy."""

    def __init__(self, problem, seed, step=0.05):
        self.problem, self.step, self.rounds = problem, step, 0
        if len(problem.context_shape) > 1:
            raise SettingsError("expected context vectors")
        self.theta = np.zeros((problem.dim, *problem.context_shape))

    def decide(self, context):
        return self.theta @ context

    def predict(self, context):
        return self.theta @ context

    def update(self, decision, feedback):
        self.rounds += 1
        error = self.theta @ decision.context @ decision.w - float(feedback.total())
        slope = np.outer(2 * error * decision.w, decision.context)
        rate = float(shifted_inverse(self.step, self.rounds, OFFSET))
        self.theta = self.theta - rate * min(1, 10 / max(np.linalg.norm(slope), 1e-30)) * slope


class Remembering(Linear):
    """It keeps every round, explores, and has containers of every kind."""

    def __init__(self, problem, seed, step=0.05):
        super().__init__(problem, seed, step)
        self.rng_seed, self.seen, self.counts = seed, [], {("w", 1): 0, 2: None}

    def decide(self, context, rng):
        return self.theta @ context + 0.1 * rng.normal(size=self.problem.dim)

    def update(self, decision, feedback):
        super().update(decision, feedback)
        self.seen.append((decision.w.sum(), float(feedback.total())))
        self.counts["w", 1] += 1


class Explicit(Remembering):
    """With methods of its own for its state, and an attribute that cannot be written."""

    def __init__(self, problem, seed, step=0.05):
        super().__init__(problem, seed, step)
        self.solver = object()

    def get_state(self):
        return [self.theta, self.rounds, self.seen, self.counts, self.rng_seed]

    def set_state(self, state):
        self.theta, self.rounds, self.seen, self.counts, self.rng_seed = state


class Steps(rg.policies.Python):
    """An object with a setting.

    Parameters
    ----------
    step : float, default 0.05
        Size of a step.
    """

    make: Factory = Linear
    step: float = 0.05


ROOM = 2**14


@pytest.mark.parametrize("unscaled", [False, True])
def test_an_object_gives_the_numbers_of_the_same_policy_in_jax(unscaled):
    twin = rg.policies.Greedy(model=rg.models.GaussianLinear(start=0.0), rate_offset=OFFSET)
    both = {"jax": twin, "python": policies.Python(make=Linear)}
    if unscaled:
        both = {name: policies.Unscaled(spec) for name, spec in both.items()}
    results = rg.simulate(both, Toy(), seeds=3, horizon=60, delay=2)
    np.testing.assert_allclose(results["python"].regret, results["jax"].regret, rtol=1e-6, atol=1e-9)
    assert len(np.unique(results["python"].regret.sum(axis=1))) == 3, "one object per replication"


@pytest.mark.parametrize("make", [Linear, Remembering, Explicit])
def test_keeps_the_contract(make):
    testing.check_policy(policies.Python(make=make, state_bytes=ROOM))


def test_settings_are_numbers_of_one_program():
    testing.check_policy(Steps())
    results = rg.simulate({"a": Steps(step=0.01), "b": Steps(step=0.1)}, "topk", seeds=2, horizon=20)
    assert results.programs == 1
    assert not np.array_equal(results["a"].regret, results["b"].regret)


def test_a_saved_run_continues_bit_for_bit(tmp_path):
    spec = policies.Python(make=Remembering, state_bytes=ROOM)
    arguments = {"benchmark": Toy(), "seeds": 2, "horizon": 60}
    whole = rg.simulate(spec, **arguments).regret
    stopping = rg.simulation.Monitor(callback=stop, every=20)
    save = rg.simulation.Execution(save=tmp_path / "run.npz")
    with pytest.raises(InterruptedError):
        rg.simulate(spec, **arguments, monitor=stopping, execution=save)
    watching = rg.simulation.Monitor(callback=lambda metrics: None, every=20)
    assert np.array_equal(rg.simulate(spec, **arguments, monitor=watching, execution=save).regret, whole)


def stop(metrics):
    if metrics.round == 40:
        raise InterruptedError


@pytest.mark.parametrize("make", [Remembering, Explicit])
def test_a_learner_survives_a_restart_and_a_failed_update(tmp_path, make):
    problem = rg.Problem(rg.oracles.top_k(4, 2), context=3)
    spec = policies.Python(make=make, state_bytes=ROOM)
    rng = np.random.default_rng(0)
    contexts, totals = rng.normal(size=(12, 3)), rng.normal(size=12) + 3
    learner, plain = rg.Learner(problem, policy=spec, store=tmp_path / "a.db"), rg.Learner(problem, policy=spec)
    for t, (context, total) in enumerate(zip(contexts, totals, strict=True)):
        choices = [each.decide(context) for each in (learner, plain)]
        assert np.array_equal(*(choice.w for choice in choices))
        if t == 5:
            make.update, whole = broken, make.update
            with pytest.raises(ZeroDivisionError):
                learner.learn(choices[0].id, total=total)
            make.update = whole
            learner.close()
            learner = rg.Learner.open(tmp_path / "a.db", problem, policy=spec)
        for each, choice in zip((learner, plain), choices, strict=True):
            each.learn(choice.id, total=total)
    assert np.array_equal(learner.decide(contexts[0], explore=False).w, plain.decide(contexts[0], explore=False).w)


def broken(self, decision, feedback):
    self.theta = self.theta + 1.0
    self.rounds += 7
    raise ZeroDivisionError


def test_a_solver_on_the_host_is_asked_once_per_round():
    sizes = collections.Counter()

    def solve(costs):
        sizes[len(costs)] += 1
        w = np.zeros_like(costs)
        np.put_along_axis(w, np.argsort(costs, axis=1)[:, :2], 1.0, axis=1)
        return w

    hosted = Toy(rg.oracles.external(solve, 4, batched=True))
    run = rg.simulate(policies.Python(make=Linear), hosted, seeds=3, horizon=20)
    assert sizes[3] >= 20
    np.testing.assert_allclose(
        run.regret, rg.simulate(policies.Python(make=Linear), Toy(), seeds=3, horizon=20).regret, atol=1e-9
    )


class Restless(Linear):
    def decide(self, context):
        self.rounds += 1
        return super().decide(context)


class Short(Linear):
    def decide(self, context):
        return np.zeros(2)


class Unwritable(Linear):
    def __init__(self, problem, seed):
        super().__init__(problem, seed)
        self.solver = object()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Restless, "Restless.decide changed the object: only update may"),
        (Short, r"Short.decide: expected 4 costs, got shape \(2,\)"),
        (
            Unwritable,
            "expected to remember arrays, numbers, text and containers of these, got an object of type object",
        ),
        (Remembering, "expected a state of at most 4,096 bytes, got .*; set state_bytes"),
        (
            lambda problem, seed: 7,
            "expected a function that returns an object with decide and update, got one that returns 7",
        ),
    ],
)
def test_an_object_that_breaks_the_rules_is_refused(make, message):
    with pytest.raises(SettingsError, match=message):
        rg.simulate(policies.Python(make=make), Toy(), seeds=1, horizon=200)


@pytest.mark.parametrize("make", [7, "no_module:thing", "numpy:no_function"])
def test_only_functions_and_classes_make_objects(make):
    with pytest.raises(SettingsError, match="'make': expected a function or class"):
        policies.Python(make=make)


def test_a_factory_has_a_place_in_descriptions():
    spec = policies.Python(make="collections:OrderedDict")
    assert spec.make is collections.OrderedDict
    assert spec.names()["make"] == "collections:OrderedDict"
    assert repr(spec) == "rg.policies.Python(make=OrderedDict)"


def test_the_code_of_an_object_counts_in_the_address_of_a_result():
    package = Linear.__module__.partition(".")[0]
    for policy in (
        policies.Python(make=Linear),
        Steps(),
        rg.policies.Greedy(model=rg.models.Module(make=Linear.decide)),
    ):
        parts = list(_parts_within([policy]))
        assert package in {_package_of(part) for part in parts}
    (run,) = resolve(rg.Experiment("topk", Steps(step=0.1), seeds=1, horizon=5))
    assert package in run.modules
    assert run.configuration["policy"]["settings"]["step"] == 0.1


def test_python_is_called_for_the_replications_that_were_asked_for():
    """Programs may be padded to a usual number of replications; user code never sees the padding."""
    calls = []

    class Counting(Linear):
        def update(self, decision, feedback):
            calls.append(decision.w.sum())
            super().update(decision, feedback)

    rg.simulate(policies.Python(make=Counting), Toy(), seeds=3, horizon=20)
    assert calls == [2.0] * 60

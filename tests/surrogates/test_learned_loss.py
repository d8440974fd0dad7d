"""A loss that learns its own parameters from predictions, targets and solutions, with one and with several calls."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from regretless import oracles, testing
from regretless.surrogates import SolvedCall, Surrogate

ORACLE = oracles.top_k(4, 2)


class LearnedQuadratic(Surrogate):
    """``½ Σ a_i (ĉ_i − c_i)²`` whose weights ``a`` are fitted to the regret of ``w*(ĉ)`` by gradient steps."""

    rate: Array

    def init(self):
        return jnp.full(self.oracle.dim, 0.5)

    def queries(self, memory, prediction, target, noise):
        return jnp.stack([target, prediction])

    def gradient(self, memory, prediction, target, noise, solutions):
        return memory * (prediction - target)

    def adapt(self, memory, gradient, call):
        squares = 0.5 * jnp.square(call.prediction - call.target)
        regret = call.target @ (call.solutions[1] - call.solutions[0])
        return jnp.maximum(memory - self.rate * (memory @ squares - regret) * squares, 0.0)

    def after_all(self, memory, gradients, calls):
        adapt = lambda a, call: (self.adapt(a, None, SolvedCall(call[0], calls.target, call[1])), None)  # noqa: E731
        return jax.lax.scan(adapt, memory, (calls.prediction, calls.solutions))[0]


LOSS = LearnedQuadratic(ORACLE, jnp.asarray(0.01))


def test_the_contract_holds():
    testing.check_surrogate(lambda oracle: LearnedQuadratic(oracle, jnp.asarray(0.01)))


def test_weights_move_towards_the_regret():
    prediction, target = jnp.array([1.0, 2.0, 3.0, 4.0]), jnp.array([4.0, 2.0, 3.0, 1.0])
    memory, gaps = LOSS.init(), []
    for _ in range(30):
        squares = 0.5 * np.square(prediction - target)
        gaps.append(abs(float(memory @ squares) - 3.0))  # w* of the prediction costs 6, the best decision 3
        _, memory = LOSS(memory, prediction, target, None)
    assert gaps[-1] < 0.01 * gaps[0]


def test_several_calls_learn_as_one_after_the_other():
    predictions = jax.random.normal(jax.random.key(0), (3, 4))
    target = jnp.array([1.0, 0.0, 2.0, 0.5])
    solutions = jnp.stack([ORACLE.solve(LOSS.queries(None, c, target, None)).w for c in predictions])
    gradients, together = LOSS.finish_all(LOSS.init(), predictions, target, None, solutions)
    memory = LOSS.init()
    for c, gradient in zip(predictions, gradients, strict=True):
        np.testing.assert_allclose(gradient, 0.5 * (c - target), rtol=1e-6)
        _, memory = LOSS(memory, c, target, None)
    np.testing.assert_allclose(together, memory, rtol=1e-6)

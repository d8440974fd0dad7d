"""PyEPO models as oracles: exact in both directions, one thread at a time, and refused where they are no ``min
c·w``.
"""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from extra import required
from regretless import oracles
from regretless.errors import SettingsError
from regretless.simulation.simulator import simulate
from toys import DIM, Toy, make

torch, dsl, EPO = required("torch"), required("pyepo.dsl"), required("pyepo.EPO")
compiled_base = required("pyepo.dsl.compiled").compiledBase
models = required("extras.pyepo_models")

GRID = oracles.grid_edges(3, 3)


@pytest.mark.parametrize("sense", models.SENSES)
@pytest.mark.parametrize(
    ("decisions", "native"),
    [
        (models.choices(5, 2), oracles.top_k(5, 2)),
        (models.paths(GRID, 0, 8), oracles.shortest_path(GRID)),
    ],
    ids=["topk", "shortest_path"],
)
def test_minimises_the_cost_whichever_way_the_model_goes(decisions, native, sense):
    oracle = oracles.from_pyepo(models.Listed(decisions, models.SENSES[sense]))
    costs = jax.random.normal(jax.random.key(0), (50, native.dim))
    solution = oracle.solve(costs)
    assert oracle.dim == native.dim
    assert np.all(np.asarray(solution.status) == 0)
    assert np.array_equal(solution.w, native.solve(costs).w)


def test_a_batch_is_one_solve_per_cost():
    model = models.Listed(models.choices(4, 2))
    oracles.from_pyepo(model).answer(np.ones((6, 4)))
    assert model.solves == 6


class Interrupted(models.Listed):
    """Lets other threads in between its objective and its solution."""

    def solve(self):
        mine = self.objective
        time.sleep(1e-4)
        assert self.objective is mine
        return super().solve()


def test_threads_do_not_mix_up_their_objectives():
    oracle = oracles.from_pyepo(Interrupted(models.choices(5, 2)))
    costs = np.random.default_rng(0).normal(size=(4, 30, 5))
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda rows: oracle.answer(rows).w, costs))
    expected = [np.asarray(oracles.top_k(5, 2).solve(jnp.asarray(rows)).w) for rows in costs]
    assert np.array_equal(answers, expected)


class Picky(models.Listed):
    """Answers with a tensor, and not at all where the first cost is positive."""

    def solve(self):
        if self.objective[0] > 0:
            raise RuntimeError("no licence today")
        w, value = super().solve()
        return torch.tensor(w), value


def test_a_failure_of_the_model_is_reported():
    oracle = oracles.from_pyepo(Picky(models.choices(3, 1)))
    assert oracle.solve(jnp.array([[-1.0, 0.0, 0.0]])).w.tolist() == [[1, 0, 0]]
    with pytest.raises(oracles.OracleError, match="row 1 of a batch of 2: RuntimeError: no licence today"):
        oracle.answer([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])


def test_a_policy_learns_on_it_what_it_learns_on_our_own_oracle():
    foreign = [oracles.from_pyepo(models.Listed(models.choices(DIM, 2), sense)) for sense in models.SENSES.values()]
    regrets = []
    for oracle in (None, *foreign):
        toy = Toy(oracle)
        policy = make("dfhpg", toy, "full", surrogate="spo_plus")
        regrets.append(simulate(policy, toy, feedback="full", seeds=range(2), horizon=40).regret)
    for regret in regrets[1:]:
        np.testing.assert_allclose(regret, regrets[0], atol=1e-9)


class Enumerated(compiled_base):
    """A problem in PyEPO's modelling language, solved by trying every 0/1 vector."""

    def _getModel(self):  # noqa: N802
        self.modelSense = self.problem.modelSense
        n = self.problem.num_vars
        corners = np.array(np.meshgrid(*[[0.0, 1.0]] * n, indexing="ij")).reshape(n, -1).T
        for _, rows, sense, bound in self.problem.constrs:
            inside = np.asarray(rows @ corners.T) - np.reshape(bound, (-1, 1))
            corners = corners[np.all({"<=": inside <= 0, ">=": inside >= 0, "==": inside == 0}[str(sense)], axis=0)]
        self.corners = corners
        return None, range(n)

    def _write_obj(self, coef):
        self.coef = coef

    def _read_sol(self):
        values = self.corners @ self.coef
        best = np.argmin(self.modelSense * values)
        return self.corners[best], values[best]


def knapsack(objective):
    """Two items to pay for (``x``) and a third variable, all of them 0 or 1, at most two of them 1."""
    x, spare, c = dsl.Variable(2, vtype=EPO.BINARY), dsl.Variable(1, vtype=EPO.BINARY), dsl.Parameter(2)
    limit = np.ones((1, 2)) @ x + np.ones((1, 1)) @ spare <= np.array([2.0])
    return Enumerated(dsl.Problem(objective(c, x, spare), [limit]))


def test_only_the_predicted_variables_are_decided():
    oracle = oracles.from_pyepo(knapsack(lambda c, x, spare: dsl.Maximize(c @ x)))
    assert oracle.dim == 2
    assert oracle.solve(jnp.array([[-1.0, 2.0], [-1.0, -2.0]])).w.tolist() == [[1, 0], [1, 1]]


def test_refuses_an_objective_that_is_not_the_predicted_cost():
    with pytest.raises(SettingsError, match="known fixed costs"):
        oracles.from_pyepo(knapsack(lambda c, x, spare: dsl.Minimize(c @ x + np.array([3.0]) @ spare)))
    with pytest.raises(SettingsError, match="quadratic"):
        oracles.from_pyepo(knapsack(lambda c, x, spare: dsl.Minimize(c @ x + x @ x)))


def test_refuses_what_is_no_model():
    with pytest.raises(SettingsError, match="instance of pyepo's optModel, got function"):
        oracles.from_pyepo(lambda cost: cost)
    with pytest.raises(SettingsError, match="got the class Listed"):
        oracles.from_pyepo(models.Listed)
    undecided = models.Listed(models.choices(3, 1))
    undecided.modelSense = 0
    with pytest.raises(SettingsError, match=r"EPO\.MINIMIZE or EPO\.MAXIMIZE, got 0"):
        oracles.from_pyepo(undecided)


def test_the_example_in_the_documentation_runs():
    page = (Path(__file__).parents[2] / "docs" / "pyepo.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.S)
    assert blocks
    names = {}
    exec("\n".join(blocks), names)
    assert names["decision"].tolist() == [1.0, 0.0, 1.0, 0.0]
    assert names["result"].diverged == 0

"""Next to OR-Tools, PyTorch and SciPy, in any import order; two of them bring their own HiGHS, and all agree."""

import subprocess
import sys

import pytest

from extra import required

required("ortools")
required("torch")

OURS = """
import regretless as rg
oracle = rg.oracles.milp(A_ub=[[3, 4, 2]], b_ub=[6], integrality=1, bounds=(0, 1))
assert oracle.answer([[-4.0, -5.0, -3.0]]).w.tolist() == [[0, 1, 1]]
"""
THEIRS = """
import torch
from ortools.linear_solver import pywraplp
from ortools.sat.python import cp_model
from scipy.optimize import Bounds, LinearConstraint, milp
"""
ALL = """
assert oracle.answer([[-4.0, -5.0, -3.0], [-9.0, -5.0, -3.0]]).w.tolist() == [[0, 1, 1], [1, 0, 1]]
fits = LinearConstraint([[3, 4, 2]], ub=[6])
assert milp([-4, -5, -3], constraints=fits, integrality=[1, 1, 1], bounds=Bounds(0, 1)).fun == -8
model = cp_model.CpModel()
w = [model.new_bool_var(name) for name in "abc"]
model.add(3 * w[0] + 4 * w[1] + 2 * w[2] <= 6)
model.minimize(-4 * w[0] - 5 * w[1] - 3 * w[2])
solver = cp_model.CpSolver()
solver.parameters.num_workers = 1
assert solver.solve(model) == cp_model.OPTIMAL
assert solver.objective_value == -8
for name in ("SCIP", "HIGHS"):
    linear = pywraplp.Solver.CreateSolver(name)
    w = [linear.BoolVar(each) for each in "abc"]
    linear.Add(3 * w[0] + 4 * w[1] + 2 * w[2] <= 6)
    linear.Minimize(-4 * w[0] - 5 * w[1] - 3 * w[2])
    assert linear.Solve() == pywraplp.Solver.OPTIMAL
    assert linear.Objective().Value() == -8
x = torch.ones(2, requires_grad=True)
(x @ x).backward()
assert x.grad.tolist() == [2, 2]
learner = rg.Learner(oracle, context=1, policy="linear_thompson")
learner.learn(learner.decide([1.0]).id, total=-8.0)
print("done")
"""


@pytest.mark.parametrize("program", [OURS + THEIRS + ALL, THEIRS + OURS + ALL], ids=["first", "last"])
def test_loads_and_solves_next_to_other_solvers(program):
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (result.returncode, result.stdout[-5:]) == (0, "done\n"), result.stderr

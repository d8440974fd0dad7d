"""No solver is loaded before one is needed."""

import subprocess
import sys

import pytest

LOADED = "sorted(m for m in sys.modules if 'highs' in m or m.startswith('scipy.optimize'))"


def loaded_after(statements):
    program = f"import sys\nimport regretless as rg\n{statements}\nprint({LOADED})"
    return subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize(
    "statements",
    [
        "",
        "rg.oracles.shortest_path(rg.oracles.grid_edges(3, 3)).answer([[1.0] * 12])",
        "o = rg.oracles; o.scheduling(o.Plant(180, ((1.0,),), (o.PlantTask(2, 0, 8, 1.0, (1.0,)),))).answer([[1.0] * 8])",  # noqa: E501
    ],
)
def test_what_needs_no_solver_loads_none(statements):
    assert loaded_after(statements) == "[]"


def test_a_milp_loads_it():
    assert "highspy" in loaded_after("rg.oracles.milp(A_ub=[[1, 1]], b_ub=[1], integrality=1)")

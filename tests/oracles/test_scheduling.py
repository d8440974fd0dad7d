"""The scheduling oracle: exact on random plants and on the benchmark's instances, and the host is asked only where
needed.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from highs_comparison import compare, exact_cost
from regretless import oracles
from regretless.errors import OracleError
from regretless.oracles import Plant, PlantTask, highs
from regretless.oracles.base import OUT_OF_TIME
from regretless.oracles.plant import ScheduleSolver, always_packs, assignable, overfull_sets
from toys import all_schedules

# Both tasks want the cheapest two slots, and the machine takes one at a time.
CROWDED = Plant(
    180, ((1.0,),), (PlantTask(2, 0, 8, 1.0, (1.0,)), PlantTask(2, 0, 6, 2.0, (1.0,)), PlantTask(1, 0, 8, 1.0, (0.0,)))
)
MIDDAY = np.array([9.0, 8.0, 1.0, 1.0, 3.0, 3.0, 8.0, 9.0])
APART = np.array([9.0, 8.0, 7.0, 6.0, 5.0, 1.0, 1.0, 0.0])  # the second task has to end by slot 6


@st.composite
def plants(draw):
    slots = 6
    resources = draw(st.integers(1, 2))
    sizes = st.tuples(*[st.integers(0, 3).map(float)] * resources)
    tasks = []
    for _ in range(draw(st.integers(1, 3))):
        duration = draw(st.integers(1, 4))
        earliest = draw(st.integers(0, slots - duration))
        latest = draw(st.integers(earliest + duration, slots))
        tasks.append(PlantTask(duration, earliest, latest, float(draw(st.integers(1, 4))), draw(sizes)))
    capacities = tuple(draw(st.lists(sizes, min_size=1, max_size=2)))
    return Plant(240, capacities, tuple(tasks))


@given(plant=plants(), costs=st.lists(st.lists(st.integers(-3, 3), min_size=6, max_size=6), min_size=2, max_size=2))
@settings(max_examples=40)
def test_agrees_with_all_schedules_of_random_plants(plant, costs):
    everything = np.array(list(all_schedules(plant)))
    if not len(everything):
        with pytest.raises(ValueError, match=r"fits no machine|infeasible"):
            oracles.scheduling(plant)
        return
    oracle = oracles.scheduling(plant)
    solution = oracle.solve(jnp.asarray(costs, jnp.float32))
    assert solution.status.tolist() == [0, 0]
    assert np.array_equal(
        np.sum(costs * np.asarray(solution.w), axis=1), np.min(np.array(costs) @ everything.T, axis=1)
    )
    assert np.array_equal(np.sum(oracle.task_loads(solution.aux), axis=1), solution.w)
    assert np.all(np.any(np.all(everything[None] == np.asarray(solution.w)[:, None], axis=2), axis=1))


@pytest.mark.parametrize("instance", ["load1", "load2", "load3"])
def test_agrees_with_highs_on_the_full_program(instance):
    """Random price vectors, negative ones among them: on the real instances where they are, else on the
    embedded ones.
    """
    row = compare(instance, 10)
    assert row["agrees"], row
    assert row["always_packs"] == (instance == "load3")
    assert row["ratio"] > (1000 if instance == "load3" else 0)


def test_the_solver_is_called_once_per_batch_and_only_for_rows_that_do_not_pack(monkeypatch):
    oracle = oracles.scheduling(CROWDED)
    calls, real = [], ScheduleSolver.solve

    def counted(self, prices):
        calls.append(prices.tolist())
        return real(self, prices)

    monkeypatch.setattr(ScheduleSolver, "solve", counted)
    fine = np.tile(APART, (6, 1))
    assert np.array_equal(oracle.answer(fine).aux, np.tile([6, 4, 7], (6, 1)))
    assert calls == []
    fine[2] = MIDDAY
    starts = oracle.answer(fine).aux
    assert calls == [[MIDDAY.tolist()]]
    assert starts[2, :2].tolist() == [4, 2], "the task of twice the power keeps the cheapest slots"
    assert np.array_equal(np.delete(starts, 2, axis=0), np.tile([6, 4, 7], (5, 1)))


def test_where_every_choice_packs_it_is_pure_jax():
    roomy = CROWDED._replace(capacities=((1.0,), (1.0,)))
    assert always_packs(roomy)
    assert not always_packs(CROWDED)
    assert not oracles.scheduling(roomy).on_host
    assert oracles.scheduling(CROWDED).on_host
    assert "callback" not in str(jax.make_jaxpr(oracles.scheduling(roomy).solve)(jnp.zeros((2, 8))))
    feasible = jax.vmap(oracles.scheduling(roomy).feasible)
    assert "host_call" in str(jax.make_jaxpr(feasible)(jnp.zeros((2, 8))))
    assert not np.any(feasible(jnp.zeros((2, 8)))), "every task has to run"


@given(plant=plants())
@settings(max_examples=60)
def test_what_always_packs_packs_for_all_starts(plant):
    """By brute force: one assignment that holds for every choice of start times, if and only if the search finds
    one.
    """
    usage = np.array([task.usage for task in plant.tasks])
    slot = np.arange(plant.slots)
    may_run = [(slot >= task.earliest) & (slot < task.latest) for task in plant.tasks]

    def holds(machines):
        used = np.zeros((len(plant.capacities), plant.slots, usage.shape[1]))
        for task, machine in enumerate(machines):
            used[machine] += np.outer(may_run[task], usage[task])
        return np.all(used <= np.array(plant.capacities)[:, None])

    choices = itertools.product(range(len(plant.capacities)), repeat=len(plant.tasks))
    assert always_packs(plant) == any(map(holds, choices))


def test_a_failing_solve_raises_in_its_own_call(monkeypatch):
    oracle = oracles.scheduling(CROWDED)
    late = lambda self, costs, **parts: (np.zeros_like(costs), np.full(len(costs), OUT_OF_TIME))  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(highs.BatchSolver, "solve_batch", late)
        with pytest.raises(OracleError, match=r"scheduling: row 1 of a batch of 2: no proven optimum within .* 120 s"):
            oracle.answer([APART, MIDDAY])
    assert oracle.answer([MIDDAY]).status.tolist() == [0]


def test_points_that_no_schedule_reaches_are_not_contained():
    oracle = oracles.scheduling(CROWDED)
    best = oracle.answer([MIDDAY]).w[0]
    crowd = np.array([0, 0, 9.0, 9.0, 3.0, 0, 0, 0])  # both tasks at once
    assert oracle.contained([best, crowd, 0 * best]).tolist() == [True, False, False]


def test_the_relaxed_program_is_used_where_it_fits_and_the_full_one_elsewhere():
    """Two machines of size 3 take 4 tasks of size 1.5 at once, or two of size 2: three of those can never run
    together.
    """
    tasks = tuple(PlantTask(2, 0, 8, 1.0 + j, (2.0,)) for j in range(3))
    plant = Plant(180, ((3.0,), (3.0,)), tasks)
    assert overfull_sets(plant) == [(0, 1, 2)]
    solver = ScheduleSolver(plant)
    assert len(solver.relaxed.choices) * 2 == len(solver.full.choices)
    prices = np.random.default_rng(0).normal(size=(6, 8))
    relaxed, whole = solver.solve(prices), solver.full.solve(plant, prices)
    for price, mine, reference in zip(prices, relaxed[0], whole[0], strict=True):
        assert exact_cost(plant, price, mine)[0] == pytest.approx(exact_cost(plant, price, reference)[0], rel=1e-9)
    # A long task on each machine, and a third that fits neither although the room of both together would do.
    gaps = Plant(180, ((3.0,), (3.0,)), (PlantTask(8, 0, 8, 1.0, (2.0,)),) * 2 + (PlantTask(1, 0, 8, 1.0, (2.0,)),))
    assert assignable(gaps, range(3), np.ones((3, 8), bool)) is False
    assert assignable(gaps, [0, 2], np.ones((3, 8), bool)) is True


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slot_minutes": 7}, "expected slots that divide a day of 1440 minutes, got 7"),
        ({"tasks": ()}, "expected at least one task and one machine"),
        ({"tasks": (PlantTask(3, 0, 2, 1.0, (1.0,)),)}, "task 0: 3 slots do not fit between slot 0 and slot 2"),
        (
            {"tasks": (PlantTask(1, 0, 9, 1.0, (1.0,)),)},
            "task 0: expected 0 ≤ earliest < latest ≤ 8 slots, got 0 and 9",
        ),
        ({"tasks": (PlantTask(1, 0, 2, 1.0, (2.0,)),)}, r"task 0: its usage \[2.0\] fits no machine"),
        ({"tasks": (PlantTask(1, 0, 2, 1.0, (1.0, 1.0)),)}, "expected as many usages of each task as capacities"),
        (
            {"tasks": (PlantTask(1, 0, 2, 1.0, (1.0,)), PlantTask(1, 0, 2, 1.0, (1.0, 1.0)))},
            "expected as many usages of each task as capacities",
        ),
        ({"capacities": ((1.0,), (float("nan"),))}, r"expected capacities of at least 0, got \[\[1.0\], \[nan\]\]"),
        ({"capacities": ((1.0,), (-1.0,))}, r"expected capacities of at least 0, got \[\[1.0\], \[-1.0\]\]"),
        ({"tasks": (PlantTask(1, 0, 2, float("nan"), (1.0,)),)}, "task 0: expected a finite power"),
        ({"tasks": (PlantTask(4, 0, 5, 1.0, (1.0,)),) * 2}, "plant: infeasible"),
    ],
)
def test_refuses_plants_that_cannot_work(change, message):
    with pytest.raises(ValueError, match=message):
        oracles.scheduling(CROWDED._replace(**change))


def test_takes_no_instance():
    with pytest.raises(ValueError, match="expected no instance"):
        oracles.scheduling(CROWDED).solve_one(jnp.zeros(8), jnp.ones(3))

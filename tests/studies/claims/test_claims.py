"""The paper's claims as data: every line points at cells that exist, verdicts go every way, a store that lacks them says so."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import invented
from regretless import benchmarks, policies, surrogates
from regretless.report.claims_section import markdown, section
from regretless.report.gather import gather
from regretless.results import Result
from regretless.studies import definitions
from regretless.studies.cell_files import CellResult
from regretless.studies.claims.evaluate import VERDICTS, evaluate, tally
from regretless.studies.claims.forms import (
    Arm,
    Calmer,
    Counted,
    Crossing,
    Indistinct,
    Leaders,
    Line,
    Lower,
    NotHigher,
    Quieter,
    Ratio,
    Steadier,
    Untested,
    Wider,
    arms_of,
)
from regretless.studies.claims.lines import lines
from regretless.studies.claims.methods import BASELINES, ORACLE_CALLS
from regretless.studies.claims.names import SURROGATES
from regretless.studies.claims.statistics import AGREES, DISAGREES, NOT_RUN, OPEN, judge
from regretless.studies.joining import Source
from regretless.studies.store import Store
from regretless.studies.study import Scale

A, B = Arm("a"), Arm("b")
COUNT = 129


def test_every_line_is_about_cells_that_the_studies_have():
    known = {}
    for name in definitions.REGISTRY:
        if name == "theory":
            continue
        for panel in definitions.study(name, Scale()).panels:
            for label, cell in panel.cells:
                known.setdefault((name, panel.title, label), set()).update(arm.label for arm in cell.arms)
            for each in panel.borrowed:
                known[name, panel.title, each.into].add(each.label)
    assert SURROGATES == definitions.SURROGATES
    for line in lines():
        for arm in arms_of(line.test):
            benchmark = arm.benchmark or line.benchmark
            places = [key for key in known if key[:2] == (arm.study, benchmark)]
            own = known.get((arm.study, benchmark, arm.cell), set())
            if arm.study == "surrogates":
                own = set().union(*(known[place] for place in places))
            assert arm.label in own, (line, arm)
        assert line.line == 79 or 278 < line.line < 2038
    assert len({(line.line, line.words) for line in lines()}) == len(lines()) == COUNT


def flat(level, count=30, rounds=40, noise=0.02):
    """Cumulative regret that grows evenly to about ``level``."""
    draw = np.random.default_rng(int(1e6 * level) + count)
    final = level * (1.0 + noise * draw.normal(size=(count, 1)))
    return final * np.arange(1, rounds + 1) / rounds


@pytest.mark.parametrize(
    ("test", "levels", "verdict"),
    [
        (Lower((((A,), (B,)),)), (1.0, 2.0), AGREES),
        (Lower((((A,), (B,)),)), (2.0, 1.0), DISAGREES),
        (Lower((((A,), (B,)),)), (1.0, 1.0001), OPEN),
        (NotHigher((((A,), (B,)),)), (1.0, 1.0001), AGREES),
        (NotHigher((((A,), (B,)),)), (2.0, 1.0), DISAGREES),
        (Indistinct((((A,), (B,)),)), (1.0, 1.0001), AGREES),
        (Indistinct((((A,), (B,)),)), (1.0, 2.0), DISAGREES),
        (Ratio((A,), (B,), 1.5, 2.5), (2.0, 1.0), AGREES),
        (Ratio((A,), (B,), 1.5, 2.5), (3.0, 1.0), DISAGREES),
        (Ratio((A,), (B,), 2.001, 2.5), (2.0, 1.0), OPEN),
    ],
)
def test_the_verdict_goes_every_way(test, levels, verdict):
    curves = dict(zip((A, B), map(flat, levels), strict=True))
    found = judge(test, curves.__getitem__)
    assert found.verdict == verdict
    assert found.low <= found.value <= found.high


def test_where_curves_cross_and_how_much_they_vary():
    late = np.cumsum(np.where(np.arange(40) < 10, 0.0, 2.0) + flat(1.0, noise=0.0) * 0.0, axis=1)
    steady = np.cumsum(np.ones((30, 40)), axis=1)
    curves = {A: late, B: steady}
    assert judge(Crossing(A, B, 15, 25), curves.__getitem__).verdict == AGREES
    assert judge(Crossing(A, B, 30, 35), curves.__getitem__).verdict == DISAGREES
    many = {Arm(str(level)): flat(level) for level in (1.0, 1.1, 3.0, 9.0)}
    near, far = [tuple((arm,) for arm in list(many)[part]) for part in (slice(0, 2), slice(2, 4))]
    assert judge(Steadier(near, far), many.__getitem__).verdict == AGREES
    assert judge(Steadier(far, near), many.__getitem__).verdict == DISAGREES
    wide = {A: flat(1.0, noise=0.5), B: flat(1.0, noise=0.01)}
    assert judge(Wider(A, B, 5.0), wide.__getitem__).verdict == AGREES
    assert judge(Wider(B, A, 5.0), wide.__getitem__).verdict == DISAGREES


def test_baselines_are_judged_on_the_rounds_that_were_played():
    draw = np.random.default_rng(0)
    total, noise = 10.0 + draw.normal(size=(30, 50)), draw.normal(size=(30, 50))
    for baseline, calmer, quieter in (
        (10.0 + 0.1 * noise, AGREES, AGREES),
        (-10.0 + 3.0 * noise, DISAGREES, DISAGREES),
    ):
        told = {"total": total, "baseline": baseline, "score_norm": 2.0 * np.abs(total - baseline)}
        verdicts = [
            judge(test, {}.__getitem__, lambda arm, told=told: told).verdict for test in (Calmer(A), Quieter(A))
        ]
        assert verdicts == [calmer, quieter]
    found = judge(Calmer(A), {}.__getitem__, lambda arm: told)
    expected = np.mean(np.square(total - baseline)) / np.mean(np.square(total))
    assert found.value == pytest.approx(expected), "the norm of the score cancels"


def test_leaders_of_several_benchmarks():
    curves = {Arm(str(k)): flat(level) for k, level in enumerate((1.0, 2.0, 3.0, 0.5))}
    a, b, c, d = ((arm,) for arm in curves)
    assert judge(Leaders(((a, b), (d, c))), curves.__getitem__).verdict == DISAGREES
    assert judge(Leaders(((a, b), (c, d))), curves.__getitem__).verdict == AGREES


def test_counts_are_those_of_the_code():
    problem = benchmarks.parse("topk").build().problem("bandit")
    for name, count in ORACLE_CALLS:
        surrogate = surrogates.parse(name).build(problem.oracle)
        cost = np.ones(problem.dim)
        assert len(surrogate.queries(surrogate.init(), cost, cost, surrogate.draw(jax.random.key(0)))) == count, name
    without = solves(problem, "none")
    assert [solves(problem, name) - without for name, _ in BASELINES] == [count for _, count in BASELINES]
    assert judge(Counted("solves", ORACLE_CALLS, 1, 2), {}.__getitem__).verdict == DISAGREES
    assert judge(Counted("solves", ORACLE_CALLS, 0, 20), {}.__getitem__).verdict == AGREES


def solves(problem, baseline):
    """Solves that a learning step of DFHPG asks for."""
    policy = policies.parse("dfhpg", {"baseline": baseline, "surrogate": "dbb"}).build(problem)

    def ask(key):
        state = policy.init(key)
        decision = policy.decide(key, state, jnp.ones(problem.context_shape), None)
        return policy.ask(key, state, decision, problem.observe(decision, jnp.ones(problem.dim))).costs

    return len(jax.eval_shape(ask, jax.random.key(0)))


def test_cells_with_different_seeds_are_not_compared():
    def load(key):
        count = {"one": 3, "other": 4}[key]
        return CellResult({"dfhpg": Result("dfhpg", np.ones((count, 2000)), seeds=tuple(range(count)))}, {})

    cells = {("main", "topk", ""): Source("one"), ("semi_bandit", "topk", ""): Source("other")}
    test = Ratio((Arm("dfhpg", "semi_bandit"),), (Arm("dfhpg"),), 0.5, 2.0)
    (outcome,) = evaluate(cells, load, [Line(335, "half", "topk", test)])
    assert (outcome.verdict, outcome.why) == (NOT_RUN, "its cells have different seeds")
    (outcome,) = evaluate(cells, load, [Line(1626, "calmer", "topk", Calmer(Arm("dfhpg")))])
    assert outcome.why == "dfhpg in main on topk did not record its baseline"


def test_a_store_is_judged_as_far_as_it_goes(tmp_path):
    store = Store(tmp_path / "store")
    invented.fill(store, ["main"], Scale(seeds=4))
    page = gather(store)
    counts = tally(page.claims)
    assert sum(counts.values()) == COUNT
    told = [one for one in lines() if not isinstance(one.test, Calmer | Quieter)]  # invented traces tell no baseline
    free = [one for one in told if not {arm.study for arm in arms_of(one.test)} - {"main"}]
    assert counts[NOT_RUN] == COUNT - len(free)
    assert counts[AGREES] > 0
    found = json.loads(json.dumps([one.to_dict() for one in page.claims], allow_nan=False))
    assert {one["verdict"] for one in found} <= set(VERDICTS)
    assert all(one["why"] for one in found if one["verdict"] == NOT_RUN)
    untested = [one for one in page.claims if isinstance(one.line.test, Untested)]
    assert [(one.verdict, bool(one.why)) for one in untested] == [(OPEN, True)]
    assert f"{COUNT} claims" in section(page.claims)
    assert "is not in the store" in "\n".join(markdown(page.claims))


def test_a_short_run_and_a_lost_result_are_not_judged(tmp_path):
    store = Store(tmp_path / "store")
    plan = invented.fill(store, ["main"], Scale(seeds=3, horizon=50))
    line = [Line(335, "DFHPG is lower", "topk", Lower((((Arm("dfhpg"),), (Arm("greedy"),)),)))]
    (key,) = [item.key for item in plan.planned() if item.cell.benchmark == "topk"]
    (outcome,) = evaluate({("main", "topk", ""): Source(key)}, store.load, line)
    assert (outcome.verdict, outcome.why) == (NOT_RUN, "main on topk is a short run: 50 of 2,000 rounds")
    store.path(key).unlink()
    (outcome,) = evaluate({("main", "topk", ""): Source(key)}, store.load, line)
    assert (outcome.verdict, outcome.why) == (NOT_RUN, "main on topk is not computed yet")

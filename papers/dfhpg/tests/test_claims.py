"""The paper's claims as data: each refers to runs that exist, verdicts go every way, missing runs are named."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import Problem, benchmarks, oracles, policies, surrogates
from regretless.experiments import Cell, Panel, Scale, Study
from regretless.results import Result
from regretless_dfhpg.claims.evaluate import VERDICTS, evaluate_claims, tally
from regretless_dfhpg.claims.lines import BASELINES, ORACLE_CALLS, all_claims
from regretless_dfhpg.claims.statistics import (
    AGREES,
    DISAGREES,
    EQUIVALENT,
    NOT_RUN,
    OPEN,
    BaselineReducesVariance,
    BaselineVariesLess,
    Claim,
    ClaimArm,
    CountsInRange,
    CurveCrossing,
    DifferentLeaders,
    LowerRegret,
    LowerSpread,
    NoDifference,
    NoStudy,
    NotHigherRegret,
    RegretRatio,
    WiderErrors,
    arms_of,
    evaluate_test,
)
from regretless_dfhpg.studies import STUDIES

A, B = ClaimArm("a"), ClaimArm("b")
COUNT = 129


def test_every_claim_is_about_runs_that_the_studies_have():
    known = {
        (name, panel.title, cell.label, arm.label)
        for name, make in STUDIES.items()
        if name != "theory"
        for panel in make(Scale()).panels
        for cell in panel.cells
        for arm in cell.work.arms
    }
    claims = all_claims()
    for claim in claims:
        for arm in arms_of(claim.test):
            assert (arm.study, arm.benchmark or claim.benchmark, arm.cell, arm.label) in known, (claim, arm)
        assert claim.line == 79 or 278 < claim.line < 2038
    assert len({(claim.line, claim.text) for claim in claims}) == len(claims) == COUNT


def flat(level, count=30, rounds=40, noise=0.02):
    """Cumulative regret that grows evenly to about ``level``."""
    draw = np.random.default_rng(int(1e6 * level) + count)
    final = level * (1.0 + noise * draw.normal(size=(count, 1)))
    return final * np.arange(1, rounds + 1) / rounds


@pytest.mark.parametrize(
    ("test", "levels", "verdict"),
    [
        (LowerRegret((((A,), (B,)),)), (1.0, 2.0), AGREES),
        (LowerRegret((((A,), (B,)),)), (2.0, 1.0), DISAGREES),
        (LowerRegret((((A,), (B,)),)), (1.0, 1.0001), EQUIVALENT),
        (NotHigherRegret((((A,), (B,)),)), (1.0, 1.0001), AGREES),
        (NotHigherRegret((((A,), (B,)),)), (2.0, 1.0), DISAGREES),
        (NoDifference((((A,), (B,)),)), (1.0, 1.0001), AGREES),
        (NoDifference((((A,), (B,)),)), (1.0, 2.0), DISAGREES),
        (RegretRatio((A,), (B,), 1.5, 2.5), (2.0, 1.0), AGREES),
        (RegretRatio((A,), (B,), 1.5, 2.5), (3.0, 1.0), DISAGREES),
        (RegretRatio((A,), (B,), 2.001, 2.5), (2.0, 1.0), OPEN),
    ],
)
def test_the_verdict_goes_every_way(test, levels, verdict):
    curves = dict(zip((A, B), map(flat, levels), strict=True))
    found = evaluate_test(test, curves.__getitem__)
    assert found.verdict == verdict
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize(
    "test", [LowerRegret((((A,), (B,)),)), NotHigherRegret((((A,), (B,)),)), NoDifference((((A,), (B,)),))]
)
def test_wide_intervals_are_open_for_every_kind_of_claim(test):
    curves = {A: flat(1.0, noise=0.4), B: flat(1.02, noise=0.4)}
    found = evaluate_test(test, curves.__getitem__)
    assert found.verdict == OPEN
    assert found.seeds == 30
    assert found.seeds_needed > 30


def test_the_number_of_seeds_needed_is_the_one_that_decides():
    def finding(count):
        curves = {A: np.full((count, 40), 1.0), B: np.full((count, 40), 1.2) + np.resize([0.5, -0.5], (count, 1))}
        return evaluate_test(LowerRegret((((A,), (B,)),)), curves.__getitem__)

    few = finding(20)
    assert few.verdict == OPEN
    assert finding(int(1.2 * few.seeds_needed) // 2 * 2).verdict == AGREES
    assert finding(int(0.8 * few.seeds_needed) // 2 * 2).verdict == OPEN


def test_where_curves_cross_and_how_much_they_vary():
    late = np.cumsum(np.where(np.arange(40) < 10, 0.0, 2.0) + flat(1.0, noise=0.0) * 0.0, axis=1)
    steady = np.cumsum(np.ones((30, 40)), axis=1)
    curves = {A: late, B: steady}
    assert evaluate_test(CurveCrossing(A, B, 15, 25), curves.__getitem__).verdict == AGREES
    assert evaluate_test(CurveCrossing(A, B, 30, 35), curves.__getitem__).verdict == DISAGREES
    many = {ClaimArm(str(level)): flat(level) for level in (1.0, 1.1, 3.0, 9.0)}
    near, far = [tuple((arm,) for arm in list(many)[part]) for part in (slice(0, 2), slice(2, 4))]
    assert evaluate_test(LowerSpread(near, far), many.__getitem__).verdict == AGREES
    assert evaluate_test(LowerSpread(far, near), many.__getitem__).verdict == DISAGREES
    wide = {A: flat(1.0, noise=0.5), B: flat(1.0, noise=0.01)}
    assert evaluate_test(WiderErrors(A, B, 5.0), wide.__getitem__).verdict == AGREES
    assert evaluate_test(WiderErrors(B, A, 5.0), wide.__getitem__).verdict == DISAGREES


def test_baselines_are_judged_on_the_rounds_that_were_played():
    draw = np.random.default_rng(0)
    total, noise = 10.0 + draw.normal(size=(30, 50)), draw.normal(size=(30, 50))
    for baseline, calmer, quieter in (
        (10.0 + 0.1 * noise, AGREES, AGREES),
        (-10.0 + 3.0 * noise, DISAGREES, DISAGREES),
    ):
        diagnostics = {"total": total, "baseline": baseline, "score_norm": 2.0 * np.abs(total - baseline)}
        verdicts = [
            evaluate_test(test, {}.__getitem__, lambda arm, diagnostics=diagnostics: diagnostics).verdict
            for test in (BaselineReducesVariance(A), BaselineVariesLess(A))
        ]
        assert verdicts == [calmer, quieter]
    found = evaluate_test(BaselineReducesVariance(A), {}.__getitem__, lambda arm: diagnostics)
    expected = np.mean(np.square(total - baseline)) / np.mean(np.square(total))
    assert found.value == pytest.approx(expected), "the norm of the score cancels"


def test_leaders_of_several_benchmarks():
    curves = {ClaimArm(str(k)): flat(level) for k, level in enumerate((1.0, 2.0, 3.0, 0.5))}
    a, b, c, d = ((arm,) for arm in curves)
    assert evaluate_test(DifferentLeaders(((a, b), (d, c))), curves.__getitem__).verdict == DISAGREES
    assert evaluate_test(DifferentLeaders(((a, b), (c, d))), curves.__getitem__).verdict == AGREES


def test_counts_are_those_of_the_code():
    problem = benchmarks.parse("topk").build().problem("bandit")
    for name, count in ORACLE_CALLS:
        surrogate = surrogates.parse(name).build(problem.oracle)
        cost = np.ones(problem.dim)
        assert len(surrogate.queries(surrogate.init(), cost, cost, surrogate.draw(jax.random.key(0)))) == count, name
    without = solves(problem, "none")
    assert [solves(problem, name) - without for name, _ in BASELINES] == [count for _, count in BASELINES]
    assert evaluate_test(CountsInRange("solves", ORACLE_CALLS, 1, 2), {}.__getitem__).verdict == DISAGREES
    assert evaluate_test(CountsInRange("solves", ORACLE_CALLS, 0, 20), {}.__getitem__).verdict == AGREES


def solves(problem, baseline):
    """Solves of a learning step of DFHPG."""
    counts = []

    def counted(costs):
        counts.append(len(costs))
        return problem.oracle.answer(costs).w

    hosted = Problem(oracles.external(counted, problem.dim, batched=True), problem.context_shape, "bandit")
    policy = policies.parse("dfhpg", {"baseline": baseline, "surrogate": "dbb"}).build(hosted)
    state = policy.init(jax.random.key(0))
    decision = policy.decide(jax.random.key(1), state, jnp.ones(problem.context_shape), None)
    counts.clear()
    policy.learn(jax.random.key(2), state, decision, problem.observe(decision, jnp.ones(problem.dim)))
    return sum(counts)


def study_of(name, *labels):
    """A study with results at addresses that are its name and the arm's label."""
    arms = tuple((label, f"{name}/{label}") for label in labels)
    return Study(name, (Panel("topk", (Cell("", arms=arms),)),))


def result(count, rounds=2000, level=1.0):
    return Result("arm", np.full((count, rounds), level), seeds=tuple(range(count)))


def test_runs_with_different_seeds_are_not_compared():
    results = {"main/dfhpg": result(3), "semi_bandit/dfhpg": result(4)}
    studies = [study_of("main", "dfhpg"), study_of("semi_bandit", "dfhpg")]
    ratio = RegretRatio((ClaimArm("dfhpg", "semi_bandit"),), (ClaimArm("dfhpg"),), 0.5, 2.0)
    (outcome,) = evaluate_claims(studies, results.get, [Claim(335, "half", "topk", ratio)])
    assert (outcome.verdict, outcome.missing) == (NOT_RUN, "its runs have different seeds")
    claim = Claim(1626, "calmer", "topk", BaselineReducesVariance(ClaimArm("dfhpg")))
    (outcome,) = evaluate_claims(studies, results.get, [claim])
    assert outcome.missing == "dfhpg in main on topk did not record its baseline"


def test_missing_and_short_runs_give_no_verdict():
    claim = Claim(335, "lower", "topk", LowerRegret((((ClaimArm("dfhpg"),), (ClaimArm("greedy"),)),)))
    study, results = study_of("main", "dfhpg", "greedy"), {"main/dfhpg": result(3), "main/greedy": result(3, level=2.0)}

    def missing(studies, results):
        (outcome,) = evaluate_claims(studies, results.get, [claim])
        assert outcome.verdict == NOT_RUN
        return outcome.missing

    assert missing([], results) == "dfhpg in main on topk is not in the store"
    assert missing([study], {}) == "dfhpg in main on topk is not computed yet"
    short = {**results, "main/dfhpg": result(3, 50)}
    assert missing([study], short) == "dfhpg in main on topk is a short run: 50 of 2,000 rounds"
    (outcome,) = evaluate_claims([study], results.get, [claim])
    assert outcome.verdict == AGREES


def test_all_claims_have_a_verdict_as_json():
    outcomes = evaluate_claims([], {}.get)
    counts = tally(outcomes)
    assert sum(counts.values()) == COUNT
    found = json.loads(json.dumps([outcome.to_dict() for outcome in outcomes], allow_nan=False))
    assert {each["verdict"] for each in found} <= set(VERDICTS)
    assert all(each["missing"] for each in found if each["verdict"] == NOT_RUN)
    untested = [outcome for outcome in outcomes if isinstance(outcome.claim.test, NoStudy)]
    assert [(outcome.verdict, bool(outcome.missing)) for outcome in untested] == [(OPEN, True)]

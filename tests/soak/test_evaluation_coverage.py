"""Coverage of the intervals of ``rg.evaluate`` on simulated logs, for candidates whose true cost is known.

Randomised logs have 150 to 1,200 rounds, costs that no linear model fits, heavy tails in a third and correlated
contexts in a third. 95 % intervals must cover in at least 90 %, at least 60 % of the candidates must get an answer,
and of two candidates whose intervals do not overlap the wrong one may be preferred in at most 5 %. Logs without
randomness, and logs with a handful of informative rounds, must be inconclusive.
"""

import itertools
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from regretless import oracles
from regretless.live.evaluation import BLOCKS, Evaluation, evaluate
from regretless.live.history import History
from regretless.live.learner import Learner
from soak.sizes import size

DIM, CHOSEN, FEATURES = 4, 2, 3
ORACLE = oracles.top_k(DIM, CHOSEN)
DECISIONS = np.array([np.isin(np.arange(DIM), pair) for pair in itertools.combinations(range(DIM), CHOSEN)], float)
LEARNER = "linear_thompson"
FRESH = 20_000
"""Number of contexts that a candidate's true cost is averaged over."""

Rule = Callable[[np.ndarray], np.ndarray]


class World(NamedTuple):
    """Mean costs ``level + B x + curve · (x² − 1)`` of each item, with noise and contexts of one kind."""

    slopes: np.ndarray
    curves: np.ndarray
    heavy: bool
    slow: bool

    def mean(self, x: np.ndarray) -> np.ndarray:
        """Return mean costs ``[n, d]``."""
        return 5.0 + x @ self.slopes.T + (x**2 - 1.0) @ self.curves.T

    def contexts(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Draw normal contexts; if ``slow``, with a correlation of 0.7 from round to round."""
        x = rng.normal(size=(count, FEATURES))
        for t in range(1, count if self.slow else 0):
            x[t] = 0.7 * x[t - 1] + np.sqrt(1 - 0.49) * x[t]
        return x

    def total(self, rng: np.random.Generator, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Draw the total costs of ``w``."""
        size = len(x)
        noise = rng.standard_t(3, size) / np.sqrt(3) if self.heavy else rng.normal(size=size)
        return np.sum(self.mean(x) * w, axis=1) + noise


def world(rng: np.random.Generator, number: int) -> World:
    """Draw a world; every third has heavy tails, every third slow contexts."""
    return World(
        rng.normal(size=(DIM, FEATURES)), 0.5 * rng.normal(size=(DIM, FEATURES)), number % 3 == 1, number % 3 == 2
    )


def linear(slopes: np.ndarray, levels: np.ndarray) -> Rule:
    """Return the rule that is best for linear costs, for one context or many."""

    def rule(x: np.ndarray) -> np.ndarray:
        order = np.argsort(levels + x @ slopes.T, axis=-1, kind="stable")
        return (np.argsort(order, axis=-1) < CHOSEN).astype(float)

    return rule


def rules(rng: np.random.Generator, simulated: World) -> dict[str, Rule]:
    """Return the rule of the log, a similar one, a better one, and a fixed decision."""
    misjudged = simulated.slopes + rng.normal(size=simulated.slopes.shape)
    levels = rng.normal(size=DIM)
    near = misjudged + 0.3 * rng.normal(size=simulated.slopes.shape)
    fixed = DECISIONS[rng.integers(len(DECISIONS))]
    return {
        "log": linear(misjudged, levels),
        "near": linear(near, levels),
        "better": linear(simulated.slopes, np.zeros(DIM)),
        "fixed": lambda x: np.broadcast_to(fixed, (*x.shape[:-1], DIM)),
    }


def logged(
    rng: np.random.Generator, simulated: World, rule: Rule, count: int, random: float, propensities: bool
) -> tuple[History, np.ndarray]:
    """Return a log that follows a rule and draws uniformly with probability ``random``, and its mean costs."""
    x = simulated.contexts(rng, count)
    usual = rule(x)
    drawn = DECISIONS[rng.integers(len(DECISIONS), size=count)]
    w = np.where(rng.uniform(size=(count, 1)) < random, drawn, usual)
    chance = random / len(DECISIONS) + (1.0 - random) * np.all(w == usual, axis=1)
    return History(
        x, w, totals=simulated.total(rng, x, w), propensities=chance if propensities else None
    ), simulated.mean(x)


def true_costs(rng: np.random.Generator, simulated: World, candidates: dict[str, Rule]) -> dict[str, float]:
    """Return the expected cost per round of each rule."""
    x = rng.normal(size=(FRESH, FEATURES))
    mean = simulated.mean(x)
    return {name: float(np.mean(np.sum(mean * rule(x), axis=1))) for name, rule in candidates.items()}


def learner_cost(history: History, mean: np.ndarray) -> float:
    """Return the mean cost, without noise, of a policy that learns during the log, in the evaluated rounds."""
    blocks = np.array_split(np.arange(len(history)), BLOCKS)
    learner, paid = Learner(ORACLE, context=FEATURES, policy=LEARNER), []
    for before, block in itertools.pairwise(blocks):
        learner.learn_from(history[before])
        paid.append(np.sum(mean[block] * learner.predict(history[block])[1], axis=1))
    return float(np.mean(np.concatenate(paid)))


def randomised(rng: np.random.Generator, number: int, counts: Counter[str]) -> None:
    """Evaluate one randomised log; every fifth is without propensities."""
    simulated, propensities = world(rng, number), number % 5 != 4
    all_rules = rules(rng, simulated)
    count, random = int(rng.choice([150, 300, 600, 1200])), float(rng.choice([0.2, 0.4, 0.7, 1.0]))
    history, mean = logged(rng, simulated, all_rules.pop("log"), count, random, propensities)
    true = true_costs(rng, simulated, all_rules)
    true[LEARNER] = learner_cost(history, mean)
    evaluation = evaluate({**all_rules, LEARNER: LEARNER}, history, oracle=ORACLE)
    kind = "with propensities" if propensities else "without propensities"
    for name, cost in true.items():
        counts[f"{kind}: asked"] += 1
        answer = evaluation[name].cost
        if answer is not None:
            counts[f"{kind}: answered"] += 1
            counts[f"{kind}: covered"] += answer.low <= cost <= answer.high
            counts[f"{kind}: wide"] += answer.high - answer.low > 2.0
    count_pairs(evaluation, true, counts)


def count_pairs(evaluation: Evaluation, true: dict[str, float], counts: Counter[str]) -> None:
    """Count pairs whose intervals do not overlap, those in the wrong order, and paired differences."""
    for first, second in itertools.combinations(true, 2):
        one, other = evaluation[first].cost, evaluation[second].cost
        if one is None or other is None:
            continue
        if one.high < other.low or other.high < one.low:
            counts["pairs apart"] += 1
            counts["pairs wrong"] += (one.mean < other.mean) != (true[first] < true[second])
        difference = evaluation.difference(first, second)
        if difference is not None and LEARNER not in (first, second):
            counts["differences"] += 1
            counts["differences covered"] += difference.low <= true[first] - true[second] <= difference.high


def silent(rng: np.random.Generator, number: int, counts: Counter[str]) -> None:
    """Evaluate a log without randomness, and one with a handful of informative rounds: both are inconclusive."""
    simulated = world(rng, number)
    all_rules = rules(rng, simulated)
    rule = all_rules.pop("log")
    del all_rules["near"]
    for kind, count, random in (("deterministic", int(rng.choice([150, 600])), 0.0), ("handful", 60, 0.3)):
        history, _ = logged(rng, simulated, rule, count, random, propensities=number % 2 == 0)
        evaluation = evaluate(all_rules, history)
        for name in all_rules:
            counts[f"{kind}: asked"] += 1
            counts[f"{kind}: answered"] += evaluation[name].conclusive


def measure(logs: int, seed: int) -> Counter[str]:
    """Return the counts over randomised logs, and a fifth as many uninformative ones of each kind."""
    counts: Counter[str] = Counter()
    for number in range(logs):
        randomised(np.random.default_rng([seed, number]), number, counts)
    for number in range(max(logs // 5, 2)):
        silent(np.random.default_rng([seed, 1, number]), number, counts)
    return counts


def share(counts: Counter[str], part: str, whole: str) -> float:
    """Return one count divided by another."""
    return counts[part] / max(counts[whole], 1)


def verdicts(counts: Counter[str]) -> list[tuple[str, float, bool]]:
    """Return what was measured, with whether it is as required."""
    kinds = ("with propensities", "without propensities")
    both: Counter[str] = Counter()
    for kind in kinds:
        for name in ("asked", "answered", "covered"):
            both[name] += counts[f"{kind}: {name}"]
    rows = [
        (
            "intervals that cover the true cost",
            share(both, "covered", "answered"),
            share(both, "covered", "answered") >= 0.9,
        ),
        ("candidates that get an answer", share(both, "answered", "asked"), share(both, "answered", "asked") >= 0.6),
    ]
    for kind in kinds:
        covered = share(counts, f"{kind}: covered", f"{kind}: answered")
        rows.append((f"  {kind}: cover", covered, covered >= 0.9 or not counts[f"{kind}: answered"]))
        rows.append((f"  {kind}: answered", share(counts, f"{kind}: answered", f"{kind}: asked"), True))
        rows.append((f"  {kind}: wider than 2", share(counts, f"{kind}: wide", f"{kind}: answered"), True))
    wrong = share(counts, "pairs wrong", "pairs apart")
    rows.append((f"of {counts['pairs apart']} pairs that do not overlap, called wrongly", wrong, wrong <= 0.05))
    covered = share(counts, "differences covered", "differences")
    rows.append(("intervals of paired differences that cover", covered, covered >= 0.9))
    for kind in ("deterministic", "handful"):
        answered = share(counts, f"{kind}: answered", f"{kind}: asked")
        rows.append((f"{kind} logs: answered of {counts[f'{kind}: asked']}", answered, answered <= 0.01))
    return rows


def test_intervals_cover_and_uninformative_logs_get_no_answer():
    logs = size("logs", 8)
    counts = measure(logs, size("seed", 0))
    if logs >= 100:
        wrong = [f"{name}: {value:.1%}" for name, value, right in verdicts(counts) if not right]
        assert not wrong, wrong
        return
    answered = sum(counts[f"{kind}: answered"] for kind in ("with propensities", "without propensities"))
    covered = sum(counts[f"{kind}: covered"] for kind in ("with propensities", "without propensities"))
    assert answered >= 16, "of 32"
    assert covered >= 0.85 * answered
    assert counts["pairs wrong"] == 0
    assert counts["pairs apart"] >= 3
    assert counts["deterministic: answered"] == counts["handful: answered"] == 0
    assert counts["deterministic: asked"] == 4

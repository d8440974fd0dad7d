"""Measures how honest ``rg.evaluate`` is: simulated logs, candidates whose true cost is known, and how often it is covered.

Randomised logs (ε-randomised around a rule, 150 to 1,200 rounds, costs that no linear model fits, heavy tails and contexts
that resemble those before them in a third each): 95 % intervals must cover in at least 90 %, at least 60 % must get an answer,
and of two candidates whose intervals do not overlap the wrong one may be called better in at most 5 %. Logs without randomness,
and logs in which a handful of rounds speaks for a candidate, must be answered with that the log is inconclusive.
"""

import itertools
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from regretless import oracles
from regretless.live.evaluation import candidates as parts
from regretless.live.evaluation.evaluate import BLOCKS, evaluate
from regretless.live.evaluation.report import Evaluation
from regretless.live.history import History
from soak.sizes import size

DIM, CHOSEN, FEATURES = 4, 2, 3
ORACLE = oracles.top_k(DIM, CHOSEN)
DECISIONS = np.array([np.isin(np.arange(DIM), pair) for pair in itertools.combinations(range(DIM), CHOSEN)], float)
LEARNER = "linear_thompson"
FRESH = 20_000
"""Contexts from which a candidate's true cost is computed."""

Rule = Callable[[np.ndarray], np.ndarray]


class World(NamedTuple):
    """Mean costs ``level + B x + curve · (x² − 1)`` of each item, with noise and contexts of a kind."""

    slopes: np.ndarray
    curves: np.ndarray
    heavy: bool
    slow: bool

    def mean(self, x: np.ndarray) -> np.ndarray:
        """``[n, d]``."""
        return 5.0 + x @ self.slopes.T + (x**2 - 1.0) @ self.curves.T

    def contexts(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """Normal, where ``slow`` with a correlation of 0.7 from round to round."""
        x = rng.normal(size=(count, FEATURES))
        for t in range(1, count if self.slow else 0):
            x[t] = 0.7 * x[t - 1] + np.sqrt(1 - 0.49) * x[t]
        return x

    def total(self, rng: np.random.Generator, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        """What is paid for ``w``."""
        size = len(x)
        noise = rng.standard_t(3, size) / np.sqrt(3) if self.heavy else rng.normal(size=size)
        return np.sum(self.mean(x) * w, axis=1) + noise


def world(rng: np.random.Generator, number: int) -> World:
    """One at random; every third has heavy tails, every third slow contexts."""
    return World(
        rng.normal(size=(DIM, FEATURES)), 0.5 * rng.normal(size=(DIM, FEATURES)), number % 3 == 1, number % 3 == 2
    )


def linear(slopes: np.ndarray, levels: np.ndarray) -> Rule:
    """The decision that is best for linear costs, in one context or in many."""

    def rule(x: np.ndarray) -> np.ndarray:
        order = np.argsort(levels + x @ slopes.T, axis=-1, kind="stable")
        return (np.argsort(order, axis=-1) < CHOSEN).astype(float)

    return rule


def rules(rng: np.random.Generator, own: World) -> dict[str, Rule]:
    """The log's rule, one like it, one that knows more, and a fixed decision."""
    misjudged = own.slopes + rng.normal(size=own.slopes.shape)
    levels = rng.normal(size=DIM)
    near = misjudged + 0.3 * rng.normal(size=own.slopes.shape)
    fixed = DECISIONS[rng.integers(len(DECISIONS))]
    return {
        "log": linear(misjudged, levels), "near": linear(near, levels), "better": linear(own.slopes, np.zeros(DIM)),
        "fixed": lambda x: np.broadcast_to(fixed, (*x.shape[:-1], DIM)),
    }  # fmt: skip


def logged(
    rng: np.random.Generator, own: World, rule: Rule, count: int, random: float, told: bool
) -> tuple[History, np.ndarray]:
    """A log that follows a rule and draws uniformly with probability ``random``; its mean costs beside it."""
    x = own.contexts(rng, count)
    usual = rule(x)
    drawn = DECISIONS[rng.integers(len(DECISIONS), size=count)]
    w = np.where(rng.uniform(size=(count, 1)) < random, drawn, usual)
    chance = random / len(DECISIONS) + (1.0 - random) * np.all(w == usual, axis=1)
    return History(x, w, totals=own.total(rng, x, w), propensities=chance if told else None), own.mean(x)


def true_costs(rng: np.random.Generator, own: World, candidates: dict[str, Rule]) -> dict[str, float]:
    """Expected cost per round of each rule."""
    x = rng.normal(size=(FRESH, FEATURES))
    mean = own.mean(x)
    return {name: float(np.mean(np.sum(mean * rule(x), axis=1))) for name, rule in candidates.items()}


def learner_cost(history: History, mean: np.ndarray) -> float:
    """What a policy that learns as the rounds go by would have paid in the judged rounds, without the noise."""
    blocks = np.array_split(np.arange(len(history)), BLOCKS)
    w = parts.decisions(LEARNER, LEARNER, history, blocks, parts.Meant(ORACLE, "bandit"))
    judged = np.concatenate(blocks[1:])
    return float(np.mean(np.sum(mean[judged] * w[judged], axis=1)))


def randomised(rng: np.random.Generator, number: int, counts: Counter[str]) -> None:
    """One randomised log; without propensities every fifth."""
    own, told = world(rng, number), number % 5 != 4
    all_rules = rules(rng, own)
    count, random = int(rng.choice([150, 300, 600, 1200])), float(rng.choice([0.2, 0.4, 0.7, 1.0]))
    history, mean = logged(rng, own, all_rules.pop("log"), count, random, told)
    true = true_costs(rng, own, all_rules)
    true[LEARNER] = learner_cost(history, mean)
    found = evaluate({**all_rules, LEARNER: LEARNER}, history, oracle=ORACLE)
    kind = "with propensities" if told else "without propensities"
    for name, cost in true.items():
        counts[f"{kind}: asked"] += 1
        answer = found[name].cost
        if answer is not None:
            counts[f"{kind}: told"] += 1
            counts[f"{kind}: covered"] += answer.low <= cost <= answer.high
            counts[f"{kind}: wide"] += answer.high - answer.low > 2.0
    count_pairs(found, true, counts)


def count_pairs(found: Evaluation, true: dict[str, float], counts: Counter[str]) -> None:
    """Pairs whose intervals do not overlap, and those of them that are called the wrong way round; paired differences too."""
    for first, second in itertools.combinations(true, 2):
        one, other = found[first].cost, found[second].cost
        if one is None or other is None:
            continue
        if one.high < other.low or other.high < one.low:
            counts["pairs apart"] += 1
            counts["pairs wrong"] += (one.mean < other.mean) != (true[first] < true[second])
        difference = found.difference(first, second)
        if difference is not None and LEARNER not in (first, second):
            counts["differences"] += 1
            counts["differences covered"] += difference.low <= true[first] - true[second] <= difference.high


def silent(rng: np.random.Generator, number: int, counts: Counter[str]) -> None:
    """A log without randomness, and one of which a handful of rounds speaks for a candidate: neither must be answered."""
    own = world(rng, number)
    all_rules = rules(rng, own)
    rule = all_rules.pop("log")
    del all_rules["near"]
    for kind, count, random in (("deterministic", int(rng.choice([150, 600])), 0.0), ("handful", 60, 0.3)):
        history, _ = logged(rng, own, rule, count, random, told=number % 2 == 0)
        found = evaluate(all_rules, history)
        for name in all_rules:
            counts[f"{kind}: asked"] += 1
            counts[f"{kind}: told"] += found[name].told


def measure(logs: int, seed: int) -> Counter[str]:
    """All counts over so many randomised logs and a fifth as many silent ones of each kind."""
    counts: Counter[str] = Counter()
    for number in range(logs):
        randomised(np.random.default_rng([seed, number]), number, counts)
    for number in range(max(logs // 5, 2)):
        silent(np.random.default_rng([seed, 1, number]), number, counts)
    return counts


def share(counts: Counter[str], part: str, whole: str) -> float:
    """One count over another."""
    return counts[part] / max(counts[whole], 1)


def verdicts(counts: Counter[str]) -> list[tuple[str, float, bool]]:
    """What is measured, and whether it is as it should be."""
    kinds = ("with propensities", "without propensities")
    both: Counter[str] = Counter()
    for kind in kinds:
        for what in ("asked", "told", "covered"):
            both[what] += counts[f"{kind}: {what}"]
    rows = [
        ("intervals that cover the true cost", share(both, "covered", "told"), share(both, "covered", "told") >= 0.9),
        ("candidates that get an answer", share(both, "told", "asked"), share(both, "told", "asked") >= 0.6),
    ]
    for kind in kinds:
        covered = share(counts, f"{kind}: covered", f"{kind}: told")
        rows.append((f"  {kind}: cover", covered, covered >= 0.9 or not counts[f"{kind}: told"]))
        rows.append((f"  {kind}: answered", share(counts, f"{kind}: told", f"{kind}: asked"), True))
        rows.append((f"  {kind}: wider than 2", share(counts, f"{kind}: wide", f"{kind}: told"), True))
    wrong = share(counts, "pairs wrong", "pairs apart")
    rows.append((f"of {counts['pairs apart']} pairs that do not overlap, called wrongly", wrong, wrong <= 0.05))
    covered = share(counts, "differences covered", "differences")
    rows.append(("intervals of paired differences that cover", covered, covered >= 0.9))
    for kind in ("deterministic", "handful"):
        told = share(counts, f"{kind}: told", f"{kind}: asked")
        rows.append((f"{kind} logs: answered of {counts[f'{kind}: asked']}", told, told <= 0.01))
    return rows


def test_intervals_cover_and_uninformative_logs_get_no_answer():
    logs = size("logs", 8)
    counts = measure(logs, size("seed", 0))
    if logs >= 100:
        wrong = [f"{name}: {value:.1%}" for name, value, right in verdicts(counts) if not right]
        assert not wrong, wrong
        return
    answered = sum(counts[f"{kind}: told"] for kind in ("with propensities", "without propensities"))
    covered = sum(counts[f"{kind}: covered"] for kind in ("with propensities", "without propensities"))
    assert answered >= 16, "of 32"
    assert covered >= 0.85 * answered
    assert counts["pairs wrong"] == 0
    assert counts["pairs apart"] >= 3
    assert counts["deterministic: told"] == counts["handful: told"] == 0
    assert counts["deterministic: asked"] == 4

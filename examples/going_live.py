"""From a CSV of old decisions to production: evaluate, learn, run in shadow, act behind a guard, restart, hand over.

A workshop gives each of four crews one of four jobs every morning. What a pair costs depends on the temperature and
on the number of orders; the foreman ignores both. Last year he tossed a coin every morning between two plans, and now
always uses the first. In the evening the day's total cost is known, one day in ten it is forgotten.

    python examples/going_live.py FOLDER [DAYS]
"""

import csv
import sys
from pathlib import Path

import numpy as np

import regretless as rg

CREWS = 4
CONTEXTS = ["temperature", "orders"]
DECISIONS = [f"crew{i}_job{j}" for i in range(CREWS) for j in range(CREWS)]
USUAL, OTHER = (np.eye(CREWS)[list(jobs)].reshape(-1) for jobs in ((0, 1, 2, 3), (1, 0, 2, 3)))
OLD, SHADOW, LOST = 300, 20, 0.1
POLICY = (
    "linear_thompson"  # compiled in seconds; leave it out for the default, which takes a minute and fits more problems
)


class Workshop:
    """The conditions of day ``t``, the same in every call."""

    def __init__(self):
        rng = np.random.default_rng(2026)
        self.base = rng.uniform(20.0, 60.0, len(DECISIONS))
        self.slope = rng.normal(size=(len(DECISIONS), 2)) * 8.0

    def day(self, t):
        rng = np.random.default_rng([t, 1])
        standard = rng.normal(size=2)
        context = np.round([12.0 + 8.0 * standard[0], 40.0 + 10.0 * standard[1]], 2)
        mean = np.maximum(self.base + self.slope @ ((context - [12.0, 40.0]) / [8.0, 10.0]), 5.0)
        return context, mean * rng.uniform(0.8, 1.2, len(DECISIONS)), rng.random() < LOST, rng.random()


def foreman(context):
    """Return the plan of the rule in use."""
    return USUAL


def write_old_decisions(workshop, path):
    """Write what the workshop recorded, as in its spreadsheet."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow([*CONTEXTS, *DECISIONS, "cost", "chance"])
        for t in range(OLD):
            context, costs, lost, coin = workshop.day(t)
            w = OTHER if coin < 0.5 else USUAL
            total = "" if lost else round(float(costs @ w), 2)
            table.writerow([*context, *w.astype(int), total, 0.5])


def play(learner, workshop, days, paid):
    """Decide each morning and learn in the evening; append the cost and that of the foreman's plan."""
    for t in days:
        context, costs, lost, _ = workshop.day(t)
        choice = learner.decide(context)
        paid.append((costs @ choice.w, costs @ foreman(context)))
        if not lost:
            learner.learn(choice.id, total=float(costs @ choice.w))


def main(folder, days):
    folder.mkdir(parents=True, exist_ok=True)
    workshop, oracle = Workshop(), rg.oracles.assignment(CREWS)

    # 1. The old decisions, and what they show about candidates.
    write_old_decisions(workshop, folder / "old.csv")
    history = rg.History.from_csv(
        folder / "old.csv", contexts=CONTEXTS, decisions=DECISIONS, total="cost", propensity="chance"
    )
    evaluation = rg.evaluate(
        {"foreman": foreman, "other plan": lambda context: OTHER, "learner": POLICY}, history, oracle=oracle
    )
    print(evaluation)

    # 2. In shadow mode: the foreman decides, the learner records what it would have done.
    problem = rg.Problem(oracle, len(CONTEXTS))
    rollout = rg.Rollout(foreman, mode="shadow")
    shadow = rg.Learner(problem, policy=POLICY, rollout=rollout, store=folder / "shadow.db")
    print(f"learned from {shadow.learn_from(history)} of {len(history)} old days")
    play(shadow, workshop, range(OLD, OLD + SHADOW), [])
    context = workshop.day(OLD)[0]
    proposed = shadow.decide(context).proposed
    print(f"shadow mode: another plan than the foreman's for {int(np.sum(proposed * (1 - USUAL)))} of {CREWS} crews")
    shadow.close()

    # 3. Live, behind a guard: at most 5 % more than the foreman, and everything in the store.
    rollout = rg.Rollout(foreman, budget=0.05)
    learner = rg.Learner(problem, policy=POLICY, rollout=rollout, store=folder / "live.db")
    learner.learn_from(rg.History.from_store(folder / "shadow.db"))
    learner.warm_up(batches=())
    paid = []
    start, half = OLD + SHADOW, OLD + SHADOW + days // 2
    play(learner, workshop, range(start, half), paid)

    # 4. The process ends, and a new one continues.
    learner.close()
    learner = rg.Learner.open(folder / "live.db", problem, rollout=rollout)

    # 5. The foreman overrides one day, and decides alone for three.
    context, costs, _, _ = workshop.day(half)
    learner.learn(learner.record(context, OTHER).id, total=float(costs @ OTHER))
    learner.pause()
    play(learner, workshop, range(half + 1, half + 4), [])
    learner.resume()

    play(learner, workshop, range(half + 4, start + days), paid)
    health = learner.health()
    spent, would = np.sum(paid, axis=0)
    print(f"{len(paid)} live days: {spent / would - 1:+.1%} against the foreman's plan on the same days")
    print(f"the guard leaves {health.details['guard_chance']:.0%} of the decisions to the learner now")
    print(f"{health.decisions} decisions, {health.waiting} of them without feedback; {health.verdict}")

    # 6. Had the world changed: what was learned long ago counts for less, and the guard is stricter.
    learner.update(forgetting=0.01, budget=0.02)
    learner.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300)

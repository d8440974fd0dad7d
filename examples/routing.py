"""Routing on your own graph with late and lost feedback, closed streets and a solver that fails now and then.

A courier drives from the depot to the customer every few minutes. What a street costs depends on the hour and the
rain. The duration of a trip is known 30 trips later, one in five is never reported, streets close and open, and the
route planner crashes now and then. Every call is in the store before it returns: kill this program and start it again
with the same folder, and it ends as if nothing had happened.

    python examples/routing.py FOLDER [TRIPS]
"""

import heapq
import json
import sys
from pathlib import Path

import numpy as np
from comparison import show

import regretless as rg

TARGETS = {
    "depot": "abc",
    "a": "de",
    "b": "def",
    "c": "ef",
    "d": "g",
    "e": "gh",
    "f": "h",
}
STREETS = [(tail, head) for tail, heads in TARGETS.items() for head in heads]
STREETS += [("d", "h"), ("g", "customer"), ("h", "customer")]
LATE, LOST = 30, 0.2


class World:
    """The conditions of trip ``t``, the same in every call."""

    def __init__(self):
        rng = np.random.default_rng(2026)
        self.base = rng.uniform(3.0, 8.0, len(STREETS))
        self.slope = rng.normal(size=(len(STREETS), 3)) * [2.0, 1.0, 1.5]

    def trip(self, t):
        rng = np.random.default_rng([t, 1])
        hour = rng.uniform(0, 24)
        context = np.array([np.sin(hour * np.pi / 12), np.cos(hour * np.pi / 12), float(rng.random() < 0.3)])
        mean = np.maximum(self.base + self.slope @ context, 0.5)
        cost = mean * rng.uniform(0.7, 1.3, len(STREETS))
        streets = np.ones(len(STREETS), bool)
        streets[rng.integers(len(STREETS) - 2)] = False  # one street is closed
        return context, streets, mean, cost, rng.random() < LOST

    def planner_fails(self, t):
        return np.random.default_rng([t, 2]).random() < 0.01


class Planner:
    """A typical route planner: Dijkstra on a dictionary, and sometimes it crashes."""

    def __init__(self):
        self.broken = False

    def __call__(self, cost, streets):
        if self.broken:
            raise ConnectionError("the route planner does not answer")
        low = min(0.0, float(np.min(cost)))  # Dijkstra needs non-negative costs; all routes here have four streets
        best, queue = {}, [(0.0, "depot", ())]
        while queue:
            distance, node, path = heapq.heappop(queue)
            if node == "customer":
                w = np.zeros(len(STREETS))
                w[list(path)] = 1.0
                return w
            if best.get(node, np.inf) <= distance:
                continue
            best[node] = distance
            for i, (tail, head) in enumerate(STREETS):
                if tail == node and streets[i]:
                    heapq.heappush(queue, (distance + float(cost[i]) - low, head, (*path, i)))
        raise ValueError("the customer cannot be reached")


def passable(w, streets):
    return bool(np.all(np.asarray(streets)[np.asarray(w) > 0]))


def resume(folder, oracle):
    """Return the learner of the store and the journal of its trips; both are new in an empty folder."""
    store, journal = folder / "courier.db", folder / "journal.jsonl"
    if not store.exists():
        return rg.Learner(oracle, context=3, on_failure="last", seed=1, store=store), []
    learner = rg.Learner.open(store, oracle)
    lines = journal.read_text().splitlines() if journal.exists() else []
    print(f"resumed after trip {len(lines)}")
    return learner, [json.loads(line) for line in lines]


def main(folder, trips):
    folder.mkdir(parents=True, exist_ok=True)
    world, planner = World(), Planner()
    oracle = rg.oracles.external(planner, len(STREETS), takes_instance=True, contains=passable)
    learner, journal = resume(folder, oracle)
    with open(folder / "journal.jsonl", "a") as file:
        for t in range(len(journal) + 1, trips + 1):
            context, streets, _, cost, lost = world.trip(t)
            planner.broken = world.planner_fails(t)
            try:  # uses the last route if the planner fails; trips before the kill are not decided again
                choice = learner.decide(context, instance=streets, key=f"trip {t}")
            except rg.oracles.OracleError:  # the last route is closed now: nothing has changed, ask the planner again
                planner.broken = False
                choice = learner.decide(context, instance=streets, key=f"trip {t}")
            planner.broken = False
            if t > LATE and not journal[t - LATE - 1]["lost"]:
                learner.learn(f"trip {t - LATE}", total=journal[t - LATE - 1]["cost"])  # the trip of 30 trips ago
            journal.append({"trip": t, "cost": float(cost @ choice.w), "lost": bool(lost), "fallback": choice.fallback})
            file.write(json.dumps(journal[-1]) + "\n")
            file.flush()
    report(world, planner, learner, journal)


def report(world, planner, learner, journal):
    spent = {name: [] for name in ("learned", "random", "best fixed", "clairvoyant")}
    days = [world.trip(entry["trip"]) for entry in journal]
    average = np.mean([cost for _, _, _, cost, _ in days], axis=0)
    for entry, (_, streets, mean, cost, _) in zip(journal, days, strict=True):
        noise = np.random.default_rng([entry["trip"], 3]).normal(size=len(STREETS))
        spent["learned"].append(entry["cost"])
        for name, prediction in (("random", noise), ("best fixed", average), ("clairvoyant", mean)):
            spent[name].append(float(cost @ planner(prediction, streets)))
    show(spent, "minutes", since=len(journal) // 2)
    health = learner.health()
    print(f"\n{sum(entry['fallback'] for entry in journal)} trips on the last route because the planner failed")
    print(f"{health.learned} of {health.decisions} trips were learned from; {health.verdict}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1200)

"""Small learners that many tests share, so that their programs are compiled once, and what is done with them."""

import hashlib
import json

import numpy as np

import regretless as rg
from regretless.live.state import arrays_of, data_of
from regretless.live.store import RecordStore, write_copy

DIM, FEATURES = 4, 3
ORACLE = rg.oracles.top_k(DIM, 2)
PROBLEM_OPTIONS = ("feedback", "may_miss", "instance", "sense", "offset")


def parse_policy(policy, settings=None, scaling=True):
    """Return a policy from a name with settings, or as it is."""
    if isinstance(policy, str) and settings:
        policy = rg.policies.parse(policy, settings)
    if scaling:
        return policy
    return rg.policies.Unscaled(rg.policies.parse(policy) if isinstance(policy, str) else policy)


def build(  # noqa: PLR0913
    oracle=ORACLE,
    *,
    context=FEATURES,
    policy="linear_thompson",
    settings=None,
    scaling=True,
    incumbent=None,
    budget=0.05,
    mode="act",
    limit=1000,
    max_age=None,
    max_age_seconds=None,
    **options,
):
    """Return a learner from flat options."""
    own = {name: options.pop(name) for name in PROBLEM_OPTIONS if name in options}
    rollout = None if incumbent is None else rg.Rollout(incumbent, budget, mode)
    return rg.Learner(
        rg.Problem(oracle, context, **own),
        policy=parse_policy(policy, settings, scaling),
        rollout=rollout,
        pending=rg.Pending(limit, max_age, max_age_seconds),
        **options,
    )


def make(**options):
    """Return a learner that sees single costs."""
    return build(**{"feedback": "semi_bandit", "scaling": False, **options})


def digest(learner, folder):
    """Return a hash of a copy of the learner."""
    learner.save(folder / "digest.db")
    return hashlib.sha256((folder / "digest.db").read_bytes()).hexdigest()


def contents(learner):
    """Return a hash of what a learner knows, however many records that took."""
    found = hashlib.sha256(json.dumps(data_of(learner.state)).encode())
    for name, array in sorted(arrays_of(learner.state).items()):
        found.update(f"{name} {array.dtype.str} {array.shape};".encode() + array.tobytes())
    return found.hexdigest()


def forge(path, target, change):
    """Write a copy of a store to ``target`` with a changed first snapshot whose checksum is right."""
    store = RecordStore.open_reader(path)
    snapshot = store.first_snapshot()
    store.close()
    data, arrays = json.loads(json.dumps(snapshot.data)), dict(snapshot.arrays)
    change(data, arrays)
    write_copy(target, snapshot._replace(data=data, arrays=arrays))
    return target


def play(learner, rounds, seed=0):
    """Make decisions of every kind with feedback that is late, in pieces, partial or never comes."""
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        x, costs = rng.normal(size=FEATURES), 2.0 + rng.normal(size=DIM)
        choice = learner.record(x, [1.0, 1.0, 0.0, 0.0]) if t % 5 == 4 else learner.decide(x)
        first, second = np.flatnonzero(choice.w).tolist()
        if t % 4 < 2:
            learner.learn(choice.id, components={first: costs[first], second: costs[second]})
        elif t % 4 == 2:
            learner.learn(choice.id, components={first: costs[first]}, final=False)
            if t % 8 == 2:
                learner.learn(choice.id, components={second: costs[second]}, final=False)

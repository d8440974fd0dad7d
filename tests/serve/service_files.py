"""Configurations that the tests of the service share, so that few programs are compiled."""

import datetime

from regretless.serve.config import ROLES, hash_token, parse_config

ROUTE = "/v1/learners/plant"
CONTEXT = [0.5, -1.0, 2.0]
TOKENS = {role: f"rgl_{role}" for role in ROLES}
PROBLEM = {"oracle": "top_k", "arguments": {"dim": 4, "k": 2}, "context": 3, "feedback": "semi_bandit"}
PLANT = {
    "problem": PROBLEM,
    "store": "plant.db",
    "policy": "linear_thompson",
    "rollout": {"incumbent": [1.0, 1.0, 0.0, 0.0], "budget": 0.1},
    "words": {"unit": "€", "round": "day", "incumbent": "the foreman", "items": ["a", "b", "<b>c</b>", "d"]},
    "warm_up": False,
}
FREE = {"problem": PROBLEM, "store": "free.db", "policy": "linear_thompson", "warm_up": False}


def make_config(folder, **changes):
    """Return a configuration with a guarded learner, one without an incumbent and a template."""
    data = {
        "learners": {"plant": PLANT, "free": FREE},
        "templates": {"site": {**FREE, "store": "sites/{name}.db"}},
        "service": {"max_body": 20_000, "max_batch": 5, "creations_per_minute": 3},
    }
    return parse_config({**data, **changes}, folder)


def token_tables(expired=()):
    """Return a token of each role."""
    today = datetime.date.today()
    day = datetime.timedelta(days=1)
    return [
        {
            "name": role,
            "role": role,
            "sha256": hash_token(token),
            "expires": today + (-2 if role in expired else 2) * day,
        }
        for role, token in TOKENS.items()
    ]

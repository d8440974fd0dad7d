"""Count false drift alarms of live learners on stationary costs, with noise of several kinds.

    python benchmarks/drift_alarms.py --policy linear_thompson --rounds 5000
    python benchmarks/drift_alarms.py --policy adaptive --rounds 2000

Three of ten items are chosen; mean costs are linear in three features. The total has noise that is white,
autocorrelated, or has heavy tails; or it is a count or 0/1 with the same mean, scaled. Nothing changes, so that every
alarm is false. ``restarts`` is what the policy itself reports, and ``agree`` says whether that is the number of alarms.
With ``--change`` the costs of all items are exchanged after that many rounds, and the delay of the alarm is printed.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

import regretless as rg

ITEMS, CHOSEN, FEATURES = 10, 3, 3

Noise = Callable[[np.random.Generator, int], np.ndarray]


def autocorrelated(carry: float) -> Noise:
    """Return AR(1) noise of variance one."""

    def draw(rng: np.random.Generator, rounds: int) -> np.ndarray:
        noise = rng.normal(size=rounds)
        for t in range(1, rounds):
            noise[t] = carry * noise[t - 1] + np.sqrt(1.0 - carry**2) * noise[t]
        return noise

    return draw


NOISES: dict[str, Noise | None] = {
    "white": lambda rng, rounds: rng.normal(size=rounds),
    "ar80": autocorrelated(0.8),
    "ar95": autocorrelated(0.95),
    "t3": lambda rng, rounds: rng.standard_t(3, size=rounds) / np.sqrt(3.0),
    "counts": None,
    "binary": None,
}


def play(policy: str, kind: str, rounds: int, seed: int, change: int | None) -> tuple[list[int], float | None]:
    """Return the decisions at which a live learner raised an alarm, and the restarts that its policy reports."""
    rng = np.random.default_rng(seed)
    levels, slopes = rng.uniform(1.0, 4.0, ITEMS), 0.3 * rng.normal(size=(ITEMS, FEATURES))
    draw = NOISES[kind]
    noise = np.zeros(rounds) if draw is None else draw(rng, rounds)
    learner = rg.Learner(rg.oracles.top_k(ITEMS, CHOSEN), context=FEATURES, policy=policy, seed=seed)
    alarms: list[int] = []
    for t in range(rounds):
        if t == change:
            levels, slopes = 5.0 - levels, -slopes
        x = rng.normal(size=FEATURES)
        choice = learner.decide(x)
        mean = float(choice.w @ (levels + slopes @ x))
        if kind == "counts":
            total = float(rng.poisson(max(0.3 * mean, 0.05)))
        elif kind == "binary":
            total = float(rng.random() < min(max(0.03 * mean, 0.005), 1.0))
        else:
            total = mean + noise[t]
        learner.learn(choice.id, total=total)
        noticed = int(learner.state.health.alarm[0])
        if noticed and (not alarms or alarms[-1] != noticed):
            alarms.append(noticed)
    return alarms, learner.health().details.get("restarts")


def main() -> None:
    """Print a line for each kind of noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default="linear_thompson")
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--kinds", nargs="*", default=list(NOISES), choices=list(NOISES))
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--change", type=int, help="rounds after which the costs change")
    given = parser.parse_args()
    print("noise   policy            runs × rounds  alarms  restarts  agree  processor time")
    for kind in given.kinds:
        began, alarms, restarts, agree = time.process_time(), 0, 0.0, 0
        delays = []
        for seed in range(given.seed, given.seed + given.runs):
            noticed, reported = play(given.policy, kind, given.rounds, seed, given.change)
            after = [t for t in noticed if given.change is not None and t > given.change]
            alarms += len(noticed) - len(after[:1])
            delays += [after[0] - (given.change or 0)] if after else []
            restarts += reported or 0.0
            agree += reported is None or reported == len(noticed)
        shown = f"  noticed after {delays}" if given.change is not None else ""
        print(
            f"{kind:7} {given.policy:17} {given.runs} × {given.rounds:<9}  {alarms:6}  {restarts:8.0f}  "
            f"{agree} of {given.runs}  {time.process_time() - began:.0f} s{shown}",
            flush=True,
        )


if __name__ == "__main__":
    main()

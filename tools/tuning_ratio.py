"""How long a tuning takes, as a ratio to as many runs one after the other in one process that share compiled programs.

    python tools/tuning_ratio.py topk --trials 200

Both start without compiled programs, try the same candidates, and must find the same best one.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from regretless import policies
from regretless.cli.environment import configure


def main() -> None:
    """Measures both and prints one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmark")
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--horizon", type=int)
    options = parser.parse_args()
    configure(compilation_cache=False)
    from regretless.programs import forget
    from regretless.simulate import simulate_all
    from regretless.studies import spaces
    from regretless.studies.tuning import Task, problem_of, tune

    task = Task(options.benchmark, seeds=options.seeds, horizon=options.horizon).resolved()
    with tempfile.TemporaryDirectory() as place:
        together = tune(task, options.trials, Path(place) / "trials.db").record
    forget()
    bench, problem = problem_of(task)
    seeds = range(task.first_seed, task.first_seed + (task.seeds or 0))
    began, compiling, means = time.perf_counter(), 0.0, {}
    for trial in together["trials"]:
        settings = spaces.settings(task.benchmark, task.model, trial["params"])
        policy = policies.build("dfhpg", settings, problem)
        run = simulate_all({"policy": policy}, bench, feedback=task.feedback, seeds=seeds, horizon=task.horizon)
        compiling += run.seconds["compile"]
        if not run.traces["policy"].diverged:
            means[trial["number"]] = run.traces["policy"].mean()
    alone = time.perf_counter() - began
    print(
        json.dumps(
            {
                "trials": options.trials,
                "combinations": together["combinations"],
                "tuning_seconds": together["seconds"],
                "tuning_compile_seconds": together["compile_seconds"],
                "one_by_one_seconds": round(alone, 1),
                "one_by_one_compile_seconds": round(compiling, 1),
                "ratio": round(together["seconds"] / alone, 2),
                "same_best": min(means, key=lambda number: means[number]) == together["best"]["number"],
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()

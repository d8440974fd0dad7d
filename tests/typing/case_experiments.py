"""Types of experiments and their results."""

import regretless as rg

experiment = rg.Experiment(
    rg.benchmarks.TopK(items=10, k=2),
    [rg.policies.Adaptive(), "greedy"],
    seeds=4,
    horizon=200,
)
results: rg.Results = rg.run(experiment)
label: list[str] = list(results)
result: rg.Result = results["greedy"]
mean: float = result.mean()
one: rg.Result = rg.simulate(rg.policies.Greedy(), rg.benchmarks.TopK(), seeds=2)
several: rg.Results = rg.simulate({"a": rg.policies.Greedy()}, rg.benchmarks.TopK(), seeds=2)
rg.Experiment(rg.benchmarks.TopK(), ["greedy"], seed=4)  # error: call-arg

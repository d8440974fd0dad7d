"""How the paper tunes its methods: protocol and search spaces (Appendix L.1), for ``regretless tune``.

The paper names its protocol and the selected values, not the ranges: the ranges here contain every selected value, and
the pairs of ``alpha.max`` and ``alpha.min`` are those that it selected.
"""

from typing import Any

from regretless import models, policies
from regretless.experiments import TuningProtocol

TUNED = ("dfhpg", "dfhpg_0", "dfhpg_1")
PAIR = "alpha.max+alpha.min"
ALPHA_PAIRS = ("0.1/0.05", "0.2/0.01", "0.3/0.02", "0.5/0.05")
GENERATIVE_ALPHA_PAIRS = ("0.2/0.01", "0.5/0.02", "0.1/0", "0/0")
ENERGY_ALPHA_PAIRS = ("0.1/0", "0.8/0.2", "0.8/0.05", "0/0")
SURROGATES = (
    *("spo_plus", "mse_spo_plus", "dbb", "imle", "aimle", "nid", "pfyl", "dpo", "pg", "nce", "nce_c"),
    *("contrastive_map", "map_c", "pointwise_ltr", "pairwise_diff", "pairwise_ltr", "listwise_ltr", "spo_caching"),
)
GENERATIVE_FINALISTS = 10


def tuning(benchmark: str, policy: str, model: str) -> TuningProtocol:
    """Return the paper's protocol: 10 seeds of 2,000 rounds (generative models: 5,000), 5 of 394 days on energy.

    The paper tunes generative models by "a two-stage generative screen" and says no more. Here the stages differ in
    the number of seeds alone, so that finalists are ranked by what the paper ranks by.

    Parameters
    ----------
    benchmark, policy, model : str
        Names as on the command line.

    Returns
    -------
    TuningProtocol
        For other benchmarks and policies with what applies to them.

    Examples
    --------
    >>> protocol = tuning("topk", "dfhpg", "gaussian_linear")
    >>> protocol.horizon, protocol.seeds, protocol.fixed
    (2000, 10, {'alpha.gate': 'warmup'})
    """
    generative = models.is_generative(model)
    fixed = _fixed(benchmark, policy, model)
    space = _space(benchmark, policy, generative) if policy in TUNED else None
    finalists = GENERATIVE_FINALISTS if generative else 0
    if benchmark == "energy":
        return TuningProtocol(394, 5, {"benchmark.split": "validation"}, fixed, space, finalists)
    if benchmark in ("topk", "shortest_path", "pricing"):
        return TuningProtocol(5000 if generative else 2000, 10, {}, fixed, space, finalists)
    return TuningProtocol(fixed=fixed, space=space, finalists=finalists)


def _space(benchmark: str, policy: str, generative: bool) -> dict[str, Any]:
    energy = benchmark == "energy"
    pairs = ENERGY_ALPHA_PAIRS if energy else GENERATIVE_ALPHA_PAIRS if generative else ALPHA_PAIRS
    space: dict[str, Any] = {
        "policy_lr": ("log", 1e-3, 0.05 if generative else 0.2),
        "nuisance.lr": ("log", 5e-4, 0.1),
        "surrogate": ("choice", *SURROGATES),
        PAIR: ("choice", *pairs),
        "baseline": ("choice", "moving_average", "nuisance_induced"),
    }
    if generative:
        space["generative.scenarios"] = ("choice", 32, 64, 100, 128, 200)
        space["generative.kappa_dfl"] = ("choice", 1.0, 3.0, 10.0)
        space["generative.lambda_reg"] = ("choice", 0.03, 0.1, 0.3, 1.0)
    else:
        space["exploration_scale"] = ("log", 1e-6, 3.0)
        space["normalize_gradients"] = ("choice", True, False)
    if energy:
        space["alpha.time_scale"] = ("choice", 100.0, 500.0)
    fields = policies.REGISTRY[policy].model_fields
    return {name: values for name, values in space.items() if name.partition(".")[0] in fields}


def _fixed(benchmark: str, policy: str, model: str) -> dict[str, Any]:
    fixed: dict[str, Any] = {}
    if policy == "dfhpg":
        fixed["alpha.gate"] = "exponential" if benchmark == "energy" else "warmup"
    if model == "diffusion" and benchmark == "energy":
        fixed |= {"model.train_steps": 20, "model.sample_steps": 8, "model.weights": "elbo"}
    return fixed

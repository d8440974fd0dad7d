"""Tests the tests: breaks one line of the code at a time and demands that a test fails.

Run with ``make mutants``, or ``python tools/mutants.py NAME…`` for some of them. Works on a copy, never on the tree itself.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = "tests/policies/test_golden.py"
SURROGATES = "tests/surrogates/test_contract.py::test_agrees_with_the_recorded_gradients"


class Mutant(NamedTuple):
    """A line to break, and the tests that must notice."""

    file: str
    old: str
    new: str
    tests: str


DFHPG = "src/regretless/policies/dfhpg.py"
GRADIENTS = "src/regretless/gradients.py"
DIRECT = "src/regretless/surrogates/direct.py"
RANKING = "src/regretless/surrogates/ranking.py"
CONTRASTIVE = "src/regretless/surrogates/contrastive.py"
PERTURBATION = "src/regretless/surrogates/perturbation.py"
GENERATIVE_FILE = "src/regretless/policies/generative.py"
ROUND = "tests/policies/test_generative.py::test_the_step_is_adam_on_the_mixed_gradient"

POLICY = {
    "score_sign": Mutant(DFHPG, "decision, y - b, age == 0)", "decision, b - y, age == 0)", GOLDEN),
    "surrogate_sign": Mutant(DFHPG, "theta, decision, slope)", "theta, decision, -slope)", GOLDEN),
    "step_sign": Mutant("src/regretless/nets.py", "p - step * g, params, grads", "p + step * g, params, grads", GOLDEN),
    "target_with_old_phi": Mutant(DFHPG, "feedback.overwrite(after)", "feedback.overwrite(before)", GOLDEN),
    "residual_with_new_phi": Mutant(
        DFHPG, "        age = state.version", "        residual = y - after @ w\n        age = state.version", GOLDEN
    ),
    "baseline_with_new_phi": Mutant(
        DFHPG,
        "        age = state.version",
        '        if self.baseline == "nuisance_induced":\n'
        "            b = control_variates.nuisance_induced(self.oracle, after, decision.instance)\n"
        "        age = state.version",
        GOLDEN,
    ),
    "no_baseline": Mutant(DFHPG, "decision, y - b, age == 0)", "decision, y, age == 0)", GOLDEN),
    "new_moving_average": Mutant(DFHPG, "b = state.average", "b = 0.95 * state.average + 0.05 * y", GOLDEN),
    "no_normalisation": Mutant(GRADIENTS, "    if normalise:", "    if False:", GOLDEN),
    "always_normalised": Mutant(GRADIENTS, "    if normalise:", "    if True:", GOLDEN),
    "alpha_mirrored": Mutant(
        GRADIENTS, "alpha * trust, 1.0 - alpha", "(1.0 - alpha) * trust, alpha", GOLDEN
    ),
    "alpha_of_this_round": Mutant(
        DFHPG,
        "alpha = state.mixing.alpha  #",
        "alpha = self.mixing.update(state.mixing, y, y).alpha  #",
        GOLDEN,
    ),
    "no_clipping": Mutant("src/regretless/nets.py", "return jnp.minimum(1.0, limit", "return jnp.minimum(1e9, limit", GOLDEN),
    "constant_rate": Mutant("src/regretless/schedules.py", "initial * 101.0 /", "initial + 0.0 *", GOLDEN),
    "no_overwriting": Mutant(DFHPG, "feedback.overwrite(after)", "after", GOLDEN),
    "surrogate_at_the_sample": Mutant(DFHPG, 'if self.at == "mean"', 'if self.at != "mean"', GOLDEN),
    "warmup_of_50": Mutant("src/regretless/schedules.py", "default=100)", "default=50)", GOLDEN),
}  # fmt: skip

SIGNS = {
    "mse": Mutant(DIRECT, "return 2.0 * (prediction - target)", "return -2.0 * (prediction - target)", SURROGATES),
    "spo_plus": Mutant(DIRECT, "2.0 * (best - pessimistic)", "2.0 * (pessimistic - best)", SURROGATES),
    "mse_spo_plus": Mutant(DIRECT, "return self.share *", "return -self.share *", SURROGATES),
    "dbb": Mutant(DIRECT, "(perturbed - plain) / (self.strength", "(plain - perturbed) / (self.strength", SURROGATES),
    "nid": Mutant(DIRECT, "return -target", "return target", SURROGATES),
    "pg": Mutant(DIRECT, "return (ahead - behind)", "return (behind - ahead)", SURROGATES),
    "imle": Mutant(PERTURBATION, "jnp.mean(perturbed - plain", "jnp.mean(plain - perturbed", SURROGATES),
    "aimle": Mutant(PERTURBATION, "return memory.scale *", "return -memory.scale *", SURROGATES),
    "pfyl": Mutant(PERTURBATION, "return solutions[0] - jnp", "return -solutions[0] + jnp", SURROGATES),
    "dpo": Mutant(PERTURBATION, "jnp.mean(noise * (", "jnp.mean(-noise * (", SURROGATES),
    "nce": Mutant(CONTRASTIVE, "return best - mean", "return mean - best", SURROGATES),
    "contrastive_map": Mutant(
        CONTRASTIVE, "return best - pool.best(prediction)", "return pool.best(prediction) - best", SURROGATES
    ),
    "map_c": Mutant(
        CONTRASTIVE, "return best - pool.best(prediction - target)", "return pool.best(prediction - target) - best", SURROGATES
    ),
    "spo_caching": Mutant(
        CONTRASTIVE,
        "return best - pool.best(2.0 * prediction - target)",
        "return pool.best(2.0 * prediction - target) - best",
        SURROGATES,
    ),
    "pointwise_ltr": Mutant(RANKING, "return 2.0 / jnp.maximum(pool.count", "return -2.0 / jnp.maximum(pool.count", SURROGATES),
    "pairwise_diff": Mutant(RANKING, "return 2.0 / jnp.maximum(jnp.sum", "return -2.0 / jnp.maximum(jnp.sum", SURROGATES),
    "pairwise_ltr": Mutant(RANKING, "return (jnp.sum(wrong) * w_b -", "return -(jnp.sum(wrong) * w_b -", SURROGATES),
    "listwise_ltr": Mutant(RANKING, "return (wanted - given)", "return (given - wanted)", SURROGATES),
}  # fmt: skip

POSTERIOR = "src/regretless/posterior.py"
THOMPSON = "src/regretless/policies/linear_thompson.py"
PENDING = "src/regretless/live/pending.py"
KERNEL = "src/regretless/live/kernel.py"
INTERLEAVINGS = "tests/live/test_interleavings.py"
LEARNER = "tests/test_learner.py::"

LIVE = {
    "posterior_factor": Mutant(POSTERIOR, "(size + jnp.sqrt(size))", "(size + 1.0)", "tests/test_posterior.py"),
    "posterior_residual": Mutant(POSTERIOR, "values - rows @ mean", "values + rows @ mean", "tests/test_posterior.py"),
    "ridge_stands_still": Mutant(
        THOMPSON,
        "jnp.maximum(wanted - ridge[:, places], 0.0)",
        "0.0 * jnp.maximum(wanted - ridge[:, places], 0.0)",
        "tests/policies/test_linear_thompson.py::"
        "test_ridge_is_the_mean_squared_row_norm_over_the_coefficients_and_follows_it_upwards",
    ),
    "learnt_decision_waits_on": Mutant(PENDING, "        del self.waiting[id]\n", "", INTERLEAVINGS),
    "one_more_waits": Mutant(PENDING, "(self.waiting) > self.limit or", "(self.waiting) > self.limit + 1 or", INTERLEAVINGS),
    "contradiction_passes": Mutant(PENDING, "rtol=1e-9", "rtol=9.0", INTERLEAVINGS),
    "greedy_decision_is_scored": Mutant(
        KERNEL, '"version": jnp.int32(NOT_SAMPLED)', '"version": form.version',
        LEARNER + "test_greedy_decision_solves_the_mean_and_has_no_score_term",
    ),
    "key_of_another_purpose": Mutant(
        KERNEL, "rounds.DECIDE, id", "rounds.LEARN, id", LEARNER + "test_makes_the_decisions_of_an_unbatched_simulation"
    ),
}  # fmt: skip

CAMPAIGN = "tests/studies/test_campaign.py"
STORE = "tests/studies/test_store.py"
STUDIES = {
    "claims_ignored": Mutant(
        "src/regretless/studies/campaign.py",
        "        if not claim.acquire():",
        "        if claim.acquire() is None:",
        CAMPAIGN,
    ),
    "damage_taken_for_a_result": Mutant(
        "src/regretless/studies/campaign.py", "if not store.sound(item.key)]", "if not store.has(item.key)]", CAMPAIGN
    ),
    "second_range_never_needed": Mutant("src/regretless/studies/verdicts.py", "LIMIT = 3.0", "LIMIT = 30.0", CAMPAIGN),
    "record_not_checked": Mutant("src/regretless/results.py", "if found != expected:", "if found == 0:", STORE),
    "seeds_not_in_the_address": Mutant(
        "src/regretless/studies/cells.py",
        "            **self.model_dump(),",
        '            **self.model_dump(exclude={"seeds"}),',
        STORE,
    ),
    "shared_claims": Mutant(
        "src/regretless/studies/store.py", "fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_SH | fcntl.LOCK_NB", STORE
    ),
}

GENERATIVE = {
    "generative_score_sign": Mutant(GENERATIVE_FILE, "-weight.astype(g.dtype) * g", "weight.astype(g.dtype) * g", ROUND),
    "regulariser_sign": Mutant(GENERATIVE_FILE, "s + weight * r", "s - weight * r", ROUND),
    "no_kappa": Mutant(GENERATIVE_FILE, "pullback(kappa * slopes)", "pullback(slopes)", ROUND),
    "regulariser_at_the_sample": Mutant(
        GENERATIVE_FILE, 'if self.regulariser_at == "sample"', 'if self.regulariser_at != "sample"', ROUND
    ),
    "sum_of_scenarios": Mutant("src/regretless/scenarios.py", "(scenarios.dtype) / count", "(scenarios.dtype)", ROUND),
    "sgd_for_adam": Mutant(
        "src/regretless/nets.py", "    if moments is None:\n        return sgd_step(params, grads, rate, clip), None",
        "    if True:\n        return sgd_step(params, grads, rate, clip), moments", ROUND,
    ),
    "orientation_ignored": Mutant(
        "src/regretless/scenarios.py", 'sign = 1.0 if orientation == "minimise" else -1.0', "sign = 1.0",
        "tests/test_scenarios.py",
    ),
    "pool_before_the_gradients": Mutant(
        "src/regretless/surrogates/pooled.py", "return pools.add(memory, solutions[0, 0])",
        "return pools.add_many(memory, solutions.reshape(-1, solutions.shape[-1]))", "tests/test_scenarios.py",
    ),
    "flow_volume_sign": Mutant(
        "src/regretless/models/flow.py", "math.log(2.0 * math.pi) - log_volume", "math.log(2.0 * math.pi) + log_volume",
        "tests/models/test_flow.py",
    ),
    "layers_swapped": Mutant(
        "src/regretless/models/flow.py", "even, odd = z[..., 0::2], z[..., 1::2]", "odd, even = z[..., 0::2], z[..., 1::2]",
        "tests/models/test_flow.py",
    ),
    "silu_slope": Mutant(
        "src/regretless/models/diffusion.py", "(1.0 + before * (1.0 - gate))", "(1.0 + before * gate)",
        "tests/models/test_generative.py",
    ),
    "time_zero_is_drawn": Mutant(
        "src/regretless/models/diffusion.py", 'first = 0 if self.weights == "root" else 1', "first = 0",
        "tests/models/test_diffusion.py",
    ),
}  # fmt: skip

SIGN_MUTANTS = {f"sign_of_{name}": mutant for name, mutant in SIGNS.items()}
MUTANTS = {**POLICY, **LIVE, **GENERATIVE, **SIGN_MUTANTS, **STUDIES}


def survives(name: str, mutant: Mutant) -> bool:
    """Whether the tests pass although the line is broken; raises if the line is not there."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(
            ROOT, copy, ignore=shutil.ignore_patterns(".venv", ".git", ".device", "demo", "site", "__pycache__")
        )
        path = copy / mutant.file
        text = path.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            raise SystemExit(
                f"{name}: expected the line to break once in {mutant.file}, found it {text.count(mutant.old)} times"
            )
        path.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
        words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", mutant.tests]
        if name.startswith("sign_of_"):
            words += ["-k", name.removeprefix("sign_of_")]
        result = subprocess.run(words, cwd=copy, env=environment(copy), capture_output=True, text=True, check=False)
        if result.returncode not in (0, 1):
            raise SystemExit(f"{name}: the tests could not run\n{result.stdout}{result.stderr}")
        return result.returncode == 0


def environment(copy: Path) -> dict[str, str]:
    """The copy's sources come first."""
    return {**os.environ, "PYTHONPATH": str(copy / "src"), "XLA_FLAGS": "--xla_backend_optimization_level=0"}


def main() -> None:
    """Breaks every line in turn; exit code 1 if one goes unnoticed."""
    chosen = sys.argv[1:] or list(MUTANTS)
    unnoticed = []
    for tests in {MUTANTS[name].tests for name in chosen}:
        if not survives("control", Mutant(DFHPG, "y - b, age", "y - b, age", tests)):
            raise SystemExit(f"{tests} fails although nothing is broken")
    for name in chosen:
        survived = survives(name, MUTANTS[name])
        print(f"{'SURVIVED' if survived else 'noticed '}  {name}", flush=True)
        if survived:
            unnoticed.append(name)
    print(f"{len(chosen) - len(unnoticed)} of {len(chosen)} noticed")
    sys.exit(bool(unnoticed))


if __name__ == "__main__":
    main()

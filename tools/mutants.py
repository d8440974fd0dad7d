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

from live_mutants import LIVE
from reliability_mutants import RELIABILITY

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = "tests/policies/dfhpg/test_golden.py"
SURROGATES = "tests/surrogates/test_golden.py::test_agrees_with_the_recorded_gradients"


class Mutant(NamedTuple):
    """A line to break, and the tests that must notice."""

    file: str
    old: str
    new: str
    tests: str


DFHPG = "src/regretless/policies/dfhpg/algorithm.py"
POINT = "src/regretless/policies/dfhpg/point.py"
GRADIENTS = "src/regretless/policies/dfhpg/gradients.py"
SCENARIOS = "src/regretless/policies/dfhpg/scenarios.py"
DIRECT = "src/regretless/surrogates/direct.py"
RANKING = "src/regretless/surrogates/ranking.py"
CONTRASTIVE = "src/regretless/surrogates/contrastive.py"
PERTURBATION = "src/regretless/surrogates/perturbation.py"
GENERATIVE_FILE = "src/regretless/policies/dfhpg/generative.py"
SCENARIO_TESTS = "tests/policies/dfhpg/test_scenarios.py"
ROUND = "tests/policies/dfhpg/test_generative.py::test_the_step_is_adam_on_the_mixed_gradient"

POLICY = {
    "score_sign": Mutant(DFHPG, "decision, y - b, age == 0)", "decision, b - y, age == 0)", GOLDEN),
    "surrogate_sign": Mutant(POINT, "theta, decision, slope)", "theta, decision, -slope)", GOLDEN),
    "step_sign": Mutant("src/regretless/nets.py", "p - step * g, params, grads", "p + step * g, params, grads", GOLDEN),
    "target_with_old_phi": Mutant(DFHPG, "feedback.overwrite(after)", "feedback.overwrite(before)", GOLDEN),
    "residual_with_new_phi": Mutant(
        DFHPG, "residual = y - half.before @ w", "residual = y - half.after @ w", GOLDEN
    ),
    "baseline_with_new_phi": Mutant(
        DFHPG, "costs = jnp.concatenate([before[None], costs", "costs = jnp.concatenate([after[None], costs", GOLDEN
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
    "no_clipping": Mutant("src/regretless/nets.py", "return jnp.minimum(1.0, jnp", "return jnp.minimum(1e9, jnp", GOLDEN),
    "constant_rate": Mutant("src/regretless/schedules.py", "initial * (start + offset) /", "initial + 0.0 *", GOLDEN),
    "no_overwriting": Mutant(DFHPG, "feedback.overwrite(after)", "after", GOLDEN),
    "surrogate_at_the_sample": Mutant(POINT, 'if self.at == "sample"', 'if self.at != "sample"', GOLDEN),
    "warmup_of_50": Mutant("src/regretless/schedules.py", "warmup: int = Field(100", "warmup: int = Field(50", GOLDEN),
}  # fmt: skip

SIGNS = {
    "mse": Mutant(DIRECT, "return 2.0 * (prediction - target)", "return -2.0 * (prediction - target)", SURROGATES),
    "spo_plus": Mutant(DIRECT, "return 2.0 * (best - pess", "return -2.0 * (best - pess", SURROGATES),
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
    "pairwise_ltr": Mutant(RANKING, "pairs = jnp.sum(wrong) * w_b -", "pairs = -jnp.sum(wrong) * w_b +", SURROGATES),
    "listwise_ltr": Mutant(RANKING, "return (wanted - given)", "return (given - wanted)", SURROGATES),
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
    "record_not_checked": Mutant("src/regretless/results.py", "    if found != expected:", "    if found == 0:", STORE),
    "seeds_not_in_the_address": Mutant(
        "src/regretless/studies/cells.py",
        '        "seeds": list(experiment.seeds),',
        '        "seeds": [],',
        "tests/studies/test_cells.py",
    ),
    "shared_claims": Mutant(
        "src/regretless/studies/store.py", "fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_SH | fcntl.LOCK_NB", STORE
    ),
}

GENERATIVE = {
    "generative_score_sign": Mutant(GENERATIVE_FILE, "-weight.astype(g.dtype) * g", "weight.astype(g.dtype) * g", ROUND),
    "regulariser_sign": Mutant(GENERATIVE_FILE, "s + weight * r", "s - weight * r", ROUND),
    "no_kappa": Mutant(GENERATIVE_FILE, "branch.pullback(kappa * slopes)", "branch.pullback(slopes)", ROUND),
    "regulariser_at_the_sample": Mutant(
        GENERATIVE_FILE, 'if self.regulariser_at == "sample"', 'if self.regulariser_at != "sample"', ROUND
    ),
    "sum_of_scenarios": Mutant(SCENARIOS, "each.astype(dtype) / count", "each.astype(dtype)", SCENARIO_TESTS),
    "sgd_for_adam": Mutant(
        "src/regretless/nets.py", "    if moments is None:\n        return sgd_step(params, grads, rate, clip), None",
        "    if True:\n        return sgd_step(params, grads, rate, clip), moments", ROUND,
    ),
    "orientation_ignored": Mutant(
        SCENARIOS, "scenarios, target = sign * scenarios, sign * target", "scenarios, target = scenarios, target",
        SCENARIO_TESTS,
    ),
    "pool_before_the_gradients": Mutant(
        "src/regretless/surrogates/pooled.py", "return pools.add(memory, solutions[0, 0])",
        "return pools.add_many(memory, solutions.reshape(-1, solutions.shape[-1]))", SCENARIO_TESTS,
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
        "tests/models/test_contract.py",
    ),
    "time_zero_is_drawn": Mutant(
        "src/regretless/models/diffusion.py", 'self._drawn(key, 0 if self.weights == "root" else 1)', "self._drawn(key, 0)",
        "tests/models/test_diffusion.py",
    ),
}  # fmt: skip

SCALING = "src/regretless/policies/scaling.py"
SCALED, HOSTED = "tests/policies/test_scaling.py", "tests/simulate/test_hosted.py"
PROBLEM = "src/regretless/problem.py"

CONTRACT = {
    "absurd_costs_believed": Mutant(SCALING, "jnp.abs(feedback.values) > ABSURD * one", "jnp.abs(feedback.values) < 0", SCALED),
    "absurd_contexts_believed": Mutant(SCALING, "| (jnp.abs(z) > ABSURD)", "", SCALED),
    "scale_follows_the_mean": Mutant(SCALING, "0.5 * low + 0.5 * high", "jnp.mean(seen, axis=0)", SCALED),
    "none_left_out_of_the_spread": Mutant(SCALING, "jnp.where(count < FEW, count, most)", "count", SCALED),
    "offset_in_the_sample": Mutant(
        "src/regretless/policies/offset.py", "decision.cost_sample - self.known", "decision.cost_sample",
        "tests/policies/test_offset.py",
    ),
    "offset_in_the_questions": Mutant(
        "src/regretless/policies/offset.py", "Question(question.costs + self.known,", "Question(question.costs,",
        "tests/policies/test_offset.py",
    ),
    "other_feedback_passes": Mutant(
        PROBLEM, "if self.feedback is not other.feedback and", "if False and", "tests/test_problem.py"
    ),
    "record_keeps_the_solvers_types": Mutant(
        PROBLEM, "status=jnp.asarray(solution.status, jnp.int32)", "status=solution.status", "tests/test_problem.py"
    ),
    "settings_of_the_former_part_stay": Mutant(
        "src/regretless/settings.py", "if not name.startswith(tuple(swapped))", "", "tests/test_settings.py"
    ),
    "idle_settings_pass": Mutant(
        "src/regretless/policies/building.py", "        require_effect(name, own, given, problem)", "        pass",
        "tests/test_settings.py",
    ),
    "infeasible_points_taken_for_feasible": Mutant(
        "src/regretless/simulate/hosted.py", "feasible = oracle.contained(", "feasible = ~oracle.contained(", HOSTED
    ),
}  # fmt: skip

ADAPTIVE = "src/regretless/policies/adaptive"
JOINED = "tests/policies/adaptive/test_adaptive.py"

DEFAULT = {
    "share_of_whoever_knows_the_level": Mutant(
        f"{ADAPTIVE}/share.py", "self.wrong_contrast - self.wrong_level * self.both / levels", "self.wrong_contrast",
        "tests/policies/adaptive/test_share.py",
    ),
    "doubted_without_a_limit": Mutant(
        f"{ADAPTIVE}/policy.py", "jnp.minimum(weights, self._limits(state))", "weights", JOINED
    ),
    "doubted_drive_others_out": Mutant(
        f"{ADAPTIVE}/policy.py", "jnp.max(jnp.where(self.doubted, -jnp.inf, scores)))", "jnp.max(scores))", JOINED
    ),
    "no_one_starts_anew": Mutant(f"{ADAPTIVE}/policy.py", "(recent > CHANGED * (usual + TINY))", "(recent > jnp.inf)", JOINED),
}  # fmt: skip

SIGN_MUTANTS = {f"sign_of_{name}": mutant for name, mutant in SIGNS.items()}
MORE = {name: Mutant(*parts) for name, parts in {**LIVE, **RELIABILITY}.items()}
MUTANTS = {**POLICY, **CONTRACT, **DEFAULT, **GENERATIVE, **SIGN_MUTANTS, **STUDIES, **MORE}


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
    if unknown := [name for name in chosen if name not in MUTANTS]:
        raise SystemExit(f"no mutant is called {', '.join(unknown)}; there are {', '.join(MUTANTS)}")
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

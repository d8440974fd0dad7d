"""Lines of what runs live, each broken in turn, and the tests that must notice; for ``mutants.py``."""

POSTERIOR, LINEAR = "src/regretless/posterior.py", "src/regretless/policies/linear_thompson.py"
PENDING, PROGRAMS = "src/regretless/live/pending.py", "src/regretless/live/programs.py"
LEDGER, GUARD = "src/regretless/policies/ledger.py", "tests/policies/test_guard.py"
WATCH, DRIFT = "src/regretless/live/health_drift.py", "tests/live/test_health_drift.py"
INTERLEAVINGS = "tests/live/test_interleavings.py"
LEARNER = "tests/live/test_learner.py::"

LIVE = {
    "posterior_factor": (POSTERIOR, "(size + jnp.sqrt(size))", "(size + 1.0)", "tests/test_posterior.py"),
    "posterior_residual": (POSTERIOR, "values - rows @ mean", "values + rows @ mean", "tests/test_posterior.py"),
    "ridge_stands_still": (
        LINEAR, "missing = jnp.maximum(wanted[places] - ridge[:, places], 0.0)", "missing = jnp.zeros_like(ridge[:, places])",
        "tests/policies/test_linear_thompson.py::"
        "test_ridge_is_the_mean_squared_row_norm_over_the_coefficients_and_follows_it_upwards",
    ),
    "learnt_decision_waits_on": (PENDING, "        del self.waiting[id]\n", "", INTERLEAVINGS),
    "one_more_waits": (PENDING, "len(left) - self.limit", "len(left) - self.limit - 1", INTERLEAVINGS),
    "changed_bits_pass": (
        "src/regretless/live/framing.py", "return zlib.crc32(payload, head.before) == head.checksum", "return True",
        "tests/live/test_framing.py",
    ),
    "interrupted_record_stays": (
        "src/regretless/live/core.py", "        self.log.require_at(self.books.position)\n", "",
        "tests/live/test_replaying.py::test_a_call_interrupted_after_its_record_is_taken_back",
    ),
    "pieces_are_not_kept": (
        "src/regretless/live/books.py", "self.pending.pieces[id] = values", "pass", "tests/live/test_learning.py"
    ),
    "contradiction_passes": (PENDING, "rtol=1e-9", "rtol=9.0", INTERLEAVINGS),
    "greedy_decision_is_scored": (
        PROGRAMS, "policy.mean(state, context), jnp.int32(NOT_SAMPLED))", "policy.mean(state, context), state.version)",
        LEARNER + "test_greedy_decision_solves_the_mean_and_has_no_score_term",
    ),
    "key_of_another_purpose": (
        PROGRAMS, "policy.sample(purpose_key(seed, DECIDE, id)", "policy.sample(purpose_key(seed, LEARN, id)",
        LEARNER + "test_makes_the_decisions_of_an_unbatched_simulation",
    ),
    "guard_spends_without_end": (
        LEDGER, "odds = jnp.minimum(rounds, MOST_ODDS * self.left(budget, confidence))", "odds = MOST_ODDS + 0.0 * rounds",
        GUARD,
    ),
    "guard_forgets_losses": (LEDGER, "self.excess + more, variance", "self.excess, variance", GUARD),
    "guard_explores_at_once": (LEDGER, "self.left(budget, confidence) / PATIENCE, 1.0", "1.0, 1.0", GUARD),
    "one_outlier_is_drift": (WATCH, "min(max(log - usual, -CUT), CUT)", "10 * (log - usual)", DRIFT),
    "drift_is_never_told": (WATCH, "if self.sums[kind] > LIMIT:", "if False:", DRIFT),
}  # fmt: skip
"""Name, then file, line, what it becomes, tests."""

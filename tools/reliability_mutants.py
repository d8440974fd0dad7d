"""The mends of defects that users met, each taken back in one line, and the tests that must notice; for ``mutants.py``."""

HERE = "tests/test_reliability.py::"
FILES, INPUTS = "src/regretless/files.py", "src/regretless/oracles/inputs.py"
STORE, STARTUP = "src/regretless/studies/store.py", "src/regretless/startup.py"
CONSOLE, CAMPAIGN = "src/regretless/cli/console.py", "src/regretless/studies/campaign.py"
NUMBERS = "tests/live/test_parser.py::test_refuses_what_is_no_number"
FULL_DISK = "tests/cli/test_full_disk.py::"

RELIABILITY = {
    "S1_host_solver_in_a_program": (
        "src/regretless/oracles/base.py", "    if traced(*trees):\n", "    if False:\n",
        "tests/oracles/test_contract.py::test_jit_and_vmap_change_nothing_or_are_refused",
    ),
    "S2_any_horizon": (
        "src/regretless/simulate/simulation.py", "1 <= horizon <= MOST_ROUNDS", "1 <= horizon", HERE + "test_sizes_beyond_"
        "the_memory_are_refused_with_the_memory_they_need",
    ),
    "D1_integer_masks": (
        "src/regretless/oracles/dag.py", "else jnp.asarray(instance, bool)", "else instance", "tests/oracles/test_dag.py"
    ),
    "D1_any_number_is_a_mask": (INPUTS, "    if other.size:", "    if False:", "tests/oracles/test_topk.py"),
    "D3_absurd_costs_believed": (
        "src/regretless/policies/scaling.py", "jnp.abs(feedback.values) > ABSURD * one", "jnp.abs(feedback.values) < 0",
        "tests/live/test_learner.py::test_one_absurd_number_ruins_nothing",
    ),
    "D4_any_key": ("src/regretless/results.py", 'if key is not None and record.get("key") != key:', "if False:",
                   "tests/studies/test_store.py"),
    "D5_failures_stay": (CAMPAIGN, "failure is not None and failure != earlier", "failure is not None",
                         "tests/studies/test_campaign.py"),
    "D6_parts_stay": (CONSOLE, "    files.remove_unfinished()\n", "",
                      HERE + "test_ctrl_c_while_writing_leaves_nothing_and_says_nothing_untrue"),
    "D6_written_in_place": (FILES, "with part.open(mode, **text) as file:", "with Path(path).open(mode, **text) as file:",
                            "tests/test_files.py"),
    "D6_full_disk_fails_every_cell": (
        CAMPAIGN, "        except WriteError:  # every other cell would fail as well\n            raise\n", "",
        FULL_DISK + "test_reproduce_stops_at_the_first_cell_and_goes_on_later",
    ),
    "D7_paths_are_markup": (CONSOLE, 'out.print(Text.assemble((mark, "red"), words)', "out.print(words",
                            HERE + "test_brackets_in_paths_are_no_markup"),
    "D8_no_such_device": (STARTUP, "except (RuntimeError, AssertionError):", "except ImportError:",
                          HERE + "test_a_device_that_is_not_there_is_one_line"),
    "D9_unreadable_is_damaged": (STORE, 'f"cannot be read: {error.strerror}")', 'f"cannot be read: {error.strerror}", True)',
                                 "tests/studies/test_store.py"),
    "D10_masked_arrays": (INPUTS, "    if _has_mask(given):", "    if False:", NUMBERS),
    "D10_text_and_dates": (INPUTS, 'not in "biuf"', 'not in "biufcMU"', NUMBERS),
    "D11_preset_seen_too_late": ("src/regretless/cli/tune.py", "        writable_file(preset)\n", "",
                                 HERE + "test_a_preset_that_cannot_be_written_is_refused_before_the_search"),
    "D12_workers_import_from_here": ("src/regretless/cli/reproduce.py", '"-P", ', "",
                                     HERE + "test_workers_do_not_import_from_the_working_directory"),
    "D13_parts_of_the_dead_stay": (FILES, "        _remove_parts(target.parent, _stem(target))\n", "",
                                   "tests/live/test_checkpoint.py"),
    "D14_best_of_its_own_trials": ("src/regretless/studies/tuning/search.py", "left = known.others()", "left = 0",
                                   "tests/studies/tuning/test_tuning.py"),
}  # fmt: skip
"""Name, then file, line, what it becomes, tests."""

"""What once went wrong, and which test notices if it does again.

S1   a host solver hangs a simulation: here, test_a_host_solver_…; oracles/test_contract.py, test_jit_and_vmap_… S2
sizes without bound run on without a word: here, test_sizes_…; simulate/test_simulate.py, test_bad_options_… D1
masks of 0 and 1 open closed edges: oracles/test_dag.py, test_a_closed_edge_…; oracles/test_topk.py,
test_what_is_no_mask_… D2   learners steal each other's failures: live/test_solving.py, test_learners_that_share_… D3
one huge number ruins the scaling: live/test_learner.py, test_one_absurd_number_…; soak D4   a result under another
address is accepted: experiments/test_store.py, test_a_result_under_another_address_… D5   a failure from the future
is never tried again: experiments/test_campaign.py, test_a_task_that_failed_… D6   Ctrl-C, or a full disk, leaves half
a file: here, test_ctrl_c_…; cli/test_full_disk.py; soak D7   brackets in paths are taken for markup: here,
test_brackets_… D8   a device that is not there ends in a traceback: here, test_a_device_… D9   what cannot be read at
the moment is deleted as damaged: experiments/test_store.py, test_what_cannot_be_read_… D10  masked arrays, dates,
complex numbers and text are learned: live/test_parser.py, test_refuses_what_is_no_number;
     live/test_assembly.py, test_contexts_are_numbers
D11  a preset that cannot be written is noticed after the search: here, test_a_preset_… D12  workers import from the
working directory: cli/test_plugins.py, test_workers_… D13  killed saves leave their parts for good:
live/test_checkpoint.py, test_what_killed_writers_… D14  the first of two tunings names the best of its own trials:
experiments/test_tuning.py, test_the_best_of_all_trials_…
"""

import os
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from regretless.cli.main import app
from regretless.errors import SettingsError
from regretless.simulation.simulator import simulate
from toys import Toy, make

runner = CliRunner()

HOSTED = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from concurrent.futures import ThreadPoolExecutor
import jax
jax.config.update("jax_num_cpu_devices", int(sys.argv[1]))
import jax.numpy as jnp
import numpy as np
import regretless as rg

pool = ThreadPoolExecutor(3)
ranked = jax.jit(lambda cost: jnp.argsort(jnp.sin(jnp.outer(cost, cost)).sum(0) * 0 + cost))

def cheapest(cost):  # in threads of its own, which use JAX while they are at it
    order = pool.submit(lambda: np.asarray(ranked(cost))).result()
    return np.eye(len(cost))[order[0]]

rng = np.random.default_rng(0)
x, costs = rng.normal(size=(20, 3)), rng.normal(size=(20, 64))
world = rg.benchmarks.from_arrays(x, costs, rg.oracles.external(cheapest, 64))
problem = world.problem("bandit")
everyone = {name: rg.policies.parse(name).build(problem) for name in ("greedy", "dfhpg")}
for name, policy in everyone.items():
    trace = rg.simulate(policy, world, seeds=4, horizon=12)
    assert trace.regret.shape == (4, 12)
print("done")
"""


@pytest.mark.parametrize("devices", [1, 3])
def test_a_host_solver_never_runs_inside_a_program_on_one_core(devices, tmp_path):
    """On one core, with one device or several, and a solver that needs threads and JAX itself."""
    environment = {**os.environ, "JAX_DUMP_IR_TO": str(tmp_path), "JAX_PLATFORMS": "cpu"}
    result = subprocess.run(
        [sys.executable, "-c", HOSTED, str(devices)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert result.stdout == "done\n", result.stderr
    programs = list(tmp_path.glob("*.mlir"))
    assert len(programs) > 5
    assert not [path.name for path in programs if "callback" in path.read_text()]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delay": 10**9}, r"the states of 2 replications \(delay, .*\) would need about .* GiB of memory"),
        ({"horizon": 10**8, "seeds": 10**6}, "1,000,000 replications of 100,000,000 rounds .* would need about .* GiB"),
        ({"horizon": 10**13}, "at most 100,000,000, got 10,000,000,000,000"),
    ],
)
def test_sizes_beyond_the_memory_are_refused_with_the_memory_they_need(options, message):
    toy = Toy()
    with pytest.raises(SettingsError, match=message):
        simulate(make("greedy", toy), toy, **{"seeds": 2, **options})


WRITING = """
import sys, time
from regretless import files
from regretless.cli.console import clear_errors, say
with clear_errors(), files.atomic(sys.argv[1]) as file:
    file.write(b"half of it")
    file.flush()
    say("writing")
    time.sleep(60)
"""


def test_ctrl_c_while_writing_leaves_nothing_and_says_nothing_untrue(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("old")
    with subprocess.Popen(
        [sys.executable, "-c", WRITING, path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "writing\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode == 130
    assert said == "\nstopped: every file that was written is complete\n"
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]
    assert path.read_text() == "old"


FINISHED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests themselves run in the background
if sys.argv[1] == "program":
    signal.signal(signal.SIGINT, lambda *unused: os._exit(99))  # as the command does while it loads
from regretless.cli.console import clear_errors
with clear_errors():
    pass
os.kill(os.getpid(), signal.SIGINT)
print("finished")
"""


def test_a_command_that_has_finished_is_not_stopped_any_more():
    """A program that runs other code afterwards, such as a test, is stopped as before."""
    run = lambda who: subprocess.run([sys.executable, "-c", FINISHED, who], capture_output=True, text=True, check=False)  # noqa: E731
    program, other = run("program"), run("other")
    assert (program.returncode, program.stdout, program.stderr) == (0, "finished\n", "")
    assert other.returncode != 0
    assert "KeyboardInterrupt" in other.stderr


def test_brackets_in_paths_are_no_markup(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))
    small = ["--policy", "greedy", "--seeds", "1", "--horizon", "5"]
    result = runner.invoke(app, ["run", "topk", *small, "--out", "o[/b]x"])
    assert result.exit_code == 0, result.output
    assert "written to o[/b]x: result.json" in result.output
    result = runner.invoke(app, ["report", "--store", "o[/b]x", "--out", "p[red]x"])
    assert result.exit_code == 0, result.output
    assert "open p[red]x/report.html" in result.output
    result = runner.invoke(app, ["report", "--store", "q[/b]"])
    assert (result.exit_code, "q[/b]" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["run", "topk"], 2, "error: --device gpu: JAX finds no such device here"),
        (["doctor"], 1, "a GPU was asked for"),
    ],
)
def test_a_device_that_is_not_there_is_one_line(words, code, message):
    command = [sys.executable, "-m", "regretless", *words, "--device", "gpu"]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "JAX_PLATFORMS": ""}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    output = " ".join((result.stdout + result.stderr).split())
    assert (result.returncode, "Traceback" in output, message in output) == (code, False, True), output


def test_a_preset_that_cannot_be_written_is_refused_before_the_search(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "folder").mkdir()
    small = [
        "--policy",
        "greedy",
        "--trials",
        "1",
        "--seeds",
        "1",
        "--horizon",
        "5",
        "--store",
        str(tmp_path / "store"),
    ]
    for path in ("/proc/nothing/best.json", str(tmp_path / "folder"), "/dev/null"):
        result = runner.invoke(app, ["tune", "topk", *small, "--out", path])
        assert result.exit_code == 2, result.output
        assert "cannot write " in result.output
    assert not (tmp_path / "store").exists()
    (tmp_path / "trials.db").symlink_to("/dev/zero")
    result = runner.invoke(app, ["tune", "topk", *small, "--storage", str(tmp_path / "trials.db")])
    assert (result.exit_code, "it is a device, expected a file" in " ".join(result.output.split())) == (2, True)
    assert not list(tmp_path.rglob("*.part"))

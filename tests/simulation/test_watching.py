"""Runs that are watched, stopped, killed and continued; diagnostics at a chosen interval; sweeps."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import regretless as rg
from regretless import oracles
from regretless.errors import CheckpointError, SettingsError
from regretless.simulation import run as runs
from regretless.simulation.simulator import Execution, Monitor, Recording, segment_lengths
from toys import DIM, Toy, cheapest_two, make

TOY = Toy()
POLICIES = {name: make(name, TOY) for name in ("greedy", "thompson", "linear_thompson")}
OPTIONS = {"seeds": 3, "horizon": 30, "recording": Recording(4, decisions=True)}


def watch(policies, toy, callback, *, save=None, every=10, chunk=2, **options):
    monitor, execution = Monitor(callback, every), Execution(chunk=chunk, save=save)
    return rg.simulate(policies, toy, monitor=monitor, execution=execution, **options)


class KilledError(Exception):
    pass


def same(one, other):
    for name, trace in one.items():
        again = other[name]
        for mine, theirs in (
            (trace.regret, again.regret),
            (trace.decisions, again.decisions),
            (trace.diverged_at, again.diverged_at),
            *((values, again.diagnostics[key]) for key, values in trace.diagnostics.items()),
        ):
            assert np.array_equal(mine, theirs)
            assert mine.dtype == theirs.dtype
    assert one.references == other.references


def test_a_callback_receives_regret_and_diagnostics_so_far():
    received = []
    run = watch(POLICIES, TOY, received.append, **OPTIONS)
    assert [(metrics.round, metrics.seeds) for metrics in received] == [
        (t, s) for s in ((0, 1), (2,)) for t in (10, 20, 30)
    ]
    for name, trace in run.items():
        regret = trace.cumulative()[:2]
        assert received[1].regret[name] == pytest.approx(regret[:, 19].mean())
        assert received[1].standard_error[name] == pytest.approx(regret[:, 19].std(ddof=1) / 2**0.5)
        assert received[1].diagnostics[name]["total"] == pytest.approx(
            trace.diagnostics["total"][:2, 4].mean(), rel=1e-6
        )
        assert trace.diagnostics["total"].shape == (3, 7)
        assert trace.to_frame()["total"].notna().sum() == 3 * 7
    assert received[-1].flat()["greedy/regret"] == received[-1].regret["greedy"]


def test_a_killed_run_continues_bit_for_bit(tmp_path, monkeypatch):
    """In the first chunk, in the second one, and after the end."""
    monkeypatch.setattr(runs, "MIN_INTERVAL_RATIO", 0.0)
    whole = watch(POLICIES, TOY, lambda metrics: None, **OPTIONS)
    path, calls = tmp_path / "run.rgs", []

    def die_at(*moments):
        def callback(metrics):
            calls.append((metrics.round, metrics.seeds))
            if calls[-1] in moments:
                raise KilledError

        return callback

    for moments in (((20, (0, 1)),), ((30, (2,)),)):
        with pytest.raises(KilledError):
            watch(POLICIES, TOY, die_at(*moments), save=path, **OPTIONS)
    calls.clear()
    same(whole, watch(POLICIES, TOY, die_at(), save=path, **OPTIONS))
    assert calls == [(30, (2,))], "nothing that was kept is played again"
    same(whole, watch(POLICIES, TOY, die_at(), save=path, **OPTIONS))
    assert len(calls) == 1, "a finished run is read"
    with pytest.raises(
        SettingsError, match=r"holds another run: seeds.* differ \(seeds: \[0, 1\] now, \[0, 1, 2\] in the file"
    ):
        watch(POLICIES, TOY, die_at(), save=path, **{**OPTIONS, "seeds": 2})
    other = {**POLICIES, "greedy": make("greedy", TOY, policy_lr=0.5)}
    with pytest.raises(SettingsError, match="policies differ"):
        watch(other, TOY, die_at(), save=path, **OPTIONS)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="damaged"):
        watch(POLICIES, TOY, die_at(), save=path, **OPTIONS)


def test_a_run_with_a_solver_on_the_host_continues_too(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "MIN_INTERVAL_RATIO", 0.0)
    toy = Toy(oracles.external(cheapest_two, DIM, batched=True))
    policy, moments = make("greedy", toy), iter((False, True, False, False, False))

    def callback(metrics):
        if next(moments):
            raise KilledError

    options = {"seeds": 2, "horizon": 9, "every": 3, "chunk": None}
    with pytest.raises(KilledError):
        watch(policy, toy, callback, save=tmp_path / "run", **options)
    again = watch(policy, toy, callback, save=tmp_path / "run", **options)
    assert np.array_equal(again.regret, watch(policy, toy, lambda metrics: None, **options).regret)


def test_a_callback_ends_a_run_early(tmp_path):
    """A later chunk that ends earlier shortens what the first one played."""
    stops = {(0, 1): 20, (2,): 10}
    stop = lambda metrics: metrics.round >= stops[metrics.seeds]  # noqa: E731
    whole = watch(POLICIES, TOY, lambda metrics: None, **OPTIONS)
    for _ in range(2):
        ended = watch(POLICIES, TOY, stop, save=tmp_path / "run", **OPTIONS)
        for name, trace in ended.items():
            assert np.array_equal(trace.regret, whole[name].regret[:, :10])
            assert np.array_equal(trace.diagnostics["total"], whole[name].diagnostics["total"][:, :2])
            assert trace.config["stopped_early"] is True
        random = {line.name: line.mean for line in ended.references}["random"]
        assert 0 < random < {line.name: line.mean for line in whole.references}["random"]


def test_segment_lengths_end_where_callbacks_are_called():
    assert segment_lengths(1200, 500) == [250, 250, 250, 250, 200]
    assert segment_lengths(40, 100) == segment_lengths(40)
    with pytest.raises(
        SettingsError, match="expected the callback's interval to be a number of rounds, at least 1, got 0"
    ):
        rg.simulate(POLICIES, TOY, seeds=2, horizon=5, monitor=Monitor(every=0))
    with pytest.raises(SettingsError, match=r"diagnostics_every: expected an integer, got 2\.5"):
        rg.simulate(POLICIES, TOY, seeds=2, horizon=5, recording=Recording(2.5))


def test_a_sweep_is_one_experiment():
    experiment = rg.Experiment(TOY, "greedy", seeds=range(2), horizon=10)
    metrics = []
    results = rg.run(experiment.sweep({"policy_lr": (0.01, 0.1)}), monitor=Monitor(metrics.append, 10))
    assert list(results) == ["greedy, policy_lr 0.01", "greedy, policy_lr 0.1"]
    assert list(metrics[-1].regret) == list(results)
    assert "greedy, policy_lr 0.1" in repr(results)
    with pytest.raises(SettingsError, match="sweep: expected settings with their values"):
        experiment.sweep({"policy_lr": ()})
    with pytest.raises(SettingsError, match="expected policies by name, got the object 'mine'"):
        rg.Experiment(TOY, {"mine": POLICIES["greedy"]}).sweep({"policy_lr": (0.1,)})


class Recorder:
    """Stands for a logger's module and for whatever its functions return; notes what is logged."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        def call(*arguments, **options):
            self.calls.append((name, arguments, options))
            return self

        return call

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


@pytest.mark.parametrize(
    ("module", "logged"), [("torch.utils.tensorboard", "add_scalar"), ("mlflow", "log_metrics"), ("wandb", "log")]
)
def test_recipes_of_loggers_run(module, logged, monkeypatch):
    page = (Path(__file__).parents[2] / "docs" / "notebooks.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    recipe = next(block for block in blocks if re.match(rf"(from|import) {re.escape(module)}\b", block))
    fake = Recorder()
    for name in (".".join(module.split(".")[: i + 1]) for i in range(module.count(".") + 1)):
        monkeypatch.setitem(sys.modules, name, fake)
    exec(recipe, {"rg": rg, "policies": {"greedy": POLICIES["greedy"]}, "bench": TOY})
    received = [call for call in fake.calls if call[0] == logged]
    assert len(received) == (2 if logged != "add_scalar" else 2 * len({call[1][0] for call in received}))
    if logged == "add_scalar":
        assert {call[1][2] for call in received if call[1][0] == "greedy/regret"} == {10, 20}
    else:
        assert all(call[1][0]["greedy/regret"] > 0 for call in received)

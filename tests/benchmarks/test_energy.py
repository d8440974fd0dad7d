"""The energy benchmark: where its data come from, what it plays on, and its reference lines on the real prices."""

import contextlib
import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import benchmarks
from regretless.benchmarks import energy_data
from regretless.errors import SettingsError
from regretless.feedback import check_linkage
from regretless.simulation.simulator import simulate
from toys import make

REAL = os.environ.get("REGRETLESS_DATA")


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A machine without the data."""
    monkeypatch.delenv("REGRETLESS_DATA", raising=False)
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))
    return tmp_path


def real_files() -> Path:
    if not REAL:
        assert not os.environ.get("CI"), "needs REGRETLESS_DATA with the energy files"
        pytest.skip("needs REGRETLESS_DATA with the energy files")
    return energy_data.find_folder(REAL)


@pytest.mark.usefixtures("nowhere")
def test_without_data_everything_is_synthetic_and_says_so():
    for instance, shape in (("load1", (10, 3)), ("load2", (15, 3)), ("load3", (20, 5))):
        benchmark = benchmarks.parse("energy", {"instance": instance}).build()
        assert (len(benchmark.oracle.plant.tasks), len(benchmark.oracle.plant.capacities)) == shape
        assert benchmark.data == "synthetic"
        assert benchmark.describe()["data"] == "synthetic"
        assert benchmark.oracle.always_packs == (instance == "load3")
    assert (benchmark.horizon, benchmark.context_shape, benchmark.oracle.dim) == (395, (48, 8), 48)


def test_data_are_looked_for_in_order(nowhere, monkeypatch):
    assert energy_data.find_folder() is None
    cached = energy_data.cache_folder()
    by_name, inside = nowhere / "named" / "energy", nowhere / "direct"
    for folder in (cached, by_name, inside):
        folder.mkdir(parents=True)
        (folder / energy_data.PRICES).touch()
    assert energy_data.find_folder() == cached
    monkeypatch.setenv("REGRETLESS_DATA", str(nowhere / "named"))
    assert energy_data.find_folder() == by_name
    assert energy_data.find_folder(str(inside)) == inside
    monkeypatch.setenv("REGRETLESS_DATA", str(nowhere / "cache"))
    with pytest.raises(SettingsError, match=r"no energy data in .*cache: .*REGRETLESS_DATA, or download"):
        energy_data.find_folder()


def test_altered_and_truncated_files_are_refused(nowhere):
    copy = nowhere / "energy"
    shutil.copytree(real_files(), copy)
    for path in (copy, *copy.iterdir()):
        path.chmod(0o755)
    prices = copy / energy_data.PRICES
    whole = prices.read_text()
    prices.write_text(whole.replace("54.32", "54.33", 1))
    with pytest.raises(SettingsError, match=r"prices2013\.dat: the file was altered: expected sha256 c8086b6b"):
        benchmarks.parse("energy", {"data_dir": str(nowhere)}).build()
    prices.write_text(whole[: len(whole) // 2])
    with pytest.raises(SettingsError, match=r"prices2013\.dat: the file was altered"):
        benchmarks.parse("energy", {"data_dir": str(nowhere)}).build()
    prices.write_text(whole)
    load = copy / "load3.txt"
    load.write_text(load.read_text().replace("507.56", "507.57"))
    with pytest.raises(SettingsError, match=r"load3\.txt: the file was altered"):
        benchmarks.parse("energy", {"data_dir": str(nowhere)}).build()
    assert benchmarks.parse("energy", {"instance": str(load), "data_dir": str(nowhere)}).build().data == "real"
    load.unlink()
    with pytest.raises(SettingsError, match=r"cannot read .*load3\.txt"):
        benchmarks.parse("energy", {"data_dir": str(nowhere)}).build()


def test_days_run_in_order_of_time_and_the_splits_share_none():
    late, early = (benchmarks.parse("energy", {"split": split}).build() for split in ("experiment", "validation"))
    assert late.horizon == 395
    assert early.horizon in (394, 397)  # 792 days, three of which are incomplete in the real series
    for t in (1, 395):
        played = late.round(jax.random.key(0), None, jnp.int32(t))
        np.testing.assert_allclose(played.cost, late.prices[t - 1], rtol=1e-6)
        np.testing.assert_allclose(late.context(None, played.observation), late.features[t - 1], rtol=1e-6, atol=1e-6)
    assert not np.array_equal(early.prices[-1], late.prices[0])
    both = np.concatenate([early.features, late.features])
    np.testing.assert_allclose(both.reshape(-1, 8).std(axis=0), 1, rtol=1e-9)
    with pytest.raises(ValueError, match="'energy' has 395 rounds, got a horizon of 396"):
        simulate({"greedy": make("greedy", late)}, late, seeds=[0], horizon=396)


def test_semi_bandit_feedback_shows_the_cost_of_each_task():
    benchmark = benchmarks.parse("energy").build()
    rule = benchmark.measurement("semi_bandit")
    solution = benchmark.oracle.solve(jnp.asarray(benchmark.prices[:3]))
    check_linkage(rule, solution)
    operator, linkage = rule.measure(solution.w[1], solution.aux[1])
    plant = benchmark.oracle.plant
    expected = plant.energy * (plant.running(np.asarray(solution.aux[1])) @ benchmark.prices[1])
    np.testing.assert_allclose(operator.matvec(jnp.asarray(benchmark.prices[1])), expected, rtol=1e-5)
    assert linkage.tolist() == [1.0] * 20


def test_reference_lines_on_the_real_prices():
    """Best fixed schedule 2.25e7, market forecast 2.08e7, least squares 1.67e7, random 1.7e8."""
    real_files()
    benchmark = benchmarks.parse("energy").build()
    result = simulate({"greedy": make("greedy", benchmark)}, benchmark, seeds=range(2))
    lines = {line.name: line.mean for line in result.references}
    assert lines.pop("random") == pytest.approx(1.7e8, rel=0.1)
    assert lines == pytest.approx({"best_fixed": 2.25e7, "market_forecast": 2.08e7, "least_squares": 1.67e7}, rel=0.02)


@pytest.fixture
def origin(tmp_path, monkeypatch):
    """A server with files of the right names and known checksums."""
    served = tmp_path / "served"
    known = {}
    for name, (place, _) in energy_data.FILES.items():
        (served / place).parent.mkdir(parents=True, exist_ok=True)
        (served / place).write_text(f"content of {name}")
        known[name] = (place, energy_data.sha256(served / place))
    monkeypatch.setattr(energy_data, "FILES", known)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(served))
    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "log_message", lambda *words: None)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/", served
        server.shutdown()


def test_fetch_downloads_verifies_and_repairs(tmp_path, origin):
    address, served = origin
    folder = tmp_path / "mine"
    lines = []
    paths = energy_data.fetch(folder, address, lines.append)
    assert [path.read_text() for path in paths] == [f"content of {name}" for name in energy_data.FILES]
    assert all("downloading" in line for line in lines)
    (folder / "load1.txt").write_text("altered")
    lines.clear()
    energy_data.fetch(folder, address, lines.append)
    assert [line for line in lines if "downloading" in line] == ["load1.txt: downloading"]
    assert (folder / "load1.txt").read_text() == "content of load1.txt"
    (served / energy_data.FILES["load2.txt"][0]).write_text("something else")
    (folder / "load2.txt").unlink()
    with pytest.raises(ValueError, match="hash"):
        energy_data.fetch(folder, address)
    assert not (folder / "load2.txt").exists()
    (served / energy_data.FILES["load2.txt"][0]).unlink()
    with pytest.raises(OSError, match=r"cannot download .*load2.* 404"):
        energy_data.fetch(folder, address)
    with pytest.raises(OSError, match=r"cannot download .*: the server cannot be reached"):
        energy_data.fetch(folder, "http://127.0.0.1:9/")


def test_fetch_does_not_wait_for_ever_for_a_server_that_drips(tmp_path, origin, monkeypatch):
    address, _ = origin
    gone = threading.Event()

    def drip(handler):
        handler.send_response(200)
        handler.end_headers()
        with contextlib.suppress(OSError):
            while not gone.wait(0.05):
                handler.wfile.write(b".")

    monkeypatch.setattr(http.server.SimpleHTTPRequestHandler, "do_GET", drip)
    with pytest.raises(OSError, match=r"cannot download .*prices2013.dat: it takes more than 0.5 seconds"):
        energy_data.fetch(tmp_path, address, seconds=0.5)
    gone.set()
    assert [path.name for path in tmp_path.iterdir()] == ["served"]

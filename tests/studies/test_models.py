"""The model comparison: paired by seed, resumable, with the orientation ablation and its figures."""

import json

import pytest

from regretless.report import model_figures
from regretless.settings import SettingsError
from regretless.studies import models
from regretless.studies.models import Arm
from regretless.trace import Trace


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    result = models.run(folder, ["topk"], ["gaussian_linear", "flow"], seeds=2, horizon=20)
    return folder, result


def test_writes_what_it_returns(outcome):
    folder, result = outcome
    assert json.loads((folder / "models.json").read_text()) == result
    part = result["benchmarks"]["topk"]
    assert [row["arm"] for row in part["arms"]] == ["gaussian_linear", "flow", "flow_published"]
    assert [row["orientation"] for row in part["arms"]] == [None, "minimise", "published"]
    assert part["horizon"] == 20
    assert set(part["references"]) == {"random", "best_fixed", "clairvoyant"}
    for row in part["arms"]:
        assert row["average_regret"][-1]["round"] == 20
        assert row["average_regret"][-1]["mean"] == pytest.approx(row["mean"] / 20)
        assert row["diverged"] == 0


def test_differences_are_paired(outcome):
    folder, result = outcome
    traces = {
        label: Trace.load(folder / f"topk_{label}.parquet") for label in ("gaussian_linear", "flow", "flow_published")
    }
    assert traces["flow"].config["settings"]["orientation"] == "minimise"
    assert traces["flow_published"].config["settings"]["orientation"] == "published"
    differences = {(row["first"], row["second"]): row for row in result["benchmarks"]["topk"]["differences"]}
    assert set(differences) == {("flow", "gaussian_linear"), ("flow_published", "flow")}
    for (first, second), row in differences.items():
        assert row["mean"] == pytest.approx((traces[first].final() - traces[second].final()).mean())
        assert row["pairs"] == 2


def test_goes_on_where_it_stopped(outcome, monkeypatch):
    folder, result = outcome

    def never(*arguments):
        raise AssertionError("computed again")

    monkeypatch.setattr(models, "run_experiment", never)
    assert models.run(folder, ["topk"], ["gaussian_linear", "flow"], seeds=2, horizon=20) == result
    with pytest.raises(AssertionError, match="computed again"):
        models.run(folder, ["topk"], ["flow"], seeds=2, horizon=21)


def test_figures_show_models_and_orientations(outcome):
    folder, _ = outcome
    names = [path.name for path in model_figures(folder)]
    assert names == ["models_topk.png", "orientation_topk.png"]
    assert all(len((folder / name).read_bytes()) > 10_000 for name in names)


def test_long_horizon_and_orientation_reach_the_experiment():
    assert models.experiment("topk", Arm("flow"), 3, 0, None).horizon == 15_000
    assert models.experiment("topk", Arm("flow", "published"), 3, 0, None).overrides == {"orientation": "published"}
    assert [arm.label for arm in models.arms(["gaussian_nn", "diffusion"], True)] == [
        "gaussian_nn", "diffusion", "diffusion_published",
    ]  # fmt: skip


def test_bad_input_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(SettingsError, match="unknown benchmark"):
        models.run(tmp_path / "out", ["topkk"])
    with pytest.raises(SettingsError, match="unknown model"):
        models.run(tmp_path / "out", ["topk"], ["flows"])
    assert not (tmp_path / "out").exists()

"""``regretless fit``: a table in, a comparison out, and clear refusals."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import regretless as rg
from regretless.cli.main import app

PLANT = "import regretless as rg\nchoice = rg.oracles.top_k(3, 1)\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("plant")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    costs = x @ rng.normal(size=(2, 3)) + 3.0
    np.savez(place / "data.npz", contexts=x, costs=costs)
    (place / "some_plant.py").write_text(PLANT)
    return place


def call(folder, monkeypatch, *arguments):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    return CliRunner().invoke(app, ["fit", "data.npz", "--oracle", "some_plant:choice", *arguments])


def test_losses_are_compared_and_the_fits_kept(folder, monkeypatch):
    result = call(folder, monkeypatch, "--epochs", "5", "--out", "fits", "--format", "json")
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert [row["policy"] for row in answer["results"]] == ["mse", "spo_plus"]
    assert answer["results"][1]["pairs"] == answer["scores"]["mse"]["rows"] == 15
    kept = rg.offline.Fit.load(folder / "fits" / "spo_plus_0.npz", rg.oracles.top_k(3, 1))
    assert kept.epochs.tolist() == [5]
    again = call(folder, monkeypatch, "--epochs", "5", "--out", "fits")
    assert "minus mse" in again.stdout
    assert "rows" in again.stdout


def test_what_does_not_fit_together_is_refused(folder, monkeypatch):
    for arguments, message in (
        (["--patience", "3"], "--patience needs a validation set"),
        (["--set", "lam=5"], "--set is for one loss"),
        (["--surrogate", "spo"], "unknown surrogate 'spo'"),
        (["--folds", "4", "--test", "data.npz"], "--test or --folds"),
    ):
        result = call(folder, monkeypatch, *arguments)
        assert result.exit_code == 2, result.output
        assert message in result.stderr

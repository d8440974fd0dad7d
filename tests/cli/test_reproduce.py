"""``regretless reproduce`` as a person meets it; the study itself is tested elsewhere."""

import json

import pytest
from typer.testing import CliRunner

from regretless.cli.main import app
from regretless.studies import theory
from regretless.studies import theory_world as world
from regretless.studies.slopes import Estimate

runner = CliRunner()


@pytest.fixture(autouse=True)
def study(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))
    near, far = Estimate(-0.52, -0.53, -0.51), Estimate(-0.48, -0.49, -0.47)
    claims = [
        theory.Claim("score_unbiased", "α = 1", "score / exact", Estimate(1.0, 0.99, 1.01), "=", 1.0, p_value=0.4),
        theory.Claim("stationarity", "α = 1", "slope", near, "≤", -0.5, bound_share=0.01),
        theory.Claim("stationarity", "α = 0, adaptive step", "slope", far, "≤", -0.5, bound_share=0.01),
    ]
    levels = [Estimate(0.1, 0.09, 0.11), Estimate(0.05, 0.04, 0.06)]
    curves = [
        theory.Curve(quantity, rule, 0.5, [512, 1024], levels, [1.0, 0.5])
        for quantity in ("excess", "stationarity")
        for rule in ("adaptive", "constant")
    ]
    record = {"seed": 0, "horizons": [512, 1024], "replications": 4, "samples": 10, "seconds": 1.0}
    facts = world.Constants(*[0.2] * len(world.Constants._fields))

    def run(progress):
        progress("running", 1, 2)
        return theory.TheoryResult(claims, curves, facts, 0.3, 0, record)

    monkeypatch.setattr(theory, "run", run)


def test_a_table_says_which_claims_hold():
    result = runner.invoke(app, ["reproduce", "theory"])
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.replace("│", " ").split())
    assert words.count("holds") == 2
    assert words.count("does not") == 1
    for word in ("-0.5200 [-0.5300, -0.5100]", "≤ -0.5", "= 1", "1 % of its explicit bound", "0.200 for every θ"):
        assert word in words


def test_json_is_one_object_and_files_are_left(tmp_path):
    out = tmp_path / "new" / "folder"
    result = runner.invoke(app, ["reproduce", "--out", str(out), "--format", "json"])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert [claim["holds"] for claim in printed["theory"]["claims"]] == [True, True, False]
    assert json.loads((out / "theory.json").read_text()) == printed["theory"]
    assert (out / "theory.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reproduce", "theroy"], "unknown study 'theroy'; did you mean 'theory'?"),
        (["reproduce", "theory", "--out", "/proc/nothing"], "cannot write to /proc/nothing"),
        (["reproduce", "theory", "--format", "xml"], "'xml' is not one of"),
    ],
)
def test_bad_input_ends_with_exit_code_2_and_a_clear_word(words, message):
    result = runner.invoke(app, words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from regretless.cli.main import app
from regretless.errors import SettingsError
from regretless.studies.history import load_oracle, read_table

runner = CliRunner()
RNG = np.random.default_rng(1)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    x = RNG.normal(size=(40, 3))
    np.savetxt(tmp_path / "x.csv", x, delimiter=",", header="a,b,c", comments="")
    np.savetxt(tmp_path / "c.csv", 3.0 + x @ RNG.normal(size=(3, 5)), delimiter=",")
    (tmp_path / "own_plant.py").write_text(
        "import regretless as rg\nshelf = rg.oracles.top_k(5, 2)\nmake = lambda: shelf\nnumber = 3\n"
    )
    (tmp_path / "leaving.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "raising.py").write_text("raise RuntimeError('no licence')\n")
    (tmp_path / "mistyped.py").write_text("shelf = (\n")
    return tmp_path


OWN = ["run", "--contexts", "x.csv", "--costs", "c.csv", "--oracle", "own_plant:shelf", "--seeds", "2"]


def test_own_history_against_policies_and_reference_lines(folder):
    words = [*OWN, "--policy", "linear_thompson", "--policy", "greedy", "--format", "json"]
    result = runner.invoke(app, words)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["benchmark"], told["horizon"], told["degree"]) == ("history", 40, None)
    assert [row["policy"] for row in told["results"]] == ["linear_thompson", "greedy"]
    assert all(row["published_mean"] is None for row in told["results"])
    assert [line["name"] for line in told["references"]] == ["random", "best_fixed"]
    assert "nothing was tuned on this benchmark: default settings are used" in " ".join(result.stderr.split())
    assert all(each["scaling"] for each in told["settings"].values())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run"], "expected BENCHMARK, or --contexts, --costs and --oracle together"),
        (["run", "topk", *OWN[1:]], "expected BENCHMARK or --contexts, --costs and --oracle, got 'topk' and both"),
        (OWN[:5], "--oracle missing"),
        ([*OWN, "--degree", "4"], "benchmark 'history' is an object: degree has to be set where it is made"),
        ([*OWN, "--horizon", "41"], "benchmark 'history' has 40 rounds, got a horizon of 41"),
        ([*OWN, "--set", "k=3"], "unknown setting 'k'"),
        ([*OWN, "--policy", "magic"], "unknown policy 'magic'"),
        ([*OWN[:-3], "own_plant:number"], "expected an oracle (see rg.oracles) or a function that makes one, got int"),
        ([*OWN[:-3], "own_plant:nothing"], "module 'own_plant' has no 'nothing'"),
        ([*OWN[:-3], "no_such_plant:shelf"], "cannot import 'no_such_plant'"),
        ([*OWN[:-3], "own_plant"], "expected --oracle module:object"),
        ([*OWN[:-3], "leaving:shelf"], "importing 'leaving' failed with SystemExit: 0"),
        ([*OWN[:-3], "raising:shelf"], "importing 'raising' failed with RuntimeError: no licence"),
        ([*OWN[:-3], "mistyped:shelf"], "mistyped.py, line 1"),
        ([*OWN[:-3], ".plant:x"], "expected the name of a module, such as 'mine' or 'plant.sets', got '.plant'"),
        ([*OWN[:-3], "topkk"], "expected --oracle module:object, got 'topkk'"),
        (["run", "--contexts", "none.csv", *OWN[3:]], "cannot read none.csv: No such file"),
    ],
)
def test_bad_input_ends_with_exit_code_two(folder, words, message):
    result = runner.invoke(app, words)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_functions_that_make_an_oracle_will_do(folder):
    assert load_oracle("own_plant:make") is load_oracle("own_plant:shelf")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n3\n", "line 3: expected 2 columns, got 1"),
        ("1,2\n3,x\n", "line 2, column 2: expected a number, got 'x'"),
        ("1,2\n3,nan\n", "line 2, column 2: expected a number, got 'nan'"),
        ("a,b\n", "expected rows of numbers, got none"),
        ("", "expected rows of numbers, got none"),
    ],
)
def test_tables_that_cannot_be_read(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(SettingsError, match=message):
        read_table(tmp_path / "t.csv")

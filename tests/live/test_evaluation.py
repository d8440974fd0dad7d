"""Evaluation on a history: unbiased where the log overlaps with a candidate, inconclusive where it does not."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import regretless as rg
from regretless.cli.main import app
from regretless.errors import SettingsError
from regretless.live.history import History
from regretless.live.learner import Learner

DIM, FEATURES, COUNT = 3, 2, 400
ORACLE = rg.oracles.top_k(DIM, 1)
SLOPES = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.5]])


def mean(x):
    return 4.0 + x @ SLOPES.T + 0.5 * np.abs(x[..., :1])


def best(x):
    return np.eye(DIM)[np.argmin(mean(x))]


def worst(x):
    return np.eye(DIM)[np.argmax(mean(x))]


def drawn(count=COUNT, seed=0, chances=(0.5, 0.3, 0.2), **changes):
    """Decisions drawn with these probabilities, whatever the context."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, FEATURES))
    item = rng.choice(DIM, p=chances, size=count)
    totals = mean(x)[np.arange(count), item] + 0.3 * rng.normal(size=count)
    parts = {"totals": totals, "propensities": np.asarray(chances)[item], **changes}
    return History(x, np.eye(DIM)[item], **parts)


def paid(history, rule):
    """What a rule pays in the judged rounds, without noise."""
    x = history.contexts[len(history) // 5 :]
    return np.mean([mean(own) @ rule(own) for own in x])


@pytest.mark.parametrize("changes", [{}, {"propensities": None}], ids=["doubly_robust", "matching"])
def test_estimates_what_rules_would_have_paid(changes, request):
    history = drawn(**changes)
    found = rg.evaluate([best, worst], history)
    assert [own.candidate for own in found.estimates] == ["logged", "best", "worst"]
    assert found.rounds == 320
    for rule in (best, worst):
        own = found[rule.__name__]
        assert own.method == request.node.callspec.id
        assert own.cost.low <= paid(history, rule) <= own.cost.high
        assert own.cost.high - own.cost.low < 1.0
        assert own.matches == sum(
            np.array_equal(rule(x), w) for x, w in zip(history.contexts[80:], history.decisions[80:], strict=True)
        )
        assert own.effective <= own.matches
    assert found["best"].cost.high < found["worst"].cost.low
    assert found["best"].difference.high < 0.0 < found["worst"].difference.low
    apart = found.difference("best", "worst")
    assert apart.mean == pytest.approx(found["best"].cost.mean - found["worst"].cost.mean)
    assert apart.high < 0.0
    assert found["logged"].difference is None
    assert found["logged"].cost.mean == pytest.approx(np.mean(history.totals[80:]))


def test_policies_learn_from_earlier_rounds_only_and_learners_are_taken_as_they_are():
    history = drawn(count=600)
    found = rg.evaluate(["linear_thompson", rg.policies.Greedy()], history, oracle=ORACLE)
    assert found["linear_thompson"].cost.mean < found["logged"].cost.mean
    totals = history.totals.copy()
    totals[480:] = 50.0  # the last block: no decision that is judged may have seen it
    later = rg.evaluate(["linear_thompson"], drawn(count=600, totals=totals), oracle=ORACLE)
    assert later["linear_thompson"].matches == found["linear_thompson"].matches
    learner = Learner(ORACLE, context=FEATURES, policy="linear_thompson")
    learner.learn_from(drawn(count=300, seed=7))
    before = learner.health()
    own = rg.evaluate({"mine": learner}, history)["mine"]
    assert own.cost.low < paid(history, best) + 0.2 < own.cost.high + 0.2
    assert learner.health() == before
    learner.learn_from(history)
    with pytest.raises(
        SettingsError, match="'mine': it has learned from 480 of the 480 rounds that it would be judged by"
    ):
        rg.evaluate({"mine": learner}, history)


def ruled(count=COUNT, known=True):
    """A log without randomness: a rule that is best in another world."""
    x = np.random.default_rng(3).normal(size=(count, FEATURES))
    w = np.eye(DIM)[np.argmin(mean(x) + 0.8 * x[:, 1:] * np.array([1.0, 0.0, -1.0]), axis=1)]
    return History(x, w, totals=np.sum(mean(x) * w, axis=1), propensities=np.ones(count) if known else None)


@pytest.mark.parametrize(
    ("history", "rule", "reason"),
    [
        (ruled(), worst, "never decides like|is the candidate's|worth"),
        (ruled(), best, "of the rounds the log never decides like the candidate"),
        (ruled(known=False), best, "depends on the context, as in a log without randomness"),
        (drawn(30), best, "logged decisions are the candidate's, worth .* rounds; at least 20 are needed"),
        (
            drawn(150, propensities=None),
            best,
            "120 rounds are too few to distinguish a rule from chance without propensities",
        ),
        (drawn(propensities=np.full(COUNT, 0.1)), best, "the probabilities cannot be right: .* times all rounds"),
        (
            drawn(chances=(1.0, 0.0, 0.0)),
            lambda x: np.eye(DIM)[2],
            "none of the 320 logged decisions is the candidate's",
        ),
    ],
    ids=["another_rule", "similar_rule", "unknown_rule", "handful", "few_unknown", "wrong_propensities", "never"],
)
def test_is_inconclusive_with_a_reason(history, rule, reason):
    found = rg.evaluate({"rule": rule}, history)
    own = found["rule"]
    assert own.cost is None
    assert own.difference is None
    assert not own.conclusive
    assert np.isfinite(own.prediction)
    assert found.difference("rule", "logged") is None
    assert re.search(reason, own.reason)
    assert "inconclusive from this log: " in str(found)
    assert "(a model predicts " in str(found)


def test_equal_decisions_and_fully_observed_costs():
    history = ruled()
    same = rg.evaluate(
        {"same": lambda x: history.decisions[np.flatnonzero((history.contexts == x).all(axis=1))[0]]}, history
    )
    assert same["same"].cost == same["logged"].cost
    costs = mean(history.contexts)
    seen = rg.evaluate({"worst": worst}, History(history.contexts, history.decisions, costs=costs))["worst"]
    assert seen.method == "seen"
    assert seen.cost.mean == pytest.approx(paid(history, worst))


def test_rewards_are_shown_as_rewards():
    history = drawn(300)
    costs = rg.evaluate(best, history)
    rewards = rg.evaluate(best, drawn(300, totals=-history.totals, sense="max"))
    assert rewards["best"].cost == costs["best"].cost.with_sign(-1.0)
    assert rewards["best"].cost.low <= rewards["best"].cost.mean <= rewards["best"].cost.high
    assert rewards["best"].prediction == pytest.approx(-costs["best"].prediction)
    assert str(rewards).startswith("reward per round over 240 rounds")
    table = rewards.to_pandas()
    assert table.loc[1, "cost_high"] == rewards["best"].cost.high
    assert json.loads(json.dumps(rewards.to_dict()))["estimates"][1]["cost"]["mean"] == rewards["best"].cost.mean


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ("greed", {}, "'greed': unknown policy 'greed'; did you mean 'greedy'"),
        ("greedy", {}, "'greedy': expected oracle=, the feasible set"),
        ("greedy", {"oracle": rg.oracles.top_k(4, 1)}, "expected a history with decisions of 4 numbers, got 3"),
        ({"logged": best}, {}, "labels other than 'logged'"),
        ([best, best], {}, "two called 'best': give them as"),
        ([], {}, "at least one candidate, got none"),
        (3, {}, "candidate 'int': expected a policy .see rg.policies. or its name, a Learner, or a function"),
        (lambda x: [1.0], {}, "row 0 of the judged rounds: .* 3 finite numbers, got .1.0"),
        (
            lambda x: 1 / 0,
            {},
            r"called with \(context\), failed in row 0 of the judged rounds: ZeroDivisionError: division by zero",
        ),
        (lambda: [1.0], {}, r"called with \(context\), failed in row 0 .*takes 0 positional arguments but 1 was given"),
        (
            lambda x, instance: [1.0],
            {},
            r"called with \(context\), failed in row 0 .* missing 1 required .* 'instance'",
        ),
        (rg.policies.Greedy, {}, "expected a policy .see rg.policies. or its name, a Learner, or a function"),
        (lambda x: [1.0, 1.0, 0.0], {"oracle": ORACLE}, "expected decisions in the feasible set"),
        (best, {"model": "gredy"}, "unknown policy 'gredy'"),
        (best, {"oracle": 7}, "expected oracle to be an oracle"),
    ],
)
def test_refuses(given, options, message):
    with pytest.raises(SettingsError, match=message):
        rg.evaluate(given, drawn(60), **options)


def test_refuses_histories_without_costs():
    with pytest.raises(SettingsError, match="expected a History"):
        rg.evaluate(best, [1])
    with pytest.raises(SettingsError, match=r"at least two rounds with known costs .* got 0 of 48"):
        rg.evaluate(best, drawn(60, totals=None))
    with pytest.raises(SettingsError, match=r"at least two rounds with known costs .* got 0 of 48"):
        rg.evaluate(best, drawn(60, totals=np.r_[np.ones(10), np.full(50, np.nan)]))


def test_the_command_prints_one_json_object(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "yard_plant.py").write_text(
        "import numpy as np\nfrom regretless import oracles\n"
        f"oracle = oracles.top_k({DIM}, 1)\nfirst = lambda x: np.eye({DIM})[0]\n"
    )
    history = drawn()
    history.to_pandas().to_csv("old.csv", index=False)
    words = ["evaluate", "old.csv", "--oracle", "yard_plant:oracle", "--function", "yard_plant:first"]
    result = CliRunner().invoke(app, [*words, "--format", "json"])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["estimates"]
    assert [row["candidate"] for row in rows] == ["logged", "yard_plant:first"]
    assert rows[1]["cost"]["mean"] == pytest.approx(
        rg.evaluate(lambda x: np.eye(DIM)[0], history).estimates[1].cost.mean
    )
    shown = CliRunner().invoke(app, words).stdout
    assert "doubly" in shown
    assert "against the log" in shown
    missing = CliRunner().invoke(app, ["evaluate", "new.log", "--oracle", "yard_plant:oracle"])
    assert missing.exit_code == 2
    assert "expected a learner's store or a table" in missing.output


@pytest.mark.parametrize("count", [1, 2])
def test_refuses_histories_of_one_or_two_rounds(count):
    with pytest.raises(SettingsError, match=f"expected a history of at least 3 rounds, got {count}"):
        rg.evaluate(best, drawn(60)[:count])


@pytest.mark.parametrize("count", [3, 4])
def test_few_rounds_are_inconclusive(count):
    evaluation = rg.evaluate({"rule": best, "policy": "linear_thompson"}, drawn(60)[:count], oracle=ORACLE)
    assert evaluation.rounds == count - 1
    assert not evaluation["rule"].conclusive
    assert not evaluation["policy"].conclusive
    assert repr(evaluation) == f"<Evaluation of rule, policy over {count - 1} rounds>"


@pytest.fixture
def yard(tmp_path, monkeypatch):
    """A folder with a plant's module and its oracle, where commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "wide_plant.py").write_text(
        "import numpy as np\nfrom regretless import oracles\nprint('loading')\n"
        "oracle = oracles.top_k(12, 1)\n"
        "def first(x):\n    print('deciding')\n    return np.eye(12)[0]\n"
        "def broken(x):\n    raise KeyError('shift')\n"
        "def none():\n    return 0\n"
    )
    rng = np.random.default_rng(0)
    item = rng.integers(3, size=200)
    history = History(rng.normal(size=(200, 11)), np.eye(12)[item], totals=5.0 + item, propensities=np.full(200, 1 / 3))
    history.to_pandas().to_csv("rounds.csv", index=False)
    return history


def run(*words):
    return CliRunner().invoke(app, ["evaluate", *words, "--oracle", "wide_plant:oracle"])


def test_columns_of_a_table_are_found_by_name_in_any_order(yard):
    frame = yard.to_pandas()
    words = ["--function", "wide_plant:first", "--policy", "greedy", "--format", "json"]
    expected = run("rounds.csv", *words)
    assert expected.exit_code == 0, expected.output
    assert expected.stdout.startswith("{"), "what the plug-in prints goes to standard error"
    for order in (sorted(frame.columns), np.random.default_rng(1).permutation(frame.columns)):
        frame[list(order)].to_csv("SHUFFLED.CSV", index=False)
        assert run("SHUFFLED.CSV", *words).stdout == expected.stdout


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="decision_3"), "column 'decision_3' is missing"),
        (lambda f: f.drop(columns="decision_11"), "expected a history with decisions of 12 numbers, got 11"),
        (lambda f: f.rename(columns={"decision_3": "decision_03"}), "column 'decision_03' is ambiguous"),
        (lambda f: f.rename(columns={"decision_3": "decision_depot"}), "column 'decision_depot' is ambiguous"),
        (lambda f: f.assign(**{"decision_1.1": 0.0}), "column 'decision_1.1' is ambiguous"),
        (lambda f: f.rename(columns={"propensity": "propensities"}), "did you mean 'propensity'"),
        (lambda f: f.drop(columns=[c for c in f if c.startswith("context")]), "expected columns context_0, context_1"),
        (lambda f: f.rename(columns={"context_1": "context_9999999999"}), "column 'context_1' is missing"),
    ],
)
def test_ambiguous_and_missing_columns_are_refused(yard, change, message):
    change(yard.to_pandas()).to_csv("rounds.csv", index=False)
    result = run("rounds.csv", "--function", "wide_plant:first")
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("broken", "failed in row 0 of the judged rounds: KeyError: 'shift'"),
        ("none", "called with (context), failed in row 0 of the judged rounds: TypeError: none() takes 0"),
        ("oracle", "expected a policy (see rg.policies) or its name, a Learner, or a function"),
    ],
)
def test_functions_that_cannot_be_used_are_refused(yard, function, message):
    result = run("rounds.csv", "--function", f"wide_plant:{function}")
    assert result.exit_code == 2, result.exception
    assert message in " ".join(result.stderr.split())


@pytest.mark.parametrize("content", [b"context_0,\xff\xfe\n1,2\n", b"", b"\x00\x01\x02", b'"unclosed\n1,2'])
def test_files_that_are_no_tables_are_refused(yard, tmp_path, content):
    (tmp_path / "rounds.csv").write_bytes(content)
    result = run("rounds.csv")
    assert result.exit_code == 2, result.exception
    assert "rounds.csv" in result.stderr or "expected columns" in result.stderr


def test_a_device_is_no_table(yard, tmp_path):
    (tmp_path / "zero.csv").symlink_to("/dev/zero")
    result = run("zero.csv")
    assert (result.exit_code, "zero.csv: it is a device, expected a file" in result.stderr) == (2, True)


def test_a_candidate_is_never_shown_as_another(yard, tmp_path):
    Learner(rg.oracles.top_k(12, 1), context=11, policy="linear_thompson").save(tmp_path / "greedy")
    result = run("rounds.csv", "--learner", "greedy", "--policy", "greedy")
    assert (result.exit_code, "got two called 'greedy'" in result.stderr) == (2, True)
    result = run("rounds.csv", "--learner", str(tmp_path / "greedy"), "--policy", "greedy", "--format", "json")
    labels = [row["candidate"] for row in json.loads(result.stdout)["estimates"]]
    assert labels == ["logged", str(tmp_path / "greedy"), "greedy"]


def test_learners_of_the_same_file_name_are_both_shown(yard, tmp_path):
    for name, rounds in (("a", 40), ("b", 80)):
        learner = Learner(rg.oracles.top_k(12, 1), context=11, policy="linear_thompson")
        learner.learn_from(
            History(
                np.random.default_rng(7).normal(size=(rounds, 11)),
                np.eye(12)[np.arange(rounds) % 12],
                totals=np.arange(rounds) % 12,
            )
        )
        (tmp_path / name).mkdir()
        learner.save(tmp_path / name / "plant.db")
    result = run("rounds.csv", "--learner", "a/plant.db", "--learner", "b/plant.db", "--format", "json")
    assert result.exit_code == 0, result.output
    labels = [row["candidate"] for row in json.loads(result.stdout)["estimates"]]
    assert labels == ["logged", "a/plant.db", "b/plant.db"]

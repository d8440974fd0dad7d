"""Curves, tables and cards: what they show, in which names and colours."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest

import regretless as rg
from regretless.errors import SettingsError
from regretless.plots import POLICY_STYLES
from regretless.results import Reference, Result, Results

matplotlib.use("Agg")
RNG = np.random.default_rng(0)
LINES = (Reference("random", 500.0, 5.0), Reference("clairvoyant", 1e-3, 1e-4))


def trace(level, name):
    regret = RNG.normal(level, 1.0, (5, 40))
    return Result(name, regret, seeds=tuple(range(5)), diagnostics={"alpha": regret[:, 9::10]}, references=LINES)


TRACES = {"greedy": trace(9.0, "greedy"), "dfhpg_0": trace(5.0, "dfhpg_0"), "<b>mine": trace(6.0, "<b>mine")}
SIMULATION = Results(TRACES.values(), seconds={"compile": 1.0, "run": 0.5})


def test_curves_have_the_papers_names_and_the_reports_colours():
    import matplotlib.pyplot as plt

    axes = plt.figure().add_subplot()
    assert SIMULATION.plot(axes) is axes
    curves = {line.get_label(): line for line in axes.get_lines()}
    assert list(curves) == ["Greedy", "DFHPG-0", "<b>mine", "random"]
    assert curves["DFHPG-0"].get_color() == POLICY_STYLES["dfhpg_0"].colour
    average = TRACES["dfhpg_0"].cumulative().mean(axis=0)[-1] / 40
    assert curves["DFHPG-0"].get_ydata()[-1] == pytest.approx(average)
    assert curves["random"].get_ydata()[0] == pytest.approx(500.0 / 40)
    assert "Outside the chart: clairvoyant" in axes.get_xlabel()
    low, high = np.array(axes.collections[1].get_paths()[0].vertices)[:, 1].min(), average
    assert low < high
    alone = TRACES["dfhpg_0"].plot(quantity="cumulative")
    assert alone is not axes
    assert alone.get_lines()[0].get_ydata()[-1] == pytest.approx(average * 40)
    assert list(SIMULATION.plot(quantity="alpha", references=False).get_lines()[0].get_xdata()) == [10, 20, 30, 40]
    plt.close("all")


def test_an_unknown_quantity_is_refused():
    with pytest.raises(SettingsError, match="among average, cumulative, alpha, got 'beta'"):
        SIMULATION.plot(quantity="beta")


def test_the_table_has_paired_differences():
    table = SIMULATION.to_frame(against="dfhpg_0")
    difference = TRACES["greedy"].compare(TRACES["dfhpg_0"])
    row = table.loc["greedy"]
    assert (row["difference"], row["low"], row["high"], row["pairs"]) == pytest.approx(
        (difference.mean, difference.low, difference.high, 5)
    )
    assert np.isnan(table.loc["dfhpg_0", "difference"])
    with pytest.raises(SettingsError, match="expected against to be one of greedy"):
        SIMULATION.to_frame(against="thompson")


def test_a_learner_its_health_and_its_choices_show_themselves():
    learner = rg.Learner(rg.oracles.top_k(4, 2), context=3, policy="linear_thompson")
    choice = learner.decide([1.0, 2.0, 3.0])
    assert "Choice 1" in repr(choice)
    assert "learner, exploring" in repr(choice)
    assert "1 decisions: 0 learned from, 1 waiting, 0 expired" in repr(learner)
    assert "too early to tell" in str(learner.health())
    assert "costs that were solved" in repr(choice)


def test_decisions_of_the_incumbent_are_not_shown_as_solved_or_explored():
    rollout = rg.Rollout([1.0, 1.0, 0.0, 0.0], budget=0.05)
    learner = rg.Learner(rg.oracles.top_k(4, 2), context=3, policy="linear_thompson", rollout=rollout)
    choice = learner.decide([1.0, 2.0, 3.0])
    assert choice.by == "incumbent"
    assert "costs that were solved" not in repr(choice)
    explanation = repr(learner.explain(choice))
    assert "costs that were solved: none, the policy did not decide" in explanation
    assert "exploration" not in explanation.partition("figures of the policy")[0]
    assert "rollout with a budget of 5.0%, mode 'act'" in repr(learner)
    learner.pause()
    assert "mode 'act', paused: the incumbent decides" in repr(learner)


def test_nothing_that_draws_is_imported_before_it_is_needed():
    code = (
        "import sys, regretless; print([m for m in ('matplotlib', 'plotly', 'regretless.plots') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"

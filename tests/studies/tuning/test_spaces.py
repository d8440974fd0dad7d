"""Search spaces: the paper's, those that a policy declares, and those around the defaults of its settings."""

from typing import Literal

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from pydantic import Field

from regretless import models, policies
from regretless.errors import SettingsError
from regretless.policies import Greedy, PolicySpec
from regretless.studies.tuning import search, spaces
from regretless.studies.tuning.search import chosen, task
from regretless_dfhpg.presets import preset, read_table


@pytest.mark.parametrize(
    "row", read_table("presets.csv"), ids=lambda row: f"{row['benchmark']}-{row['degree']}-{row['model']}"
)
def test_the_spaces_hold_every_published_preset(row):
    """Each selected value is one that the search can draw, or one that it holds fixed."""
    place = row["benchmark"], row["model"]
    generative = models.is_generative(row["model"])  # published with bandit feedback alone
    for feedback in ("bandit",) if generative else ("bandit", "semi_bandit", "full"):
        values = preset(place[0], int(row["degree"] or 0), place[1], feedback).values
        made = task(row["benchmark"], model=row["model"], feedback=feedback)
        space, fixed = made.space(), chosen(made, {}).names()
        pairs = [tuple(map(float, pair.split("/"))) for pair in space["alpha"].choices]
        assert (float(values.pop("alpha.max")), float(values.pop("alpha.min"))) in pairs
        values.pop("thompson_scale", None)  # of another policy
        for name, value in values.items():
            if name not in space:
                assert str(fixed[name]).lower() == value, name
            elif isinstance(space[name], FloatDistribution):
                assert space[name].low <= float(value) <= space[name].high, name
            else:
                assert value in [str(each).lower() for each in space[name].choices], name


@pytest.mark.parametrize("policy", policies.REGISTRY)
def test_every_policy_can_be_tuned_and_every_draw_can_be_built(policy):
    made = task("topk", policy, seeds=1, horizon=5)
    assert sum(search.widths(made, 8, 8, search.setup(made)).values()) >= 1, "every candidate was built"
    assert made.space()


def test_what_is_fixed_is_not_searched():
    free = task("topk").space()
    held = task("topk", settings={"policy_lr": "0.1", "alpha.max": 0.2, "alpha.min": 0.1}).space()
    assert free.keys() - held.keys() == {"policy_lr", "alpha"}
    assert task("topk", settings={"benchmark.k": 3}).space() == free
    chosen = search.chosen(task("topk", settings={"policy_lr": "0.1"}), {"surrogate": "nid"}).names()
    assert (chosen["policy_lr"], chosen["surrogate"], chosen["alpha.gate"]) == (0.1, "nid", "warmup")


def test_the_diffusion_on_energy_is_tuned_with_the_weights_of_its_bound():
    made = task("energy", model="diffusion")
    values = {name: each.choices[0] for name, each in made.space().items() if hasattr(each, "choices")}
    names = search.chosen(made, values).names()
    assert [names[f"model.{name}"] for name in ("train_steps", "sample_steps", "weights")] == [20, 8, "elbo"]
    assert names["alpha.gate"] == "exponential"
    assert made.experiment.settings == {"benchmark.split": "validation"}
    assert (len(made.experiment.seeds), made.experiment.horizon) == (5, 394)
    other = search.chosen(task("topk", model="diffusion"), {}).names()
    assert (other["model.weights"], other["alpha.gate"]) == ("root", "warmup")


class Numbers(PolicySpec):
    """Settings of every kind."""

    rate: float = Field(default=0.1, gt=0, le=1)
    share: float = Field(default=0.0, ge=0, lt=1)
    count: int = Field(default=8, ge=1, le=20)
    fancy: bool = True
    how: Literal["well", "badly"] = "well"
    word: str = "of no matter"

    def build(self, problem):
        return Greedy().build(problem)


class Empty(PolicySpec):
    """No settings."""

    def build(self, problem):
        return Greedy().build(problem)


@pytest.fixture
def own(monkeypatch):
    """Registers a policy for one test."""

    def register(settings, space=None):
        entry = settings
        if space is not None:

            class Declared(settings):
                search_space = space

            entry = Declared
        monkeypatch.setitem(policies.REGISTRY._parts, "mine", entry)

    return register


def test_a_policy_that_declares_nothing_is_searched_around_its_defaults(own):
    own(Numbers)
    assert spaces.space("mine", "topk", "gaussian_linear", {}) == {
        "rate": FloatDistribution(0.1 / 30, 0.999, log=True),
        "share": FloatDistribution(0.0, 0.999),
        "count": IntDistribution(1, 20),
        "fancy": CategoricalDistribution((True, False)),
        "how": CategoricalDistribution(("well", "badly")),
    }


def test_a_policy_may_declare_what_is_searched(own):
    own(
        Numbers,
        {"rate": ("log", 0.01, 0.1), "share": ("uniform", 0, 0.5), "count": ("int", 2, 4), "how": ("choice", "well")},
    )
    assert task("topk", "mine", settings={"share": 0.1}).space() == {
        "rate": FloatDistribution(0.01, 0.1, log=True),
        "count": IntDistribution(2, 4),
        "how": CategoricalDistribution(("well",)),
    }


@pytest.mark.parametrize("spec", [("log", 1), ("logg", 1, 2), ("log", 0, 1), ("uniform", 2, 1), ("choice",), 3, "log"])
def test_a_space_that_cannot_be_searched_is_refused(own, spec):
    own(Numbers, {"rate": spec})
    with pytest.raises(SettingsError, match=r"search_space of 'rate': expected \('log', low, high\).* got"):
        task("topk", "mine").space()


def test_a_policy_without_anything_to_search_is_refused(own):
    own(Empty)
    with pytest.raises(SettingsError, match="policy 'mine' has no setting that is not fixed: nothing to search"):
        task("topk", "mine").space()


def test_a_space_with_a_misspelt_name_is_refused_before_the_search(own, tmp_path):
    own(Numbers, {"rte": ("log", 1, 2)})
    with pytest.raises(SettingsError, match="unknown setting 'rte' of policy 'mine'; did you mean 'rate'"):
        search.tune(task("topk", "mine", seeds=1, horizon=5), 4, tmp_path / "trials.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("policy", "words", "message"),
    [
        ("greedy", {"settings": {"forgetting": 0.1}}, "'forgetting' has no effect on greedy; adaptive"),
        ("dfhpg", {"settings": {"nuisance.lr": 0.1}, "feedback": "full"}, "'nuisance.lr' has no effect here"),
        ("dfhpg", {"settings": {"policy_rate": 0.1}}, "unknown setting 'policy_rate'; did you mean 'policy_lr'"),
        ("linear_thompson", {"model": "flow"}, "model 'flow' has no effect"),
    ],
)
def test_a_fixed_setting_without_effect_is_refused(policy, words, message):
    with pytest.raises(SettingsError, match=message):
        search.setup(task("topk", policy, **words))


class CalledAlpha(PolicySpec):
    """A number that has the name of a group of ours."""

    alpha: float = Field(default=1.0, gt=0, description="width of the confidence bound")

    def build(self, problem):
        return Greedy().build(problem)


def test_a_number_called_alpha_is_a_number(own):
    own(CalledAlpha)
    assert spaces.constants("mine", "topk", "gaussian_linear") == {}
    assert spaces.candidate({"alpha": 0.3}) == {"alpha": 0.3}
    assert chosen(task("topk", "mine"), {"alpha": 0.3}).names() == {"alpha": 0.3}

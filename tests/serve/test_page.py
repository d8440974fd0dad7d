"""What the page says: estimates of what was saved, sentences, and the same page from a store alone."""

import json
import urllib.request

import numpy as np
import pytest

import regretless as rg
from regretless.errors import SettingsError
from regretless.serve import Service, serve_learner
from regretless.serve.config import WordsTable
from regretless.serve.monitor import MAX_BINS, Account, OpenDecision, StoreFollower
from regretless.serve.page import ReplayedView
from serve.service_files import FREE, PLANT, make_config

TILES = {"saved": 0, "effect": 1, "budget": 2, "feedback": 3}


def simulate_account(seed, rounds=300):
    """Return an account of rounds like a guard's, and what was truly saved."""
    rng, account, saved = np.random.default_rng(seed), Account(), 0.0
    for t in range(rounds):
        x = rng.normal(size=2)
        incumbent = 100.0 + 10.0 * x[0] + rng.normal() * 5.0 + (20.0 if t > 150 else 0.0)  # it drifts
        chance = 1.0 if t < 20 else float(rng.uniform(0.1, 0.6))
        if rng.random() < chance:
            account.add(OpenDecision(0.0, "incumbent", x, chance), incumbent)
        else:
            cost = incumbent * 0.9 + rng.normal()
            saved += incumbent - cost
            account.add(OpenDecision(0.0, "learner", x, 1.0), cost)
    return account, saved


def test_the_saving_is_unbiased_and_its_interval_holds_the_truth():
    runs = [simulate_account(seed) for seed in range(300)]
    errors = np.array([account.saved - saved for account, saved in runs])
    assert abs(errors.mean()) < 3.0 * errors.std() / len(errors) ** 0.5
    covered = [abs(account.saved - saved) < account.radius for account, saved in runs]
    assert 0.90 < np.mean(covered) < 0.995
    assert all(account.missing() is None for account, _ in runs)
    assert np.std(errors) < 0.5 * np.mean([saved for _, saved in runs])


def test_a_long_curve_keeps_its_ends_and_stays_short():
    account = simulate_account(1, 3 * MAX_BINS + 7)[0]
    assert len(account.bins) <= MAX_BINS
    assert sum(part.rounds for part in account.bins) == 3 * MAX_BINS + 7
    assert sum(part.by_learner for part in account.bins) == account.by_learner
    assert account.bins[-1].saved == account.saved


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """A service whose learner has decided for a while."""
    service = Service(make_config(tmp_path_factory.mktemp("page"), learners={"plant": PLANT, "free": FREE}))
    service.open()
    play(service.learners["plant"].learner, 150)
    service.view("plant").clock = lambda: 0.0  # the present is the last record's time
    yield service
    service.close()


def play(learner, rounds, seed=0):
    rng, costs = np.random.default_rng(seed), np.array([9.0, 5.0, 2.0, 4.0])
    for i in range(rounds):
        choice = learner.decide(rng.normal(size=3))
        if i % 10:
            parts = {int(place): float(costs[place] + rng.normal() * 0.3) for place in np.flatnonzero(choice.w)}
            learner.learn(choice.id, components=parts)


def test_nothing_is_claimed_before_it_is_known(service):
    page = service.view("free").page()
    assert page["state"]["sentence"] == "no decision has been asked for yet"
    assert page["decision"] is None
    assert not page["can_pause"], "there is no incumbent"
    learner = service.learners["free"].learner
    play(learner, 5)
    tiles = service.view("free").page()["tiles"]
    assert [tile["value"] for tile in tiles] == ["too early to tell", "too early to tell", "no guard", "–"] or (
        tiles[0]["value"] == "too early to tell" and tiles[2]["value"] == "no guard"
    )


def test_the_page_reports_what_the_store_holds(service):
    learner, page = service.learners["plant"].learner, service.view("plant").page()
    health = learner.health()
    tiles = {tile["id"]: tile for tile in page["tiles"]}
    assert page["state"] == {"level": "ok", "sentence": page["state"]["sentence"]}
    assert page["state"]["sentence"].startswith("working: the learner decides")
    account = service.view("plant").monitor.account
    assert abs(account.saved / account.by_learner + health.incumbent.difference) < 1.0, "as health estimates it"
    assert tiles["saved"]["value"].endswith("€")
    assert tiles["budget"]["value"].startswith("0 of 10")
    assert f"{len(learner.waiting)} decisions wait" in tiles["feedback"]["detail"]
    assert page["curve"]["points"][-1]["saved"] == account.saved
    assert page["decision"]["id"] == learner.state.made
    assert {row["item"] for row in page["decision"]["rows"]} <= set(PLANT["words"]["items"])
    assert len(page["engineer"]["residuals"]) == min(learner.health().learned, 200)
    assert "regretless_decisions" in page["engineer"]["metrics"]
    summary = service.view("plant").summary()
    assert (summary["state"], summary["tiles"]) == (page["state"], [page["tiles"][0], page["tiles"][3]])


def test_a_store_alone_shows_the_same_figures(service, tmp_path):
    host = service.learners["plant"]
    words = WordsTable(**PLANT["words"])
    view = ReplayedView("plant", StoreFollower(host.store), "plant", words, PLANT["words"]["items"])
    view.clock = service.view("plant").clock
    page, own = view.page(), service.view("plant").page()
    assert page["tiles"] == own["tiles"]
    assert page["curve"] == own["curve"]
    assert page["decision"]["rows"][0]["predicted"] is None
    assert not page["can_pause"]
    with_problem = ReplayedView(
        "plant",
        StoreFollower(host.store),
        "plant",
        words,
        PLANT["words"]["items"],
        open_learner=lambda: rg.Learner.open(
            host.store, rg.Problem(rg.oracles.top_k(4, 2), 3, "semi_bandit"), read_only=True
        ),
    )
    assert with_problem.page()["decision"]["rows"] == own["decision"]["rows"]
    with_problem.monitor.update()
    play(host.learner, 3, seed=5)
    assert view.number() == host.learner.state.number, "it follows the process that writes"
    assert view.page()["decision"]["id"] == host.learner.state.made


def test_events_are_pauses_settings_and_overrides(service):
    learner = service.learners["plant"].learner
    learner.pause()
    assert service.view("plant").page()["state"] == {"level": "paused", "sentence": "paused: the foreman decides"}
    learner.resume()
    learner.record([0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0])
    learner.update(budget=rg.Budget(amount=100.0))
    page = service.view("plant").page()
    texts = [event["text"] for event in page["events"]]
    assert texts[3:0:-1] == [
        "paused: the foreman decides",
        "resumed: the learner decides again",
        f"a person made decision {learner.state.made}",
    ]
    assert page["decision"]["by"] == "a person"
    assert "of 100" in page["tiles"][TILES["budget"]]["value"]
    learner.update(budget=0.1)


def test_a_learner_of_this_process_is_watched_while_it_runs(tmp_path):
    learner = rg.Learner(rg.oracles.top_k(4, 2), context=3, policy="linear_thompson", store=tmp_path / "own.db")
    with serve_learner(learner, 0) as server:
        for _ in range(3):
            learner.learn(learner.decide(np.zeros(3)).id, total=1.0)
        with urllib.request.urlopen(f"{server.url}/v1/learners/learner/page", timeout=30) as answer:
            page = json.load(answer)
        assert page["decision"]["id"] == 3
        assert page["can_pause"] is False
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{server.url}/v1/learners/learner/decide", b"{}", timeout=30)
    with pytest.raises(SettingsError, match="store"):
        rg.Learner(rg.oracles.top_k(4, 2), context=3).serve(0)
    assert StoreFollower(tmp_path / "own.db").update() == 6

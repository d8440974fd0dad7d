"""The routes: what is stored, repeated, refused and reported, and who may ask."""

import re
import socket
import sqlite3
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

import regretless as rg
from regretless.errors import SettingsError
from regretless.serve.app import listen, make_app
from regretless.serve.config import make_token, parse_config, read_config
from regretless.serve.hosting import Service
from serve.service_files import CONTEXT, FREE, PLANT, ROUTE, TOKENS, make_config, token_tables
from soak.sizes import size


def connect(service, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return TestClient(make_app(service), "http://127.0.0.1", False, headers=headers)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = Service(make_config(tmp_path_factory.mktemp("service")))
    service.open()
    yield service
    service.close()


@pytest.fixture(scope="module")
def client(service):
    return connect(service)


def test_a_decision_is_made_repeated_and_learned_from(client):
    first = client.post(f"{ROUTE}/decide", json={"context": CONTEXT, "key": "monday"})
    assert first.status_code == 200
    assert first.json()["by"] == "incumbent"
    assert first.json()["chosen"] == {"a": 1.0, "b": 1.0}
    again = client.post(f"{ROUTE}/decide", json={"context": CONTEXT, "key": "monday"})
    assert again.json() == first.json()
    other = client.post(f"{ROUTE}/decide", json={"context": [9.0, 9.0, 9.0], "key": "monday"})
    assert other.status_code == 409
    assert other.headers["content-type"] == "application/problem+json"
    assert "belongs to decision 1" in other.json()["detail"]
    body = {"id": "monday", "components": {"a": 2.0, "1": 3.0}}
    assert client.post(f"{ROUTE}/feedback", json=body).json()["message"] == "learned"
    assert client.post(f"{ROUTE}/feedback", json=body).json()["new"] is False
    assert client.post(f"{ROUTE}/feedback", json={**body, "components": {"a": 9.0, "b": 3.0}}).status_code == 409
    explained = client.get(f"{ROUTE}/decisions/monday/explanation").json()
    assert explained["context"] == CONTEXT
    assert explained["residual"] is not None


def test_feedback_comes_in_pieces_and_for_keys_and_ids(client):
    choice = client.post(f"{ROUTE}/decide", json={"context": CONTEXT}).json()
    place = np.flatnonzero(choice["w"]).tolist()
    names = [PLANT["words"]["items"][i] for i in place]
    piece = {"id": choice["id"], "components": {names[0]: 1.0}, "final": False}
    assert "1 more of its rows" in client.post(f"{ROUTE}/feedback", json=piece).json()["message"]
    last = {"id": choice["id"], "costs": [None if i == place[0] else 2.0 for i in range(4)]}
    assert client.post(f"{ROUTE}/feedback", json=last).json()["complete"] is True
    unknown = client.post(f"{ROUTE}/feedback", json={"id": "never", "total": 1.0})
    assert (unknown.status_code, unknown.json()["title"]) == (404, "UnknownDecision")
    assert client.post(f"{ROUTE}/feedback", json={"id": choice["id"], "components": {"e": 1.0}}).status_code == 422


def test_batches_are_made_together_and_limited(client):
    keys = ["x", None, "y"]
    batch = client.post(f"{ROUTE}/decide-batch", json={"contexts": [CONTEXT] * 3, "keys": keys})
    assert [choice["key"] for choice in batch.json()] == keys
    again = client.post(f"{ROUTE}/decide-batch", json={"contexts": [CONTEXT] * 3, "keys": ["x", "new", "y"]})
    assert [choice["id"] for choice in again.json()][::2] == [choice["id"] for choice in batch.json()][::2]
    assert client.post(f"{ROUTE}/decide-batch", json={"contexts": [CONTEXT] * 6}).status_code == 413


def test_a_person_a_pause_and_settings(client, service):
    made = client.post(f"{ROUTE}/record", json={"context": CONTEXT, "w": [0, 0, 1, 1], "key": "by hand"}).json()
    assert (made["by"], made["chosen"]) == ("person", {"<b>c</b>": 1.0, "d": 1.0})
    assert client.post(f"{ROUTE}/pause").json() == {"paused": True}
    assert [row["paused"] for row in client.get("/v1/learners").json()] == [False, True]
    assert client.post(f"{ROUTE}/decide", json={"context": CONTEXT}).json()["by"] == "incumbent"
    assert client.post(f"{ROUTE}/resume").json() == {"paused": False}
    assert client.post("/v1/learners/free/pause").status_code == 422
    assert client.patch(f"{ROUTE}/settings", json={"settings": {"budget": 0.2}}).json() == {"budget": 0.2}
    assert client.get(f"{ROUTE}/settings").json()["budget"] == 0.2
    money = {"amount": 50.0, "per": 10.0}
    assert client.patch(f"{ROUTE}/settings", json={"settings": {"budget": money}}).json() == {"budget": money}
    for wrong in ({"amount": -1.0}, {"money": 3.0}, 5.0, "much"):
        assert client.patch(f"{ROUTE}/settings", json={"settings": {"budget": wrong}}).status_code == 422
    wrong = client.patch(f"{ROUTE}/settings", json={"settings": {"forgeting": 0.2}})
    assert wrong.status_code == 422
    assert "forgeting" in wrong.json()["detail"]
    assert client.get(f"{ROUTE}/health").json()["verdict"].startswith("too early to tell")


def test_history_and_backup_hold_every_decision(client, service, tmp_path):
    lines = client.get(f"{ROUTE}/history.csv").text.splitlines()
    made = service.learners["plant"].learner.state.made
    assert len(lines) == made + 1
    assert lines[0].startswith("context_0,context_1,context_2,decision_0")
    copy = tmp_path / "copy.db"
    copy.write_bytes(client.get(f"{ROUTE}/backup").content)
    assert rg.Learner.open(copy, rg.oracles.top_k(4, 2)).state.made == made


def test_metrics_are_what_prometheus_reads(client):
    families = {family.name: family for family in text_string_to_metric_families(client.get("/metrics").text)}
    decisions = {sample.labels["learner"]: sample.value for sample in families["regretless_decisions"].samples}
    assert decisions == {row["name"]: row["decisions"] for row in client.get("/v1/learners").json()}
    routes = {sample.labels["route"] for sample in families["regretless_requests"].samples}
    assert "/v1/learners/{name}/decide" in routes
    seconds = families["regretless_request_seconds"]
    assert seconds.type == "histogram"
    assert families["regretless_compilations"].samples[0].value > 0


def test_the_dashboard_asks_for_metrics_that_exist(service, client):
    dashboard = (Path(__file__).parents[2] / "examples" / "service" / "grafana.json").read_text()
    asked = set(re.findall(r"regretless_[a-z_]+", dashboard))
    known = {line.split()[2] for line in client.get("/metrics").text.splitlines() if line.startswith("# TYPE")}
    later = {"regretless_relative_error", "regretless_drift_noticed", "regretless_feedback_share"}
    later |= {f"regretless_incumbent_{part}" for part in ("difference", "low", "high")}
    fields = set(service.learners["plant"].health().to_dict())
    assert {name.split("_")[1] for name in later} <= {field.split("_")[0] for field in fields}
    assert {name.removesuffix("_bucket") for name in asked} - later <= known


def test_learners_are_made_from_templates_at_a_limited_rate(client, service):
    assert client.put("/v1/learners/site-1", json={"template": "site"}).status_code == 201
    assert client.put("/v1/learners/site-1", json={"template": "site"}).status_code == 200
    assert client.put("/v1/learners/plant", json={"template": "site"}).status_code == 409
    assert client.put("/v1/learners/site-9", json={"template": "other"}).status_code == 422
    assert client.post("/v1/learners/site-1/decide", json={"context": CONTEXT}).json()["id"] == 1
    for name in (
        "a/b",
        "a%2fb",
        "..%2Fa",
        "%2e%2e",
        "a.db",
        "a%0ab",
        "<script>",
        "A",
        "a b",
        "",
        "é",
        "x" * 64,
        "a%00",
    ):
        answer = client.put(f"/v1/learners/{name}", json={"template": "site"})
        assert answer.status_code in (404, 405, 422), name
        assert "<script>" not in answer.text or answer.headers["content-type"] == "application/problem+json"
    assert [client.put(f"/v1/learners/site-{i}", json={"template": "site"}).status_code for i in (2, 3, 4)] == [
        201,
        201,
        429,
    ]
    folder = service.config.folder / "sites"
    assert sorted(path.name for path in folder.glob("*.db")) == ["site-1.db", "site-2.db", "site-3.db"]


def test_a_restart_continues_every_learner(tmp_path):
    service = Service(make_config(tmp_path))
    service.open()
    client = connect(service)
    client.put("/v1/learners/site-1", json={"template": "site"})
    before = {}
    for name in ("plant", "free", "site-1"):
        before[name] = client.post(f"/v1/learners/{name}/decide", json={"context": CONTEXT, "key": "k"}).json()
    client.post(f"{ROUTE}/pause")
    service.close()
    service = Service(make_config(tmp_path))
    service.open()
    client = connect(service)
    for name, choice in before.items():
        answer = client.post(f"/v1/learners/{name}/decide", json={"context": CONTEXT, "key": "k"})
        assert answer.json() == choice
    assert service.learners["plant"].paused
    with pytest.raises(rg.RegretlessError, match=r"learner '.*': .* is being written by another learner"):
        Service(make_config(tmp_path)).open()
    service.close()


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "JSON"),
        (b'{"contex": [1, 2, 3]}', 422, "did you mean 'context'"),
        (b'{"context": [1, 2]}', 422, "expected shape"),
        (b'{"context": [1, 2, NaN]}', 422, "finite"),
        (b'{"context": [1, 2, 1e999]}', 422, "finite"),
        (b'{"context": {"a": 1}}', 422, "context"),
        (b'{"context": [1, 2, 3], "key": "\\ud800"}', 422, "valid string"),
        (b'{"context": [1, 2, 3], "instance": [1, 1, 2, 0]}', 422, "True and False"),
        (b'{"context": [1, 2, 3], "instance": [[1, 1], [2]]}', 422, "rows of the same length"),
        (b'{"context": ' + b"[" * 5000 + b"]" * 5000 + b"}", 400, ""),
        (b'{"context": "' + b"x" * 30_000 + b'"}', 413, "20000 bytes"),
    ],
)
def test_a_body_that_cannot_be_used_changes_nothing(client, service, body, status, words):
    number = service.learners["plant"].learner.state.number
    answer = client.post(f"{ROUTE}/decide", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in answer.json()["detail"]
    assert service.learners["plant"].learner.state.number == number


def test_a_long_body_is_cut_off_without_a_length(client):
    chunks = (b"[" + b"1," * 1000 for _ in range(100))
    answer = client.post(f"{ROUTE}/decide", content=chunks, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


def test_requests_of_other_sites_are_refused(client, service):
    number = service.learners["plant"].learner.state.number
    for headers in ({"Origin": "http://evil.example"}, {"Host": "evil.example"}, {"Origin": "null"}):
        assert client.post(f"{ROUTE}/pause", headers=headers).status_code == 403
    assert (
        client.post(
            f"{ROUTE}/decide", content='{"context": [1, 2, 3]}', headers={"Content-Type": "text/plain"}
        ).status_code
        == 422
    )
    assert service.learners["plant"].learner.state.number == number
    policy = client.get("/healthz").headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_tokens_allow_what_their_role_says(tmp_path):
    config = make_config(tmp_path, tokens=token_tables(), learners={"plant": PLANT})
    service = Service(config)
    service.open()
    asked = {
        "read": [
            ("GET", "/v1/learners"),
            ("GET", f"{ROUTE}/health"),
            ("GET", f"{ROUTE}/settings"),
            ("GET", "/metrics"),
        ],
        "decide": [("POST", f"{ROUTE}/decide"), ("POST", f"{ROUTE}/record"), ("POST", f"{ROUTE}/feedback")],
        "admin": [("POST", f"{ROUTE}/pause"), ("PATCH", f"{ROUTE}/settings"), ("GET", f"{ROUTE}/backup")],
    }
    client, passed, rng = connect(service), set(), np.random.default_rng(0)
    wrong = [bytes(rng.integers(33, 127, 40).tolist()).decode() for _ in range(size("service_tokens", 3))]
    wrong += [None, "", "rgl_", "rgl_reaD", TOKENS["read"] + "x", "é", "\x00", "Bearer", TOKENS["read"][:-1]]
    for role, requests in asked.items():
        for method, route in requests:
            for token in wrong:
                headers = {} if token is None else {"Authorization": f"Bearer {token}".encode()}
                assert client.request(method, route, json={}, headers=headers).status_code == 401
            for given, token in TOKENS.items():
                answer = client.request(method, route, json={}, headers={"Authorization": f"Bearer {token}"})
                allowed = list(TOKENS).index(given) >= list(TOKENS).index(role)
                assert (answer.status_code not in (401, 403)) == allowed, (given, method, route)
                passed |= {given} if allowed else set()
    assert passed == set(TOKENS)
    assert client.get("/v1/learners", headers={"Authorization": f"Basic {TOKENS['admin']}"}).status_code == 401
    service.close()


def test_small_answers_are_sent_at_once():
    """On a socket that does not say that it is TCP, asyncio leaves Nagle's delay of 40 ms on."""
    with listen("127.0.0.1", 0) as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_an_expired_token_is_none(tmp_path):
    config = make_config(tmp_path, tokens=token_tables(expired=["admin"]))
    assert config.role_of(TOKENS["admin"]) == -1
    assert config.role_of(TOKENS["decide"]) == 1
    made = make_token("dispatcher", "decide", 3)
    (tmp_path / "plant.toml").write_text(f'[learners.a]\nproblem = "x:y"\nstore = "a.db"\n{made.text}')
    assert read_config(tmp_path / "plant.toml").role_of(made.token) == 1
    assert made.token not in made.text


def test_other_addresses_need_tokens_and_encryption(tmp_path):
    with pytest.raises(SettingsError, match=r"\[\[tokens\]\]"):
        Service(make_config(tmp_path), host="0.0.0.0")
    with pytest.raises(SettingsError, match="behind_proxy"):
        Service(make_config(tmp_path, tokens=token_tables()), host="0.0.0.0")
    table = {"host": "0.0.0.0", "behind_proxy": True}
    Service(make_config(tmp_path, tokens=token_tables(), service=table))


class SlowSolver:
    """A solver that waits while it is asked to."""

    def __init__(self):
        self.free = threading.Event()
        self.free.set()
        self.begun = threading.Event()

    def __call__(self, cost):
        self.begun.set()
        assert self.free.wait(20.0)
        return np.eye(3)[np.argmin(cost)]


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A service whose solver may hang, with and without an incumbent."""
    import sys
    import types

    solver = SlowSolver()
    module = types.ModuleType("slow_plant")
    module.problem = rg.Problem(rg.oracles.external(solver, 3), 2)
    sys.modules["slow_plant"] = module
    table = {"problem": "slow_plant:problem", "policy": "linear_thompson", "time_limit": 0.3, "warm_up": False}
    guarded = {**table, "store": "guarded.db", "rollout": {"incumbent": [1.0, 0.0, 0.0], "mode": "act", "budget": 0.9}}
    learners = {"free": {**table, "store": "free.db"}, "guarded": {**guarded, "time_limit": 10.0}}
    service = Service(parse_config({"learners": learners}, tmp_path_factory.mktemp("slow")))
    service.open()
    yield service, solver
    solver.free.set()
    service.close()


def test_a_solver_that_hangs_is_answered_in_time_and_reported(slow):
    service, solver = slow
    client = connect(service)
    route = "/v1/learners/free"
    good = client.post(f"{route}/decide", json={"context": [0.0, 1.0]}).json()
    assert good["fallback"] is False
    solver.free.clear()
    for limit in (3.0, 0.25):  # later calls do not wait for a solver that is known to hang
        begin = time.monotonic()
        answer = client.post(f"{route}/decide", json={"context": [1.0, 1.0]}).json()
        assert time.monotonic() - begin < limit
        assert answer["fallback"] is True
        assert answer["w"] == good["w"]
    metrics = client.get("/metrics").text
    assert 'regretless_solver_hanging{learner="free"} 1' in metrics
    assert 'regretless_solver_failures_total{learner="free"} 2' in metrics
    solver.free.set()
    deadline = time.monotonic() + 5.0
    while service.learners["free"].watch.hanging and time.monotonic() < deadline:
        time.sleep(0.01)
    assert client.post(f"{route}/decide", json={"context": [1.0, 1.0]}).json()["fallback"] is False


def test_a_pause_does_not_wait_for_the_solver(slow):
    service, solver = slow
    client = connect(service)
    route = "/v1/learners/guarded"
    learner = service.learners["guarded"].learner
    for _ in range(40):  # until the guard lets the learner decide
        choice = client.post(f"{route}/decide", json={"context": [0.0, 1.0]}).json()
        client.post(f"{route}/feedback", json={"id": choice["id"], "total": 5.0 - 4.0 * choice["w"][2]})
    solver.free.clear()
    solver.begun.clear()
    answers = []

    def ask():
        while not solver.begun.is_set():
            answers.append(client.post(f"{route}/decide", json={"context": [0.0, 1.0]}).json())

    thread = threading.Thread(target=ask)
    thread.start()
    assert solver.begun.wait(20.0)
    begin = time.monotonic()
    assert connect(service).post(f"{route}/pause").json() == {"paused": True}
    assert time.monotonic() - begin < 1.0
    thread.join(5.0)
    assert not thread.is_alive()
    assert learner.state.paused
    assert (answers[-1]["by"], answers[-1]["fallback"]) in (("incumbent", True), ("incumbent", False))
    assert client.post(f"{route}/decide", json={"context": [0.0, 1.0]}).json()["by"] == "incumbent"
    solver.free.set()


def test_a_store_that_cannot_be_written_is_reported(tmp_path):
    service = Service(make_config(tmp_path, learners={"free": FREE}))
    service.open()
    client = connect(service)
    assert client.post("/v1/learners/free/decide", json={"context": CONTEXT, "key": "a"}).status_code == 200
    with sqlite3.connect(tmp_path / "free.db", timeout=0.1) as other:
        other.execute("UPDATE owner SET epoch = epoch + 1")  # as another process that takes over
    answer = client.post("/v1/learners/free/decide", json={"context": CONTEXT, "key": "b"})
    assert (answer.status_code, answer.json()["title"]) == (503, "Store")
    assert answer.headers["retry-after"] == "1"
    service.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"learners": {"A": FREE}}, "learners.A"),
        ({"learners": {"a/b": FREE}}, "expected a name of a-z"),
        ({"learners": {"a": {**FREE, "polcy": "x"}}}, "did you mean 'policy'"),
        ({"learners": {"a": {**FREE, "store": "{name}.db"}}}, "without {name}"),
        ({"learners": {"a": FREE, "b": FREE}}, "twice"),
        ({"learners": {}, "templates": {}}, "at least one learner"),
        ({"service": {"port": 70_000}}, "service.port"),
        ({"tokens": [{"name": "a", "role": "god", "sha256": "0" * 64}]}, "role"),
    ],
)
def test_a_wrong_configuration_says_what_is_wrong(tmp_path, change, words):
    with pytest.raises(SettingsError, match=words):
        make_config(tmp_path, **change)

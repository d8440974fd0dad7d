"""Requests of any form that the OpenAPI description allows, and many that it does not: none breaks the service."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from regretless.serve import Service, make_app
from serve.service_files import TOKENS, make_config, token_tables
from soak.sizes import size

schemathesis = pytest.importorskip("schemathesis")
ADMIN = {"Authorization": f"Bearer {TOKENS['admin']}"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    service = Service(make_config(tmp_path_factory.mktemp("requests"), tokens=token_tables()))
    service.open()
    yield service
    service.close()


def test_no_request_breaks_the_service_and_a_refused_one_changes_nothing(service):
    schema = schemathesis.openapi.from_asgi("/openapi.json", make_app(service))
    operations = [found.ok() for found in schema.get_all_operations()]
    strategies = {f"{operation.method} {operation.path}": operation.as_strategy() for operation in operations}
    learners = [service.learners[name].learner for name in ("plant", "free")]
    statuses = {name: set() for name in strategies}

    @settings(
        max_examples=size("service_requests", 150),
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(st.data())
    def ask(data):
        name = data.draw(st.sampled_from(sorted(strategies)))
        case = data.draw(strategies[name])
        if "name" in case.path_parameters and case.method != "PUT":
            case.path_parameters["name"] = data.draw(st.sampled_from(["plant", "free", "plant", "none"]))
        before = [learner.state.number for learner in learners]
        answer = case.call(headers=ADMIN)
        statuses[name].add(answer.status_code)
        assert answer.status_code < 500, answer.text
        if answer.status_code >= 400:
            assert [learner.state.number for learner in learners] == before

    ask()
    assert len(strategies) > 12
    asked = {name for name, seen in statuses.items() if seen}
    assert len(asked) > 8

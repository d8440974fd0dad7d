"""The small JSON files of a store: whatever is in them, there is no traceback."""

import json

import pytest

from regretless.studies.definitions import QUICK
from regretless.studies.store import Store

KEY = "ab" * 32
PLAN = {
    "id": "x", "command": "c", "code": "1", "written": 1.0, "scale": QUICK._asdict(),
    "studies": [], "cells": {}, "second": {},
}  # fmt: skip


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "store")
    store.create()
    return store


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "null", "3", '"words"', "{}", "[" * 100_000, '{"written": 1}', b"\xff\xfe",
        json.dumps({**PLAN, "written": "yesterday"}),
        json.dumps({**PLAN, "cells": {"../../etc": "name"}}),
        json.dumps({**PLAN, "second": {KEY: KEY}}),
        json.dumps({**PLAN, "scale": {}}),
    ],
)  # fmt: skip
def test_json_of_another_form_counts_as_absent(store, content):
    content = content if isinstance(content, bytes) else content.encode()
    (store.failures / f"{KEY}.json").write_bytes(content)
    (store.plans / "p.json").write_bytes(content)
    assert store.failure(KEY) is None
    assert store.written_plans() == []


def test_plans_are_read_oldest_first(store):
    for name, written in (("a", 2), ("b", 1.5)):
        (store.plans / f"{name}.json").write_text(json.dumps({**PLAN, "written": written, "cells": {KEY: "cell"}}))
    assert [plan.written for plan in store.written_plans()] == [1.5, 2]
    assert store.written_plans()[0].scale.horizon == QUICK.horizon


def test_half_a_character_is_read_as_a_question_mark(store):
    """A folder whose name is no UTF-8 is part of the command."""
    (store.plans / "p.json").write_text(json.dumps({**PLAN, "command": "regretless report --store \udcff"}))
    assert [plan.command for plan in store.written_plans()] == ["regretless report --store ?"]

"""A store with every study in it, and the report that is written from it."""

import pytest

import invented
from regretless.report.gather import gather
from regretless.report.writing import write_texts
from regretless.studies import definitions
from regretless.studies.definitions import Scale
from regretless.studies.store import Store

NAMES = list(definitions.REGISTRY)


@pytest.fixture(scope="session")
def full_store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("store"))
    invented.fill(store, NAMES, Scale(seeds=4))
    return store


@pytest.fixture(scope="session")
def written(full_store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    page = gather(full_store)
    write_texts(page, folder)
    return folder, page

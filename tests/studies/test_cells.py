"""Cells: what their results' addresses depend on."""

from regretless.studies.cells import Arm, Cell
from regretless.studies.identity import address

CELL = Cell(
    benchmark="topk", arms=(Arm(label="a", policy="greedy"), Arm(label="b", policy="dfhpg")), seeds=3, horizon=40
)


def test_addresses_depend_on_everything_that_matters():
    base = address(CELL.identity(), "1")
    assert base == address(Cell(**CELL.model_dump()).identity(), "1")
    changes = [
        {"seeds": 4},
        {"first_seed": 1},
        {"horizon": 41},
        {"degree": 4},
        {"feedback": "full"},
        {"arms": CELL.arms[:1]},
    ]
    others = [address(CELL.model_copy(update=change).identity(), "1") for change in changes]
    assert len({base, address(CELL.identity(), "2"), *others}) == len(changes) + 2
    assert base == address(CELL.model_copy(update={"degree": 8}).identity(), "1"), "8 is the default degree"


def test_a_preset_that_changes_moves_the_address(monkeypatch):
    from regretless.studies import cells

    before = address(CELL.identity(), "1")
    original = cells.settle

    def other(experiment):
        settled = original(experiment)
        return settled._replace(settings=settled.settings.updated(policy_lr=0.123))

    monkeypatch.setattr(cells, "settle", other)
    assert address(CELL.identity(), "1") != before

"""The records of finished tunings in a store, checked when they are read."""

from pydantic import BaseModel

from regretless.studies.store import Store


class Trial(BaseModel):
    """One configuration that was tried; no value if it failed."""

    number: int
    value: float | None


class Tuning(BaseModel):
    """A finished search for settings."""

    benchmark: str
    policy: str
    model: str
    feedback: str
    seeds: int
    first_seed: int
    trials: list[Trial]
    best: Trial
    importances: dict[str, float]


def read_tunings(store: Store) -> list[Tuning]:
    """The tunings of a store; one that cannot be read is left out."""
    found = []
    for path in sorted(store.folder.glob("tuning/*.json")):
        try:
            found.append(Tuning.model_validate_json(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError):  # pydantic's own error is a ValueError
            continue
    return found

"""A chunk of replications while it is played: its carries, what its segments left behind, and what that comes to."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from regretless.benchmarks.references import Tally


class Kept(NamedTuple):
    """What a segment left behind, on the host."""

    regret: np.ndarray
    info: dict[str, np.ndarray]
    w: np.ndarray | None


class Outcome(eqx.Module):
    """One policy's part of a trace, on the host."""

    regret: np.ndarray
    diagnostics: dict[str, np.ndarray]
    diverged_at: np.ndarray
    decisions: np.ndarray | None


class Part(NamedTuple):
    """What a chunk of replications comes to."""

    outcomes: dict[str, Outcome]
    tally: Tally


@dataclass(eq=False)
class Chunk:
    """Replications that are played together; arrays on the host have a leading axis of replications, without padding.

    In a group of several policies, the axis behind it is that of the policies.
    """

    seeds: tuple[int, ...]
    segments: int = 0  # how many are finished
    carries: list[Any] = field(default_factory=list)  # by group; empty before the first segment and after the last one
    diverged_at: list[np.ndarray] = field(default_factory=list)  # by group
    records: list[list[Kept]] = field(default_factory=list)  # by group, one entry per segment
    tallies: list[Tally] = field(default_factory=list)  # one entry per segment
    totals: list[np.ndarray] = field(default_factory=list)  # regret so far, by group

    def add(self, records: Sequence[Kept], tally: Tally, carries: list[Any], diverged_at: list[np.ndarray]) -> None:
        """Takes in a segment that all groups have played."""
        self.records = self.records or [[] for _ in records]
        self.totals = self.totals or [np.zeros(record.regret.shape[:-1]) for record in records]
        for index, record in enumerate(records):
            self.records[index].append(record)
            self.totals[index] = self.totals[index] + record.regret.sum(axis=-1, dtype=np.float64)
        self.tallies.append(tally)
        self.carries, self.diverged_at = carries, diverged_at
        self.segments += 1

    def latest(self, group: int) -> dict[str, np.ndarray]:
        """The last diagnostics that were kept of a group; none before the first."""
        for record in reversed(self.records[group]):
            if any(values.shape[-1] for values in record.info.values()):
                return {name: values[..., -1] for name, values in record.info.items()}
        return {}

    def joined(self, group: int) -> Kept:
        """What all segments of a group left behind, in one piece."""
        if len(self.records[group]) > 1:
            self.records[group] = [joined(self.records[group])]
        return self.records[group][0]


def trimmed(record: Kept, start: int, every: int) -> Kept:
    """A record with as many diagnostics as the segment after round ``start`` has; programs leave one more."""
    length = record.regret.shape[-1]
    count = (start + length) // every - start // every
    return Kept(record.regret, {name: values[..., :count] for name, values in record.info.items()}, record.w)


def joined(records: Sequence[Kept]) -> Kept:
    """Records of successive segments as one."""
    axis = records[0].regret.ndim - 1
    return jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=axis), *records)


def of_policy(leaf: np.ndarray, place: int | None) -> np.ndarray:
    """One policy's part of what a group left behind; None: it is alone in its group."""
    return leaf if place is None else leaf[:, place]


def part(chunk: Chunk, groups: Sequence[tuple[str, ...]], segments: int, rounds: int, every: int) -> Part:
    """What a chunk comes to if its first ``segments`` count, which are ``rounds`` rounds; ``groups`` are names."""
    tally = jax.tree.map(lambda *parts: np.sum(parts, axis=0), *chunk.tallies[:segments])
    outcomes: dict[str, Outcome] = {}
    for index, names in enumerate(groups):
        whole, diverged = chunk.joined(index), chunk.diverged_at[index]
        diverged = np.where(diverged <= rounds, diverged, 0).astype(diverged.dtype)
        for place, name in enumerate(names):
            mine = partial(of_policy, place=place if len(names) > 1 else None)
            outcomes[name] = Outcome(
                mine(whole.regret)[:, :rounds],
                {key: mine(values)[:, : rounds // every] for key, values in whole.info.items()},
                mine(diverged),
                None if whole.w is None else mine(whole.w)[:, :rounds],
            )
    return Part(outcomes, tally)

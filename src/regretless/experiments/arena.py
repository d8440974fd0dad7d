"""The arena: policies without tuning on many worlds, each timed alone, and their score over all of them."""

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

from regretless import policies
from regretless.errors import DamagedError
from regretless.experiments.arena_scores import MEDIAN_SUFFIX, OverallScore, Score, overall_scores, score
from regretless.experiments.arena_worlds import FIRST_GROUPS, QUICK_WORLDS, WORLDS, ArenaWorld
from regretless.experiments.campaign import Plan
from regretless.experiments.experiment import Arm, Experiment
from regretless.experiments.resolve import code_version
from regretless.experiments.store import Campaign, ResultStore
from regretless.experiments.study import Cell, Panel, Scale, Study
from regretless.registry import require_known
from regretless.results import without_nan

NAME = "arena"
REPLICATIONS = 16
QUICK_ARENA = Scale(4, 0, 300)
ABOUT = (
    "Every policy with its default settings, on the same worlds and seeds. Relative regret is final regret over that "
    "of random decisions. The geometric mean over worlds has a 95 % interval from resampled replications: it describes "
    "what other seeds would give, not other worlds."
)

REFERENCES: dict[str, Arm] = {
    "linear_old": Arm(
        "linear_old", "linear_thompson", {"intercept_ridge": 1.0, "slope_ridge": 1.0, "clipping": 0.0}, preset={}
    ),
    "linear_a": Arm(
        "linear_a", "linear_thompson", {"intercept_ridge": 9.0, "slope_ridge": 81.0, "clipping": 4.0}, preset={}
    ),
    "linear_b": Arm(
        "linear_b",
        "linear_thompson",
        {"intercept_ridge": 9.0, "slope_ridge": 81.0, "clipping": 4.0, "forgetting": 0.005},
        preset={},
    ),
    "nets_c": Arm("nets_c", "ensemble", preset={}),
}
"""Linear regression as it was in version 0.1, with a stronger prior, with fading memory as well, and networks."""

CONTENDERS = ("adaptive", "linear_thompson", *REFERENCES)
"""What is played if no policy is named."""


def contender(label: str) -> Arm:
    """Return the arm that plays a policy with its defaults, or a reference."""
    if label in REFERENCES:
        return REFERENCES[label]
    require_known("policy", label, [*policies.REGISTRY, *REFERENCES])
    return Arm(label, label, preset={})


def choose_worlds(names: Iterable[str] = (), quick: bool = False) -> list[ArenaWorld]:
    """Return the worlds with these names, each once; without names all of them, or those of a quick run."""
    chosen = list(dict.fromkeys(names)) or (QUICK_WORLDS if quick else WORLDS)
    return [WORLDS[name] for name in chosen]


def world_label(world: ArenaWorld) -> str:
    """Return a world's name, with how it is judged where that is not by the mean."""
    return world.name if world.judge == "mean" else world.name + MEDIAN_SUFFIX


def arena_experiment(world: ArenaWorld, arm: Arm, scale: Scale) -> Experiment:
    """Return one policy on one world; a shorter run is shorter for the world too, so that its drift ends in it."""
    horizon = world.horizon if scale.horizon is None else min(scale.horizon, world.horizon or scale.horizon)
    return Experiment(
        world.benchmark,
        arm,
        feedback=world.feedback,
        seeds=scale.seeds_or(REPLICATIONS),
        horizon=horizon,
        settings={f"benchmark.{name}": value for name, value in world.benchmark_settings(horizon).items()},
        delay=world.delay,
        missing=world.missing,
        title=world_label(world),
    )


def arena_study(worlds: Sequence[ArenaWorld], labels: Sequence[str], scale: Scale) -> Study:
    """Return these policies on these worlds as a study, with a cell for each pair."""
    arms = [contender(label) for label in dict.fromkeys(labels)]
    parts: dict[str, list[Cell]] = {}
    for world in worlds:
        cells = parts.setdefault(_part(world), [])
        cells += [Cell(world_label(world), arena_experiment(world, arm, scale)) for arm in arms]
    panels = tuple(Panel(title, tuple(cells)) for title, cells in parts.items())
    return Study(NAME, panels, "The arena: untuned policies on many worlds", ABOUT, "arena", axis="world")


def _part(world: ArenaWorld) -> str:
    """Return the title of the panel that a world belongs to."""
    if world.group in FIRST_GROUPS:
        return "First thirteen worlds"
    return "Held-out worlds" if world.group == "held_out" else "More worlds"


class ArenaPlan(Plan):
    """A plan that keeps earlier results of the same seeds and rounds in the report."""

    def __init__(
        self,
        worlds: Sequence[ArenaWorld],
        labels: Sequence[str],
        scale: Scale,
        command: str = "regretless arena",
        imports: Sequence[str] = (),
    ):
        super().__init__([arena_study(worlds, labels, scale)], scale, command, imports)
        self.earlier_names: dict[str, str] = {}

    def keep_earlier(self, store: ResultStore) -> None:
        """Add the cells of an earlier arena that are stored and not asked for now."""
        earlier = store.read_campaign(self.id)
        if earlier is None or earlier.code != code_version() or not earlier.studies:
            return
        (study,) = self.studies
        panels = {panel.title: panel for panel in study.panels}
        for panel in earlier.studies[0].panels:
            known = panels.get(panel.title, Panel(panel.title, ()))
            asked = {address for cell in known.cells for _, address in cell.arms}
            kept = tuple(
                cell for cell in panel.cells if cell.arms and all(a not in asked and store.has(a) for _, a in cell.arms)
            )
            if kept:
                panels[panel.title] = dataclasses.replace(known, cells=known.cells + kept)
                self.earlier_names |= {a: earlier.names.get(a, a) for cell in kept for _, a in cell.arms}
        self.studies = (dataclasses.replace(study, panels=tuple(panels.values())),)

    def campaign(self) -> Campaign:
        """Return the campaign as it is left in a store."""
        campaign = super().campaign()
        return dataclasses.replace(campaign, names={**self.earlier_names, **campaign.names})


def summarise_arena(worlds: Sequence[ArenaWorld], plan: Plan, store: ResultStore) -> dict[str, Any]:
    """Return what a store knows about the worlds and policies of a plan, as JSON data."""
    asked = [cell for cell in plan.studies[0].cells() if cell.work is not None]
    scores: dict[str, list[Score]] = {world_label(world): [] for world in worlds}
    failed: dict[str, str] = {}
    for cell in asked:
        ((policy, address),) = cell.arms
        try:
            found = score(cell.label, policy, store.load(address))
        except (FileNotFoundError, DamagedError):
            failure = store.failure(address)
            failed[f"{cell.label}, {policy}"] = "not computed" if failure is None else failure.last_line
            continue
        scores[cell.label] += [] if found is None else [found]
    parts = {
        "all": worlds,
        "thirteen": [world for world in worlds if world.group in FIRST_GROUPS],
        "held_out": [world for world in worlds if world.group == "held_out"],
    }
    summary = {
        "worlds": [_summarise_world(world, scores[world_label(world)]) for world in worlds],
        "overall": {
            part: [
                _summarise_policy(each)
                for each in overall_scores(one for world in members for one in scores[world_label(world)])
            ]
            for part, members in parts.items()
        },
        "seeds": len(plan.scale.seeds_or(REPLICATIONS)),
        "first_seed": plan.scale.first_seed,
        "failed": failed,
    }
    return dict(without_nan(summary))


def _summarise_world(world: ArenaWorld, scores: Sequence[Score]) -> dict[str, Any]:
    """Return a world with the score of every policy."""
    return {
        "world": world.name,
        "group": world.group,
        "judge": world.judge,
        "random": scores[0].random if scores else None,
        "best_fixed": scores[0].fixed if scores else None,
        "results": [
            {
                "policy": each.policy,
                "regret": each.regret,
                "standard_error": each.error,
                "relative": each.relative,
                "below_best_fixed": each.below_fixed,
                "microseconds": each.microseconds,
                "diverged": each.diverged,
            }
            for each in scores
        ],
    }


def _summarise_policy(each: OverallScore) -> dict[str, Any]:
    """Return a policy over its worlds."""
    return {
        "policy": each.policy,
        "worlds": each.worlds,
        "relative": each.relative,
        "interval": each.interval,
        "worst_world": each.worst,
        "worst_relative": each.worst_relative,
        "below_best_fixed": each.below_fixed,
        "of_worlds_where_it_matters": each.fixed_matters,
        "microseconds": each.microseconds,
        "ratio_to_linear_old": each.ratio,
        "ratio_interval": each.ratio_interval,
    }

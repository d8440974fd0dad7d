"""The arena as a study: a cell for each world and policy, so that each is timed alone and none is ever played twice."""

from collections.abc import Iterable, Sequence

from regretless.studies.arena import contenders
from regretless.studies.arena.scores import label
from regretless.studies.arena.world import THIRTEEN, World
from regretless.studies.arena.worlds import QUICK_WORLDS, WORLDS
from regretless.studies.experiment import Arm, Experiment
from regretless.studies.study import Panel, Scale, Study

NAME = "arena"
REPLICATIONS = 16
QUICK = Scale(4, 0, 300)
ABOUT = (
    "Every policy as it comes, without a tuned preset, on the same worlds and seeds. Relative regret is the final regret over "
    "that of random decisions. The geometric mean over worlds has a 95 % interval from resampled replications: it tells what "
    "other seeds would give, not other worlds."
)


def chosen(names: Iterable[str], quick: bool) -> list[World]:
    """The worlds with these names, each once; without names all of them, or the handful of a quick run."""
    return [WORLDS[name] for name in dict.fromkeys(names)] or [
        WORLDS[name] for name in (QUICK_WORLDS if quick else WORLDS)
    ]


def cell(world: World, arm: Arm, scale: Scale) -> Experiment:
    """One policy on one world; a shorter run is shorter for the world too, so that its drift is over at the end."""
    horizon = world.horizon if scale.horizon is None else min(scale.horizon, world.horizon or scale.horizon)
    return Experiment(
        benchmark=world.benchmark,
        arms=(arm,),
        feedback=world.feedback,
        seeds=scale.seeds_or(REPLICATIONS),
        horizon=horizon,
        settings={f"benchmark.{name}": value for name, value in world.own_settings(horizon).items()},
        preset={},
        delay=world.delay,
        missing=world.missing,
        title=label(world),
    )


def study(worlds: Sequence[World], policies: Sequence[str], scale: Scale) -> Study:
    """These policies on these worlds."""
    arms = [contenders.arm(name) for name in dict.fromkeys(policies)]
    parts: dict[str, list[World]] = {}
    for world in worlds:
        parts.setdefault(part(world), []).append(world)
    panels = tuple(
        Panel(title, tuple((label(world), cell(world, arm, scale)) for world in members for arm in arms))
        for title, members in parts.items()
    )
    return Study(NAME, "arena", "The arena: untuned policies on many worlds", ABOUT, panels, axis="world")


def part(world: World) -> str:
    """The panel that a world belongs to."""
    if world.group in THIRTEEN:
        return "First thirteen worlds"
    return "Worlds that no choice was made by" if world.group == "held_out" else "More worlds"

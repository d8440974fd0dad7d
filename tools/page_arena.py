"""What pages show of the arena: every world with every policy, all worlds together, and the README's sentence."""

from collections.abc import Callable
from typing import NamedTuple

from page_losses import Found, code, losses

from regretless.report.gather import Panel, Study
from regretless.report.kinds import arena as kind
from regretless.report.tables import markdown_table
from regretless.show.words import number
from regretless.studies.arena import contenders
from regretless.studies.arena.scores import FIXED_MATTERS, REFERENCE, Overall, Score, label
from regretless.studies.arena.study import NAME, REPLICATIONS
from regretless.studies.arena.world import THIRTEEN, World
from regretless.studies.arena.worlds import WORLDS
from regretless_dfhpg.presets import read_table as read

SHORT = ("adaptive", "linear_thompson", "dfhpg")
"""Whom the README tells about."""

OVERALL = (
    "over", "policy", "worlds", "relative to random", f"over `{REFERENCE}`", "worst world", "below best fixed", "µs",
)  # fmt: skip


class Arena(NamedTuple):
    """What was played, in the order of the pages: worlds by group, the usual policies first."""

    found: Found  # by the world's label and the policy's name
    policies: list[str]
    worlds: dict[str, World]  # those that are known here, by label
    seeds: range
    devices: list[str]


def is_arena(study: Study) -> bool:
    """Whether this is the arena, with enough replications to be shown."""
    return (
        study.name == NAME
        and any(panel.cells for panel in study.panels)
        and all(panel.kind == "arena" for panel in study.panels)
        and (study.scale.seeds or REPLICATIONS) >= REPLICATIONS
    )


def read_arena(study: Study) -> Arena:
    """The scores of a stored arena, as its section of the report has them."""
    known = {label(world): world for world in WORLDS.values()}
    scores = kind.scores(study.panels)
    found = {name: scores[name] for name in sorted(scores, key=[*known, *scores].index)}
    played = kind.names(found)
    first = study.scale.first_seed
    return Arena(
        found,
        sorted(played, key=[*contenders.DEFAULT, *played].index),
        {name: known[name] for name in found if name in known},
        range(first, first + (study.scale.seeds or REPLICATIONS)),
        sorted({device for panel in study.panels for cell in panel.cells for device in cell.devices}),
    )


def whole(study: Study, arena: Arena) -> Panel:
    """One panel with all worlds, to be drawn as one picture."""
    place = {pair: index for index, pair in enumerate((w, p) for w in arena.found for p in arena.policies)}
    cells = [
        (min(place[cell.label, name] for name in cell.arms), cell)
        for panel in study.panels
        for cell in panel.cells
        if cell.label in arena.found
    ]
    ordered = [cell for _, cell in sorted(cells, key=lambda pair: pair[0])]
    return study.panels[0]._replace(title="", cells=ordered)


def came_out(arena: Arena) -> str:
    """The arena's page: what was played, the table over all worlds, that of all together, and where adaptive loses."""
    return "\n".join(
        [
            f"{_played(arena)} A policy's number is its regret relative to random's, \\* where it is below the best fixed "
            "decision, bold where it is the lowest; † marks the worlds that no choice was made by.",
            "",
            *worlds_table(arena),
            *_published(arena),
            "![Regret relative to random on every world, a dot for each policy](images/arena.png)",
            "",
            "Geometric means over worlds, with 95 % intervals over seeds; below the best fixed decision, of the worlds where "
            f"that has more than {100 * FIXED_MATTERS:g} % of random's regret; µs per replication and round, the median over "
            f"worlds, on {', '.join(arena.devices)}.{_fewer(arena)}",
            "",
            *overall_table(arena),
            *losses(arena.found, "adaptive"),
        ]
    )


def _played(arena: Arena) -> str:
    left = len(WORLDS) - len(arena.worlds)
    seeds = f"{len(arena.seeds)} replications, seeds {arena.seeds[0]} to {arena.seeds[-1]}"
    diverged = sum(one.diverged for each in arena.found.values() for one in each.values())
    lost = f" {diverged} replications diverged and count as random." if diverged else ""
    return f"{seeds}, {len(arena.found)} worlds{f'; {left} others were not played' if left else ''}.{lost}"


def worlds_table(arena: Arena) -> list[str]:
    """A row for each world: random's regret, and the best fixed decision's and each policy's relative to it."""
    body, last = [], ""
    for name, mine in arena.found.items():
        group, first = _group(arena, name), next(iter(mine.values()))
        lowest = min(each.regret for each in mine.values())
        fixed = "–" if first.fixed is None else number(first.fixed / first.random)
        shares = [_share(mine.get(policy), lowest) for policy in arena.policies]
        mark = " †" if group == "held out" else ""
        body.append(["" if group == last else group, code(name) + mark, number(first.random), fixed, *shares])
        last = group
    return markdown_table(("group", "world", "random", "best fixed", *map(code, arena.policies)), body)


def _group(arena: Arena, name: str) -> str:
    return arena.worlds[name].group.replace("_", " ") if name in arena.worlds else "own"


def _share(found: Score | None, lowest: float) -> str:
    if found is None:
        return "–"
    share = f"**{number(found.relative)}**" if found.regret == lowest else number(found.relative)
    return share + ("\\*" if found.below_fixed else "")


def overall_table(arena: Arena) -> list[str]:
    """A row for each policy over all worlds, over the first thirteen, and over those that are held out."""
    parts = {
        "all": arena.found,
        "first thirteen": _part(arena, lambda world: world.group in THIRTEEN),
        "held out": _part(arena, lambda world: world.group == "held_out"),
    }
    body = []
    for part, found in parts.items():
        rows = sorted(kind.totals(found), key=lambda each: arena.policies.index(each.policy))
        lowest = min((each.relative for each in rows if each.worlds == len(found)), default=None)
        body += [
            [part if index == 0 else "", *_total(each, lowest if each.worlds == len(found) else None)]
            for index, each in enumerate(rows)
        ]
    return markdown_table(OVERALL, body)


def _part(arena: Arena, belongs: Callable[[World], bool]) -> Found:
    return {name: arena.found[name] for name, world in arena.worlds.items() if belongs(world)}


def _total(each: Overall, lowest: float | None) -> list[str]:
    mean = f"**{number(each.relative)}**" if each.relative == lowest else number(each.relative)
    return [
        code(each.policy),
        str(each.worlds),
        mean + _within(each.interval),
        "–" if each.ratio is None else number(each.ratio) + _within(each.ratio_interval),
        f"{code(each.worst)}: {number(each.worst_relative)}",
        f"{each.below_fixed} of {each.fixed_matters}",
        number(each.microseconds),
    ]


def _within(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" ({number(interval[0])} to {number(interval[1])})"


def _published(arena: Arena) -> list[str]:
    """The best published value of the worlds that are a benchmark of the paper and nothing else."""
    told = []
    for name, world in arena.worlds.items():
        if world == World(world.name, "benchmarks", world.benchmark, about=world.about, judge=world.judge):
            means = [
                float(row["mean"])
                for row in read("published.csv")
                if (row["benchmark"], row["feedback"]) == (world.benchmark, world.feedback)
            ]
            random = next(iter(arena.found[name].values())).random
            told += [f"{code(world.name)} {number(min(means) / random)} ({number(min(means))})"] if means else []
    words = "The best published means, of methods tuned for the benchmark, relative to random here: "
    return [f"{words}{', '.join(told)}.", ""] if told else []


def _fewer(arena: Arena) -> str:
    """A warning where policies were played on different worlds."""
    played = {frozenset(world for world, each in arena.found.items() if name in each) for name in arena.policies}
    return " Not all policies were played on the same worlds: compare only those that were." if len(played) > 1 else ""


def in_short(arena: Arena) -> str:
    """The README's sentence: the geometric means of a few policies, and a link to all of it."""
    totals = {each.policy: each for each in kind.totals(arena.found)}
    shown = [totals[name] for name in SHORT if name in totals] or [totals[name] for name in arena.policies[:3]]
    told = [
        f"`{each.policy}` {number(each.relative)} ({each.below_fixed} of {each.fixed_matters}"
        f"{'' if each.worlds == len(arena.found) else f'; played on {each.worlds} worlds'})"
        for each in shown
    ]
    return (
        f"Untuned, on {len(arena.found)} worlds with {len(arena.seeds)} replications each: geometric mean of the regret over "
        "random's, and on how many worlds it is below that of the best fixed decision, of those where that is worth beating: "
        f"{', '.join(told)}. [Every world, and where it loses](docs/arena.md#what-came-out)."
    )

"""``regretless reproduce``, ``arena``, ``status`` and ``report``: compute studies and show what came out."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import regretless as rg
from regretless.cli import console
from regretless.cli.console import Format, Imports, Names, clear_errors, option
from regretless.errors import SettingsError
from regretless.experiments.extension import REPORT, STUDIES, STUDIES_HINT
from regretless.formatting import count_text, format_number
from regretless.startup import Device, configure

if TYPE_CHECKING:
    from regretless.experiments.campaign import ExecutionEngine, Summary

TITLES = {"all": "all worlds", "development": "development worlds", "held_out": "held-out worlds"}
STOPPED = "finished arms are kept; the same command continues from there"


def reproduce(
    study: Annotated[
        Names,
        typer.Argument(help="Studies ('regretless list studies') or files of your own.", show_default="all installed"),
    ] = None,
    quick: Annotated[bool, option("3 replications of at most 200 rounds.", flag="--quick")] = False,
    jobs: console.Jobs = 1,
    store: Annotated[Path, option("Folder of the results.")] = Path("results"),
    engine: console.EngineName = "local",
    address: console.Address = None,
    import_: Imports = None,
    seeds: Annotated[int | None, option("Replications.", "the study's, quick: 3", min=1)] = None,
    first_seed: Annotated[int, option("Seed of the first replication.", min=0)] = 0,
    horizon: Annotated[int | None, option("Rounds.", "the study's, quick: 200", min=1)] = None,
    device: Annotated[Device, option("Where to compute.")] = "auto",
    format: Annotated[Format, option("How to print the outcome.")] = "table",
) -> None:
    """Run studies, such as those of the DFHPG paper (package regretless-dfhpg), or your own.

    Finished arms are never computed again, and several processes may share a store. An arm that is more than three
    standard errors from its published value is run again with other seeds; both are shown.

    Examples:
      # all studies with few replications and rounds
      regretless reproduce --quick
      # the paper's two tables, 30 replications
      regretless reproduce main semi_bandit
      # all studies, four processes
      regretless reproduce --jobs 4
      # a study of your own, in TOML or Python
      regretless reproduce my_study.toml

    You can stop it at any time: the same command continues where it stopped.
    Then: regretless report
    """
    with clear_errors(STOPPED):
        configure(device)
        imports = console.load_imports(import_)
        base = rg.experiments.QUICK if quick else rg.experiments.Scale()
        scale = rg.experiments.Scale(seeds or base.seeds, first_seed, horizon or base.horizon)
        studies = choose_studies(study or [], scale, imports)
        plan = rg.experiments.Plan(studies, scale, console.command_line(), imports)
        chosen = rg.experiments.choose_engine(engine, jobs, device, address, plan.imports)
        summary = compute(plan, rg.experiments.ResultStore(store), chosen)
        report_summary(summary, {"store": str(store)}, format)


def choose_studies(names: list[str], scale: "rg.experiments.Scale", imports: list[str]) -> "list[rg.experiments.Study]":
    """Return the studies with these names or in these files; without names all that are installed, in their order."""
    from regretless.experiments.study import is_study_file, read_study

    if not STUDIES and not any(map(is_study_file, names)):
        raise SettingsError(STUDIES_HINT)
    studies: list[rg.experiments.Study] = []
    for name in dict.fromkeys(names):
        if is_study_file(name):
            made, more = read_study(Path(name), scale)
            imports += [module for module in more if module not in imports]
        else:
            made = STUDIES[name](scale)
        studies.append(made)
    every = [] if names else [make(scale) for make in STUDIES.usable().values()]
    return studies or sorted(every, key=lambda made: (made.collection, made.order))


def compute(
    plan: "rg.experiments.Plan", store: "rg.experiments.ResultStore", engine: "ExecutionEngine", *largest_batch: int
) -> "Summary":
    """Compute what is missing in a store, with a bar of progress and notes about the data of the worlds."""
    from regretless.experiments.runner import data_notices

    benchmarks = {run.parts[1].name: run.parts[1] for run in plan.tasks.values() if isinstance(run, rg.experiments.Run)}
    for name, world in benchmarks.items():
        for text in data_notices(world):
            console.note(f"{name}: {text}")
    with console.CampaignProgress() as listener:
        return rg.experiments.carry_out(plan, store, engine, listener, *largest_batch)


def report_summary(summary: "Summary", more: dict[str, Any], format: Format) -> None:
    """Print how a campaign ended; exit code 1 if something failed."""
    if format == "json":
        outcome = summary._asdict()
        console.say_json({"arms": outcome.pop("tasks"), **outcome, "seconds": round(summary.seconds, 1), **more})
    else:
        console.say(
            f"{summary.tasks} arms, {summary.computed} of them computed now in {console.format_span(summary.seconds)}, "
            f"{len(summary.failed)} failed; next: regretless report --store {shlex.quote(more['store'])}"
        )
    if summary.failed:
        raise typer.Exit(1)


def status(
    store: Annotated[Path, option("Folder of the results.")] = Path("results"),
    old: Annotated[bool, option("List results that this version would not use.", flag="--old")] = False,
    remove_old: Annotated[bool, option("Delete them.", flag="--remove-old")] = False,
    format: Annotated[Format, option("How to print.")] = "table",
) -> None:
    """Show how far the campaigns of a store are, and the command that resumes each."""
    with clear_errors():
        if not store.is_dir():
            raise SettingsError(f"no store at {store}: 'regretless reproduce --store {store}' makes one")
        state = examine(rg.experiments.ResultStore(store), remove_old)
        if format == "json":
            console.say_json(state)
        else:
            show_status(state, old)


def examine(store: "rg.experiments.ResultStore", remove_old: bool) -> dict[str, Any]:
    """Return the state of every campaign, and of results of other versions; delete these if ``remove_old``."""
    from regretless.experiments.runner import code_version

    outdated = store.outdated()
    listed = [
        {
            "address": entry.address,
            "name": entry.record["extra"]["name"] if entry.record else None,
            "code": entry.record["extra"]["code"].get("regretless", "?") if entry.record else entry.problem,
            "bytes": entry.size,
        }
        for entry in outdated
    ]
    for entry in outdated if remove_old else ():
        store.remove(entry)
    size = sum(entry.size for entry in outdated)
    return {
        "code": code_version(),
        "campaigns": [examine_campaign(campaign, store) for campaign in store.read_campaigns()],
        "old": {"results": len(outdated), "bytes": size, "removed": remove_old, "list": listed},
    }


def examine_campaign(campaign: "rg.experiments.Campaign", store: "rg.experiments.ResultStore") -> dict[str, Any]:
    """Return how far one campaign is."""
    second = {address for study in campaign.studies for cell in study.cells() for _, address in cell.second}
    states: dict[str, list[str]] = {"done": [], "running": [], "failed": [], "missing": []}
    errors: dict[str, str] = {}
    for address, name in campaign.names.items():
        failure = store.failure(address)
        if store.has(address):
            states["done"].append(name)
        elif store.running(address) is not None:
            states["running"].append(name)
        elif failure is not None:
            states["failed"].append(name)
            errors[name] = failure.last_line
        elif address not in second:  # a second range of seeds is played only where it is needed
            states["missing"].append(name)
    return {
        "command": campaign.command,
        "studies": [study.name for study in campaign.studies],
        "code": campaign.code,
        "arms": sum(map(len, states.values())),
        **{state: len(names) for state, names in states.items()},
        "running_arms": states["running"],
        "errors": errors,
    }


def show_status(state: dict[str, Any], old: bool) -> None:
    """Print the state of a store."""
    head = ("studies", "arms", "done", "running", "failed", "missing")
    rows = [[" ".join(campaign["studies"]), *map(campaign.get, head[1:])] for campaign in state["campaigns"]]
    console.say_table(rows, head, title="campaigns")
    for campaign in state["campaigns"]:
        for name, error in campaign["errors"].items():
            console.say(f"{name}: {error}", "failed: ")
        for name in campaign["running_arms"]:
            console.say(f"running: {name}")
        if campaign["done"] < campaign["arms"]:
            if campaign["code"] != state["code"]:
                console.say("the code has changed since: everything is computed again")
            console.say(f"resume with: {campaign['command']}")
    past = state["old"]
    if past["results"]:
        action = "removed" if past["removed"] else "delete them with: regretless status --remove-old"
        console.say(
            f"{past['results']} results of other versions or damaged, {past['bytes'] / 2**20:.1f} MiB: {action}"
        )
    if old:
        for entry in past["list"]:
            size, name = f"{entry['bytes'] / 2**20:.1f} MiB", shlex.quote(entry["name"] or "?")
            console.say(f"{entry['address'][:12]}  {entry['code']}  {size}  {name}")


def report(
    store: Annotated[Path, option("Folder of the results, of 'run --out' as well.")] = Path("results"),
    out: Annotated[Path, option("Folder for the page, the figures and the tables.")] = Path("report"),
    paper: Annotated[
        bool, option("Also write OUT/paper: what installed packages have for print.", flag="--paper")
    ] = False,
) -> None:
    """Write one self-contained HTML page, figures (PDF, PNG), tables (CSV) and report.md.

    Reads what 'regretless reproduce' or 'regretless run --out' stored and computes nothing; missing results are named.
    """
    with clear_errors("files that were written completely are kept"):
        from regretless.experiments.report import read_page, write_report

        target = rg.experiments.ResultStore(store)
        read_page(target)  # before a folder is made for nothing
        writers = [part.write for part in REPORT.usable().values() if hasattr(part, "write")]
        if paper and not writers:
            raise SettingsError(f"--paper: {STUDIES_HINT}")
        console.require_writable(out)
        page = write_report(target, out)
        for write in writers if paper else ():
            for message in write(page, out / "paper"):
                console.say(message)
        console.say(f"{count_text(len(page.studies), 'study', 'studies')}: open {out / 'report.html'}")


def arena(
    world: Annotated[
        Names,
        typer.Argument(help="Worlds, groups or parts; see 'regretless list worlds'.", show_default="all, quick: five"),
    ] = None,
    policy: Annotated[Names, option("A policy; repeatable.", "adaptive, and what is often used instead")] = None,
    seeds: Annotated[int | None, option("Replications.", "16, quick: 4", min=1)] = None,
    first_seed: Annotated[int, option("Seed of the first replication.", min=0)] = 0,
    quick: Annotated[bool, option("4 replications of at most 300 rounds, five worlds.", flag="--quick")] = False,
    out: Annotated[Path, option("Folder of the results, to resume and to report from.")] = Path("results"),
    import_: Imports = None,
    jobs: console.Jobs = 1,
    engine: console.EngineName = "local",
    address: console.Address = None,
    device: Annotated[Device, option("Where to compute.")] = "auto",
    format: Annotated[Format, option("How to print the outcome.")] = "table",
) -> None:
    """Play policies untuned on many worlds: regret on each, and over all of them the geometric mean relative to random.

    Finished work is never repeated. The interval is from resampled replications: it describes what other seeds would
    give.

    Examples:
      # five worlds, within five minutes
      regretless arena --quick
      # one policy on every world
      regretless arena --policy adaptive
      # two worlds; all worlds for development; all of one group
      regretless arena lin100 energy
      regretless arena development
      regretless arena outcomes
      # a policy of your own
      regretless arena --import mine --policy my_policy

    You can stop it at any time: the same command continues where it stopped.
    Then: regretless report
    """
    with clear_errors(STOPPED):
        configure(device)
        from regretless.experiments import arena as definition

        imports = console.load_imports(import_)
        base = definition.QUICK_ARENA if quick else rg.experiments.Scale()
        scale = rg.experiments.Scale(seeds or base.seeds or definition.REPLICATIONS, first_seed, base.horizon)
        worlds = definition.choose_worlds(world or (), quick)
        store, labels = rg.experiments.ResultStore(out), policy or definition.CONTENDERS
        plan = definition.arena_plan(worlds, labels, scale, store, console.command_line(), imports)
        chosen = rg.experiments.choose_engine(engine, jobs, device, address, imports)
        summary = compute(plan, store, chosen, 1)  # one arm at a time: each is timed alone
        scores = definition.summarise_arena(worlds, plan, store)
        if format != "json":
            show_arena(scores)
        report_summary(summary._replace(failed=scores.pop("failed")), {**scores, "store": str(out)}, format)


def show_arena(scores: dict[str, Any]) -> None:
    """Print a row per world with a column per policy, a line per policy over all of them, and a conclusion."""
    policies = [row["policy"] for row in scores["overall"]["all"]]
    lines = []
    for world in scores["worlds"]:
        played = {row["policy"]: row for row in world["results"]}
        if not played:
            continue
        name = world["world"] + (" (median)" if world["judge"] == "median" else "")
        lowest = min(row["regret"] for row in played.values())
        fixed = None if world["best_fixed"] is None else world["best_fixed"] / world["random"]
        cells = [show_share(played.get(policy), lowest) for policy in policies]
        lines.append((name + " †" * world["held_out"], "" if fixed is None else format_number(fixed), *cells))
    title = "final regret relative to random's"
    caption = f"{console.BEST}lowest, * below the best fixed decision, † held out: not for choosing"
    head = ("world", "best\nfixed", *(policy.replace("_", "_\n") for policy in policies))
    console.say_table(lines, head, title, caption)
    for part, rows in scores["overall"].items():
        if rows and (part == "all" or rows != scores["overall"]["all"]):
            show_overall(part, rows)
    for kind in ("failed", "skipped"):
        places: dict[str, list[str]] = {}
        for place, error in scores[kind].items():
            places.setdefault(error, []).append(place)
        for error, where in places.items():
            more = f" and {len(where) - 2} more" if len(where) > 2 else ""
            console.say(f"{'; '.join(where[:2])}{more}: {error}", f"{kind}: ")
    if scores["conclusion"]:
        console.say(scores["conclusion"])


def show_share(row: dict[str, Any] | None, lowest: float) -> str:
    """Return a policy's share of random's regret on one world, with its marks; empty if it was not played."""
    if row is None:
        return ""
    mark = console.BEST if row["regret"] <= lowest else ""
    return mark + format_number(row["relative"]) + ("*" if row["below_best_fixed"] else "")


def show_overall(part: str, rows: list[dict[str, Any]]) -> None:
    """Print every policy over the worlds of one part."""
    from regretless.experiments.arena import REFERENCE

    several = len({row["worlds"] for row in rows}) > 1
    lines = [
        (
            console.BEST * (row is rows[0]) + row["policy"],
            str(row["worlds"]) if several else "",
            with_interval(row["relative"], row["interval"]),
            "1" if row["policy"] == REFERENCE else with_interval(row["ratio_to_reference"], row["ratio_interval"]),
            str(row["best_on"]),
            f"{row['worst_world']}\n{row['worst_relative']:.2f}",
            f"{row['below_best_fixed']}/{row['of_worlds_where_it_matters']}",
            f"{row['microseconds'] or 0:,.0f}",
        )
        for row in rows
    ]
    worlds = max(row["worlds"] for row in rows)
    title = f"{TITLES[part]} ({worlds}): geometric mean of relative regret, 95 % over seeds"
    head = ("policy", "worlds", "relative", f"over\n{REFERENCE}", "best\non", "worst", "beats\nfixed", "µs")
    console.say_table(lines, head, title, "µs per replication and round: the median over worlds")


def with_interval(value: float | None, interval: list[float] | None) -> str:
    """Return a geometric mean with its interval below it; empty if there is none."""
    return "" if value is None or interval is None else f"{value:.3f}\n{interval[0]:.2f}–{interval[1]:.2f}"

"""``regretless reproduce``: studies with one command that can be stopped and repeated."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regretless.cli import console
from regretless.cli.console import Address, CampaignProgress, EngineName, Format, Imports, Jobs, clear_errors
from regretless.startup import Device, configure

if TYPE_CHECKING:
    from regretless.experiments.campaign import Plan, Summary
    from regretless.experiments.study import Scale, Study

EPILOG = """
Examples:

regretless reproduce --quick             everything, few replications and rounds

regretless reproduce main semi_bandit    the paper's two tables, 30 replications

regretless reproduce --jobs 4            everything, four processes

regretless reproduce my_study.toml       a study of your own, in TOML or Python

Stop it whenever you like: the same command continues where it stopped. Then: regretless report
"""
STOPPED = "finished arms are kept; the same command continues from there"


def reproduce(
    study: Annotated[
        list[str] | None,
        typer.Argument(
            help="Names of studies ('regretless list studies'), or files of your own.",
            show_default="all that are installed",
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="3 replications of at most 200 rounds.")] = False,
    jobs: Jobs = 1,
    store: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    engine: EngineName = "local",
    address: Address = None,
    import_: Imports = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Replications.", show_default="the study's, quick: 3")
    ] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="Seed of the first replication.")] = 0,
    horizon: Annotated[int | None, typer.Option(min=1, help="Rounds.", show_default="the study's, quick: 200")] = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the outcome.")] = Format.table,
) -> None:
    """Run studies, such as those of the DFHPG paper (package regretless-dfhpg), or your own.

    Finished arms are never computed again, and several processes may share a store. An arm that is more than three
    standard errors from its published value is run again with other seeds; both are shown.
    """
    with clear_errors(STOPPED):
        configure(device)
        console.check_engine(engine, address)
        from regretless.experiments.campaign import Plan, carry_out
        from regretless.experiments.parallel import choose_engine
        from regretless.experiments.store import ResultStore
        from regretless.experiments.study import QUICK, Scale

        imports = console.load_imports(import_)
        base = QUICK if quick else Scale()
        scale = Scale(seeds or base.seeds, first_seed, horizon or base.horizon)
        studies = choose_studies(study or [], scale, imports)
        plan = Plan(studies, scale, console.command_line(), imports)
        for notice in data_notices(plan):
            console.note(notice)
        target = ResultStore(store)
        target.create()
        with CampaignProgress() as listener:
            summary = carry_out(plan, target, choose_engine(engine, jobs, device, address, imports), listener)
        report_summary(summary, {"store": str(store)}, format)


def choose_studies(names: list[str], scale: "Scale", imports: list[str]) -> list["Study"]:
    """Return the studies with these names or in these files; without names all that are installed, in their order."""
    from regretless.errors import SettingsError
    from regretless.experiments.extension import STUDIES, STUDIES_HINT
    from regretless.experiments.study import is_study_file, read_study

    if not STUDIES and not any(map(is_study_file, names)):
        raise SettingsError(STUDIES_HINT)
    studies: list[Study] = []
    for name in dict.fromkeys(names):
        if is_study_file(name):
            made, more = read_study(Path(name), scale)
            imports += [module for module in more if module not in imports]
        else:
            made = STUDIES[name](scale)
        studies.append(made)
    every = [] if names else [make(scale) for make in STUDIES.usable().values()]
    return studies or sorted(every, key=lambda made: (made.collection, made.order))


def data_notices(plan: "Plan") -> list[str]:
    """Return what the user should know about the data of a plan's worlds."""
    from regretless.experiments.resolve import Run, data_notices

    benchmarks = {run.parts[1].name: run.parts[1] for run in plan.tasks.values() if isinstance(run, Run)}
    return [f"{name}: {text}" for name, world in benchmarks.items() for text in data_notices(world)]


def report_summary(summary: "Summary", more: dict[str, Any], format: Format) -> None:
    """Print how a campaign ended; exit code 1 if something failed."""
    if format is Format.json:
        console.say_json(
            {
                "arms": summary.tasks,
                "computed": summary.computed,
                "failed": summary.failed,
                "seconds": round(summary.seconds, 1),
                **more,
            }
        )
    else:
        console.say(
            f"{summary.tasks} arms, {summary.computed} of them computed now in {console.format_span(summary.seconds)}, "
            f"{len(summary.failed)} failed; next: regretless report --store {shlex.quote(more['store'])}"
        )
    if summary.failed:
        raise typer.Exit(1)

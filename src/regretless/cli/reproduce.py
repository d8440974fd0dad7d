"""``regretless reproduce``: run a whole study and say which of its claims hold."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from regretless.cli import console
from regretless.cli.console import Format, LiveProgress, clear_errors
from regretless.cli.environment import Device, configure
from regretless.cli.run import writable

EPILOG = """
Examples:

regretless reproduce theory                  the theorems, claim by claim: holds or does not hold

regretless reproduce theory --out results    the same, with theory.json and theory.png
"""


def theory(progress: LiveProgress, out: Path | None) -> dict[str, Any]:
    """The theorems' claims measured; a figure and the numbers in ``out``."""
    from regretless.report import theory_figure
    from regretless.studies import theory as study

    result = study.run(progress).to_dict()
    if out is not None:
        theory_figure(result, out / "theory.png")
    return result


def show_theory(result: dict[str, Any]) -> None:
    """Prints the claims as a table, and below it what each of them is about."""
    table = Table(title="theory", title_style="bold")
    for column in ("claim", "measured, 95 % interval", "theorem", "verdict"):
        table.add_column(column, no_wrap=column != "verdict")
    told: dict[str, str] = {}
    for claim in result["claims"]:
        if claim["name"] not in told:
            table.add_section()
            table.add_row(f"[bold]{claim['name']}[/]")
            told[claim["name"]] = claim["quantity"]
        interval = rf"{claim['measured']:.4f} \[{claim['low']:.4f}, {claim['high']:.4f}]"
        verdict = "[green]holds[/]" if claim["holds"] else "[red]does not hold[/]"
        table.add_row(f"  {claim['setting']}", interval, f"{claim['relation']} {claim['expected']:g}", verdict)
    console.out.print(table, highlight=False)
    for name, quantity in told.items():
        console.out.print(f"{name}: {quantity}", highlight=False)
    horizons, shares = result["horizons"], [claim["bound_share"] or 0.0 for claim in result["claims"]]
    console.out.print(
        f"\nslopes over T = {horizons[0]:,} … {horizons[-1]:,}, {result['replications']} replications each; equalities from "
        f"{result['samples']:,} steps, their intervals hold together\n"
        f"no average exceeds {100 * max(shares):.2g} % of its explicit bound; {result['clipped']} rounds were clipped\n"
        f"smallest eigenvalue λ: {result['constants']['convexity']:.3f} for every θ (used in the step sizes), "
        f"{result['visited_convexity']:.3f} along the runs; {result['seconds']:.0f} s",
        highlight=False,
    )


STUDIES: dict[str, tuple[Callable[[LiveProgress, Path | None], dict[str, Any]], Callable[[dict[str, Any]], None]]] = {
    "theory": (theory, show_theory),
}
"""How each study is run and how its result is printed."""


def reproduce(
    study: Annotated[
        list[str] | None, typer.Argument(help=f"What to run: {', '.join(STUDIES)}.  [default: all of them]")
    ] = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    out: Annotated[Path | None, typer.Option(help="Folder for each study's numbers (JSON) and picture.")] = None,
    format: Annotated[Format, typer.Option(help="How to print the result.")] = Format.table,
) -> None:
    """Run whole studies: every claim with its measured value, confidence interval and verdict."""
    with clear_errors():
        from regretless.settings import require_known

        names = list(dict.fromkeys(study or STUDIES))
        for name in names:
            require_known("study", name, STUDIES)
        if out is not None:
            writable(out)
        configure(device)
        results = {}
        for name in names:
            with LiveProgress(name) as progress:
                results[name] = STUDIES[name][0](progress, out)
            if out is not None:
                (out / f"{name}.json").write_text(json.dumps(results[name], indent=2) + "\n", encoding="utf-8")
        if format is Format.json:
            print(json.dumps(results, indent=2))
            return
        for name in names:
            STUDIES[name][1](results[name])
        if out is not None:
            files = ", ".join(f"{name}.json, {name}.png" for name in names)
            console.out.print(f"\nwritten to {out}: {files}", highlight=False)

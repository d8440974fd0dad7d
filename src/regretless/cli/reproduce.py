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
    """Prints the claims as a table."""
    horizons = result["horizons"]
    caption = (
        f"95 % intervals (those of equalities hold together); rates over T = {horizons[0]:,} … {horizons[-1]:,} with "
        f"{result['replications']} replications each, equalities from {result['samples']:,} steps\n"
        f"smallest eigenvalue λ: {result['constants']['convexity']:.3f} for every θ (used in the step sizes), "
        f"{result['visited_convexity']:.3f} along the runs; {result['clipped']} rounds clipped; {result['seconds']:.0f} s"
    )
    table = Table(title="theory", caption=caption, title_style="bold", caption_justify="left")
    for column in ("claim", "setting", "measured", "interval", "theorem", "of its bound", "verdict"):
        table.add_column(column, justify="left" if column in ("claim", "setting", "verdict") else "right")
    previous = None
    for claim in result["claims"]:
        if previous not in (None, claim["name"]):
            table.add_section()
        share = claim["bound_share"]
        table.add_row(
            claim["quantity"] if previous != claim["name"] else "",
            claim["setting"],
            f"{claim['measured']:.4f}",
            f"[{claim['low']:.4f}, {claim['high']:.4f}]".replace("[", r"\["),
            f"{claim['relation']} {claim['expected']:g}",
            "–" if share is None else f"{100 * share:.2g} %",
            "[green]holds[/]" if claim["holds"] else "[red]does not hold[/]",
        )
        previous = claim["name"]
    console.out.print(table, highlight=False)


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

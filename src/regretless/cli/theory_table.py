"""The theory study on the screen: claim by claim, what a theorem says and what was measured."""

from collections import Counter
from typing import Any

from rich.table import Table

from regretless.cli import console
from regretless.report.words import SHORT_THEORY

COLOURS = {"holds": "green", "does not hold": "red", "not at this length": "yellow"}


def show_theory(result: dict[str, Any]) -> None:
    """Prints the claims as a table, and below it what each of them is about."""
    table = Table(title="theory", title_style="bold")
    for column in ("claim", "measured, 95 % interval", "paper", "verdict"):
        table.add_column(column, no_wrap=column != "verdict")
    told = {claim["name"]: claim["quantity"] for claim in reversed(result["claims"])}
    order = list(dict.fromkeys(claim["name"] for claim in result["claims"]))
    last = ""
    for claim in sorted(result["claims"], key=lambda claim: order.index(claim["name"])):
        if claim["name"] != last:
            last = claim["name"]
            table.add_section()
            table.add_row(f"[bold]{last}[/]", f"[dim]{claim['statement'].split(' (')[0]}[/]")
        interval = rf"{claim['measured']:.4f} \[{claim['low']:.4f}, {claim['high']:.4f}]"
        verdict = f"[{COLOURS[claim['verdict']]}]{claim['verdict']}[/]"
        table.add_row(f"  {claim['setting']}", interval, f"{claim['relation']} {claim['expected']:g}", verdict)
    console.out.print(table, highlight=False)
    if result["short"]:
        console.say(f"{SHORT_THEORY}\n")
    for name in order:
        console.say(f"{name}: {told[name]}")
    horizons, shares = result["horizons"], [claim["bound_share"] or 0.0 for claim in result["claims"]]
    counts = Counter(claim["verdict"] for claim in result["claims"])
    console.say(f"\n{len(result['claims'])} lines: " + ", ".join(f"{number} {word}" for word, number in counts.items()))
    console.say(
        f"slopes over T = {horizons[0]:,} … {horizons[-1]:,}, {result['replications']} replications each; equalities from "
        f"{result['samples']:,} steps, their intervals hold together\n"
        f"nothing exceeds {100 * max(shares):.2g} % of its explicit bound; {result['clipped']} rounds were clipped\n"
        f"smallest eigenvalue λ: {result['constants']['convexity']:.3f} for every θ (used in the step sizes), "
        f"{result['visited_convexity']:.3f} along the runs; {result['seconds']:.0f} s",
    )

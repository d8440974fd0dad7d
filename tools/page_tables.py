"""The tables that pages show of results: the theorems' lines, the README's table, the comparison of models."""

from typing import Any

import numpy as np
from scipy.special import stdtrit

from regretless.report.gather import SIMPLE, Panel, Study
from regretless.report.series import ArmSummary
from regretless.report.tables import markdown_table
from regretless.report.words import benchmark
from regretless.show.words import number, spread

THEORY = (
    "statement", "line", "setting", "measured", "95 % interval", "paper", "share of the explicit bound", "verdict",
)  # fmt: skip
PICTURES = {"models": "average regret per round by model", "orientation": "both orientations of the generative models"}
"""Pictures of the comparison of models by the beginning of their name, with what they show."""


def theorems(study: Study) -> str:
    """Every line of the theory study, and how many of them hold."""
    document = study.panels[0].cells[0].record["document"]
    claims = document["claims"]
    counts = {
        word: sum(claim["verdict"] == word for claim in claims) for word in dict.fromkeys(c["verdict"] for c in claims)
    }
    horizons = document["horizons"]
    words = (
        f"Seed {document['seed']}; lines of one round from {document['samples']:,} steps; rates from "
        f"{document['replications']} replications per horizon, `T = {horizons[0]:,} … {horizons[-1]:,}`; "
        f"{document['seconds']:.0f} s. {len(claims)} lines: {', '.join(f'{n} {word}' for word, n in counts.items())}."
    )
    order = list(dict.fromkeys(claim["name"] for claim in claims))
    body, last = [], ("", "")
    for claim in sorted(claims, key=lambda claim: order.index(claim["name"])):
        mine = (claim["statement"], claim["name"])
        shown = ["" if new == old else new for new, old in zip(mine, last, strict=True)]
        shown[1] = mine[1] if shown[0] else shown[1]
        body.append([*shown, *_theorem(claim)])
        last = mine
    return "\n".join([words, "", *markdown_table(THEORY, body)])


def _theorem(claim: dict[str, Any]) -> list[str]:
    searched = claim["low"] == claim["high"]
    interval = "found by search" if searched else f"[{_digits(claim['low'])}, {_digits(claim['high'])}]"
    share = "–" if claim["bound_share"] is None else f"{100 * claim['bound_share']:.2g} %"
    expected = f"{claim['relation']} {claim['expected']:g}".replace("-", "−")
    return [claim["setting"], _digits(claim["measured"]), interval, expected, share, claim["verdict"]]


def _digits(value: float) -> str:
    return f"{value:.4f}".replace("-", "−")


def by_feedback(bandit: Study, semi_bandit: Study, name: str) -> str:
    """A benchmark's page: ours beside the published value with both kinds of feedback."""
    sides = [next(panel.cells[0] for panel in study.panels if panel.title == name) for study in (bandit, semi_bandit)]
    head = ["policy"]
    for feedback in ("bandit", "semi_bandit"):
        head += [f"{feedback}: ours", "median", "published", "z"]
    body = []
    for label in sides[0].arms:
        row = [label]
        for cell in sides:
            arm, verdict = cell.arms.get(label), cell.verdicts.get(label)
            row += ["–", "–"] if arm is None else [spread(arm.mean, arm.error), number(arm.median)]
            row += ["–", "–"] if verdict is None else [spread(*verdict.published), f"{verdict.z:+.2f}"]
        body.append(row)
    return "\n".join(markdown_table(head, body))


def simple_baseline(bandit: Study, semi_bandit: Study) -> str:
    """``linear_thompson`` beside the best published value, and beside DFHPG-0 with semi-bandit feedback."""
    titles = [panel.title for panel in bandit.panels]
    head = ["", *map(benchmark, titles)]
    cells = [panel.cells[0] for panel in bandit.panels]
    best = [min(each.published.mean for each in cell.verdicts.values()) for cell in cells]
    first = [
        [f"`{SIMPLE}`", *(spread(cell.arms[SIMPLE].mean, cell.arms[SIMPLE].error) for cell in cells)],
        ["best published, tuned per benchmark", *map(number, best)],
    ]
    second = [
        [
            f"`{label}`",
            *(
                spread(panel.cells[0].arms[label].mean, panel.cells[0].arms[label].error)
                for panel in semi_bandit.panels
            ),
        ]
        for label in (SIMPLE, "dfhpg_0")
    ]
    return "\n".join(
        [
            "Bandit feedback:",
            "",
            *markdown_table(head, first),
            "Semi-bandit feedback:",
            "",
            *markdown_table(head, second),
        ]
    )


def main_table(study: Study) -> str:
    """The README's table: ours for each benchmark, with the distance from the published value; reference lines below."""
    cells = [panel.cells[0] for panel in study.panels]
    body = []
    for label in cells[0].arms:
        row = [label]
        for cell in cells:
            arm, verdict = cell.arms[label], cell.verdicts.get(label)
            row.append(spread(arm.mean, arm.error) + ("" if verdict is None else f" ({verdict.z:+.2f})"))
        body.append(row)
    for name in ("random", "best_fixed", "clairvoyant"):
        means = [[line.mean for line in cell.references() if line.name == name] for cell in cells]
        body.append([f"*{name}*", *(number(each[0]) if each else "–" for each in means)])
    return "\n".join(markdown_table(["policy", *(benchmark(panel.title) for panel in study.panels)], body))


def comparison(study: Study) -> str:
    """Final regrets of every model and variant by benchmark, and paired differences from the first model."""
    finals = {panel.title: panel.arms() for panel in study.panels}
    labels = list(dict.fromkeys(label for arms in finals.values() for label in arms))
    head = ["", *(benchmark(title) for title in finals)]
    table = [[label, *(_final(arms.get(label)) for arms in finals.values())] for label in labels]
    table += [[f"*{name}*", *(_reference(panel, name) for panel in study.panels)] for name in ("random", "best_fixed")]
    models = [label for label in labels if ", " not in label and label != SIMPLE]
    pairs = [(label, models[0]) for label in models[1:]] + [("diffusion", "flow")]
    pairs += [(label, label.split(", ")[0]) for label in labels if ", " in label]
    differences = [
        [f"{first} − {second}", *(_difference(arms.get(first), arms.get(second)) for arms in finals.values())]
        for first, second in pairs
    ]
    words = "Paired differences over the seeds, with 95 % intervals; bold where the interval leaves out zero:"
    pictures = [
        f"![{benchmark(title)}: {words}](images/{name}_{title}.png)"
        for name, words in PICTURES.items()
        for title in finals
    ]
    return "\n".join([*markdown_table(head, table), words, "", *markdown_table(head, differences), *pictures])


def _final(arm: ArmSummary | None) -> str:
    return "–" if arm is None else f"{spread(arm.mean, arm.error)} ({number(arm.median)})"


def _reference(panel: Panel, name: str) -> str:
    means = [line.mean for line in panel.references() if line.name == name]
    return number(means[0]) if means else "–"


def _difference(first: ArmSummary | None, second: ArmSummary | None) -> str:
    """Mean of the differences with Student's interval; a dash where seeds are missing."""
    if first is None or second is None or len(first.final) != len(second.final):
        return "–"
    difference = np.asarray(first.final) - np.asarray(second.final)
    mean, count = float(difference.mean()), len(difference)
    margin = float(stdtrit(count - 1, 0.975) * difference.std(ddof=1) / count**0.5)
    word = f"**{number(mean)}**" if abs(mean) > margin else number(mean)
    return f"{word} [{number(mean - margin)}, {number(mean + margin)}]"

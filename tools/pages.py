"""Update the results that pages show from one store: ``python tools/pages.py STORE`` (``make pages``).

Pages have blocks between ``<!-- made: NAME -->`` and ``<!-- end -->``. A block is replaced if the store holds the
full runs that it shows, by the same Markdown that ``regretless report`` writes; otherwise it stays. Every result must
come from the code of this checkout.
"""

import dataclasses
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from regretless.experiments.arena import MAX_OVER_BEST_PEER, REPLICATIONS, WORLDS, conclude, overall_scores
from regretless.experiments.arena import NAME as ARENA
from regretless.experiments.report import CellView, Page, PanelContext, Table, Value, read_page, to_markdown
from regretless.experiments.report.content import mean_value, number_value, row
from regretless.experiments.report.page import make_sections, study_section
from regretless.experiments.report.panels import (
    BENCHMARK_NAMES,
    arena_policies,
    arena_scores,
    panel_curves,
    relative_map,
    result_table,
)
from regretless.experiments.runner import is_outdated
from regretless.experiments.store import ResultStore
from regretless.experiments.study import Study
from regretless.formatting import count_text, format_number
from regretless.plots import draw, draw_sheet, save_figure
from regretless_dfhpg.deviations import deviations_page
from regretless_dfhpg.report import claims_text, page_claims, theory_charts
from regretless_dfhpg.studies import COLLECTION

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
BLOCK = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
SIMPLE = "linear_thompson"
TABLES = ("main", "semi_bandit", "surrogates", "alpha", "degree", "feedback", "theory")
"""Studies without which the page of all numbers stays as it is."""
FIRST_POLICIES = ("adaptive", SIMPLE, "dfhpg")
"""Policies of the README's sentence about the arena."""


def full_studies(page: Page) -> dict[str, Study]:
    """Return the studies of a page that are complete and at full length."""
    return {s.name: s for s in page.studies if page.campaigns[s.name].scale.horizon is None and not page.missing(s)}


def panel_views(page: Page, study: Study) -> dict[str, CellView]:
    """Return the first cell of every panel by title."""
    return {panel.title: views[0] for panel in study.panels if (views := page.views(panel))}


def main_table(page: Page, study: Study) -> list[str]:
    """Return the README's table: policies by benchmark with z-scores, and reference lines."""
    views = panel_views(page, study)
    rows = []
    for label in next(iter(views.values())).results:
        cells = []
        for view in views.values():
            compared = view.published.get(label)
            result = view.results[label]
            detail = "" if compared is None else f"({compared.z:+.2f})"
            cells.append(mean_value(result.mean(), result.standard_error(), detail))
        rows.append(row(label, *cells))
    for name in ("random", "best_fixed", "clairvoyant"):
        levels = [{line.name: line.mean for line in view.results.references} for view in views.values()]
        rows.append(row(name, *(number_value(level.get(name)) for level in levels), style="reference"))
    return Table("", ("policy", *(BENCHMARK_NAMES[title] for title in views)), tuple(rows)).to_markdown()


def energy_tables(page: Page, studies: Sequence[Study]) -> list[str]:
    """Return the tables of the energy benchmark with both kinds of feedback."""
    lines = []
    for study in studies:
        panel = next(panel for panel in study.panels if panel.title == "energy")
        context = PanelContext(page, study, panel, page.views(panel), "energy")
        lines += [f"{study.title}:", "", *result_table(context).to_markdown()]
    return lines


def simple_tables(page: Page, bandit: Study, semi_bandit: Study) -> list[str]:
    """Return the simple baseline with the best published value, and with DFHPG-0 under semi-bandit feedback."""
    first, second = panel_views(page, bandit), panel_views(page, semi_bandit)
    head = ("", *(BENCHMARK_NAMES[title] for title in first))

    def policy_row(views: dict[str, CellView], label: str) -> object:
        results = [view.results[label] for view in views.values()]
        return row(Value(label, code=True), *(mean_value(r.mean(), r.standard_error()) for r in results))

    best = [min((c.published.mean for c in view.published.values()), default=None) for view in first.values()]
    published = row("best published, tuned per benchmark", *map(number_value, best))
    top = Table("", head, (policy_row(first, SIMPLE), published)).to_markdown()
    bottom = Table("", head, tuple(policy_row(second, label) for label in (SIMPLE, "dfhpg_0"))).to_markdown()
    return ["Bandit feedback:", "", *top, "Semi-bandit feedback:", "", *bottom]


def study_text(page: Page, study: Study) -> list[str]:
    """Return a study as the report writes it, without its heading."""
    return to_markdown(study_section(page, study, study.name))[2:]


def all_numbers(page: Page) -> list[str]:
    """Return all numbers of the paper as the report writes them."""
    paper = dataclasses.replace(page, studies=[study for study in page.studies if study.collection == COLLECTION])
    reproduced, compared = paper.tally()
    words = f"{reproduced} of {compared} published values are within three standard errors of the difference."
    lines = ["# Reproduction", "", words, ""]
    for section in make_sections(paper):
        if section.id not in ("configurations", "deviations", "z-scores"):
            lines += [*to_markdown(section), ""]
    return lines


def arena_losses(page: Page, study: Study, policy: str) -> list[str]:
    """Return the worlds where a policy is above the best other one, above the best fixed decision, or above random."""
    scores = arena_scores(view for panel in study.panels for view in page.views(panel))
    played = {world: by_policy for world, by_policy in scores.items() if policy in by_policy}

    def listed(title: str, chosen: dict[str, str]) -> str:
        which = f": {', '.join(f'`{world}` ({text})' for world, text in chosen.items())}" if chosen else ""
        return f"- {title}: {len(chosen)} of {count_text(len(played), 'world')}{which}."

    behind, far_behind, above_fixed, above_random = {}, {}, {}, {}
    for world, by_policy in played.items():
        own, best = by_policy[policy], min(by_policy.values(), key=lambda one: one.regret)
        if own.regret > best.regret:
            chosen = far_behind if own.regret > MAX_OVER_BEST_PEER * best.regret else behind
            chosen[world] = f"{format_number(own.relative)}, `{best.policy}` {format_number(best.relative)}"
        if own.fixed_matters and not own.below_best_fixed:
            above_fixed[world] = format_number(own.relative)
        if own.relative > 1:
            above_random[world] = format_number(own.relative)
    return [
        f"Where `{policy}` loses, with its regret relative to random's:",
        "",
        listed(f"Above {MAX_OVER_BEST_PEER} times the best other policy", far_behind),
        listed("Above it by less", behind),
        listed("Not below the best fixed decision, where that matters", above_fixed),
        listed("Above random", above_random),
        "",
    ]


def arena_tables(page: Page, study: Study) -> list[str]:
    """Return the arena as the report writes it, what it comes from, and where the default policy loses."""
    scores = arena_scores(view for panel in study.panels for view in page.views(panel))
    entries = [one for world in scores.values() for one in world.values()]
    seeds = page.campaigns[study.name].scale.seeds_or(REPLICATIONS)
    return [
        f"{count_text(len(seeds), 'replication')}, seeds {seeds[0]} to {seeds[-1]}, {len(scores)} of {len(WORLDS)} "
        f"worlds. {conclude(entries)}",
        "",
        "![Regret relative to random's on every world, for each policy](images/arena.png)",
        "",
        *study_text(page, study),
        *arena_losses(page, study, "adaptive"),
    ]


def arena_sentence(page: Page, study: Study) -> list[str]:
    """Return the README's sentence about the arena."""
    scores = arena_scores(view for panel in study.panels for view in page.views(panel))
    totals = {one.policy: one for one in overall_scores(one for world in scores.values() for one in world.values())}
    names = [name for name in FIRST_POLICIES if name in totals] or arena_policies(scores)[:3]
    shown = [
        f"`{each.policy}` {format_number(each.relative)} ({each.below_best_fixed} of {each.of_worlds_where_it_matters})"
        for each in map(totals.__getitem__, names)
    ]
    return [
        f"Without tuning, on {len(scores)} worlds: geometric mean of the regret relative to random decisions, and on "
        "how many worlds it is below that of the best fixed decision, of those where that is worth beating: "
        f"{', '.join(shown)}. [Every world, and where it loses](docs/arena.md#results)."
    ]


def make_blocks(page: Page) -> tuple[dict[str, str], list[str]]:
    """Return the text of each block that the store can fill, and messages about the others."""
    have = full_studies(page)
    makers: dict[str, tuple[tuple[str, ...], Callable[[], list[str]]]] = {
        "readme": (("main",), lambda: main_table(page, have["main"])),
        "energy": (("main", "semi_bandit"), lambda: energy_tables(page, [have["main"], have["semi_bandit"]])),
        "simple": (("main", "semi_bandit"), lambda: simple_tables(page, have["main"], have["semi_bandit"])),
        "theory": (("theory",), lambda: study_text(page, have["theory"])),
        "models": (("models",), lambda: study_text(page, have["models"])),
        "reproduction": (TABLES, lambda: all_numbers(page)),
        "claims": (TABLES, lambda: [claims_text(page_claims(page))]),
        "arena": ((ARENA,), lambda: arena_tables(page, have[ARENA])),
        "readme_arena": ((ARENA,), lambda: arena_sentence(page, have[ARENA])),
        "linear_arena": ((ARENA,), lambda: arena_losses(page, have[ARENA], SIMPLE)),
    }
    blocks, messages = {}, []
    for name, (needs, make) in makers.items():
        missing = [study for study in needs if study not in have]
        if missing:
            messages.append(f"{name} stays as it is: the store has no full run of {', '.join(missing)}")
        else:
            blocks[name] = "\n".join(make()).rstrip() + f"\n\n{origin(page)}\n"
    return blocks, messages


def origin(page: Page) -> str:
    """Return what computed the results, as a line in italics."""
    command = ["git", "rev-parse", "--short=10", "HEAD"]
    commit = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    codes = sorted({str((result.extra.get("code") or {}).get("regretless", "")) for result in page.shown().values()})
    return (
        f"*Made by `make pages` at commit `{commit}`, from results of the code {', '.join(f'`{c}`' for c in codes)}.*"
    )


def draw_pictures(page: Page) -> list[Path]:
    """Draw the pictures of the pages from complete studies."""
    have, drawn = full_studies(page), []
    if "main" in have:
        study = have["main"]
        context = PanelContext(page, study, study.panels[0], page.views(study.panels[0]), "main")
        drawn.append((IMAGES / "topk_regret.png", draw(panel_curves(context), "Top-k", (5.2, 3.2))))
    if "theory" in have:
        (result,) = page.views(have["theory"].panels[0])[0].results.values()
        charts = list(theory_charts(result.extra["document"]).values())
        drawn.append((IMAGES / "theory.png", draw_sheet(charts, (6.75, 6.0), 2)))
    if "models" in have:
        study = have["models"]
        for panel in study.panels:
            context = PanelContext(page, study, panel, page.views(panel), "models")
            drawn.append((IMAGES / f"models_{panel.title}.png", draw(panel_curves(context), context.title)))
    if ARENA in have:
        scores = arena_scores(view for panel in have[ARENA].panels for view in page.views(panel))
        drawn.append((IMAGES / "arena.png", draw(relative_map(scores), "Regret relative to random")))
    for path, figure in drawn:
        save_figure(figure, path)
    return [path for path, _ in drawn]


def fill_blocks(text: str, blocks: dict[str, str]) -> str:
    """Return a page with the known blocks replaced."""
    return BLOCK.sub(lambda m: f"{m[1]}{blocks[m[2]]}{m[3]}" if m[2] in blocks else m[0], text)


def main(arguments: Sequence[str]) -> int:
    """Update all pages; return 1 if a result comes from other code."""
    if len(arguments) != 1:
        print("expected the folder of the results: python tools/pages.py results", file=sys.stderr)
        return 2
    page = read_page(ResultStore(Path(arguments[0])))
    outdated = [str(r.extra.get("name")) for r in page.shown().values() if is_outdated(r.extra.get("code") or {})]
    if outdated:
        command = f"run 'regretless reproduce --store {arguments[0]}' or 'regretless arena --out {arguments[0]}' again"
        print(f"{count_text(len(outdated), 'result')} of other code, such as {outdated[0]}: {command}", file=sys.stderr)
        return 1
    blocks, messages = make_blocks(page)
    pictures = draw_pictures(page)
    (ROOT / "docs" / "deviations.md").write_text(deviations_page(), encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text(encoding="utf-8")
        new = fill_blocks(text, blocks)
        if new != text:
            path.write_text(new, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: updated")
    print(*(f"{path.relative_to(ROOT)}: drawn" for path in pictures), *messages, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

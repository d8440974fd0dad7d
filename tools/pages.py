"""Makes what the pages show of results, from one store: ``python tools/pages.py STORE`` (``make pages``).

A page has blocks ``<!-- made: NAME -->`` … ``<!-- end -->``; each is written anew if the store holds the full run that it
shows, and stays as it is otherwise. Every result must be of the code that is here. Links to lines and the page of deviations
are written too.
"""

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools")]

from page_arena import came_out, in_short, is_arena, read_arena, whole  # noqa: E402
from page_losses import losses  # noqa: E402
from page_tables import PICTURES, by_feedback, comparison, main_table, simple_baseline, theorems  # noqa: E402

from regretless.report import claims_section, deviations  # noqa: E402
from regretless.report.curves import regret_curves  # noqa: E402
from regretless.report.figures import paper_style, save  # noqa: E402
from regretless.report.gather import SIMPLE, Page, Panel, Study, gather  # noqa: E402
from regretless.report.reproduction import reproduction  # noqa: E402
from regretless.report.writing import figure_of  # noqa: E402
from regretless.studies.arena.study import NAME as ARENA  # noqa: E402
from regretless.studies.definitions import TURNED  # noqa: E402
from regretless.studies.identity import code_version  # noqa: E402
from regretless.studies.store import Store  # noqa: E402

IMAGES = ROOT / "docs" / "images"
BOTH = ("main", "semi_bandit")
TABLES = ("main", "semi_bandit", "surrogates", "alpha", "degree", "feedback", "theory")
"""Studies without which the page of all numbers is not written."""

BLOCK = re.compile(r"(<!-- made: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
Made = dict[str, str]


def full(page: Page, names: Sequence[str]) -> dict[str, Study]:
    """These studies as far as they are in the store, whole and at full length."""
    return {
        study.name: study
        for study in page.studies
        if study.name in names and (study.paper or is_arena(study)) and study.scale.horizon is None and not study.absent
    }


def blocks(page: Page) -> tuple[Made, list[str]]:
    """The text of each block that this store can fill, and which others it cannot."""
    makers: dict[str, tuple[tuple[str, ...], Callable[[dict[str, Study]], str]]] = {
        "readme": (("main",), lambda have: main_table(have["main"])),
        "energy": (BOTH, lambda have: by_feedback(*(have[name] for name in BOTH), "energy")),
        "simple": (BOTH, lambda have: simple_baseline(*(have[name] for name in BOTH))),
        "theory": (("theory",), lambda have: theorems(have["theory"])),
        "models": (("models",), lambda have: comparison(have["models"])),
        "reproduction": (TABLES, lambda have: reproduction(papers(page))),
        "claims": (TABLES, lambda have: claims_section.words(page.claims) + "\n"),
        "arena": ((ARENA,), lambda have: came_out(read_arena(have[ARENA]))),
        "readme_arena": ((ARENA,), lambda have: in_short(read_arena(have[ARENA]))),
        "linear_arena": ((ARENA,), lambda have: "\n".join(losses(read_arena(have[ARENA]).found, SIMPLE))),
    }
    made, left = {}, []
    for name, (needs, make) in makers.items():
        have = full(page, needs)
        missing = [each for each in needs if each not in have]
        if missing:
            left.append(f"{name} stays as it is: the store has no full run of {', '.join(missing)}")
        else:
            made[name] = f"{make(have).rstrip()}\n\n{version(list(have.values()))}\n"
    return made, left


def papers(page: Page) -> Page:
    """The page with the paper's studies alone: the arena has one of its own."""
    own = [study for study in page.studies if study.name != ARENA]
    return page._replace(studies=own, code=codes(own))


def codes(studies: Sequence[Study]) -> list[str]:
    """The versions that computed these studies."""
    return sorted({cell.record["code"] for study in studies for panel in study.panels for cell in panel.cells})


def version(studies: Sequence[Study]) -> str:
    """What computed these studies, in words."""
    at = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    commit = f" at commit `{at.stdout.strip()}`" if at.returncode == 0 else ""
    return (
        f"*Made by `make pages`{commit}, from results of the code {', '.join(f'`{code}`' for code in codes(studies))}.*"
    )


def of_this_code(page: Page) -> list[str]:
    """Names of shown cells that another version of the code computed."""
    return [
        cell.record["name"]
        for cell in page.shown().values()
        if cell.record.get("code_used") != code_version(tuple(cell.record["roots"]))
    ]


def pictures(page: Page, store: Store) -> list[Path]:
    """The pictures of the pages, of what is there at full length."""
    drawn = []
    have = full(page, ("main", "theory", "models", ARENA))
    wanted = [("theory", panel) for panel in (have["theory"].panels if "theory" in have else [])]
    if ARENA in have:
        wanted.append((ARENA, whole(have[ARENA], read_arena(have[ARENA]))))
    if "models" in have:
        wanted += [(name, only(panel, name)) for name in PICTURES for panel in have["models"].panels]
    for name, panel in wanted:
        drawn.append(IMAGES / (f"{name}_{panel.title}.png" if panel.title else f"{name}.png"))
        with paper_style():
            figure = figure_of(have["models" if name in PICTURES else name], panel)
            assert figure is not None
            save(figure, drawn[-1])
    if "main" in have:
        cell = have["main"].panels[0].cells[0]
        lines = {line.name: line.mean for line in cell.references() if line.mean is not None}
        drawn.append(IMAGES / "topk_regret.png")
        title = f"topk, bandit feedback, {cell.replications} replications"
        regret_curves(store.load(cell.key).traces, lines, title, drawn[-1])
    return drawn


def only(panel: Panel, name: str) -> Panel:
    """A panel of the comparison with what one picture shows: every model's own preset, or both orientations."""
    chosen = ("dfhpg", SIMPLE) if name == "models" else ("dfhpg", TURNED.label)
    cells = [
        cell._replace(arms={label: arm for label, arm in cell.arms.items() if label in chosen})
        for cell in panel.cells
        if name == "models" or TURNED.label in cell.arms
    ]
    return panel._replace(cells=cells)


def filled(text: str, made: Made) -> str:
    """A page with its blocks written anew."""
    return BLOCK.sub(lambda match: f"{match[1]}{made[match[2]]}{match[3]}" if match[2] in made else match[0], text)


def main(arguments: Sequence[str]) -> int:
    """Writes everything; returns 1 if a result is of another version of the code."""
    if len(arguments) != 1:
        print("expected the folder of the results: python tools/pages.py results", file=sys.stderr)
        return 2
    store = Store(Path(arguments[0]))
    page = gather(store)
    foreign = of_this_code(page)
    if foreign:
        names = ", ".join(foreign[:5]) + (" and more" if len(foreign) > 5 else "")
        command = f"run 'regretless reproduce --store {arguments[0]}' or 'regretless arena --out {arguments[0]}' again"
        print(f"expected results of the code that is here, got others for {names}: {command}", file=sys.stderr)
        return 1
    made, left = blocks(page)
    drawn = pictures(page, store)
    (ROOT / "docs" / "deviations.md").write_text(deviations.page(), encoding="utf-8")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = path.read_text(encoding="utf-8")
        new = filled(text, made)
        if new != text:
            path.write_text(new, encoding="utf-8")
            print(f"{path.relative_to(ROOT)}: written")
    print(*(f"{path.relative_to(ROOT)}: drawn" for path in drawn), *left, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

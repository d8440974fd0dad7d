"""Pages of the documentation: links lead to what they name, no number of the paper is missing."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import pages  # noqa: E402

from regretless.experiments.arena import arena_study, choose_worlds  # noqa: E402
from regretless.experiments.report import read_page  # noqa: E402
from regretless.experiments.store import ResultStore  # noqa: E402
from regretless.experiments.study import Scale  # noqa: E402
from regretless_dfhpg.studies import STUDIES  # noqa: E402
from stored_results import fill_store  # noqa: E402

PAGES = sorted((ROOT / "docs").rglob("*.md"))
ALGORITHM = (ROOT / "docs" / "algorithm.md").read_text(encoding="utf-8")


def test_everything_with_a_number_is_there():
    """31 equations, 4 algorithms, 11 assumptions, 4 tables and 8 figures of the PDF, and every statement."""
    cells = re.findall(r"^\| ([^|]+) \|", ALGORITHM, re.MULTILINE)
    numbers = {int(n) for cell in cells for n in re.findall(r"\((\d+)\)", cell)}
    assert numbers == set(range(1, 32))
    for kind, last in (("Algorithm", 4), ("Assumption", 11), ("Table", 4), ("Figure", 8)):
        found = {
            int(n)
            for cell in cells
            if cell.startswith(kind)
            for n in re.findall(r"\b(\d+)\b", cell.partition(", (")[0])
        }
        assert found == set(range(1, last + 1)), kind
    statements = {
        "Remark": ["2.1"],
        "Proposition": ["2.1", "C.1", "D.2", "E.1", "E.4"],
        "Theorem": ["2.2", "2.3", "D.5", "E.6"],
        "Corollary": ["B.1"],
        "Lemma": ["D.1", "D.3", "D.4", "E.2", "E.3", "E.5"],
    }
    missing = [
        f"{kind} {number}"
        for kind, wanted in statements.items()
        for number in wanted
        if not any(cell.startswith(f"{kind} {number}") for cell in cells)
    ]
    assert not missing


def test_every_result_of_the_readme_is_in_the_reproduction():
    """The same digits: of the table cell by cell, of everything else anywhere."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    numbers = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    main = numbers[numbers.index("## Main table") : numbers.index("## Semi-bandit table")]
    parts = [part.splitlines() for part in main.split("### ")[1:]]
    known = {
        part[0].split(" (")[0]: {line.split(" | ")[0]: line for line in part if line.startswith("| ")} for part in parts
    }
    table = readme[readme.index("<!-- made: readme -->") :].split("<!-- end -->")[0]
    head, _, *rows = (line for line in table.splitlines() if line.startswith("|"))
    names = _cells(head)[1:]
    assert names == list(known) == ["Top-k", "Shortest path", "Pricing", "Energy"]
    assert len(rows) == 10
    for row in rows:
        policy, *cells = _cells(row)
        for name, cell in zip(names, cells, strict=True):
            wanted = known[name].get(f"| {policy}", "")
            for part in cell.removesuffix(")").split(" ("):
                assert part == "–" or part in wanted, (policy, name, part)
    for number in re.findall(r"\d\.\d+e\d+", readme):
        assert number in numbers, number


def _cells(row):
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def test_pages_keep_what_a_store_cannot_fill():
    page = (
        "before\n<!-- made: theory -->\nold\n<!-- end -->\nbetween\n<!-- made: models -->\nkept\n<!-- end -->\nafter\n"
    )
    assert pages.fill_blocks(page, {"theory": "new\n"}) == page.replace("old", "new")
    names = {
        name for path in [ROOT / "README.md", *PAGES] for _, name, _ in pages.BLOCK.findall(path.read_text("utf-8"))
    }
    paper = {"readme", "energy", "simple", "theory", "models", "reproduction", "claims"}
    assert names == paper | {"arena", "readme_arena", "linear_arena"}


def test_blocks_need_full_runs(tmp_path):
    store = ResultStore(tmp_path / "store")
    scale = Scale(seeds=3)
    fill_store(store, [STUDIES["main"](scale), STUDIES["semi_bandit"](scale)], scale)
    made, messages = pages.make_blocks(read_page(store))
    assert made.keys() == {"readme", "energy", "simple"}
    assert "the store has no full run of models" in "\n".join(messages)
    assert "| *best_fixed* |" in made["readme"]
    assert re.search(r"\*Made by `make pages` at commit `\w{10}`, from results of the code ", made["energy"])
    short, scale = ResultStore(tmp_path / "short"), Scale(seeds=3, horizon=20)
    fill_store(short, [STUDIES["main"](scale)], scale)
    assert pages.make_blocks(read_page(short))[0] == {}


def test_the_arena_fills_its_blocks(tmp_path):
    worlds, scale = choose_worlds(["three", "wave20", "pricing"]), Scale(seeds=3, first_seed=1000)
    store = ResultStore(tmp_path)
    fill_store(store, [arena_study(worlds, ["adaptive", "eb_thompson"], scale)], scale)
    page = read_page(store)
    made, _ = pages.make_blocks(page)
    assert made.keys() == {"arena", "readme_arena", "linear_arena"}
    text = made["arena"]
    assert text.startswith("3 replications, seeds 1000 to 1002, 3 of ")
    assert "| three | one of three items | " in text
    assert "| world | about | random | best fixed | " in text
    assert "over eb_thompson" in text
    assert "### Held-out worlds" in text
    assert "Above 1.15 times the best other policy: " in text
    bars = {line.count("|") for line in text.splitlines() if line.startswith("|")}
    assert bars == {10, 7}  # of the totals and of the worlds
    scores = pages.arena_scores(v for study in page.studies for panel in study.panels for v in page.views(panel))
    assert pages.relative_map(scores).grid.shape == (3, 2)

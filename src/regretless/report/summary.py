"""The report in sentences: what was run, what agrees with the paper, what does not, and what is still to come."""

from collections.abc import Iterable, Sequence

from regretless.report import overview
from regretless.report.gather import ENOUGH, Page, Shown, Study
from regretless.report.html import Markup, tag, text
from regretless.report.kinds import KINDS, arena
from regretless.report.words import counted, duration, listed
from regretless.show.words import number, spread
from regretless.studies.arena.scores import Score
from regretless.studies.claims.evaluate import tally
from regretless.studies.claims.statistics import AGREES, DISAGREES, NOT_RUN, OPEN

SHORT = "This is a short run: its numbers are not comparable with the published ones, which are left out."
NAMED = 8
"""So many things of a kind are named; the rest is counted."""


def summary(page: Page) -> Markup:
    """A list of sentences, with links to the sections that they are about."""
    reproduced, compared = overview.tally(page)
    told = [ran(page)]
    if page.paper:
        told += [agreement(reproduced, compared), claims(page), *theorems(page), *differences(page, compared)]
    told += own([study for study in page.studies if not study.paper])
    return tag("ul", *(tag("li", each) for each in [*told, pending(page)] if each), class_="summary")


def ran(page: Page) -> Markup:
    """How much was run, by what, on what and for how long."""
    shown = page.shown()
    absent = {name for study in page.studies for name in study.absent}
    studies = counted(len(page.studies), "study", "studies")
    papers = sum(study.paper for study in page.studies)
    if papers:
        studies = counted(papers, "study", "studies") + " of the paper"
        studies += f" and {counted(len(page.studies) - papers, 'own one')}" if papers < len(page.studies) else ""
    cells = f"{len(shown)} of {len(shown) + len(absent)} cells" if absent else counted(len(shown), "cell")
    if not shown:
        return text(f"{studies}, {cells}: nothing is computed yet.")
    seconds = sum(cell.record["wall_seconds"] for cell in shown.values())
    devices = list(dict.fromkeys(device for cell in shown.values() for device in cell.devices))
    parts = [studies, cells, scale(shown.values())]
    by = f"computed in {duration(seconds)} on {listed(devices)} with code {listed(page.code)}"
    return text(f"{', '.join(filter(None, parts))}; {by}.")


def scale(cells: Iterable[Shown]) -> str:
    """How many replications of how many rounds; nothing for cells that are not played round by round."""
    every = list(cells)
    horizons = [cell.record["horizon"] for cell in every if "horizon" in cell.record]
    played = [cell.seeds for cell in every if cell.seeds]
    if not horizons or not played:
        return ""
    fewest, most = min(map(len, played)), max(map(len, played))
    first, last = min(map(min, played)), max(map(max, played))
    count = counted(most, "replication") if fewest == most else f"{fewest} to {most} replications"
    seeds = f"seed {first}" if first == last else f"seeds {first} to {last}"
    low, high = min(horizons), max(horizons)
    rounds = counted(low, "round") if low == high else f"{low:,} to {high:,} rounds"
    return f"{count} ({seeds}) of {rounds}"


def agreement(reproduced: int, compared: int) -> Markup:
    """How many of the published cells are reproduced."""
    if not compared:
        return text(SHORT)
    many = f"{reproduced} of {counted(compared, 'published cell')}"
    verb = "is" if reproduced == 1 else "are"
    return f"{_link('overview', many)} {verb} reproduced: within three standard errors of the paper's value."


def claims(page: Page) -> Markup:
    """How the claims of the paper's text came out."""
    found = tally(page.claims)
    verbs = {AGREES: "agree", DISAGREES: "disagree", OPEN: "cannot be told", NOT_RUN: "wait for results"}
    ends = [f"{found[name]} {verb}" for name, verb in verbs.items() if found.get(name)]
    if not ends:
        return ""
    many = _link("claims", counted(len(page.claims), "claim"))
    return f"Of {many} in the paper's text {text(listed(ends))}."


def theorems(page: Page) -> list[Markup]:
    """How many statements of the theorems hold; nothing of a short run, which does not judge them."""
    found = []
    for study, verdicts in _measured(page):
        hold = sum(verdict == "holds" for _, verdict in verdicts)
        many = _link(study.place, counted(len(verdicts), "measured statement"))
        found.append(f"Of {many} of the theorems {hold} {'holds' if hold == 1 else 'hold'}.")
    return found


def differences(page: Page, compared: int) -> list[Markup]:
    """What does not agree with the paper, each a link to where it stands."""
    cells = [
        _link(study.place, f"{row.name} on {panel.name}, {row.feedback.replace('_', '-')} (z = {row.verdict.z:+.1f})")
        for study, panel in page.panels()
        for row in (KINDS[panel.kind].rows(panel) if panel.cells else ())
        if row.verdict is not None and not row.verdict.reproduced
    ]
    said = [
        _link(f"claim-{index}", f"“{outcome.line.words}”")
        for index, outcome in enumerate(page.claims)
        if outcome.verdict == DISAGREES
    ]
    stated = [
        _link(study.place, claim)
        for study, verdicts in _measured(page)
        for claim, verdict in verdicts
        if verdict == "does not hold"
    ]
    kinds = (("Not reproduced: ", cells), ("Claims that the runs contradict: ", said), ("Does not hold: ", stated))
    found = [words + _named(links) + "." for words, links in kinds if links]
    return found or (["Nothing that was compared contradicts the paper."] if compared else [])


def own(studies: Sequence[Study]) -> list[Markup]:
    """Who has the lowest regret in the studies that are not the paper's."""
    told: list[Markup] = []
    for study in studies:
        found = arena.scores([panel for panel in study.panels if panel.kind == "arena"])
        told += [_champion(study, found)] if found else _lowest_of(study, len(studies) > 1)
    rest = len(told) - NAMED
    return told[:NAMED] + ([text(f"{counted(rest, 'more cell')} below.")] if rest > 0 else [])


def _lowest_of(study: Study, several: bool) -> list[Markup]:
    """A sentence for each cell; it names the study where there are several of them."""
    places: dict[str, tuple[list[str], Shown]] = {}
    for panel in study.panels:
        for cell in panel.cells:
            places.setdefault(cell.key, ([panel.name, cell.label], cell))
    title = [study.title] if several else []
    alone = len(places) == 1
    told = [_lowest(study, title + ([] if alone else where), cell) for where, cell in places.values()]
    return list(filter(None, told))


def _champion(study: Study, found: dict[str, dict[str, Score]]) -> Markup:
    ranked = sorted(arena.totals(found), key=lambda each: each.relative)
    best, others = ranked[0], [f"{each.policy} {number(each.relative)}" for each in ranked[1:]]
    interval = f"95 % interval {number(best.interval[0])} to {number(best.interval[1])}"
    beyond = f"; then {listed(others)}" if others else ""
    told = f"of random's regret over {counted(len(found), 'world')}, {interval}{beyond}"
    return f"{_link(study.place, best.policy)} has the lowest regret: {text(f'{number(best.relative)} {told}.')}"


def _lowest(study: Study, where: Sequence[str], cell: Shown) -> Markup:
    ranked = sorted((arm.mean, label) for label, arm in cell.arms.items() if arm.mean == arm.mean)
    if len(ranked) < 2:
        return ""
    best, second = (cell.arms[label] for _, label in ranked[:2])
    names = ", ".join(filter(None, where))
    start = f"{_link(study.place, names)}: " if names else ""
    few = "" if cell.replications >= ENOUGH else f", from {counted(cell.replications, 'replication')} only"
    told = f"{spread(best.mean, best.error)}, before {second.label} with {spread(second.mean, second.error)}{few}"
    return f"{start}{text(f'{best.label} has the lowest mean final regret, {told}.')}"


def pending(page: Page) -> Markup:
    """What is not computed yet, by study."""
    links = [
        _link(study.place, f"{study.title.split(':')[0]} ({counted(len(study.absent), 'cell')})")
        for study in page.studies
        if study.absent
    ]
    return f"Not computed yet: {listed(links)}." if links else ""


def _measured(page: Page) -> list[tuple[Study, list[tuple[str, str]]]]:
    """The theory studies that judge, with the statement and the verdict of every claim."""
    found = []
    for study, panel in page.panels():
        documents = [cell.record["document"] for cell in panel.cells if panel.kind == "theory"]
        for document in (each for each in documents if not each.get("short")):
            told = [
                (", ".join(filter(None, (each["statement"], each["quantity"], each["setting"]))), each["verdict"])
                for each in document["claims"]
            ]
            found.append((study, told))
    return found


def _named(links: Sequence[Markup]) -> Markup:
    rest = len(links) - NAMED
    return listed([*links[:NAMED], *([f"{rest} more"] if rest > 0 else [])])


def _link(place: str, words: str) -> Markup:
    return tag("a", text(words), href=f"#{place}")

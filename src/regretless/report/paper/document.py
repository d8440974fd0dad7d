"""A LaTeX document around the figures and tables, with captions that say what was run; plain pdflatex compiles it."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from regretless.report.gather import Page, Panel
from regretless.report.words import benchmark, latex_text
from regretless.show.words import one_line

PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage{booktabs}
\usepackage{graphicx}
\usepackage{amsmath}
\setlength{\textwidth}{6.75in}
\setlength{\oddsidemargin}{-0.125in}
\setlength{\textheight}{9in}
\setlength{\topmargin}{-0.5in}
\begin{document}
"""


BEYOND = r"""\clearpage
\section*{Beyond the paper}
\renewcommand{\thefigure}{S\arabic{figure}}
\renewcommand{\thetable}{S\arabic{table}}
\setcounter{figure}{0}
\setcounter{table}{0}
"""


class Piece(NamedTuple):
    """A float of the document: the files of a figure (without their suffix) or of a table, and its caption in LaTeX."""

    form: str  # figure or table
    number: int | None  # the paper's; None: counted on
    files: Sequence[str]
    caption: str
    whole: bool = False  # a figure of any size, scaled to the page


def document(page: Page, paper: Iterable[Piece], more: Sequence[Piece], missing: Sequence[str]) -> str:
    """The whole document; what is not computed yet is named in comments at its top."""
    parts = [*(f"% {_comment(line)}" for line in missing), PREAMBLE]
    title = "Figures and tables of the paper, from our own runs" if page.paper else page.titles
    parts += [rf"\section*{{{latex_text(title)}}}", f"{_about(page)}\n"]
    parts += [_float(piece) for piece in paper]
    parts += [BEYOND] if more and page.paper else []
    return "\n".join([*parts, *(_float(piece) for piece in more), r"\end{document}", ""])


def ran(panels: Sequence[Panel]) -> str:
    """What was run for these panels, in LaTeX: seeds, rounds and the version of the code."""
    cells = [cell for panel in panels for cell in panel.cells]
    seeds = sorted({seed for cell in cells for seed in cell.seeds})
    counts = sorted({cell.replications for cell in cells if cell.replications})
    rounds = sorted({int(cell.record["horizon"]) for cell in cells if "horizon" in cell.record})
    code = sorted({str(cell.record["code"]) for panel in panels for cell in [*panel.cells, *panel.lenders]})
    words = []
    if counts and seeds:
        plural = "" if counts == [1] else "s"
        words.append(f"{_or(counts)} replication{plural} (seeds {seeds[0]} to {seeds[-1]})")
    if rounds:
        words.append(f"{_or(rounds)} rounds")
    words.append(f"code {' and '.join(code)}")
    diverged = any(arm.diverged for cell in cells for arm in cell.arms.values())
    left_out = " Replications that diverged are left out (marked * in tables)." if diverged else ""
    return latex_text(f"Run: {', '.join(words)}.{left_out}")


def lacking(titles: Sequence[str], cells: int) -> str:
    """What a float still lacks, in LaTeX; empty if it is complete."""
    words = [f"Not computed yet: {', '.join(benchmark(title) for title in titles)}."] if titles else []
    words += (
        ["One cell is not computed yet." if cells == 1 else f"{cells} cells are not computed yet."] if cells else []
    )
    return latex_text(" ".join(words))


def _or(numbers: Sequence[int]) -> str:
    return " or ".join(f"{each:,}" for each in numbers)


def _about(page: Page) -> str:
    short = any(study.scale.horizon is not None for study in page.studies)
    words = f"Written by regretless from stored results, computed with code {' and '.join(page.code)}."
    words += " Figures and tables have the paper's numbers." if page.paper else ""
    if short:
        words += (
            " Some of these are short runs with fewer rounds than the paper's: they are not to be compared with it."
        )
    return latex_text(words)


def _float(piece: Piece) -> str:
    lines = [rf"\begin{{{piece.form}}}[!htbp]", r"\centering"]
    if piece.number is not None:
        lines.insert(0, rf"\setcounter{{{piece.form}}}{{{piece.number - 1}}}")
    caption = rf"\caption{{{piece.caption}}}"
    if piece.form == "table":
        lines += [caption, r"\scriptsize", r"\setlength{\tabcolsep}{3pt}"]
        lines += [rf"\input{{{file}}}" for file in piece.files]
    else:
        options = r"[width=\textwidth,height=0.8\textheight,keepaspectratio]" if piece.whole else ""
        lines += [rf"\includegraphics{options}{{{file}}}" for file in piece.files]
        lines.append(caption)
    return "\n".join([*lines, rf"\end{{{piece.form}}}", ""])


def _comment(words: str) -> str:
    """One line of ASCII, for behind a percent sign."""
    return one_line(words).encode("ascii", "replace").decode("ascii")

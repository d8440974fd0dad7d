"""A small check of LaTeX documents where no TeX is installed: what plain pdflatex would stumble over."""

import re
from pathlib import Path

PACKAGES = {"booktabs", "graphicx", "amsmath"}
COMMANDS = set(
    """
    documentclass usepackage setlength setcounter renewcommand arabic thefigure thetable begin end section
    clearpage par     medskip centering caption scriptsize input includegraphics textwidth textheight
    oddsidemargin topmargin tabcolsep toprule     midrule bottomrule cmidrule multicolumn textit phantom
    mathbf mathrm pm times max min textbackslash textasciicircum     textasciitilde textless textgreater
    textbar dots alpha beta gamma delta varepsilon eta theta kappa lambda mu sigma tau phi     varphi cdot le
    ge ne approx infty to nabla circ surd ss
    """.split()  # noqa: SIM905
)
SILENT = (
    r"\\(?:usepackage|input|includegraphics|begin|end|setlength|setcounter|cmidrule)"
    r"(?:\[[^]]*\]|\([a-z]*\))?(?:\{[^{}]*\})*"
)
INCHES, LETTER, GAP = 6.75, 0.05, 6 / 72


def faults(path: Path) -> list[str]:
    """What is wrong with a document and the files that it takes in; empty if nothing is."""
    raw = path.read_text(encoding="utf-8")
    text = re.sub(r"(?<!\\)%.*", "", raw)
    strange = sorted({char for char in raw if not char.isascii()})
    found = [f"letters that are not ASCII: {strange}"] if strange else []
    found += _braces(text) + _environments(text) + _commands(text) + _characters(text) + _tables(text)
    for options, name in re.findall(r"\\includegraphics(\[[^]]*\])?\{([^}]*)\}", text):
        if not (path.parent / f"{name}.pdf").is_file():
            found.append(f"no file for {name} {options}")
    found = [f"{path.name}: {fault}" for fault in found]
    for name in re.findall(r"\\input\{([^}]*)\}", text):
        found += faults(path.parent / f"{name}.tex")
    return found


def _braces(text: str) -> list[str]:
    depth = 0
    for brace in re.findall(r"(?<!\\)(?:\\\\)*([{}])", text):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return ["a brace is closed that was not opened"]
    return [f"{depth} braces are not closed"] if depth else []


def _environments(text: str) -> list[str]:
    stack: list[str] = []
    for which, name in re.findall(r"\\(begin|end)\{(\w+)\}", text):
        if which == "begin":
            stack.append(name)
        elif not stack or stack.pop() != name:
            return [f"\\end{{{name}}} ends something else"]
    return [f"{stack} not ended"] if stack else []


def _commands(text: str) -> list[str]:
    used = set(re.findall(r"\\([A-Za-z]+)", text.replace(r"\\", " ")))
    packages = set(re.findall(r"\\usepackage\{(\w+)\}", text))
    return [f"unknown command {name}" for name in used - COMMANDS] + [f"package {name}" for name in packages - PACKAGES]


def _characters(text: str) -> list[str]:
    """Letters with a meaning where they have none."""
    plain = re.sub(SILENT, " ", text.replace(r"\\", " "))
    plain = re.sub(r"\\[$&#_%{}]", " ", plain)
    if plain.count("$") % 2:
        return ["a dollar is missing"]
    outside = re.sub(r"\$[^$]*\$", " ", plain)
    found = [f"{char} outside of mathematics" for char in "_^#" if char in re.sub(r"\\[\^]\{", " ", outside)]
    tables = re.sub(r"\\begin\{tabular\}.*?\\end\{tabular\}", " ", text, flags=re.DOTALL)
    return found + ["& outside of a table"] * bool(re.search(r"(?<!\\)&", tables))


def _tables(text: str) -> list[str]:
    found = []
    for form, body in re.findall(r"\\begin\{tabular\}\{([lcr]+)\}(.*?)\\end\{tabular\}", text, flags=re.DOTALL):
        widths = [0.0] * len(form)
        for row in re.sub(r"\\(top|mid|bottom)rule|\\cmidrule\(lr\)\{[^}]*\}", "", body).split(r"\\"):
            if not row.strip():
                continue
            cells = re.split(r"(?<!\\)&", row)
            spans = [int(span) for span in re.findall(r"\\multicolumn\{(\d+)\}", row)]
            if len(cells) - len(spans) + sum(spans) != len(form):
                found.append(f"{len(cells)} cells instead of {len(form)}: {row.strip()[:60]}")
            elif not spans:
                widths = [max(width, _inches(cell)) for width, cell in zip(widths, cells, strict=True)]
        if sum(widths) + GAP * len(form) > INCHES:
            found.append(f"a table of about {sum(widths) + GAP * len(form):.1f} inches")
    return found


def _inches(cell: str) -> float:
    """About the width of a cell in small letters."""
    return LETTER * len(re.sub(r"\\[A-Za-z]+|[${}^_\\ ]", "", cell.replace(r"\pm", "+")))

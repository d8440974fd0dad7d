"""Copy the source files that the built pages link to: ``python tools/page_sources.py SITE``, after the pages are built.

Each line of a copy has an anchor, and the line that a link leads to is highlighted.
"""

import html
import re
import sys
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r'href="(?:\.\./)*code/((?:src|papers|tests|benchmarks|examples)/[\w/.]+\.py)\.html(?:#L-\d+)?"')
LIGHT = HtmlFormatter(style="friendly", linenos="inline", linespans="L", cssclass="code")
DARK = HtmlFormatter(style="nord", cssclass="code")
STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; background: #fff; color: #1d2430; font: 15px/1.55 system-ui, sans-serif; }
h1 { margin: 0; padding: 0.8rem 1rem; border-bottom: 1px solid #8884; font-size: 1rem; overflow-wrap: anywhere; }
pre { margin: 0; padding: 0.8rem 0; overflow-x: auto; font: 13px/1.5 ui-monospace, "JetBrains Mono", monospace; }
pre > span { display: block; padding: 0 1rem; width: max-content; min-width: calc(100% - 2rem); }
pre > span { scroll-margin-top: 30vh; }
.linenos { opacity: 0.5; padding-right: 1rem; user-select: none; }
"""
LAST = " .code, .code * { background: none !important; } pre > span:target { background: #ffd54a55 !important; }"


def linked(site: Path) -> set[str]:
    """Return the source files that pages link to, as paths in the repository."""
    return {path for page in site.rglob("*.html") for path in LINK.findall(page.read_text(encoding="utf-8"))}


def copied(path: str) -> str:
    """Return one source file as an HTML page."""
    source = (ROOT / path).read_text(encoding="utf-8")
    code = highlight(source, PythonLexer(stripnl=False), LIGHT).replace("\n</span>", "</span>")
    night = f"body {{ background: #16181d; color: #e8eaee; }} {DARK.get_style_defs('.code')}"
    style = f"{LIGHT.get_style_defs('.code')}{STYLE}@media (prefers-color-scheme: dark) {{ {night} }}{LAST}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<link rel="icon" href="data:,"><title>{html.escape(path)}</title><style>{style}</style></head>'
        f"<body><h1>{html.escape(path)}</h1>{code}</body></html>\n"
    )


def main(site: Path) -> None:
    """Write every copy below ``site/code``."""
    for path in sorted(linked(site)):
        page = site / "code" / f"{path}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(copied(path), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

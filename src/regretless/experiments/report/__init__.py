"""The report: one HTML page, figures, tables and Markdown from stored results.

Packages extend it through the entry point ``regretless.report``, see ``ReportExtension``.
"""

from regretless.experiments.report.content import (
    Card,
    Chart,
    Note,
    Section,
    Table,
    TableRow,
    Value,
    count_text,
    file_names,
    join_words,
    to_markdown,
)
from regretless.experiments.report.gather import CellView, Page, PublishedComparison, read_page
from regretless.experiments.report.page import (
    ReportExtension,
    SummaryPart,
    make_sections,
    render_page,
    scale_text,
    write_report,
)
from regretless.experiments.report.panels import (
    BENCHMARK_NAMES,
    PANELS,
    PanelContext,
    PanelFunction,
    panel_curves,
    panel_function,
)

__all__ = [
    "BENCHMARK_NAMES",
    "PANELS",
    "Card",
    "CellView",
    "Chart",
    "Note",
    "Page",
    "PanelContext",
    "PanelFunction",
    "PublishedComparison",
    "ReportExtension",
    "Section",
    "SummaryPart",
    "Table",
    "TableRow",
    "Value",
    "count_text",
    "file_names",
    "join_words",
    "make_sections",
    "panel_curves",
    "panel_function",
    "read_page",
    "render_page",
    "scale_text",
    "to_markdown",
    "write_report",
]

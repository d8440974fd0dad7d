"""The report: one HTML page, figures, tables and Markdown from stored results.

Packages extend it through the entry point ``regretless.report``, see ``ReportExtension``.
"""

from regretless.experiments.report.content import (
    Card,
    CellView,
    Chart,
    Note,
    Page,
    PublishedComparison,
    Section,
    Table,
    TableRow,
    Value,
    file_names,
    read_page,
    to_markdown,
)
from regretless.experiments.report.page import ReportExtension, make_sections, render_page, scale_text, write_report
from regretless.experiments.report.panels import BENCHMARK_NAMES, PANELS, PanelContext, panel_curves, panel_function

__all__ = [
    "BENCHMARK_NAMES",
    "PANELS",
    "Card",
    "CellView",
    "Chart",
    "Note",
    "Page",
    "PanelContext",
    "PublishedComparison",
    "ReportExtension",
    "Section",
    "Table",
    "TableRow",
    "Value",
    "file_names",
    "make_sections",
    "panel_curves",
    "panel_function",
    "read_page",
    "render_page",
    "scale_text",
    "to_markdown",
    "write_report",
]

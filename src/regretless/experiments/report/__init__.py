"""The report: one HTML page, figures, tables and Markdown from stored results."""

from regretless.experiments.report.content import Card, Chart, Note, Section, Table, TableRow, Value, to_markdown
from regretless.experiments.report.gather import CellView, Page, PublishedComparison, read_page
from regretless.experiments.report.page import ReportExtension, write_report
from regretless.experiments.report.panels import PANELS, PanelContext

__all__ = [
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
    "read_page",
    "to_markdown",
    "write_report",
]

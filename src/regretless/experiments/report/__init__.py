"""The report: one HTML page, figures, tables and Markdown from stored results.

Packages extend it through the entry point ``regretless.report``, see ``ReportExtension``.
"""

from typing import TYPE_CHECKING

from regretless.registry import lazy_exports

if TYPE_CHECKING:
    from regretless.experiments.report.content import Card as Card
    from regretless.experiments.report.content import CellView as CellView
    from regretless.experiments.report.content import Chart as Chart
    from regretless.experiments.report.content import Note as Note
    from regretless.experiments.report.content import Page as Page
    from regretless.experiments.report.content import PublishedComparison as PublishedComparison
    from regretless.experiments.report.content import Section as Section
    from regretless.experiments.report.content import Table as Table
    from regretless.experiments.report.content import TableRow as TableRow
    from regretless.experiments.report.content import Value as Value
    from regretless.experiments.report.content import file_names as file_names
    from regretless.experiments.report.content import read_page as read_page
    from regretless.experiments.report.content import to_markdown as to_markdown
    from regretless.experiments.report.page import ReportExtension as ReportExtension
    from regretless.experiments.report.page import make_sections as make_sections
    from regretless.experiments.report.page import render_page as render_page
    from regretless.experiments.report.page import scale_text as scale_text
    from regretless.experiments.report.page import write_report as write_report
    from regretless.experiments.report.panels import BENCHMARK_NAMES as BENCHMARK_NAMES
    from regretless.experiments.report.panels import PANELS as PANELS
    from regretless.experiments.report.panels import PanelContext as PanelContext
    from regretless.experiments.report.panels import panel_curves as panel_curves
    from regretless.experiments.report.panels import panel_function as panel_function

__all__, __getattr__, __dir__ = lazy_exports(__name__)

"""A study's report in the format that was asked for, and its figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tgsr.study._folder import StudyFolder


def write_report(folder: StudyFolder, kind: str, output: str | None, figures: str | None) -> list[Path]:
    """Write the report, and the figures where a folder is given; returns what was written."""
    from tgsr.study._results import results_of

    results = results_of(folder)
    if kind == "html":
        from tgsr.report._study_page import write_study_report

        written = [write_study_report(results, folder.path / "report.html" if output is None else Path(output))]
    else:
        from tgsr.report._formats import write_tables

        written = [*write_tables(results, folder.path / "tables" if output is None else Path(output), kind)]
    if figures is not None:
        from tgsr.report._study_figures import save_figures

        written += save_figures(results, Path(figures))
    return written

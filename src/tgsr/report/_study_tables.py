"""Every table of a study's report, in sections: the ablation, the tasks, cost, failures, where it all comes from."""

from __future__ import annotations

from tgsr._errors import plain
from tgsr.report._citations import citations, citations_table
from tgsr.report._study_tables_ablations import ablation_section
from tgsr.report._study_tables_cost import cost_tables
from tgsr.report._study_tables_pairs import pair_tables
from tgsr.report._study_tables_record import contradictions_table, failure_tables, provenance_tables
from tgsr.report._study_tables_task import exclusions_table, task_tables
from tgsr.report._table import CITATIONS, COST, FAILURES, PAPER, PROVENANCE
from tgsr.report._table import Section as Section
from tgsr.report._table import Table as Table
from tgsr.report._task_view import TaskView, views
from tgsr.study._results import StudyResults


def study_tables(results: StudyResults) -> tuple[Section, ...]:
    """All sections that the study has something for. The ablation comes first where the study is one that ships."""
    tasks = views(results)
    ablation = ablation_section(results, tasks)
    sections = [ablation] if ablation else []
    sections += [task_section(view) for view in tasks]
    if tasks:
        told = "What the methods spent. Equal budgets are part of a fair comparison."
        sections.append(Section(COST, "Cost", told, tuple(cost_tables(tasks))))
    failed = "Nothing that failed is left out of a count."
    sections.append(Section(FAILURES, "Failures", failed, tuple(failure_tables(results))))
    came = "Where the numbers come from."
    sections.append(Section(PROVENANCE, "Provenance", came, tuple(provenance_tables(results))))
    told_twice = contradictions_table(results, tasks)
    if told_twice:
        sections.append(Section(PAPER, "The paper", "Before its numbers are compared with ours.", (told_twice,)))
    used = citations_table(citations(results, tasks))
    sections.append(Section(CITATIONS, "Citations", "What this report used, and no more.", (used,)))
    return tuple(sections)


def task_section(view: TaskView) -> Section:
    """What there is of one task."""
    left_out = exclusions_table(view) if view.has_truth else None
    tables = [*task_tables(view), *pair_tables(view), *([left_out] if left_out else [])]
    asked = f"Profile '{plain(view.results.profile, 60)}', " if view.results.profile else ""
    told = (
        f"{asked}budget '{plain(view.results.budget, 60)}', {plain(view.results.preset, 300) or 'network not stated'}."
    )
    return Section(view.task, plain(view.task, 80), told, tuple(tables))

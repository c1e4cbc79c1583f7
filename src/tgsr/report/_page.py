"""The page of one run: a single HTML file that loads nothing, runs nothing and can be read anywhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tgsr._errors import InputError, plain
from tgsr.report._facts import comparison_rows, correlation_rows, header, provenance_rows, unknown_cards
from tgsr.report._field_panels import field_panels
from tgsr.report._history_panels import comparison_panels, history_panels
from tgsr.report._panel import Panel
from tgsr.report._readings import readings_of
from tgsr.report._residual_panels import residual_panels
from tgsr.report._svg import colour_variables, panel_svg
from tgsr.report._words import method_labels, reproduce
from tgsr.storage import write_bytes

if TYPE_CHECKING:
    from jinja2 import Environment

    from tgsr._result import Result
    from tgsr._truth import Errors

LIMIT = 5_000_000  # bytes of a page
MOST_PANELS = 30  # of a section


@dataclass(frozen=True)
class Figure:
    """A panel ready for the page."""

    identity: str
    title: str
    words: str
    svg: str


def write_run_report(
    result: Result,
    path: str | Path,
    *,
    comparisons: Sequence[Result] = (),
    truth_errors: Errors | Sequence[Errors | None] | None = None,
) -> Path:
    """Write the page of `result` to `path` and return that path.

    `comparisons` are other results of the same problem, put beside it. `truth_errors` are what `tgsr.evaluate` said
    where a truth is known: of the result, or of it and every comparison in order.
    """
    target = Path(path)
    page = run_page(result, comparisons=comparisons, truth_errors=truth_errors).encode()
    if len(page) > LIMIT:
        raise InputError(f"the page would have {len(page):,} bytes, more than {LIMIT:,}", file=target)
    target.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(target, page)
    return target


def run_page(
    result: Result,
    *,
    comparisons: Sequence[Result] = (),
    truth_errors: Errors | Sequence[Errors | None] | None = None,
) -> str:
    """The text of the page. The same results give the same text."""
    everyone = [result, *comparisons]
    known = _per_result(truth_errors, len(everyone))
    readings = readings_of(result)
    command, lines = reproduce(result)
    context: dict[str, Any] = {
        "head": header(result, known[0]),
        "unknowns": unknown_cards(result, known[0]),
        "compared": comparison_rows(everyone, method_labels(everyone), known) if comparisons else None,
        "compared_figures": _figures("vs", comparison_panels(everyone)) if comparisons else [],
        "history": _figures("history", history_panels(result)),
        "fields": _figures("field", field_panels(result, readings)),
        "residuals": _figures("residual", (panel for r in readings for panel in residual_panels(r))),
        "correlation": correlation_rows(result),
        "provenance": provenance_rows(result),
        "command": command,
        "lines": lines,
    }
    return render("run.html.j2", context)


def render(template: str, context: dict[str, Any], *, sheets: Sequence[str] = ("page.css",), script: str = "") -> str:
    """A page from its template, with its style sheets, at most one script, and the policy that allows just these."""
    style, code = style_sheet(*sheets), template_text(script) if script else ""
    policy = f"default-src 'none'; style-src {_digest(style)}; "
    policy += f"script-src {_digest(code)}; " if script else ""
    policy += "img-src data:; base-uri 'none'; form-action 'none'"
    return _templates().get_template(template).render(**context, style=style, script=code, policy=policy)


@cache
def style_sheet(*names: str) -> str:
    """Style sheets in one, with the colours of the pictures for light and dark pages."""
    source = "".join(map(template_text, names))
    return source.replace("/* light colours */", colour_variables(False)).replace(
        "/* dark colours */", colour_variables(True)
    )


def template_text(name: str) -> str:
    """The text of a file beside the templates."""
    source, _, _ = _templates().loader.get_source(_templates(), name)  # type: ignore[union-attr]
    return source


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("tgsr.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _figures(section: str, panels: Iterable[Panel]) -> list[Figure]:
    shown = list(panels)[:MOST_PANELS]
    return [
        Figure(
            f"{section}-{i}", plain(p.title.replace(r"\$", "$")), plain(p.words, 600), panel_svg(p, f"{section}-{i}")
        )
        for i, p in enumerate(shown)
    ]


def _per_result(errors: Errors | Sequence[Errors | None] | None, count: int) -> list[Errors | None]:
    if errors is None:
        return [None] * count
    if not isinstance(errors, Sequence):
        return [errors, *[None] * (count - 1)]
    if len(errors) != count:
        raise InputError(
            f"truth_errors has {len(errors)} entries for {count} results",
            field="truth_errors",
            remedy="Give one for the result and one for each comparison (None where it is not known)",
        )
    return list(errors)

"""The tables of a study for a paper: booktabs, one label per table, every character of foreign origin escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tgsr._errors import plain
from tgsr.report._table import Cell, Column, Section, Table

HEAD = """\
% Tables of a study, to be read in with \\input. In the preamble:
% \\usepackage[utf8]{inputenc} \\usepackage{booktabs,longtable,array,graphicx}
"""
MOST_ROWS = 40  # a longer table goes on over pages
WIDE = 5  # columns from which a table is shrunk to the width of the text
LONG = 40  # characters from which a column of words breaks its lines

_COMMANDS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%", "#": r"\#", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"$|$", '"': "''",
    "±": r"$\pm$", "\N{MINUS SIGN}": r"$-$", "∞": r"$\infty$", "\N{MULTIPLICATION SIGN}": r"$\times$",
    "\N{EN DASH}": "--", "\N{EM DASH}": "---", "≤": r"$\leq$", "≥": r"$\geq$", "→": r"$\rightarrow$",
    "²": r"$^2$", "³": r"$^3$", "µ": r"$\mu$", "·": r"$\cdot$", "°": r"$^\circ$", "…": r"\ldots{}",
    "\N{LEFT SINGLE QUOTATION MARK}": "`", "\N{RIGHT SINGLE QUOTATION MARK}": "'", "“": "``", "”": "''",
    **{
        letter: rf"$\{name}$" for letter, name in zip(
            "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΦΨΩ",
            "alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon "
            "varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega".split(), strict=True)
    },
}  # fmt: skip
_POWER = re.compile(r"(?<![\w.])(\d(?:\.\d+)?)e(-?\d+)\b")


def latex(sections: Sequence[Section], title: str) -> str:
    """All tables, with a comment where a section begins."""
    parts = [HEAD, f"% {_comment(title)}\n"]
    for section in sections:
        parts.append(f"% {_comment(section.title)}\n")
        parts += [latex_table(table) for table in section.tables if table.rows]
    return "\n".join(parts)


def latex_table(table: Table) -> str:
    """A floating table, or a long one that may break over pages."""
    columns = "".join(_alignment(table, i) for i in range(len(table.columns)))
    heading = _line(_heading(column) for column in table.columns)
    body = [_line(map(_cell, row, table.columns)) for row in table.rows]
    caption = rf"\caption{{{escaped(_told(table))}}}"
    label = rf"\label{{tab:{table.key}}}"
    if len(table.rows) > MOST_ROWS:
        lines = [rf"\begin{{longtable}}{{{columns}}}", caption + label + r"\\", r"\toprule", heading, r"\midrule",
                 r"\endhead", r"\bottomrule", r"\endfoot", *body, r"\end{longtable}"]  # fmt: skip
        return "\n".join(lines) + "\n"
    inside = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        heading,
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if len(table.columns) >= WIDE:
        inside = [r"\resizebox{\textwidth}{!}{%", *inside[:-1], r"\end{tabular}}"]
    return "\n".join([r"\begin{table}[htbp]", r"\centering", caption, label, *inside, r"\end{table}"]) + "\n"


def escaped(text: str) -> str:
    """Text of any origin on one line. What no usual font has is written as its code: the file always compiles."""
    return "".join(_COMMANDS.get(c, c if ord(c) < 0x180 else f"[U+{ord(c):04X}]") for c in plain(text, 4000))


def _told(table: Table) -> str:
    return " ".join([f"{table.title}.", table.words, *table.notes])


def _cell(cell: Cell, column: Column) -> str:
    shown = escaped(cell.text)
    if column.align == "right":
        shown = _POWER.sub(r"$\1\\times10^{\2}$", shown)
    note = f" ({escaped(cell.note)})" if cell.note else ""
    return (rf"\textbf{{\boldmath {shown}}}" if cell.best and shown else shown) + note


def _heading(column: Column) -> str:
    shown = escaped(column.heading)
    return rf"\emph{{{shown}}}" if column.paper and shown else shown


def _alignment(table: Table, at: int) -> str:
    if table.columns[at].align != "left":
        return "r"
    longest = max((len(row[at].text) for row in table.rows), default=0)
    return r">{\raggedright\arraybackslash}p{0.32\textwidth}" if longest > LONG else "l"


def _line(cells: Iterable[str]) -> str:
    # A bracket or a star at the start of a line would be read as part of the line break before it.
    shown = " & ".join(cells)
    return (f"{{}}{shown}" if shown.startswith(("[", "*")) else shown) + r" \\"


def _comment(text: str) -> str:
    return plain(text, 200).encode("ascii", "replace").decode()

"""A panel as SVG that lives inside a page: no style attributes, no foreign references, colours the page decides.

A page whose policy forbids inline styles also forbids them in its pictures, so every `style="fill: red"` becomes the
presentation attribute `fill="red"`; known colours become CSS variables, which a dark page changes. Only the elements
and attributes listed here are let through.
"""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tgsr.report._marks import read_mark
from tgsr.report._panel import Panel
from tgsr.report._style import DARK, house_style

SIZE = (4.3, 3.1)  # inches; small enough to be read on a phone, where a picture is not shrunk much
RASTER_DPI = 110

_ELEMENTS = frozenset("g path use image defs clipPath rect pattern".split())
_ATTRIBUTES = frozenset("d x y width height transform id clip-path patternUnits".split())
_STYLES = frozenset(
    "fill stroke stroke-width stroke-linecap stroke-linejoin stroke-dasharray stroke-dashoffset stroke-miterlimit "
    "stroke-opacity fill-opacity opacity image-rendering".split()
)
_LETTER = re.compile(r"[A-Za-z][A-Za-z0-9-]*-[0-9a-f]+")  # a letter's id: the font and the letter's code
_MOVED = re.compile(r"translate\((-?[\d.]+) (-?[\d.]+)\)")
_LONG = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
_HREF = "{http://www.w3.org/1999/xlink}href"
_NAMES = {colour: f"var(--c{place})" for place, colour in enumerate(DARK)}


def colour_variables(dark: bool) -> str:
    """The CSS declarations of the colours that pictures use."""
    return "".join(f"--c{place}:{DARK[colour] if dark else colour};" for place, colour in enumerate(DARK))


def panel_svg(panel: Panel, identity: str, letters: set[str] | None = None) -> str:
    """The picture of a panel. `identity` is unique on the page: ids inside start with it.

    With `letters`, an empty set for a page, the outline of a letter is written in the first picture that needs it and
    the others of the page refer to it there.
    """
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with house_style(), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box; title and caption of the page have it in full.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=panel.size or SIZE, layout="constrained", dpi=RASTER_DPI)
        figure.patch.set_alpha(0.0)
        ax = figure.add_subplot()
        ax.patch.set_alpha(0.0)
        panel.draw(ax)
        stream = io.BytesIO()
        FigureCanvasSVG(figure).print_svg(stream, metadata={"Date": None})  # savefig would lay it out and draw it twice
    root = ElementTree.fromstring(stream.getvalue())
    referred = dict.fromkeys(re.findall(r"#([A-Za-z0-9_.-]+)", stream.getvalue().decode()))
    names = {old: f"{identity}-{place}" for place, old in enumerate(referred)}
    before: frozenset[str] = frozenset()
    if letters is not None:
        shared = {old: f"l-{old.removeprefix('DejaVuSans-')}" for old in names if _LETTER.fullmatch(old)}
        names, before = names | shared, frozenset(letters)
        letters.update(shared.values())
    box = root.get("viewBox", "0 0 310 223")
    inside = "".join(_element(child, names, before) for child in root)
    return (
        f'<svg viewBox="{box}" role="img" aria-labelledby="{identity}-title" aria-describedby="{identity}-words">'
        f'<title id="{identity}-title">{escape(panel.title.replace(chr(92) + "$", "$"))}</title>{inside}</svg>'
    )


def _element(node: ElementTree.Element, names: Mapping[str, str], before: frozenset[str]) -> str:
    """The element as a page takes it; `names` are the new ids by the old ones, `before` those the page has already."""
    tag = node.tag.rsplit("}", 1)[-1] if isinstance(node.tag, str) else ""
    if tag not in _ELEMENTS or names.get(node.get("id", "")) in before:
        return ""
    attributes, told = _attributes(node, names)
    inside = "".join(_element(child, names, before) for child in node)
    if tag == "use":
        attributes = _placed(attributes)
    if tag in ("g", "defs") and not inside:
        return ""
    if tag == "g" and not attributes:
        return inside
    given = "".join(f" {name}={quoteattr(_short(name, value))}" for name, value in attributes.items())
    return f"<{tag}{given}>{told}{inside}</{tag}>" if told + inside else f"<{tag}{given}/>"


def _attributes(node: ElementTree.Element, names: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """What is let through, and the title of a mark."""
    attributes: dict[str, str] = {}
    told = ""
    for name, value in node.attrib.items():
        if name == _HREF and value.startswith("data:image/png;base64,"):
            attributes["href"] = re.sub(r"\s+", "", value)
        elif name == _HREF and value.startswith("#"):
            attributes["href"] = f"#{names[value[1:]]}"
        elif name == "id":
            if found := read_mark(value):
                attributes["data-arm"] = found[0]
                told = f"<title>{escape(found[1])}</title>" if found[1] else ""
            elif value in names:
                attributes["id"] = names[value]
        elif name == "style":
            attributes |= _presentation(_renamed(value, names))
        elif name in _STYLES or name in _ATTRIBUTES:
            attributes[name] = _value(_renamed(value, names))
    return attributes, told


def _renamed(value: str, names: Mapping[str, str]) -> str:
    return re.sub(r"url\(#([^)]*)\)", lambda m: f"url(#{names[m[1]]})", value)


def _placed(attributes: dict[str, str]) -> dict[str, str]:
    """A `use` that is only moved says so in x and y."""
    moved = _MOVED.fullmatch(attributes.get("transform", ""))
    if not moved or "x" in attributes or "y" in attributes:
        return attributes
    ends = {name: value for name, value in (("x", moved[1]), ("y", moved[2])) if float(value)}
    return {name: value for name, value in attributes.items() if name != "transform"} | ends


def _presentation(style: str) -> dict[str, str]:
    pairs: list[Any] = [part.split(":", 1) for part in style.split(";") if ":" in part]
    return {name.strip(): _value(value.strip()) for name, value in pairs if name.strip() in _STYLES}


def _value(value: str) -> str:
    return _NAMES.get(value.lower(), value)


def _short(name: str, value: str) -> str:
    """Coordinates to a hundredth of a point: no eye sees more, and the page is half as large."""
    if name == "d":
        value = _LONG.sub(_hundredth, value).replace("\n", "")
        return re.sub(r"\s*([A-Za-z])\s*", r"\1", value).strip()
    if name in ("x", "y"):
        return _LONG.sub(_hundredth, value)
    if name == "transform":  # factors among them: five digits that count
        return _LONG.sub(lambda m: f"{float(m[0]):.5g}", value)
    return value


def _hundredth(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")

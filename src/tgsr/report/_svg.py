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
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tgsr.report._panel import Panel
from tgsr.report._style import DARK, house_style

SIZE = (4.3, 3.1)  # inches; small enough to be read on a phone, where a picture is not shrunk much
RASTER_DPI = 110

_ELEMENTS = frozenset("g path use image defs clipPath rect".split())
_ATTRIBUTES = frozenset("d x y width height transform id clip-path".split())
_STYLES = frozenset(
    "fill stroke stroke-width stroke-linecap stroke-linejoin stroke-dasharray stroke-dashoffset stroke-miterlimit "
    "stroke-opacity fill-opacity opacity image-rendering".split()
)
_HREF = "{http://www.w3.org/1999/xlink}href"
_NAMES = {colour: f"var(--c{place})" for place, colour in enumerate(DARK)}


def colour_variables(dark: bool) -> str:
    """The CSS declarations of the colours that pictures use."""
    return "".join(f"--c{place}:{DARK[colour] if dark else colour};" for place, colour in enumerate(DARK))


def panel_svg(panel: Panel, identity: str) -> str:
    """The picture of a panel. `identity` is unique on the page: ids inside start with it."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with house_style(), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box; title and caption of the page have it in full.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=SIZE, layout="constrained", dpi=RASTER_DPI)
        figure.patch.set_alpha(0.0)
        ax = figure.add_subplot()
        ax.patch.set_alpha(0.0)
        panel.draw(ax)
        stream = io.BytesIO()
        FigureCanvasSVG(figure).print_svg(stream, metadata={"Date": None})  # savefig would lay it out and draw it twice
    root = ElementTree.fromstring(stream.getvalue())
    used = set(re.findall(rb"(?:#)([A-Za-z0-9_.-]+)", stream.getvalue()))
    box = root.get("viewBox", "0 0 310 223")
    inside = "".join(_element(child, identity, {name.decode() for name in used}) for child in root)
    return (
        f'<svg viewBox="{box}" role="img" aria-labelledby="{identity}-title" aria-describedby="{identity}-words">'
        f'<title id="{identity}-title">{escape(panel.title.replace(chr(92) + "$", "$"))}</title>{inside}</svg>'
    )


def _element(node: ElementTree.Element, identity: str, used: set[str]) -> str:
    tag = node.tag.rsplit("}", 1)[-1] if isinstance(node.tag, str) else ""
    if tag not in _ELEMENTS:
        return ""
    attributes: dict[str, str] = {}
    for name, value in node.attrib.items():
        if name == _HREF and value.startswith("data:image/png;base64,"):
            attributes["href"] = re.sub(r"\s+", "", value)
        elif name == _HREF and value.startswith("#"):
            attributes["href"] = f"#{identity}-{value[1:]}"
        elif name == "id":
            if value in used:
                attributes["id"] = f"{identity}-{value}"
        elif name == "style":
            attributes |= _presentation(value)
        elif name in _STYLES or name in _ATTRIBUTES:
            attributes[name] = _value(value.replace("url(#", f"url(#{identity}-"))
    inside = "".join(_element(child, identity, used) for child in node)
    if tag in ("g", "defs") and not inside:
        return ""
    if tag == "g" and not attributes:
        return inside
    told = "".join(f" {name}={quoteattr(_short(name, value))}" for name, value in attributes.items())
    return f"<{tag}{told}>{inside}</{tag}>" if inside else f"<{tag}{told}/>"


def _presentation(style: str) -> dict[str, str]:
    pairs: list[Any] = [part.split(":", 1) for part in style.split(";") if ":" in part]
    return {name.strip(): _value(value.strip()) for name, value in pairs if name.strip() in _STYLES}


def _value(value: str) -> str:
    return _NAMES.get(value.lower(), value)


def _short(name: str, value: str) -> str:
    """Coordinates to a hundredth of a point: no eye sees more, and the page is half as large."""
    if name != "d":
        return value
    return re.sub(r"-?\d+\.\d{3,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), value).replace("\n", "")

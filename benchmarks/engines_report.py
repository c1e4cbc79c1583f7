"""What `engines.py` measured: bars, and the section "Measured" of the engine's page."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rivals.competitors import COMPETITORS, OURS

Results = Mapping[str, Any]
Bar = tuple[str, str, str, bool]
PARTS = ("rivals", "cases", "scaling", "memory")
PRECISIONS = ("float32", "float64")
SIZES = (3, *(100,) * 6, 1)
CHANNELS = 4  # u, u_x, u_y, and the operator u_t - alpha (u_xx + u_yy) + vx u_x + vy u_y as a whole
DEEPXDE = ("deepxde-pytorch", "deepxde-jax")
RIVALS = {
    "PyTorch nested autograd": ("pytorch",),
    "PINA": ("pina",),
    "DeepXDE's best": DEEPXDE,
    "jinns recommended": ("jinns",),
}
JAX_BARS = {"float32": (4.0, 3.0, 5.0, 8.0), "float64": (3.0, 2.5, 4.5, 4.5)}
NATIVE_BARS = {"float32": 5.0, "float64": 6.0}
CASE_BAR, GRADIENT_BAR, LINEAR_BAR, PEAK_GOAL = 3.0, 1e-4, 1.2, 0.7
MEMORY_BARS = {"100000": 550.0, "1000000": 1e9 / 2**20}
CASES = {
    "w64": "the same, 6 layers of 64",
    "two": "two fields, 4 layers of 64",
    "kdv": "Korteweg\N{EN DASH}de Vries (third order), 4 layers of 64",
}
PACKAGES = {"pytorch": "torch", "pina": "pina-mathlab", "jinns": "jinns", **dict.fromkeys(DEEPXDE, "deepxde")}
HEADING = "## Measured"


def closure_flops(sizes: Sequence[int], rows: int) -> int:
    """Operations of the products in a closure, a multiply-add being two.

    Every row passes each weight matrix three times: forward, and backward for the slopes of the weights and of the
    input. The first matrix, whose input has no slope, and all that is not a product are left out.
    """
    return 6 * rows * sum(before * after for before, after in itertools.pairwise(sizes[1:]))


def work_rows(points: int) -> int:
    """Rows of the products of the work: `CHANNELS` for an interior point, one for each given value."""
    return CHANNELS * points + 4 * (points // 16) + points // 4 + points // 10


def share_of_peak(rivals: Results, precision: str, engine: str) -> float:
    """Which part of the multiply-add peak a whole closure reaches."""
    flops = closure_flops(SIZES, work_rows(rivals["points"]))
    return flops / rivals[precision]["ms"][engine] / 1e6 / rivals[precision]["peak"]


def bars(results: Results) -> list[Bar]:
    """Rows: what, measured, bar, met; a row that only reports against a goal counts as met."""
    parts = (_rival_bars, _case_bars, _scaling_bars, _memory_bars)
    return [
        row for name, part in zip(PARTS, parts, strict=True) if name in results for row in part(found(results, name))
    ]


def found(results: Results, part: str) -> Any:
    """What a part measured; empty where it was not."""
    return results[part]["found"] if part in results else {}


def _rival_bars(rivals: Results) -> Iterator[Bar]:
    for precision in PRECISIONS:
        ms = rivals[precision]["ms"]
        for (label, names), bar in zip(RIVALS.items(), JAX_BARS[precision], strict=True):
            times = min(ms[name] for name in names) / ms["jax"]
            yield f"jax over {label}, {precision}", f"{times:.2f} x", f"{bar:g} x", times >= bar
        times, bar = ms["pytorch"] / ms["native"], NATIVE_BARS[precision]
        yield f"native over PyTorch nested autograd, {precision}", f"{times:.2f} x", f"{bar:g} x", times >= bar
        if "peak" in rivals[precision]:
            share = share_of_peak(rivals, precision, "native")
            yield f"native, share of the peak, {precision}", f"{share:.0%}", f"goal {PEAK_GOAL:.0%}", True
    worst = max(rivals["float64"]["gradient"].values())
    yield "gradients, float64, largest deviation", f"{worst:.1e}", f"{GRADIENT_BAR:g}", worst <= GRADIENT_BAR


def _case_bars(cases: Results) -> Iterator[Bar]:
    for (name, case), precision, engine in itertools.product(cases["cases"].items(), PRECISIONS, OURS):
        times = case[precision]["ms"]["pytorch"] / case[precision]["ms"][engine]
        what = f"{engine} over PyTorch, {name}, {precision}"
        yield what, f"{times:.2f} x", f"{CASE_BAR:g} x", times >= CASE_BAR


def _scaling_bars(scaling: Results) -> Iterator[Bar]:
    for precision, engine in itertools.product(PRECISIONS, OURS):
        few, many = (scaling[points][precision]["ms"][engine] for points in ("10000", "1000000"))
        what = f"{engine}, time of a point at 1e6 over that at 1e4, {precision}"
        yield what, f"{many / few / 100.0:.2f}", f"{LINEAR_BAR:g}", many / few / 100.0 <= LINEAR_BAR


def _memory_bars(memory: Results) -> Iterator[Bar]:
    for (points, bar), precision, engine in itertools.product(MEMORY_BARS.items(), PRECISIONS, OURS):
        used = memory[precision][engine][points]
        yield f"{engine}, memory at {int(points):,} points, {precision}", f"{used} MiB", f"{bar:.0f} MiB", used <= bar


def short(value: float | None) -> str:
    """Three digits, never an exponent; nothing for what was not measured."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def ratio(ms: Mapping[str, float], slow: str, fast: str) -> str:
    """How many times as fast."""
    return "" if slow in OURS else f"{ms[slow] / ms[fast]:.1f} \N{MULTIPLICATION SIGN}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> str:
    """A table whose first columns hold words, the others numbers."""
    rule = "|" + "---|" * words + "---:|" * (len(head) - words)
    return "\n".join([f"| {' | '.join(head)} |", rule, *(f"| {' | '.join(row)} |" for row in rows)])


def paragraph(text: str) -> str:
    """Lines of a page."""
    return textwrap.fill(text, 125, break_long_words=False, break_on_hyphens=False)


def section(results: Results) -> str:
    """The text from the heading "Measured" to the end of the page."""
    makers = {"rivals": _rival_section, "cases": _case_section, "scaling": _scaling_section}
    parts = [HEADING, _about(results), *(made for name in makers if name in results for made in makers[name](results))]
    if drawable(results):
        parts.append("![Time of a closure by points, and how many times as fast as each library](assets/engine.svg)")
    return "\n\n".join(parts) + "\n"


def drawable(results: Results) -> bool:
    """Whether there is what the figure shows."""
    return {"rivals", "scaling"} <= set(results)


def _about(results: Results) -> str:
    here = results["machine"]
    others = max(max(results[part]["others"]) for part in PARTS if part in results)
    return paragraph(
        "`python benchmarks/engines.py` measures this again, each rival in an environment of its own, and writes this "
        f"section. {here['processor'].split(' [')[0]}, {here['threads']} threads, wall time in milliseconds, medians "
        f"over rounds in which everybody takes a turn. Before and after the parts, other processes used "
        f"{others:.2f} cores at most."
    )


def label_of(name: str, about: Mapping[str, Any]) -> str:
    """A competitor with the version that was measured."""
    label = COMPETITORS[name].label
    if name not in PACKAGES:
        return label
    first, *rest = re.split(r"(?=,| on )", label, maxsplit=1)
    return " ".join([first, about[name][PACKAGES[name]].split("+")[0]]) + "".join(rest)


def _rival_section(results: Results) -> Iterator[str]:
    rivals, memory = found(results, "rivals"), found(results, "memory").get("float32", {})
    rows = []
    for name in COMPETITORS:
        cells = [label_of(name, rivals["about"])]
        for precision in PRECISIONS:
            ms = rivals[precision]["ms"]
            cells += [short(ms[name]), *(ratio(ms, name, engine) for engine in OURS)]
        rows.append([*cells, *(short(memory.get(name, {}).get(points)) for points in ("10000", "100000"))])
    points, deviation = rivals["points"], {p: max(rivals[p]["gradient"].values()) for p in PRECISIONS}
    yield paragraph(
        r"One closure of $u_t - \alpha (u_{xx} + u_{yy}) + v_x u_x + v_y u_y = Q$ with three unknowns, six layers of "
        f"100, {points:,} interior points and {work_rows(points) - CHANNELS * points:,} values. All start from the "
        f"same weights at the same points, and their gradients differ by {deviation['float64']:.0e} in float64 and "
        f"{deviation['float32']:.0e} in float32, relative to the largest entry. Each library is used as its "
        "documentation shows for inverse problems, in the fastest of the ways that it offers. Memory is the peak of a "
        "process in float32, with all that it imports."
    )
    head = ["", *(cell for p in PRECISIONS for cell in (p, "`jax` is", "`native` is")), "MiB, 10,000 points", "100,000"]
    yield table(head, rows, 1)
    if all("peak" in rivals[precision] for precision in PRECISIONS):
        yield _flop_rate(rivals)


def _flop_rate(rivals: Results) -> str:
    flops = closure_flops(SIZES, work_rows(rivals["points"])) / 1e9
    peaks = " and ".join(f"{rivals[precision]['peak']:.0f}" for precision in PRECISIONS)
    native, jax = (
        " and ".join(f"{100 * share_of_peak(rivals, precision, engine):.0f} %" for precision in PRECISIONS)
        for engine in ("native", "jax")
    )
    return paragraph(
        f"The products of this closure are {flops:.1f} GFLOP: three passes of every row through every weight matrix "
        f"but the first. Two threads reach {peaks} GFLOP/s of multiply-adds in registers (float32 and float64, "
        f"measured in the same rounds). The whole closure runs at {native} of that peak "
        f"with `native`, at {jax} with `jax`."
    )


def _case_section(results: Results) -> Iterator[str]:
    rows = []
    for (name, label), precision in itertools.product(CASES.items(), PRECISIONS):
        ms = found(results, "cases")["cases"][name][precision]["ms"]
        ours = [cell for engine in OURS for cell in (short(ms[engine]), ratio(ms, "pytorch", engine))]
        rows.append([label if precision == PRECISIONS[0] else "", precision, short(ms["pytorch"]), *ours])
    yield paragraph(
        "Other shapes, with as many points; the last two have 3,000 readings and no conditions. A third derivative is "
        "XLA's work in both engines."
    )
    yield table(["", "", "PyTorch", "`jax`", "", "`native`", ""], rows, 2)


def _scaling_section(results: Results) -> Iterator[str]:
    memory, rows = found(results, "memory").get("float64", {}), []
    for points, case in sorted(found(results, "scaling").items(), key=lambda one: int(one[0])):
        ms = [case[precision]["ms"].get(name) for precision in PRECISIONS for name in ("pytorch", *OURS)]
        used = [memory.get(engine, {}).get(points) for engine in OURS]
        rows.append([f"{int(points):,}", *map(short, [*ms, *used])])
    head = [f"{who}, {precision}" for precision in PRECISIONS for who in ("PyTorch", "`jax`", "`native`")]
    yield "From a thousand points to a million:"
    yield table(["points", *head, *(f"MiB, `{engine}`, float64" for engine in OURS)], rows, 0)

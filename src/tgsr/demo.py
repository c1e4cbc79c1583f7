"""A demonstration: recover a small diffusivity from noisy readings, from scratch and from a related network.

    python -m tgsr.demo --out DIR [--quick]

Everything goes to DIR: the runs (the same command goes on where it was stopped), a picture of each, and report.html.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import click

import tgsr
from tgsr.report import write_run_report
from tgsr.tasks import boundary_layer

METHODS = ("scratch", "full", "tgsr")
WEIGHTS = {"pde": 10.0, "bc": 10.0, "data": 50.0}
SOURCE, TARGET = 5.0, 100.0  # Péclet numbers


@dataclass(frozen=True)
class Effort:
    """How large the demonstration is."""

    widths: tuple[int, ...] = (16, 16, 16)
    interior: int = 1000
    boundary: int = 250
    readings: int = 1000
    epochs: int = 40

    @property
    def training(self) -> tgsr.Training:
        """The same for every run."""
        points = tgsr.Points(interior=self.interior, boundary=self.boundary)
        return tgsr.Training(phases=(tgsr.LevenbergMarquardt(epochs=self.epochs),), points=points, weights=WEIGHTS)


QUICK = Effort(widths=(10, 10), interior=300, boundary=100, readings=200, epochs=6)


class Display:
    """What happens, on standard error: one line that changes on a terminal, a line now and then elsewhere."""

    def __init__(self, runs: int, every: float = 10.0) -> None:
        self.runs, self.every, self.alive = runs, every, sys.stderr.isatty()
        self.done, self.title = -1, ""
        self.spoken, self.before = time.monotonic(), 0.0
        self.epochs, self.seconds = 0, 0.0  # outer epochs so far, without the first of each run, which compiles

    def begin(self, title: str) -> None:
        """The next run starts."""
        self.done, self.title = self.done + 1, title
        self._say(f"[{self.done + 1}/{self.runs}] {title}: compiling", last=not self.alive)

    def __call__(self, now: tgsr.Progress) -> None:
        if now.epoch > 1:
            self.epochs, self.seconds = self.epochs + 1, self.seconds + now.seconds - self.before
        self.before = now.seconds
        to_come = now.epochs - now.epoch + now.epochs * (self.runs - self.done - 1)
        left = (
            f"at most {to_come * self.seconds / self.epochs:.0f} s left" if self.epochs else "measuring the time left"
        )
        if not self.alive and time.monotonic() - self.spoken < self.every:
            return
        self.spoken = time.monotonic()
        values = ", ".join(f"{name} = {value:.5g}" for name, value in now.unknowns.items())
        self._say(
            f"[{self.done + 1}/{self.runs}] {self.title}: loss {now.loss:.2e}, {values}, {now.closures} closures, "
            f"{left}",
            last=not self.alive,
        )

    def end(self, words: str) -> None:
        """A run is over."""
        self._say(f"[{self.done + 1}/{self.runs}] {self.title}: {words}", last=True)

    def _say(self, line: str, *, last: bool) -> None:
        start = "\r\x1b[2K" if self.alive else ""
        click.echo(start + line, err=True, nl=last)


@click.command()
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder for everything written."
)
@click.option("--quick", is_flag=True, help="A few seconds instead of a minute or two; the numbers are then rough.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of points, noise and weights.")
def main(out: Path, quick: bool, seed: int) -> None:
    """Recover eps in  -eps (u_xx + u_yy) + u_x = 0  from noisy readings, with each method."""
    try:
        run(out, QUICK if quick else Effort(), seed)
    except tgsr.TgsrError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt as stopped:
        click.echo(f"\n{stopped or 'Interrupted. Give the same command again to go on.'}", err=True)
        sys.exit(130)


def run(out: Path, effort: Effort, seed: int) -> list[tgsr.Result]:
    """Train the source, recover eps with every method, print, draw and report."""
    display, runs = Display(1 + len(METHODS)), out / "runs"
    first, _ = boundary_layer(seed, SOURCE, observations=effort.readings)
    problem, truth = boundary_layer(seed, TARGET, observations=effort.readings)
    network = tgsr.MLP(effort.widths)
    display.begin(f"the source, Pe = {SOURCE:g}, from scratch")
    source = tgsr.solve(first, network=network, training=effort.training, seed=seed, out=runs, progress=display)
    display.end(f"{source.outcome}, eps = {source.unknowns['eps']}")
    results = []
    for method in METHODS:
        display.begin(f"Pe = {TARGET:g}, {method}")
        if method == "scratch":
            result = tgsr.solve(
                problem, network=network, training=effort.training, seed=seed, out=runs, progress=display
            )
        else:
            result = tgsr.transfer(
                problem, source, method=method, training=effort.training, seed=seed, out=runs, progress=display
            )
        display.end(f"{result.outcome}, eps = {result.unknowns['eps']}")
        results.append(result)
    errors = [tgsr.evaluate(result, truth) for result in results]
    click.echo(table(results, errors, truth, effort))
    for name, result in zip(("source", *METHODS), (source, *results), strict=True):
        result.plot().savefig(out / f"{name}.png", dpi=120)
    shown = [*results[-1:], *results[:-1]], [*errors[-1:], *errors[:-1]]
    page = write_run_report(shown[0][0], out / "report.html", comparisons=shown[0][1:], truth_errors=shown[1])
    click.echo(f"\nThe report: {page}   Pictures: {', '.join(f'{n}.png' for n in ('source', *METHODS))}")
    return results


def table(results: list[tgsr.Result], errors: list[tgsr.Errors], truth: tgsr.Truth, effort: Effort) -> str:
    """What was found, beside the truth."""
    eps = truth.unknowns["eps"]
    rows = [("method", "eps", "off by", "field off by", "closures", "seconds")]
    for result, error in zip(results, errors, strict=True):
        rows.append(
            (result.method, str(result.unknowns["eps"]), f"{error.parameter:.3f} %", f"{error.fields['u']:.3f} %",
             str(result.closures), f"{result.seconds:.1f}")
        )  # fmt: skip
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(
        [
            f"\neps at Pe = {TARGET:g}: truth {eps:g}, first guess {results[0].unknowns['eps'].guess:g}, "
            f"{effort.readings} readings with 0.5 % noise\n",
            *lines,
            *(f"Warning ({result.method}): {text}" for result in results for text in result.warnings),
            "\nThe prescribed values on the sides contain the layer's profile, so eps would be found with fewer",
            "readings too; the standard errors speak of the noise of the readings alone.",
        ]
    )


if __name__ == "__main__":
    main()

"""Is the verdict of `tgsr compare` right? Compare on tasks whose truth is known, and count verdict against truth.

    python scripts/validate_verdict.py boundary-layer reaction-diffusion:boundary-layer saturated:boundary-layer \
        --profile laptop --budget 600 --seeds 3 --repeats 2 --out verdict-runs

TARGET takes the task's own source, SOURCE:TARGET the target of another task as source (a wrong one, over the same
coordinates), `saturated:TARGET` the task's own source with hidden weights six times too large. Every repeat has its own
readings and source network. The same command goes on where it was stopped.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import click

import tgsr
from tgsr._compare_text import comparison_text
from tgsr.network._saved import SavedNetwork
from tgsr.tasks import task

SATURATED, FACTOR = "saturated", 6.0
TRUTHS = ("helped", "no difference", "hurt")


def source_network(name: str, target: str, repeat: int, profile: str, budget: int | None, out: Path) -> SavedNetwork:
    """The network to start from."""
    own = name in (target, SATURATED)
    case = task(target if own else name).case(repeat, profile, "source" if own else "target")
    training = replace(case.training, budget=budget, weights=case.training.weight_table)
    found = tgsr.solve(case.problem, network=case.network, training=training, seed=repeat, out=out / "sources").network
    if name != SATURATED:
        return found
    return replace(found, weights=(*(FACTOR * w for w in found.weights[:-1]), found.weights[-1]))


def confusion(counts: Counter[tuple[str, str]]) -> str:
    """Verdicts by row, what the truth says by column, as Markdown."""
    order = ("helped", "cannot tell", "hurt")
    rows = sorted({verdict for verdict, _ in counts}, key=lambda v: (order.index(v.partition(" by")[0]), v))
    lines = [f"| verdict | {' | '.join(f'truth: {t}' for t in TRUTHS)} |", "|---|" + "---:|" * len(TRUTHS)]
    lines += [f"| {verdict} | {' | '.join(str(counts[verdict, t]) for t in TRUTHS)} |" for verdict in rows]
    return "\n".join(lines)


@click.command()
@click.argument("pairs", nargs=-1, required=True, metavar="[SOURCE:]TARGET...")
@click.option("--profile", default="laptop", show_default=True)
@click.option("--budget", type=int, help="Closures of every run; by default the profile's.")
@click.option("--methods", default="scratch,full,tgsr", show_default=True)
@click.option("--seeds", type=int, default=3, show_default=True, help="Seeds of each comparison.")
@click.option("--repeats", type=int, default=1, show_default=True, help="Comparisons of each pair.")
@click.option("--out", type=Path, default=Path("verdict-runs"), show_default=True)
def main(
    pairs: tuple[str, ...], profile: str, budget: int | None, methods: str, seeds: int, repeats: int, out: Path
) -> None:
    """Compare on every pair and print the confusion table."""
    counts: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        name, _, target = pair.rpartition(":")
        for repeat in range(repeats):
            case = task(target).case(repeat, profile)
            plan = replace(case.training, budget=budget or case.training.budget, weights=case.training.weight_table)
            found = tgsr.compare(
                case.problem,
                source_network(name or target, target, repeat, profile, budget, out),
                methods=methods.split(","),
                seeds=seeds,
                training=plan,
                budget=case.budget,
                out=out / "runs",
            )
            check = found.check(case.truth)
            click.echo(f"== {pair}, repeat {repeat}\n{comparison_text(found, check)}\n")
            for method, verdict in found.verdicts.items():
                by = f" by {verdict.by}" if verdict.by else ""
                counts[verdict.verdict + by, check.says[method]] += 1
    click.echo(confusion(counts))


if __name__ == "__main__":
    main()

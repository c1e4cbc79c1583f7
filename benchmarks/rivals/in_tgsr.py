"""Our side, through the public interface; with `--write` it draws the points and weights that all competitors read."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from worker import WEIGHTS, Work, arguments, serve

import tgsr
from tgsr.loss import engine_label

GUESSES = {"work": (0.005, 1.0, 0.5), "two": (0.1, 0.2), "kdv": (1.0, 0.0025)}
TRUE = (0.001, 2.0, 1.0)  # alpha, vx, vy: the values behind the source and the readings of "work"
HIDDEN = {"work": (100,) * 6, "w64": (64,) * 6, "two": (64,) * 4, "kdv": (64,) * 4}


def exact(x, y, t):
    """The solution of "work"."""
    return np.exp(-t) * np.sin(np.pi * x) * np.sin(np.pi * y)


def source(x, y, t, lib=jnp):
    """What `exact` leaves of the equation with the true coefficients."""
    alpha, vx, vy = TRUE
    e, sx, sy, cx, cy = lib.exp(-t), lib.sin(np.pi * x), lib.sin(np.pi * y), lib.cos(np.pi * x), lib.cos(np.pi * y)
    return (2.0 * np.pi**2 * alpha - 1.0) * e * sx * sy + np.pi * e * (vx * cx * sy + vy * sx * cy)


def unknowns(case: str, *names: str) -> list[tgsr.Unknown]:
    """Searched as they are (scale 1), so that slopes can be compared."""
    return [tgsr.Unknown(name, guess, scale=1.0) for name, guess in zip(names, GUESSES[case], strict=True)]


def transport(points: int) -> tgsr.Problem:
    """u_t - alpha (u_xx + u_yy) + vx u_x + vy u_y = Q on the unit cube."""

    def pde(u, x, y, t, alpha, vx, vy):
        return u.t - alpha * (u.xx + u.yy) + vx * u.x + vy * u.y - source(x, y, t)

    at = np.random.default_rng(0).random((points // 10, 3)).T
    return tgsr.Problem(
        "work",
        coordinates={name: (0.0, 1.0) for name in "xyt"},
        fields=["u"],
        unknowns=unknowns("work", "alpha", "vx", "vy"),
        residuals=[pde],
        conditions=[
            tgsr.Dirichlet("u", at=["x=0", "x=1", "y=0", "y=1"]),
            tgsr.Initial("u", lambda x, y: jnp.sin(jnp.pi * x) * jnp.sin(jnp.pi * y)),
        ],
        data=[tgsr.Data(dict(zip("xyt", at, strict=True)), {"u": exact(*at)}, 1.0)],
        scale="none",
    )


def two_fields(points: int) -> tgsr.Problem:
    """u_t = a u_xx - u v^2 and v_t = b v_xx + u v^2 (Gray and Scott's reaction without feed)."""
    x, t = np.random.default_rng(1).random((3 * points // 10, 2)).T
    return tgsr.Problem(
        "two",
        coordinates={"x": (0.0, 1.0), "t": (0.0, 1.0)},
        fields=["u", "v"],
        unknowns=unknowns("two", "a", "b"),
        residuals=[lambda u, v, a: u.t - a * u.xx + u * v * v, lambda u, v, b: v.t - b * v.xx - u * v * v],
        data=[tgsr.Data({"x": x, "t": t}, {"u": np.cos(x + t), "v": np.sin(x - t)}, 1.0)],
        scale="none",
    )


def korteweg_de_vries(points: int) -> tgsr.Problem:
    """u_t + a u u_x + b u_xxx = 0."""
    x, t = np.random.default_rng(1).random((3 * points // 10, 2)).T
    return tgsr.Problem(
        "kdv",
        coordinates={"x": (0.0, 1.0), "t": (0.0, 1.0)},
        fields=["u"],
        unknowns=unknowns("kdv", "a", "b"),
        residuals=[lambda u, a, b: u.t + a * u * u.x + b * u.d("x", 3)],
        data=[tgsr.Data({"x": x, "t": t}, {"u": np.cos(x + t)}, 1.0)],
        scale="none",
    )


PROBLEMS: dict[str, Callable[[int], tgsr.Problem]] = {
    "work": transport, "w64": transport, "two": two_fields, "kdv": korteweg_de_vries
}  # fmt: skip


def closure(case: str, points: int, precision: str, engine: str) -> tgsr.Closure:
    """The loss of a case as a user of the package gets it."""
    if case in ("work", "w64"):  # the four faces have a mean each, and a quarter of the weight of one mean over all
        faces = WEIGHTS["boundary"] / 4.0
        weights = {"pde": WEIGHTS["pde"], "bc": faces, "ic": WEIGHTS["initial"], "data": WEIGHTS["data"]}
    else:
        weights = {"pde": 1.0, "data": 1.0}
    sampled = tgsr.Points(interior=points, boundary=4 * (points // 16), initial=points // 4)
    training = tgsr.Training(points=sampled, weights=weights)
    network = tgsr.MLP(HIDDEN[case])
    return tgsr.closure(PROBLEMS[case](points), network=network, training=training, precision=precision, engine=engine)


def drawn(case: str, points: int) -> dict[str, Any]:
    """All arrays of a case, in float64."""
    made = closure(case, points, "float64", "jax")
    rng = np.random.default_rng(2)
    out: dict[str, Any] = {"case": np.array(case)}
    sizes = [made.points["interior"].shape[1], *HIDDEN[case], len(PROBLEMS[case](16).fields)]
    for number, (before, after) in enumerate(itertools.pairwise(sizes)):
        edge = np.sqrt(6.0 / (before + after))
        out[f"weight {number}"] = rng.uniform(-edge, edge, (before, after))
        out[f"bias {number}"] = rng.uniform(-0.1, 0.1, after)
    out["unknowns"] = np.array(GUESSES["work" if case == "w64" else case])
    out |= terms(made)
    data = PROBLEMS[case](points).data[0]
    out["readings"] = np.stack([np.asarray(column) for column in data.values.values()], axis=1)
    if case in ("work", "w64"):
        out["source"] = source(*out["interior"].T, lib=np)
        out["initial values"] = exact(*out["initial"].T)[:, None]
    return out


def terms(made: tgsr.Closure) -> dict[str, np.ndarray]:
    """The points of the four kinds of terms; those of the four faces, equally many, follow each other."""
    kinds: dict[str, list[np.ndarray]] = {}
    for name, points in made.points.items():
        kind = {"dirichlet": "boundary"}.get(name.split()[0], name.split()[0])
        if name != "data v":  # both fields are read at the same points
            kinds.setdefault(kind, []).append(points)
    return {kind: np.concatenate(parts) for kind, parts in kinds.items()}


def main() -> None:
    """Write the work, or serve."""
    if sys.argv[1] == "--write":
        parser = argparse.ArgumentParser()
        parser.add_argument("--write", nargs="+", metavar="CASE:POINTS:FILE")
        for one in parser.parse_args().write:
            case, points, file = one.split(":", 2)
            np.savez(file, **drawn(case, int(points)))
        return
    work, engine = arguments("jax", "native")
    made = closure(work.case, len(work["interior"]), work.precision, engine)
    check(made, work)
    names = [entry.removeprefix("unknown.") for entry in made.entries if entry.startswith("unknown.")]
    theta = made.theta(work.layers, dict(zip(names, work["unknowns"], strict=True)))
    del work  # the points of others should not count as memory of ours
    label = engine_label(made.objective.engine)
    serve(lambda: made(theta), lambda found: found, "jax", "jaxlib", "numpy", tgsr=tgsr.__version__, engine=label)


def check(made: tgsr.Closure, work: Work) -> None:
    """The points drawn here are the ones that the others read."""
    for kind, points in terms(made).items():
        if not np.array_equal(points, work[kind]):
            sys.exit(f"the points of {kind!r} differ from those in the file: write it again")


if __name__ == "__main__":
    main()

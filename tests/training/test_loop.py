"""The one loop: what it counts, records and stops on; how it fails; one program per phase."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import training_cases as cases

import tgsr
from tgsr import Outcome, _request
from tgsr._jax import computing
from tgsr._random import stream
from tgsr.loss import Objective, build_objective
from tgsr.training import Keeper, Start, Trained, Training, _loop, train

TINY = tgsr.MLP((4,))
ADAM = tgsr.Adam(epochs=3, inner=5, stopping=cases.NEVER)
LM = tgsr.LevenbergMarquardt(epochs=5, inner=2, stopping=cases.NEVER)


@pytest.fixture(scope="module")
def tiny() -> Iterator[Objective]:
    with computing():
        yield build_objective(cases.problem(None), TINY, tgsr.Points(interior=12))


def trained(objective: Objective, training: Training, **options: Any) -> Trained:
    with computing():
        start = options.pop("start", None)
        theta = objective.surrogate.initial(stream(0, "init")) if start is None else start
        return train(objective, Start(theta), training, 0, **options)


def test_one_program_per_phase_whatever_moves(tiny: Objective, caplog: pytest.LogCaptureFixture) -> None:
    import jax

    both = Training(phases=(ADAM, LM), refinement=tgsr.Refinement(every=2, candidates=2))
    with jax.log_compiles():
        first = trained(tiny, both)
        once = [m for m in caplog.messages if "ompiling jit(" in m]
        caplog.clear()
        again = trained(tiny, both, start=first.theta)
        trained(tiny, dataclasses.replace(both, budget=21))
    assert sum("jit(epoch)" in m for m in once) == 2
    assert len(first.history.phases) == 2
    sigmas = first.sigma, again.sigma
    assert sigmas[0] != sigmas[1]  # the noise did move
    assert not [m for m in caplog.messages if "ompiling jit(" in m]


def test_the_history_holds_every_part_and_unknown_by_closure_and_second(tiny: Objective) -> None:
    seen: list[tgsr.Progress] = []
    done = trained(tiny, Training(phases=(ADAM, LM)), progress=seen.append)
    h = done.history
    assert h.phases == ["adam", "levenberg-marquardt"]
    assert (h.parts, h.unknowns) == (("decay", "data"), ("a",))
    assert np.all(np.diff(h["closures"]) > 0)
    assert np.all(np.diff(h["seconds"]) > 0)
    assert h["phase"].tolist() == [0] * 15 + [1] * (len(h) - 15)
    assert h.closures == h["closures"][-1]
    adam = h["phase"] == 0
    assert h["closures"][adam].tolist() == list(range(1, 16))
    # unknowns are physical: what the transform makes of the raw number at the end
    raw = np.asarray(tiny.surrogate.raw(done.theta))
    assert h["a"][-1] == pytest.approx(tiny.surrogate.transforms[0].value(raw[0]), rel=1e-12)
    assert h["loss"].shape == h["decay"].shape == h["data"].shape
    with computing():
        _, parts = tiny.value(done.theta, done.batch, done.controls)
    assert np.allclose(h.columns["terms"][-1], parts, rtol=0.2)
    assert [p.stage for p in seen] == ["main"] * 8
    assert [p.epoch for p in seen] == [1, 2, 3, 1, 2, 3, 4, 5]
    assert all(p.closures <= q.closures and p.seconds <= q.seconds for p, q in itertools.pairwise(seen))
    names = {f.name for f in dataclasses.fields(tgsr.Progress)}
    assert names == {"stage", "phase", "epoch", "epochs", "loss", "unknowns", "closures", "budget", "seconds"}
    assert not [n for n in names if "truth" in n or "error" in n]


@pytest.mark.parametrize("budget", [1, 7, 21, 26])
def test_a_budget_is_overspent_by_less_than_one_outer_epoch(tiny: Objective, budget: int) -> None:
    ends = [0]
    done = trained(tiny, Training(phases=(ADAM, LM), budget=budget), progress=lambda p: ends.append(p.closures))
    assert done.outcome is Outcome.BUDGET
    assert done.history.closures >= budget > ends[-2]


def test_only_the_training_loss_stops_it(tiny: Objective, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, rule = _loop._program, tgsr.Stopping(1e-1, 2)
    monkeypatch.setattr(_loop, "_program", lambda phase, *rest: compiled(LM, *rest))  # stopping compiles nothing
    losses: list[float] = []
    patient = dataclasses.replace(LM, epochs=60, stopping=rule)
    fixed = Training(phases=(patient,), weights={"pde": 100.0})  # no noise to follow
    done = trained(tiny, fixed, progress=lambda p: losses.append(p.loss))
    assert done.outcome is Outcome.CONVERGED
    assert len(losses) < 60
    assert losses[-1] > 0.9 * losses[-2] > 0.9 * 0.9 * losses[-3]
    assert not any(b > 0.9 * a and c > 0.9 * b for a, b, c in zip(losses[:-3], losses[1:], losses[2:-1], strict=False))


def test_the_stopping_rule() -> None:
    phase = dataclasses.replace(LM, stopping=tgsr.Stopping(0.1, 3, change=1e-6))
    cursor = _loop._Cursor()
    verdicts = [cursor.improves(loss, phase) for loss in (10.0, 9.5, 8.0, 7.9, 7.8, 7.7)]
    assert verdicts == [True, True, True, True, True, False]
    assert not _loop._Cursor(last=1.0).improves(1.0 + 1e-7, phase)


class Untouchable(tgsr.Truth):
    """A truth that cannot be read."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"the truth was read: {name}")


def test_no_training_reads_a_truth(tiny: Objective) -> None:
    truth = object.__new__(Untouchable)
    with pytest.raises(AssertionError, match="was read"):
        truth.unknowns  # noqa: B018
    decay = cases.decay
    decay.truth = cases.__dict__["truth"] = truth  # type: ignore[attr-defined]  where code might look for it
    try:
        with computing():
            train(tiny, Start(tiny.surrogate.initial(stream(0, "init"))), Training(phases=(ADAM,)), 0)
    finally:
        del decay.truth, cases.__dict__["truth"]  # type: ignore[attr-defined]


# ---- how it fails


def failing(kind: str) -> tgsr.Problem:
    def root(x: Any, a: Any, t: Any) -> Any:
        return x.t + a * x + 0.0 * jnp.sqrt(t - 0.5)  # not a number in a quarter of the domain

    def grows(x: Any, a: Any) -> Any:
        return x.t + a * x

    return tgsr.Problem(
        kind,
        coordinates={"t": (0.0, 2.0)},
        fields=["x"],
        unknowns=[tgsr.Unknown("a", guess=1.0)],
        residuals=[root if kind == "nan" else grows],
        data=[tgsr.Data({"t": cases.T}, {"x": cases.Y}, noise=0.02)],
    )


@pytest.mark.parametrize(
    ("kind", "phase", "outcome"),
    [
        ("nan", LM, Outcome.NON_FINITE_START),
        ("nan", ADAM, Outcome.NON_FINITE_START),
        ("wild", tgsr.Adam(epochs=9, inner=10, learning_rate=1e4), Outcome.DIVERGED),
    ],
)
def test_a_failure_is_a_recorded_outcome(kind: str, phase: Any, outcome: Outcome, tmp_path: Path) -> None:
    training = Training(phases=(phase,), points=tgsr.Points(interior=12))
    result = tgsr.solve(failing(kind), network=TINY, training=training, out=tmp_path)
    assert result.outcome is outcome
    assert outcome.sentence in str(result)
    assert not math.isfinite(result.unknowns["a"].se)
    (folder,) = tmp_path.iterdir()
    assert (folder / "failure.json").exists()
    assert not (folder / "result.json").exists()
    again = tgsr.load(folder)
    assert again.outcome is outcome
    assert str(again) == str(result)
    assert again.fingerprint == result.fingerprint
    assert not any("too large" in text for text in result.warnings)


def test_a_loss_that_breaks_later_is_not_called_a_bad_start(tiny: Objective) -> None:
    calls: list[int] = []

    class Breaks(Keeper):
        """Not a keeper at all: a place in which to spoil the points after the first outer epoch."""

        @property
        def due(self) -> bool:
            calls.append(1)
            return False

    real = tiny.draw

    def draw(seed: int, name: str = "main-batch", *index: int, keep: Any = None) -> Any:
        batch = real(seed, name, *index, keep=keep)
        if name == "adaptation" and index[0] == 1:
            batch = (batch[0]._replace(x=(batch[0].x[0] * jnp.nan,)), *batch[1:])
        return batch

    object.__setattr__(tiny, "draw", draw)
    try:
        done = trained(tiny, Training(phases=(ADAM,)), keeper=Breaks(), redraw="adaptation")
    finally:
        object.__delattr__(tiny, "draw")
    assert done.outcome is Outcome.NON_FINITE
    assert len(calls) == 1
    assert np.all(np.isfinite(np.asarray(done.theta)))


def test_a_preparation_that_failed_is_not_trained_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Broken(tgsr.Scratch):
        def prepare(self, setting: tgsr.Setting) -> tgsr.Prepared:
            return tgsr.Prepared(Start(setting.fresh), spent=5, failed=Outcome.SCORING)

    monkeypatch.setattr(_request, "as_method", lambda _: Broken())
    seen: list[Any] = []
    training = Training(phases=(LM,), points=tgsr.Points(interior=12))
    result = tgsr.solve(cases.problem(), network=TINY, training=training, out=tmp_path, progress=seen.append)
    assert (result.outcome, result.closures, seen) == (Outcome.SCORING, 5, [])
    assert tgsr.load(result.path or "").outcome is Outcome.SCORING
    assert "scoring-failed" in str(result)

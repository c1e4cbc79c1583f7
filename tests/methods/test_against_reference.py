"""The package against a second implementation that was written from the specification alone."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

import numpy_reference as reference

from tgsr.methods.tgsr._decay import decay_factor
from tgsr.methods.tgsr._options import TgsrOptions
from tgsr.methods.tgsr._protection import protect, protection
from tgsr.methods.tgsr._scores import fuse, fusion_weight, moments, normalise, score_layer
from tgsr.methods.tgsr._signal import signal_layer

KINDS = ("lognormal", "clusters", "sparse", "heavy", "equal", "zero", "copies")
EM = ("weight_low", "mean_high", "sd_low", "sd_high", "delta_bic")
NEAR = 1e-9  # closer to a threshold than this, rounding may decide


def neuron_scales(kind, width, rng):
    """How strongly each neuron answers: the shapes that layers of scores take, degenerate ones included."""
    if kind == "lognormal":
        return rng.lognormal(0.0, rng.uniform(0.2, 2.0), width)
    if kind == "clusters":  # most neurons strong, some weak: what the mixture branch is for
        weak = rng.random(width) < rng.uniform(0.05, 0.45)
        return np.where(weak, rng.uniform(0.01, 0.4), 1.0) * rng.lognormal(0.0, rng.uniform(0.01, 0.15), width)
    if kind == "sparse":  # a few neurons carry the layer, all others tie at the floor
        return np.where(rng.random(width) < 0.1, 1.0, 1e-2) * rng.lognormal(0.0, 0.1, width)
    if kind == "heavy":
        return rng.pareto(rng.uniform(0.8, 3.0), width) + 0.01
    if kind == "copies":
        return rng.choice([0.2, 0.7, 1.0], width)
    return np.full(width, float(kind == "equal"))


def layer_batch(kind, scales, points, rng):
    """Pre-activations and dL/dz of one batch: z Gaussian, dz partly following z, both scaled per neuron."""
    width = len(scales)
    shared, common = rng.standard_normal((2, points, 1))
    if kind in ("equal", "copies"):  # same scale, same column: bit-equal scores
        noise, slope = np.zeros((2, points, width))
    else:
        noise, slope = rng.standard_normal((2, points, width))
    z = scales * (shared + 0.3 * noise) + 0.1 * scales
    dz = 1e-2 * scales * (common + 0.3 * slope + 0.5 * shared)
    return z, dz


def networks(layers, seed=20240917):
    """Random networks, widths 1 to 120, one to six hidden layers, until `layers` hidden layers were given."""
    rng = np.random.default_rng(seed)
    given = 0
    while given < layers:
        depth, K, points = int(rng.integers(1, 7)), int(rng.integers(1, 4)), int(rng.integers(5, 12))
        kinds = rng.choice(KINDS, depth, p=(0.2, 0.38, 0.12, 0.14, 0.04, 0.02, 0.1))
        widths = np.where(rng.random(depth) < 0.08, rng.integers(1, 3, depth), rng.integers(3, 121, depth))
        scales = [neuron_scales(kind, width, rng) for kind, width in zip(kinds, widths, strict=True)]
        pairs = list(zip(kinds, scales, strict=True))
        batches = [[layer_batch(*pair, points, rng) for pair in pairs] for _ in range(K)]
        changed = {
            "branch": str(rng.choice(["gmm+rank", "rank", "gmm"], p=(0.7, 0.1, 0.2))),
            "protection": str(rng.choice(["depth", "none", "matched"])),
            "mapping": str(rng.choice(["cubic", "linear", "sigmoid", "hard"], p=(0.55, 0.15, 0.2, 0.1))),
            "ties": str(rng.choice(["average", "argsort"])),
            "alpha_s": float(rng.uniform(0.1, 0.7)),
            "kappa": float(rng.uniform(0.5, 5.0)),
        }
        given += depth
        yield batches, changed if rng.random() < 0.5 else {}


class Worst(Counter[str]):
    """The largest difference seen, per quantity."""

    def note(self, name, ours, theirs, scale=1.0):
        ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
        assert ours.shape == theirs.shape, name
        assert np.isfinite(ours).all(), name
        self[name] = max(self[name], float(np.max(np.abs(ours - theirs) / scale, initial=0.0)))

    def each(self, name, ours, theirs):
        """Relative, element by element."""
        self.note(name, ours, theirs, np.maximum(np.abs(np.asarray(theirs, float)), 1e-300))

    def layer(self, name, ours, theirs):
        """Relative to the layer's largest: near the layer mean the z-score cancels, in any arithmetic."""
        self.note(name, ours, theirs, max(float(np.max(theirs)), 1e-300))


def compare_scores(worst, batches, ref, layer, hidden_layers, options):
    both = [moments(*batch[layer]) for batch in batches]
    T, V = (np.stack(rows) for rows in zip(*both, strict=True))
    T_n, V_n = (np.stack([normalise(row) for row in rows]) for rows in (T, V))
    alpha = fusion_weight(layer, hidden_layers, options)
    scored = score_layer(T, V, layer, hidden_layers, options)
    worst.each("T", T, ref.T)
    worst.each("V", V, ref.V)
    worst.note("normalised", T_n, ref.T_n)
    worst.note("normalised", V_n, ref.V_n)
    worst.each("alpha", [alpha, scored.alpha], [ref.alpha] * 2)
    worst.layer("score", [fuse(t, v, alpha) for t, v in zip(T_n, V_n, strict=True)], ref.fused)
    worst.layer("score", scored.score, ref.score)
    assert scored.at_floor == ref.at_floor
    return scored.score


def compare_signal(worst, found, ref):
    assert found.branch == ref.branch
    if ref.chi is not None:
        worst.layer("chi", found.chi, ref.chi)
        worst.each("tau", found.tau, ref.tau)
    if ref.branch == "gmm":
        assert found.mixture.iterations == ref.mixture.iterations
        for name in EM:
            worst.each(f"EM {name}", getattr(found.mixture, name), getattr(ref.mixture, name))
        worst.note("EM mean_low", found.mixture.mean_low, ref.mixture.mean_low, ref.mixture.mean_high)  # may be 0
        worst.note("EM log L", found.mixture.log_likelihood, ref.mixture.log_likelihood, len(ref.p))
        worst.note("EM responsibility", found.mixture.responsibility_low, ref.mixture.responsibility_low)
        worst.note("confidence", found.confidence, ref.confidence)
    worst.note("p", found.p, ref.p)


def compare(fixed_iterations, layers):
    """Both implementations from (z, dL/dz) to gamma: largest difference per quantity, layers per branch."""
    worst, counts = Worst(), Counter()
    for batches, changed in networks(layers):
        options = TgsrOptions(**changed)
        expected = reference.from_batches(batches, fixed_iterations, **changed)
        widths = [z.shape[1] for z, _ in batches[0]]
        eta, d = protection(widths, options)
        counts["one hidden layer"] += len(widths) == 1
        for layer, ref in enumerate(expected):
            score = compare_scores(worst, batches, ref.scores, layer, len(widths), options)
            worst.note("eta, d", [eta[layer], d[layer]], [ref.eta, ref.d])
            counts["floor ties"] += ref.scores.at_floor > 1
            counts["width 1"] += widths[layer] == 1
            if ref.margin < NEAR:
                counts["near a threshold"] += 1
                continue
            found = signal_layer(score, options, fixed_iterations=fixed_iterations)
            compare_signal(worst, found, ref)
            counts[ref.branch] += 1
            p_tilde = protect(found.p, eta[layer])
            worst.note("p~", p_tilde, ref.p_tilde)
            worst.note("gamma", decay_factor(p_tilde, options), ref.gamma)
    return worst, counts


LEAST = {"gmm": 0.15, "rank": 0.3, "closed": 0.03, "degenerate": 0.06}  # shares of all layers
LEAST |= {"floor ties": 0.5, "one hidden layer": 0.01, "width 1": 0.01}


@pytest.mark.parametrize(
    ("fixed_iterations", "layers", "bar"), [(5, 1000, 1e-12), (100, 300, 1e-12), (None, 1000, 1e-8)]
)
def test_layers_agree_from_pre_activations_to_decay(fixed_iterations, layers, bar):
    worst, counts = compare(fixed_iterations, layers)
    print("layers", dict(counts))
    print("largest differences", {name: f"{value:.1e}" for name, value in worst.items()})
    assert not {name: value for name, value in worst.items() if value > bar}
    assert not {name: counts[name] for name, least in LEAST.items() if counts[name] < least * layers}
    assert counts["near a threshold"] < 0.08 * layers


def drawn_scores(rng):
    """Scores drawn directly; the zeros among them no evidence can give, yet the signal must take them."""
    n = int(rng.integers(1, 121))
    shape = int(rng.integers(6))
    weak = rng.random(n) < rng.uniform(0.0, 1.0)
    strong = rng.lognormal(0.0, rng.uniform(0.05, 1.0), n)
    if shape == 0:
        return strong
    if shape == 1:
        return np.where(weak, 1e-6, strong)
    if shape == 2:
        return np.where(weak, 0.0, strong)
    if shape == 3:
        return np.abs(rng.standard_cauchy(n))
    if shape == 4:
        return np.where(weak, rng.uniform(0.0, 0.3), 1.0) * rng.lognormal(0.0, 0.1, n)
    return np.full(n, rng.choice([0.0, 1e-6, 0.3]))


@pytest.mark.parametrize(("fixed_iterations", "bar"), [(5, 1e-12), (None, 1e-8)])
def test_layers_of_drawn_scores_agree(fixed_iterations, bar):
    rng = np.random.default_rng(7)
    worst, counts = Worst(), Counter()
    for _ in range(500):
        score = drawn_scores(rng)
        branch = str(rng.choice(["gmm+rank", "gmm"], p=(0.7, 0.3)))
        options = SimpleNamespace(**{**reference.DEFAULTS, "branch": branch})
        ref = reference.signal(score, options, fixed_iterations)
        counts["near a threshold" if ref.margin < NEAR else ref.branch] += 1
        if ref.margin >= NEAR:
            found = signal_layer(score, TgsrOptions(branch=branch), fixed_iterations=fixed_iterations)
            compare_signal(worst, found, ref)
    print("layers", dict(counts))
    print("largest differences", {name: f"{value:.1e}" for name, value in worst.items()})
    assert not {name: value for name, value in worst.items() if value > bar}
    assert all(counts[name] >= 50 for name in ("gmm", "rank", "closed", "degenerate"))
    assert counts["near a threshold"] < 75  # slow fits pass within 1e-9 of the EM stop of 1e-8


@pytest.mark.parametrize("n", [2, 4, 10, 40])
def test_two_equal_halves_still_open_the_mixture_branch(n):
    score = np.repeat([1e-6, 0.8], n // 2)  # the low weight is 0.5: at the cap, not past it
    found = signal_layer(score, TgsrOptions())
    assert found.branch == "gmm"
    np.testing.assert_allclose(found.p, np.repeat([1.0, 0.0], n // 2), atol=1e-12)


def test_an_unsplittable_layer_takes_the_rank_branch():
    score = np.array([1e-6] + [0.5] * 8 + [0.9])  # both quartiles are 0.5
    options = SimpleNamespace(**reference.DEFAULTS)
    found = signal_layer(score, TgsrOptions())
    assert found.branch == reference.signal(score, options).branch == "rank"
    np.testing.assert_allclose(found.p, reference.rank_signal(score, options), rtol=1e-14)
    assert signal_layer(score, TgsrOptions(branch="gmm")).branch == "closed"

"""The arithmetic of TGSR-PINN a second time, from the specification alone: from (z, dL/dz) to gamma.

Written to be compared with the package, so it shares no code and little style with it: sums are exactly
rounded (`math.fsum`), most steps are loops over single neurons. `margin` is the distance of the nearest
discrete decision (EM stop, dBIC, weight cap) from its threshold: closer than rounding, two right programs
may differ.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np

DEFAULTS = {
    "alpha_s": 0.5,
    "delta_alpha": 0.3,
    "branch": "gmm+rank",
    "protection": "depth",
    "mapping": "cubic",
    "bic_threshold": 10.0,
    "low_weight_cap": 0.5,
    "gamma_m": 0.85,
    "gamma_min": 0.4,
    "kappa": 3.0,
    "beta_h": 0.55,
    "rank_max": 0.75,
    "rank_power": 1.5,
    "ties": "average",
}


def mean(values):
    """Rounded once more than the exact sum, so the mean of equal numbers is that number."""
    rough = math.fsum(values) / len(values)
    return rough + math.fsum(v - rough for v in values) / len(values)


def unbiased_variance(values):
    if len(values) < 2:
        return 0.0
    m = mean(values)
    return math.fsum((v - m) ** 2 for v in values) / (len(values) - 1)


def taylor_and_variance(z, dz):
    """T = mean |z dL/dz| and V = unbiased Var(z) over the pooled points; one pair per neuron."""
    columns = [(z[:, j].tolist(), dz[:, j].tolist()) for j in range(z.shape[1])]
    T = [mean([abs(a * b) for a, b in zip(zs, gs, strict=True)]) for zs, gs in columns]
    return T, [unbiased_variance(zs) for zs, _ in columns]


def normalised(values):
    """z-score within the layer, negative part cut off, divided by the largest."""
    m, s = mean(values), math.sqrt(unbiased_variance(values))
    cut = [max((v - m) / (s + 1e-6), 0.0) for v in values]
    top = max(cut)
    return [c / (top + 1e-6) for c in cut]


def alpha_of(layer, L, o):
    """Fusion weight of the hidden layer with 0-based index `layer` among `L`."""
    return o.alpha_s + o.delta_alpha * (0.5 if L == 1 else layer / (L - 1))


def fused(T_n, V_n, alpha):
    return [(t + 1e-6) ** alpha * (v + 1e-6) ** (1.0 - alpha) for t, v in zip(T_n, V_n, strict=True)]


def layer_scores(batches, layer, L, o):
    """`batches`: K pairs (z, dL/dz) of this layer. Everything up to the score averaged over the batches."""
    out = SimpleNamespace(T=[], V=[], T_n=[], V_n=[], fused=[], alpha=alpha_of(layer, L, o))
    for z, dz in batches:
        T, V = taylor_and_variance(z, dz)
        T_n, V_n = normalised(T), normalised(V)
        rows = (T, V, T_n, V_n, fused(T_n, V_n, out.alpha))
        for name, row in zip(("T", "V", "T_n", "V_n", "fused"), rows, strict=True):
            getattr(out, name).append(row)
    out.score = [mean(values) for values in zip(*out.fused, strict=True)]
    out.at_floor = sum(all(row[j] == 0.0 for row in out.T_n + out.V_n) for j in range(len(out.score)))
    return out


def percentile(ordered, share):
    """Linear interpolation between the order statistics."""
    position = share * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def log_gauss(x, m, v):
    return -0.5 * math.log(2.0 * math.pi * v) - (x - m) ** 2 / (2.0 * v)


def posterior(x, theta):
    """Responsibilities of the first component and the summed log-likelihood, by log-sum-exp."""
    w, m, v = theta
    a = math.log(w[0]) - 0.5 * math.log(2.0 * math.pi * v[0]) - (x - m[0]) ** 2 / (2.0 * v[0])
    b = math.log(w[1]) - 0.5 * math.log(2.0 * math.pi * v[1]) - (x - m[1]) ** 2 / (2.0 * v[1])
    top = np.maximum(a, b)
    total = top + np.log(np.exp(a - top) + np.exp(b - top))
    return np.exp(a - total), np.exp(b - total), math.fsum(total.tolist())


def maximise(x, responsibilities):
    w, m, v = [], [], []
    for q in responsibilities:
        mass = math.fsum(q.tolist())
        centre = math.fsum((q * x).tolist()) / mass
        w.append(mass / len(x))
        m.append(centre)
        v.append(max(math.fsum((q * (x - centre) ** 2).tolist()) / mass, 1e-10))
    return w, m, v


def mixture(chi, fixed_iterations=None):
    """Two Gaussians by EM, or None where the percentiles coincide and EM cannot split.

    One iteration is an expectation (which gives the log-likelihood), then a maximisation; it is the last one
    when the log-likelihood moved by less than 1e-8 since the iteration before. The specification does not say
    on which side of the maximisation to look: this is the order of scikit-learn.
    """
    x = np.asarray(chi)
    n = len(x)
    ordered = sorted(chi)
    start = [percentile(ordered, 0.25), percentile(ordered, 0.75)]
    if start[0] == start[1]:
        return None
    centre = mean(chi)
    whole = max(math.fsum(((x - centre) ** 2).tolist()) / n, 1e-10)
    theta = ([0.5, 0.5], start, [whole, whole])
    before, margin, steps = -math.inf, start[1] - start[0], 0
    for _ in range(100 if fixed_iterations is None else fixed_iterations):
        q0, q1, now = posterior(x, theta)
        theta = maximise(x, (q0, q1))
        moved, before, steps = abs(now - before), now, steps + 1
        if fixed_iterations is None:
            margin = min(margin, abs(moved - 1e-8))
            if moved < 1e-8:
                break
    q0, q1, final = posterior(x, theta)
    low = 0 if theta[1][0] <= theta[1][1] else 1
    w, m, v = ([pair[low], pair[1 - low]] for pair in theta)
    one = math.fsum(log_gauss(c, centre, whole) for c in chi)
    delta_bic = (2 * math.log(n) - 2 * one) - (5 * math.log(n) - 2 * final)
    return SimpleNamespace(
        weight_low=w[0], mean_low=m[0], mean_high=m[1], sd_low=math.sqrt(v[0]), sd_high=math.sqrt(v[1]),
        responsibility_low=(q0, q1)[low], log_likelihood=final, iterations=steps, delta_bic=delta_bic,
        margin=margin,
    )  # fmt: skip


def average_ranks(s, ties="average"):
    ranks = []
    for j, mine in enumerate(s):
        lower = sum(other < mine for other in s)
        if ties == "average":
            ranks.append(lower + (sum(other == mine for other in s) + 1) / 2)
        else:
            ranks.append(lower + sum(other == mine for other in s[: j + 1]))
    return ranks


def rank_signal(s, o):
    n = len(s)
    return [o.rank_max * ((n - r) / (n - 1 + 1e-12)) ** o.rank_power for r in average_ranks(s, o.ties)]


def signal(s, o, fixed_iterations=None):
    """The weak-adaptation signal p of one layer, the branch that gave it, and what led there."""
    s = [float(v) for v in s]
    out = SimpleNamespace(p=[0.0] * len(s), branch="degenerate", mixture=None, margin=math.inf, tau=None, chi=None)
    positive = sorted(v for v in s if v > 0.0)
    if len(s) == 1 or not positive or min(s) == max(s):
        return out
    half = len(positive) // 2
    middle = positive[half] if len(positive) % 2 else (positive[half - 1] + positive[half]) / 2
    out.tau = middle + 1e-12
    out.chi = [math.log1p(v / out.tau) for v in s]
    if o.branch != "rank":
        out.mixture = fit = mixture(out.chi, fixed_iterations)
        if fit is not None:
            cap = abs(fit.weight_low - o.low_weight_cap)
            out.margin = min(fit.margin, abs(fit.delta_bic - o.bic_threshold), cap)
            if fit.delta_bic > o.bic_threshold and fit.weight_low <= o.low_weight_cap:
                out.branch = "gmm"
                both = fit.sd_low**2 + fit.sd_high**2
                overlap = math.sqrt(2 * fit.sd_low * fit.sd_high / both)
                overlap *= math.exp(-((fit.mean_low - fit.mean_high) ** 2) / (4 * both))
                out.confidence = 1.0 - overlap
                for j, q in enumerate(fit.responsibility_low):
                    excess = (float(q) - fit.weight_low) / (1 - fit.weight_low + 1e-12)
                    out.p[j] = out.confidence * min(max(excess, 0.0), 1.0)
                return out
    if o.branch == "gmm":
        out.branch = "closed"
        return out
    out.branch, out.p = "rank", rank_signal(s, o)
    return out


def protection_of(widths, o):
    """eta and d of every hidden layer."""
    L = len(widths)
    d = [1.0 if L == 1 else 1.0 - i / (L - 1) for i in range(L)]
    eta = [1.0 if o.protection == "none" else 1.0 - o.beta_h * di for di in d]
    if o.protection == "matched":
        eta = [math.fsum(n * e for n, e in zip(widths, eta, strict=True)) / sum(widths)] * L
    return eta, d


def gamma_of(p, o):
    """The decay factor at one protected signal."""
    if o.mapping == "linear":
        return 1.0 - p * (1.0 - o.gamma_min)
    if o.mapping == "hard":
        return 1.0 if p < 0.5 else o.gamma_min
    if o.mapping == "sigmoid":
        at = [1.0 / (1.0 + math.exp(-8.0 * (q - 0.5))) for q in (0.0, p, 1.0)]
        return 1.0 - (at[1] - at[0]) / (at[2] - at[0]) * (1.0 - o.gamma_min)
    if p < 0.5:
        return 1.0 - (2 * p) ** o.kappa * (1.0 - o.gamma_m)
    return o.gamma_m - (2 * p - 1) ** o.kappa * (o.gamma_m - o.gamma_min)


def from_batches(batches, fixed_iterations=None, **changed):
    """`batches[k][l] = (z, dL/dz)`. One record per hidden layer, from T and V to gamma."""
    o = SimpleNamespace(**{**DEFAULTS, **changed})
    L = len(batches[0])
    eta, d = protection_of([z.shape[1] for z, _ in batches[0]], o)
    layers = []
    for layer in range(L):
        scores = layer_scores([batch[layer] for batch in batches], layer, L, o)
        found = signal(scores.score, o, fixed_iterations)
        found.scores, found.eta, found.d = scores, eta[layer], d[layer]
        found.p_tilde = [min(max(eta[layer] * p, 0.0), 1.0) for p in found.p]
        found.gamma = [gamma_of(p, o) for p in found.p_tilde]
        layers.append(found)
    return layers

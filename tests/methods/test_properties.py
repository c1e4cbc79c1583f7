"""What the arithmetic stages promise for every input: bounds, monotony, permutation, ties, named errors."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

import numpy_reference as reference

from tgsr._errors import TgsrError
from tgsr.methods.tgsr._decay import decay_factor, softened
from tgsr.methods.tgsr._options import TgsrOptions
from tgsr.methods.tgsr._protection import protect, protection
from tgsr.methods.tgsr._scores import fuse, moments, normalise, score_layer
from tgsr.methods.tgsr._signal import signal_layer

SHARE = st.floats(0.0, 1.0)
KAPPA = st.floats(0.01, 50.0)
WIDTHS = st.lists(st.integers(1, 120), min_size=1, max_size=9)
SCORES = st.lists(st.integers(0, 1000).map(lambda k: 1e-6 + k / 1000), min_size=1, max_size=60).map(np.array)
ULP = 4e-16


@st.composite
def maps(draw, mapping=None):
    least, middle = sorted(draw(st.tuples(*[st.floats(0.01, 1.0)] * 2)))
    mapping = mapping or draw(st.sampled_from(["cubic", "linear", "sigmoid", "hard"]))
    return TgsrOptions(mapping=mapping, kappa=draw(KAPPA), gamma_min=least, gamma_m=middle)


def evidence(width, seed, batches=3):
    """T and V of a layer, (batches, width) each."""
    return np.random.default_rng(seed).lognormal(0.0, 1.0, (2, batches, width))


def far_from_thresholds(score):
    """Not within rounding of a decision, where the order of the neurons may tip it."""
    return reference.signal(score, SimpleNamespace(**reference.DEFAULTS)).margin > 1e-9


@given(maps(), st.lists(SHARE, min_size=2, max_size=50))
def test_every_map_stays_in_its_bounds_and_never_rises(options, signals):
    p = np.unique([0.0, 0.5, np.nextafter(0.5, 0.0), 1.0, *signals])
    gamma = decay_factor(p, options)
    assert gamma.min() >= options.gamma_min
    assert gamma.max() <= 1.0
    assert (np.diff(gamma) <= ULP).all()
    assert gamma[0] == 1.0
    assert gamma[-1] == pytest.approx(options.gamma_min, abs=ULP)
    expected = [reference.gamma_of(float(q), options) for q in p]
    np.testing.assert_allclose(gamma, expected, rtol=0, atol=1e-14)


@given(maps("cubic"), st.floats(0.0, 0.5))
def test_the_cubic_map_passes_its_three_points_and_is_continuous(options, step):
    at = decay_factor(np.array([0.0, 0.5, 1.0]), options)
    np.testing.assert_allclose(at, [1.0, options.gamma_m, options.gamma_min], rtol=0, atol=ULP)
    p = np.array([0.5 - step, 0.5 + step])
    (below, above), (x, y) = decay_factor(p, options), np.abs(2 * p - 1)
    k = options.kappa  # moduli of continuity at the knot: Bernoulli's inequality below, the power itself above
    assert 0.0 <= below - at[1] + ULP <= max(k, 1.0) * x * (1 - options.gamma_m) + 1e-14
    assert 0.0 <= at[1] - above + ULP <= y**k * (options.gamma_m - options.gamma_min) + 1e-14


@given(maps("sigmoid"), SHARE)
def test_the_sigmoid_map_is_rescaled_to_its_ends_and_symmetric(options, p):
    low, middle, high = decay_factor(np.array([p, 0.5, 1.0 - p]), options)
    least = options.gamma_min
    assert decay_factor(0.0, options) == 1.0
    assert decay_factor(1.0, options) == pytest.approx(least, abs=ULP)
    assert middle == pytest.approx((1.0 + least) / 2, abs=1e-14)
    assert low + high == pytest.approx(1.0 + least, abs=1e-14)


def test_the_hard_map_jumps_at_one_half():
    gamma = decay_factor(np.array([0.0, np.nextafter(0.5, 0.0), 0.5, 1.0]), TgsrOptions(mapping="hard"))
    assert gamma.tolist() == [1.0, 1.0, 0.4, 0.4]


def test_softened_starts_at_the_reporting_threshold():
    gamma = np.array([1.0, 0.9801, 0.9799, 0.4])
    assert softened(gamma, TgsrOptions()).tolist() == [False, False, True, True]
    assert softened(gamma, TgsrOptions(softened_from=0.5)).tolist() == [False, False, False, True]


@given(WIDTHS, SHARE)
def test_protection_fades_with_depth(widths, beta):
    eta, d = protection(widths, TgsrOptions(beta_h=beta))
    assert len(eta) == len(d) == len(widths)
    assert d[0] == 1.0
    assert (np.diff(d) < 0.0).all()
    assert (np.diff(eta) >= 0.0).all()
    assert eta[0] == pytest.approx(1.0 - beta, abs=ULP)
    assert len(widths) == 1 or (d[-1] == 0.0 and eta[-1] == 1.0)
    np.testing.assert_allclose(np.diff(d), -1.0 / max(len(widths) - 1, 1), rtol=1e-12)


@given(WIDTHS, SHARE)
def test_matched_protection_is_the_mean_over_neurons(widths, beta):
    eta, _ = protection(widths, TgsrOptions(beta_h=beta))
    matched, _ = protection(widths, TgsrOptions(beta_h=beta, protection="matched"))
    per_neuron = np.repeat(eta, widths)
    np.testing.assert_allclose(matched, per_neuron.mean(), rtol=1e-13)
    assert (matched == matched[0]).all()
    assert (protection(widths, TgsrOptions(beta_h=beta, protection="none"))[0] == 1.0).all()


@given(st.lists(SHARE, min_size=1), SHARE)
def test_protection_only_weakens_the_signal(p, eta):
    protected = protect(np.array(p), eta)
    np.testing.assert_allclose(protected, eta * np.array(p), rtol=0, atol=ULP)
    assert ((protected >= 0.0) & (protected <= np.array(p))).all()


@given(st.integers(2, 60), st.integers(0, 2**32 - 1))
def test_renumbering_the_neurons_renumbers_the_scores(width, seed):
    T, V = evidence(width, seed)
    order = np.random.default_rng(seed + 1).permutation(width)
    options = TgsrOptions()
    straight, permuted = (score_layer(t, v, 1, 4, options) for t, v in ((T, V), (T[:, order], V[:, order])))
    np.testing.assert_allclose(permuted.score, straight.score[order], rtol=1e-12)
    assert permuted.at_floor == straight.at_floor


@given(SCORES, st.integers(0, 2**32 - 1))
def test_renumbering_the_neurons_renumbers_the_decay(score, seed):
    assume(far_from_thresholds(score))
    order = np.random.default_rng(seed).permutation(score.size)
    options = TgsrOptions()
    straight, permuted = signal_layer(score, options), signal_layer(score[order], options)
    assert permuted.branch == straight.branch
    np.testing.assert_allclose(permuted.p, straight.p[order], rtol=0, atol=1e-12)
    gamma = [decay_factor(found.p, options) for found in (permuted, straight)]
    np.testing.assert_allclose(gamma[0], gamma[1][order], rtol=0, atol=1e-12)


@given(st.integers(1, 40), st.integers(2, 90), st.integers(0, 2**32 - 1))
def test_equal_neurons_get_bit_equal_decay(distinct, width, seed):
    rng = np.random.default_rng(seed)
    alike = rng.integers(distinct, size=width)
    z, dz = rng.standard_normal((2, 3, 7, distinct)) * rng.lognormal(0.0, 1.0, distinct)
    T, V = (np.stack(rows) for rows in zip(*map(moments, z[..., alike], dz[..., alike]), strict=True))
    options = TgsrOptions()
    score = score_layer(T, V, 0, 3, options).score
    found = signal_layer(score, options)
    gamma = decay_factor(protect(found.p, 0.45), options)
    for one in range(distinct):
        for values in (score, found.p, gamma):
            assert len(set(values[alike == one].tolist())) <= 1


@given(st.integers(2, 100), st.integers(0, 2**32 - 1))
def test_neurons_below_both_means_tie_at_the_floor(width, seed):
    T, V = evidence(width, seed)
    below = np.all([a <= a.mean(1, keepdims=True) for a in (T, V)], axis=(0, 1))
    scored = score_layer(T, V, 2, 4, TgsrOptions())
    assert scored.at_floor == below.sum()
    assert len(set(scored.score[below].tolist())) <= 1
    np.testing.assert_allclose(scored.score[below], 1e-6, rtol=1e-12)
    assert (scored.score[~below] > scored.score.min()).all() or not below.any()


@given(st.integers(2, 60), st.integers(1, 60), st.integers(0, 2**32 - 1))
def test_the_tied_lowest_share_one_rank_signal(n, tied, seed):
    k = min(tied, n - 1)
    others = np.random.default_rng(seed).permutation(np.arange(1, n - k + 1)) / n
    found = signal_layer(np.concatenate([np.full(k, 1e-6), others]), TgsrOptions(branch="rank"))
    shared = 0.75 * ((n - (k + 1) / 2) / (n - 1 + 1e-12)) ** 1.5
    np.testing.assert_allclose(found.p[:k], shared, rtol=1e-14)
    assert len(set(found.p[:k].tolist())) == 1
    assert found.p[k:][np.argmax(others)] == 0.0
    assert (np.diff(found.p[k:][np.argsort(others)]) < 0.0).all()


def test_ranks_of_ties_in_layer_order_are_a_variant():
    found = signal_layer(np.array([0.1, 0.9, 0.1, 0.1]), TgsrOptions(branch="rank", ties="argsort"))
    np.testing.assert_allclose(found.p, 0.75 * (np.array([3, 0, 2, 1]) / 3) ** 1.5, rtol=1e-11)


@given(SCORES, st.sampled_from(["gmm+rank", "rank", "gmm"]))
def test_signals_are_shares_and_degenerate_layers_are_left_alone(score, branch):
    found = signal_layer(score, TgsrOptions(branch=branch))
    assert ((found.p >= 0.0) & (found.p <= 1.0)).all()
    assert (found.branch == "degenerate") == (np.ptp(score) == 0.0)
    if found.branch in ("degenerate", "closed"):
        assert not found.p.any()
    if found.branch == "rank":
        assert found.p.max() <= 0.75 * (1 + 1e-12) or np.unique(score).size < score.size
        assert (np.diff(found.p[np.argsort(score)]) <= 0.0).all()


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=40).map(np.array))
def test_normalised_evidence_is_a_share_and_vanishes_below_the_mean(a):
    x = normalise(a)
    assert ((x >= 0.0) & (x < 1.0)).all()
    slack = 1e-12 * max(a.max(), 1.0)
    assert not x[a < a.mean() - slack].any()
    fused = fuse(x, x, 0.3)
    np.testing.assert_allclose(fused, x + 1e-6, rtol=1e-14)


@pytest.mark.parametrize("layer", [0, 2])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", [0, 1])
def test_evidence_that_is_not_finite_names_its_layer(layer, bad, where):
    both = evidence(5, 0)
    both[where][1, 3] = bad
    with pytest.raises(TgsrError, match=rf"\blayer {layer + 1}\b"):
        score_layer(*both, layer, 4, TgsrOptions())


def test_evidence_that_overflows_names_its_layer():
    T, V = evidence(5, 0)
    T[0] *= 1e200
    with pytest.raises(TgsrError, match=r"\blayer 2\b"):
        score_layer(T, V, 1, 4, TgsrOptions())


@pytest.mark.parametrize("which", [0, 1])
def test_a_pre_activation_or_gradient_that_is_nan_names_its_layer(which):
    pair = np.random.default_rng(0).standard_normal((2, 9, 4))
    pair[which, 2, 1] = np.nan
    T, V = moments(*pair)
    with pytest.raises(TgsrError, match=r"\blayer 3\b"):
        score_layer(T[None], V[None], 2, 4, TgsrOptions())

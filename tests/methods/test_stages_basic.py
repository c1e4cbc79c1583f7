"""Known answers for the arithmetic stages of TGSR-PINN, and its mixture against scikit-learn's."""

from __future__ import annotations

import warnings
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from tgsr._errors import InputError
from tgsr.methods.tgsr._controls import magnitude_scores, random_scores, shuffled
from tgsr.methods.tgsr._decay import DecayError, check_bound, decay_factor, softened
from tgsr.methods.tgsr._mixture import fit_two
from tgsr.methods.tgsr._options import TgsrOptions
from tgsr.methods.tgsr._protection import protect, protection
from tgsr.methods.tgsr._scores import ScoreError, fuse, fusion_weight, moments, normalise, score_layer
from tgsr.methods.tgsr._signal import rank_signal, signal_layer

PAPER = TgsrOptions()


def draw(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def two_groups(seed: int, n: int = 100, low: int = 30) -> np.ndarray:
    """Scores with a well separated minority of low ones, in random order."""
    rng = draw(seed)
    scores = np.concatenate([rng.uniform(0.05, 0.10, low), rng.uniform(0.6, 1.0, n - low)])
    return rng.permutation(scores)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("score", "best"), ("branch", None), ("batches", 0), ("batches", 3.0), ("batches", True),
        ("alpha_s", -0.1), ("alpha_s", float("nan")), ("delta_alpha", 1.5), ("gamma_min", 0.0),
        ("gamma_min", 0.9), ("kappa", 0), ("kappa", "3"), ("kappa", float("inf")),
        pytest.param("kappa", 10**400, id="kappa-huge"), ("rank_max", np.zeros(2)), ("adapt_cap", -1),
    ],
)  # fmt: skip
def test_an_illegal_option_is_named_with_its_value_and_range(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"'{name}': {name} = .* is .*") as caught:
        replace(PAPER, **{name: value})
    assert caught.value.field == name


def test_options_are_plain_values_that_compare_and_hash() -> None:
    other = replace(PAPER, kappa=np.float32(3), batches=np.int64(3), bic_threshold=10)
    assert other == PAPER
    assert hash(other) == hash(PAPER)
    assert {type(getattr(other, f.name)) for f in fields(other)} == {int, float, str}


def test_a_negative_variance_weight_warns_but_the_papers_sweep_up_to_07_does_not() -> None:
    for tenths in range(8):
        TgsrOptions(alpha_s=tenths / 10)
    with pytest.warns(UserWarning, match="vary little"):
        options = TgsrOptions(alpha_s=0.8)
    assert fusion_weight(5, 6, options) == pytest.approx(1.1)


def test_moments_of_three_points() -> None:
    z, dz = [[1.0, 2.0], [2.0, 2.0], [-3.0, 2.0]], [[1.0, 0.0], [-1.0, 1.0], [1.0, -4.0]]
    T, V = moments(np.array(z), np.array(dz))
    np.testing.assert_allclose(T, [2.0, 10.0 / 3.0], rtol=1e-15)
    np.testing.assert_allclose(V, [7.0, 0.0], rtol=1e-15)


def test_normalise_by_hand() -> None:
    x = 1.0 / (1.0 + 1e-6)  # mean 2, unbiased standard deviation 1
    np.testing.assert_allclose(normalise(np.array([1.0, 2.0, 3.0])), [0.0, 0.0, x / (x + 1e-6)], rtol=1e-15)
    for flat in (np.array([5.0]), np.full(7, 0.1), np.zeros(3)):
        assert not normalise(flat).any()


def test_fusion_weight_rises_with_depth() -> None:
    assert [fusion_weight(layer, 4, PAPER) for layer in range(4)] == pytest.approx([0.5, 0.6, 0.7, 0.8])
    assert fusion_weight(0, 1, PAPER) == pytest.approx(0.65)


def test_one_batch_fused_by_hand() -> None:
    fused = fuse(np.array([1.0, 0.0, 0.25]), np.array([0.0, 0.0, 0.25]), 0.5)
    np.testing.assert_allclose(fused, [np.sqrt(1.000001 * 1e-6), 1e-6, 0.250001], rtol=1e-14)


def test_floor_ties_are_bit_equal_and_counted() -> None:
    rng = draw(1)
    T, V = rng.lognormal(size=(3, 101)), rng.lognormal(size=(3, 101))
    layer = score_layer(T, V, 2, 6, PAPER)
    low = np.all((T.mean(1, keepdims=True) >= T) & (V.mean(1, keepdims=True) >= V), axis=0)
    assert layer.at_floor == low.sum() > 5
    assert len(np.unique(layer.score[low])) == 1
    assert layer.score[~low].min() > layer.score[low][0]
    batches = [fuse(normalise(t), normalise(v), layer.alpha) for t, v in zip(T, V, strict=True)]
    np.testing.assert_allclose(layer.score, np.mean(batches, axis=0), rtol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_a_score_that_is_not_finite_names_the_layer(bad: float) -> None:
    T, V = np.ones((2, 3, 4))
    V[1, 2] = bad
    with pytest.raises(ScoreError, match="hidden layer 3 ") as caught:
        score_layer(T, V, 2, 6, PAPER)
    assert caught.value.layer == 3
    assert isinstance(caught.value, FloatingPointError)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("iterations", [1, 7, None])
def test_mixture_agrees_with_scikit_learn(seed: int, iterations: int | None) -> None:
    chi = np.log1p(draw(seed).lognormal(sigma=1.2, size=100))
    ours = fit_two(chi, fixed_iterations=iterations)
    quartiles = np.percentile(chi, [25, 75])
    theirs = GaussianMixture(
        n_components=2,
        reg_covar=0,
        tol=1e-8 / chi.size if iterations is None else 0.0,  # its likelihood is a mean, ours a sum
        max_iter=iterations or 100,
        weights_init=[0.5, 0.5],
        means_init=quartiles[:, None],
        precisions_init=np.full((2, 1, 1), 1.0 / chi.var()),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs.fit(chi[:, None])
    a, b = np.argsort(theirs.means_[:, 0])
    assert ours.split
    assert ours.iterations == theirs.n_iter_
    expected = [theirs.weights_[a], *theirs.means_[[a, b], 0], *np.sqrt(theirs.covariances_[[a, b], 0, 0])]
    found = [ours.weight_low, ours.mean_low, ours.mean_high, ours.sd_low, ours.sd_high]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(ours.responsibility_low, theirs.predict_proba(chi[:, None])[:, a], atol=1e-9)
    assert ours.log_likelihood == pytest.approx(theirs.score(chi[:, None]) * chi.size, rel=1e-10)
    one = GaussianMixture(1, reg_covar=0).fit(chi[:, None])
    assert ours.delta_bic == pytest.approx(one.bic(chi[:, None]) - theirs.bic(chi[:, None]), rel=1e-8)


def test_equal_quartiles_cannot_split_and_equal_one_gaussian() -> None:
    chi = np.array([0.0, *[1.0] * 9, 2.5])
    mixture = fit_two(chi)
    assert not mixture.split
    assert mixture.iterations == 0
    assert (mixture.mean_low, mixture.sd_high) == pytest.approx((chi.mean(), chi.std()))
    assert mixture.delta_bic == pytest.approx(-3 * np.log(11))
    assert signal_layer(np.array([0.0, *[1.0] * 9, 2.5]), PAPER).branch == "rank"


def test_tied_groups_rest_on_the_variance_floor() -> None:
    mixture = fit_two(np.array([0.1] * 40 + [0.9] * 60))
    assert mixture.sd_low == mixture.sd_high == pytest.approx(1e-5)
    assert mixture.weight_low == pytest.approx(0.4)
    assert mixture.delta_bic > 1000


def test_a_low_minority_opens_the_mixture_branch_and_takes_the_signal() -> None:
    score = two_groups(0)
    signal = signal_layer(score, PAPER)
    assert signal.branch == "gmm"
    assert signal.mixture is not None
    assert signal.mixture.weight_low == pytest.approx(0.3)
    assert signal.confidence > 0.99
    np.testing.assert_allclose(signal.p, np.where(score < 0.3, signal.confidence, 0.0), atol=1e-6)
    assert signal.tau == np.median(score) + 1e-12
    np.testing.assert_array_equal(signal.chi, np.log1p(score / signal.tau))


def test_a_low_majority_shuts_the_gate() -> None:
    score = two_groups(0, low=70)
    assert signal_layer(score, PAPER).branch == "rank"
    closed = signal_layer(score, replace(PAPER, branch="gmm"))
    assert closed.branch == "closed"
    assert not closed.p.any()
    assert closed.mixture is not None
    assert signal_layer(score, replace(PAPER, low_weight_cap=0.8)).branch == "gmm"
    assert signal_layer(two_groups(0), replace(PAPER, branch="rank")).mixture is None


def test_confidence_is_one_less_the_overlap_of_the_densities() -> None:
    signal = signal_layer(draw(3).lognormal(sigma=1.0, size=100), PAPER)
    m = signal.mixture
    assert m is not None
    grid = np.linspace(-10.0, 20.0, 200_001)
    low, high = (
        np.exp(-0.5 * ((grid - mu) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        for mu, sd in ((m.mean_low, m.sd_low), (m.mean_high, m.sd_high))
    )
    assert signal.confidence == pytest.approx(1.0 - np.sum(np.sqrt(low * high)) * (grid[1] - grid[0]), abs=1e-9)


def test_rank_signal_shares_ties() -> None:
    score = draw(2).integers(0, 12, 50) / 10.0
    expected = 0.75 * ((50 - rankdata(score)) / 49) ** 1.5
    np.testing.assert_allclose(rank_signal(score, PAPER), expected, atol=1e-12)
    k = int((score == score.min()).sum())
    assert rank_signal(score, PAPER).max() == pytest.approx(0.75 * ((50 - (k + 1) / 2) / 49) ** 1.5)
    in_order = rank_signal(np.array([1.0, 1.0, 2.0]), replace(PAPER, ties="argsort"))
    np.testing.assert_allclose(in_order, [0.75, 0.75 * 0.5**1.5, 0.0], atol=1e-12)


@pytest.mark.parametrize("score", [[], [0.7], [0.0, 0.0, 0.0], [0.3] * 5])
def test_scores_that_tell_nothing_soften_nothing_and_illegal_ones_are_refused(score: list[float]) -> None:
    signal = signal_layer(np.array(score), PAPER)
    assert signal.branch == "degenerate"
    assert signal.p.shape == (len(score),)
    assert not signal.p.any()
    for bad in (np.nan, -0.1, np.inf):
        with pytest.raises(InputError, match="finite"):
            signal_layer(np.array([*score, bad]), PAPER)


def test_two_neurons() -> None:
    # Each Gaussian closes on one score (pi_low = 1/2), so the lower one takes the whole signal.
    signal = signal_layer(np.array([0.9, 0.1]), PAPER)
    assert signal.branch == "gmm"
    np.testing.assert_allclose(signal.p, [0.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(rank_signal(np.array([0.9, 0.1]), PAPER), [0.0, 0.75], atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_numbering_the_neurons_otherwise_only_renumbers_the_result(seed: int) -> None:
    rng = draw(seed)
    T, V = rng.lognormal(size=(3, 100)), rng.lognormal(size=(3, 100))
    order = rng.permutation(100)
    plain = signal_layer(score_layer(T, V, 1, 3, PAPER).score, PAPER)
    moved = signal_layer(score_layer(T[:, order], V[:, order], 1, 3, PAPER).score, PAPER)
    assert plain.branch == moved.branch
    np.testing.assert_allclose(moved.p, plain.p[order], rtol=0, atol=1e-12)


def test_protection_by_depth_and_its_controls() -> None:
    eta, d = protection([10, 20, 70], PAPER)
    np.testing.assert_allclose(d, [1.0, 0.5, 0.0])
    np.testing.assert_allclose(eta, [0.45, 0.725, 1.0])
    np.testing.assert_allclose(protection([10, 20, 70], replace(PAPER, protection="none"))[0], 1.0)
    matched = protection([10, 20, 70], replace(PAPER, protection="matched"))[0]
    np.testing.assert_allclose(matched, 0.1 * 0.45 + 0.2 * 0.725 + 0.7)
    np.testing.assert_allclose(protection([8], PAPER), ([0.45], [1.0]))
    np.testing.assert_allclose(protect(np.array([0.0, 0.5, 1.0]), 0.45), [0.0, 0.225, 0.45])


@pytest.mark.parametrize("mapping", ["cubic", "linear", "sigmoid", "hard"])
@pytest.mark.parametrize("kappa", [0.5, 3.0])
def test_every_map_falls_from_one_to_gamma_min(mapping: str, kappa: float) -> None:
    options = replace(PAPER, mapping=mapping, kappa=kappa)
    gamma = decay_factor(np.linspace(0.0, 1.0, 1001), options)
    assert gamma[0] == 1.0
    assert gamma[-1] == pytest.approx(0.4, abs=1e-15)
    assert gamma.min() >= 0.4
    assert (np.diff(gamma) <= 0.0).all()


def test_maps_at_known_points() -> None:
    np.testing.assert_allclose(
        decay_factor([0.25, 0.5, 0.75], PAPER), [1 - 0.15 / 8, 0.85, 0.85 - 0.45 / 8], rtol=1e-15
    )
    linear, hard, sigmoid = (replace(PAPER, mapping=name) for name in ("linear", "hard", "sigmoid"))
    np.testing.assert_allclose(decay_factor([0.25, 0.5], linear), [0.85, 0.7], rtol=1e-15)
    np.testing.assert_array_equal(decay_factor([0.4999, 0.5], hard), [1.0, 0.4])
    quarter = 1 - 0.6 * (0.5 - 0.5 * np.tanh(1.0) / np.tanh(2.0))  # a logistic is a shifted tanh
    np.testing.assert_allclose(decay_factor([0.25, 0.5], sigmoid), [quarter, 0.7], rtol=1e-14)
    assert softened(np.array([1.0, 0.981, 0.98, 0.4]), PAPER).tolist() == [False, False, True, True]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_decay_bound_holds_for_a_scaled_layer_and_catches_anything_else(dtype: type) -> None:
    rng = draw(5)
    rows, bias = rng.normal(size=(20, 7)).astype(dtype), rng.normal(size=20).astype(dtype)
    gamma = decay_factor(rng.random(20), PAPER)
    scaled = (gamma[:, None].astype(dtype) * rows, gamma.astype(dtype) * bias)
    check_bound(rows, bias, *scaled, gamma, PAPER)
    twice = scaled[0].copy()
    twice[4] *= gamma[4].astype(dtype)
    with pytest.raises(DecayError, match="hidden layer 2, neuron 5: its weights moved"):
        check_bound(rows, bias, twice, scaled[1], gamma, PAPER, layer=1)
    with pytest.raises(DecayError, match="neuron 1:"):  # the bias was forgotten
        check_bound(rows, bias, scaled[0], bias, np.full(20, 0.5), PAPER)
    with pytest.raises(DecayError, match=r"outside \[0.4, 1\]"):
        check_bound(rows, bias, 0.1 * rows, 0.1 * bias, np.full(20, 0.1), PAPER)


def test_controls() -> None:
    score = draw(0).random(30)
    moved = shuffled(score, draw(1))
    assert sorted(moved) == sorted(score)
    assert (moved != score).any()
    uniform = random_scores(1000, draw(2))
    assert uniform.min() >= 0.0
    assert uniform.max() < 1.0
    assert abs(uniform.mean() - 0.5) < 0.05
    np.testing.assert_allclose(magnitude_scores([[3.0, 4.0], [0.0, 1.0], [3.0, 0.0]]), [1.0, 0.0, 0.5])
    assert not magnitude_scores(np.ones((4, 2))).any()

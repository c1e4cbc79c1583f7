"""Where a transfer starts: by name, reported, and never with a silent skip."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tgsr._errors import InputError
from tgsr.network._saved import SavedNetwork
from tgsr.network._start import transfer_check, transferred_arrays


def network(coordinates="xt", fields="u", hidden=(3, 4), seed=0, dtype="float64", activation="tanh") -> SavedNetwork:
    rng = np.random.default_rng(seed)
    widths = (len(coordinates), *hidden, len(fields))
    return SavedNetwork(
        weights=tuple(rng.normal(size=s).astype(dtype) for s in itertools.pairwise(widths)),
        biases=tuple(rng.normal(size=n).astype(dtype) for n in widths[1:]),
        activation=activation,
        coordinates=tuple(coordinates),
        fields=tuple(fields),
        centre=np.zeros(widths[0]),
        half_width=np.ones(widths[0]),
        offset=np.zeros(widths[-1]),
        scale=np.ones(widths[-1]),
    )


def outputs(weights, biases, points: dict[str, np.ndarray], coordinates: str) -> np.ndarray:
    a = np.stack([points[name] for name in coordinates], axis=-1)
    for k, (w, b) in enumerate(zip(weights, biases, strict=True)):
        a = a @ w + b
        a = np.tanh(a) if k < len(weights) - 1 else a
    return a


def start(source, target, match="exact"):
    return transferred_arrays(
        source, target.coordinates, target, match, fields=target.fields, activation=target.activation
    )


@given(order=st.permutations("xyt"), out=st.permutations("uvw"), hidden=st.lists(st.integers(1, 5), max_size=3))
def test_a_permutation_is_the_same_function(order, out, hidden):
    source = network("xyt", "uvw", tuple(hidden))
    target = network("".join(order), "".join(out), tuple(hidden), seed=1)
    points = {name: np.random.default_rng(5).normal(size=8) for name in "xyt"}
    expected = outputs(source.weights, source.biases, points, "xyt")
    weights, biases = start(source, target)
    got = outputs(weights, biases, points, target.coordinates)
    for k, name in enumerate(out):
        np.testing.assert_allclose(got[:, k], expected[:, "uvw".index(name)], rtol=1e-12, atol=1e-13)


def test_a_permutation_is_reported():
    lines = transfer_check(network("xt"), coordinates=["t", "x"], fields=["u"], widths=[2, 3, 4, 1], activation="tanh")
    assert [str(line) for line in lines] == [
        "input 't': copied from place 2 of the source to place 1",
        "input 'x': copied from place 1 of the source to place 2",
        "layer 1: copied",
        "layer 2: copied",
        "layer 3: copied",
        "output 'u': copied",
    ]


def test_leading_copies_shared_coordinates_by_name_and_keeps_fresh_values():
    source, target = network("xzt"), network("tyx", seed=1)
    lines = transfer_check(
        source,
        coordinates=["t", "y", "x"],
        fields=["u"],
        widths=[3, 3, 4, 1],
        activation="tanh",
        match="leading",
    )
    assert "input 'y': fresh values, the source has none" in map(str, lines)
    assert "input 'z': left behind, the target has none" in map(str, lines)
    weights, biases = start(source, target, "leading")
    assert np.array_equal(weights[0], [source.weights[0][2], target.weights[0][1], source.weights[0][0]])
    assert all(np.array_equal(a, b) for a, b in zip(weights[1:], source.weights[1:], strict=True))
    assert all(np.array_equal(a, b) for a, b in zip(biases, source.biases, strict=True))


def test_neither_network_is_changed_and_nothing_is_shared():
    source, target = network(), network(seed=1)
    prints = source.fingerprint(), target.fingerprint()
    weights, biases = start(source, target)
    for array in (*weights, *biases):
        array[...] = 0
    assert (source.fingerprint(), target.fingerprint()) == prints


def test_float_type_is_the_targets():
    weights, biases = start(network(dtype="float64"), network(seed=1, dtype="float32"))
    assert {a.dtype.name for a in (*weights, *biases)} == {"float32"}
    huge = network()
    huge = SavedNetwork(**{**vars(huge), "biases": (huge.biases[0] * 1e300, *huge.biases[1:])})
    with pytest.raises(InputError, match="do not fit float32"):
        start(huge, network(dtype="float32"))


def test_fields_may_have_other_names_at_their_place():
    lines = transfer_check(
        network("x", "uv"), coordinates=["x"], fields=["u", "c"], widths=[1, 3, 4, 2], activation="tanh"
    )
    assert str(lines[-1]) == "output 'c': copied"


@pytest.mark.parametrize("match", ["exact", "leading"])
@pytest.mark.parametrize(
    ("target", "said"),
    [
        (network("yz"), "share no coordinate|different coordinates"),
        (network(hidden=(3, 5)), r"hidden layers are \[3, 4\], the target's \[3, 5\]"),
        (network(hidden=(3,)), "hidden layers"),
        (network(hidden=(3, 4, 4)), "hidden layers"),
        (network(activation="sin"), "source's activation is tanh, the target's sin"),
        (network(fields="uv"), "unequal numbers of fields"),
    ],
)
def test_any_mismatch_is_an_error(target, said, match):
    with pytest.raises(InputError, match=said):
        start(network(), target, match)


@pytest.mark.parametrize(
    ("coordinates", "only"),
    [("x", "source has t"), ("xty", "target has y"), ("xy", "target has y; .*source has t")],
)
def test_other_input_widths_need_leading(coordinates, only):
    with pytest.raises(InputError, match=f"only the {only}.*match='leading'"):
        start(network("xt"), network(coordinates))
    start(network("xt"), network(coordinates), "leading")


def test_arguments_that_contradict_each_other():
    good = {"coordinates": ["x", "t"], "fields": ["u"], "widths": [2, 3, 4, 1], "activation": "tanh"}
    for change, said in (
        ({"match": "most"}, "unknown match"),
        ({"widths": [3, 3, 4, 1]}, "do not fit 2 coordinates"),
        ({"widths": []}, "do not fit"),
        ({"coordinates": ["x", "x"]}, "more than once"),
        ({"activation": "relu"}, "unknown activation"),
    ):
        with pytest.raises(InputError, match=said):
            transfer_check(network(), **(good | change))
    with pytest.raises(InputError, match="'u' is field 1 of the source and 2 of the target"):
        transfer_check(network("x", "uv"), coordinates=["x"], fields=["c", "u"], widths=[1, 3, 4, 2], activation="tanh")

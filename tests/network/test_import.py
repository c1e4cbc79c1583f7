"""State dicts of other programs: the same function comes out, and nothing is guessed."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

from tgsr._errors import InputError
from tgsr.network._import import import_network

XT = {"activation": "tanh", "coordinates": ["x", "t"], "fields": ["u"]}


def layers(widths: list[int], seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """(n_in, n_out) matrices and biases."""
    rng = np.random.default_rng(seed)
    return [(rng.normal(size=(a, b)), rng.normal(size=b)) for a, b in itertools.pairwise(widths)]


def torch_state(parts: list, stem: str = "net.", step: int = 2, start: int = 0) -> dict[str, np.ndarray]:
    state = {}
    for k, (w, b) in enumerate(parts):
        state[f"{stem}{start + k * step}.weight"] = np.ascontiguousarray(w.T)
        state[f"{stem}{start + k * step}.bias"] = b
    return state


@pytest.mark.parametrize(
    ("stem", "step", "start"),
    [
        ("", 2, 0),
        ("net.", 2, 0),
        ("linears.", 1, 0),
        ("layers.", 3, 0),
        ("fc", 1, 1),
        ("module.a.layer_", 1, 0),
    ],
)
def test_pytorch_orientation_and_key_styles(tmp_path, stem, step, start):
    parts = layers([2, 3, 3, 1])
    save_file(torch_state(parts, stem, step, start), tmp_path / "a.safetensors")
    saved = import_network(tmp_path / "a.safetensors", **XT)
    assert saved.widths == (2, 3, 3, 1)
    assert saved.dtype == "float64"
    for (w, b), got_w, got_b in zip(parts, saved.weights, saved.biases, strict=True):
        assert np.array_equal(w, got_w)
        assert np.array_equal(b, got_b)


@pytest.mark.parametrize("stem", ["dense_", "params/Dense_", "params.layers_"])
def test_kernels_are_taken_as_stored(tmp_path, stem):
    parts = layers([2, 2, 2])
    separator = "/" if "/" in stem else "."
    state = {
        f"{stem}{k}{separator}{n}": a for k, p in enumerate(parts) for n, a in zip(("kernel", "bias"), p, strict=True)
    }
    save_file(state, tmp_path / "a")
    saved = import_network(tmp_path / "a", activation="sin", coordinates=("x", "y"), fields=("u", "v"))
    assert all(np.array_equal(w, got) for (w, _), got in zip(parts, saved.weights, strict=True))


def test_layer_ten_follows_layer_nine(tmp_path):
    parts = layers([2] + [4] * 12 + [1])
    save_file(torch_state(parts, "linears.", 1), tmp_path / "a")
    saved = import_network(tmp_path / "a", **XT)
    assert saved.depth == 12
    assert all(np.array_equal(w, got) for (w, _), got in zip(parts, saved.weights, strict=True))


def test_prefix_chooses_one_of_several_networks(tmp_path):
    one, two = layers([2, 3, 1], 1), layers([2, 3, 1], 2)
    other = {"step": np.array([3])}
    save_file(torch_state(one, "a.") | torch_state(two, "b.") | other, tmp_path / "f")
    saved = import_network(tmp_path / "f", prefix="b.", **XT)
    assert np.array_equal(saved.weights[0], two[0][0])
    save_file(torch_state(one, "a.") | torch_state(two, "b."), tmp_path / "g")
    with pytest.raises(InputError, match=r"'b.0.bias': belongs to another network than 'a.0.bias'. .*prefix"):
        import_network(tmp_path / "g", **XT)
    with pytest.raises(InputError, match=r"no key starts with 'c.'"):
        import_network(tmp_path / "f", prefix="c.", **XT)


def test_scales_stand_as_given_and_are_the_identity_otherwise(tmp_path):
    save_file(torch_state(layers([2, 3, 1])), tmp_path / "a")
    plain = import_network(tmp_path / "a", **XT)
    assert plain.centre.tolist() == [0, 0]
    assert plain.half_width.tolist() == [1, 1]
    assert plain.offset.tolist() == [0]
    assert plain.scale.tolist() == [1]
    scaled = import_network(tmp_path / "a", centre=[1, 2], half_width=[3, 4], offset=[5], scale=[6], **XT)
    assert [scaled.centre.tolist(), scaled.half_width.tolist()] == [[1, 2], [3, 4]]
    assert [scaled.offset.tolist(), scaled.scale.tolist()] == [[5], [6]]
    for bad in (
        {"half_width": [1, 0]},
        {"scale": [-1]},
        {"centre": [1]},
        {"offset": "a"},
        {"centre": [[1], [1, 2]]},
    ):
        with pytest.raises(InputError, match=next(iter(bad))):
            import_network(tmp_path / "a", **XT, **bad)


def test_a_header_that_looks_like_the_start_of_a_pickle_is_read(tmp_path):
    """A header of 640 bytes begins with 0x80 0x02, the first bytes of a protocol 2 pickle."""
    state = torch_state(layers([2, 3, 1]))
    save_file(state, tmp_path / "a")
    data = (tmp_path / "a").read_bytes()
    length = int.from_bytes(data[:8], "little")
    for padded in (640, 1152):
        text = data[8 : 8 + length].ljust(padded)
        (tmp_path / "b").write_bytes(padded.to_bytes(8, "little") + text + data[8 + length :])
        assert import_network(tmp_path / "b", **XT).fingerprint() == import_network(tmp_path / "a", **XT).fingerprint()


@given(
    widths=st.lists(st.integers(1, 5), min_size=2, max_size=14),
    single=st.booleans(),
    kernel=st.booleans(),
    step=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_any_mlp_comes_in_bit_for_bit(tmp_path_factory, widths, single, kernel, step, seed):
    path = tmp_path_factory.mktemp("any") / "n.safetensors"
    parts = [(w.astype("f4"), b.astype("f4")) if single else (w, b) for w, b in layers(widths, seed)]
    state = torch_state(parts, "m.", step)
    if kernel:
        state = {key.replace("weight", "kernel"): a.T.copy() if a.ndim == 2 else a for key, a in state.items()}
    save_file(state, path)
    saved = import_network(
        path,
        activation="swish",
        coordinates=[f"x{k}" for k in range(widths[0])],
        fields=[f"u{k}" for k in range(widths[-1])],
    )
    assert saved.widths == tuple(widths)
    assert saved.dtype == ("float32" if single else "float64")
    assert all(np.array_equal(w, got) for (w, _), got in zip(parts, saved.weights, strict=True))
    assert all(np.array_equal(b, got) for (_, b), got in zip(parts, saved.biases, strict=True))


@given(data=st.binary(max_size=300), header=st.booleans())
def test_any_bytes_give_our_error_only(tmp_path_factory, data, header):
    path = tmp_path_factory.mktemp("fuzz") / "n.safetensors"
    path.write_bytes(len(data).to_bytes(8, "little") + data if header else data)
    with pytest.raises(InputError):
        import_network(path, **XT)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["F32", "F64", "dtype", "shape", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["0.weight", "0.bias", "dtype", "shape", "data_offsets"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(header=_JSON)
def test_any_header_gives_our_error_only(tmp_path_factory, header):
    path = tmp_path_factory.mktemp("header") / "n.safetensors"
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    with pytest.raises(InputError):
        import_network(path, **XT)


@pytest.mark.parametrize("name", ["relu", "silu", "tan", "", None, "TANH"])
def test_the_activation_is_never_guessed(tmp_path, name):
    save_file(torch_state(layers([2, 3, 1])), tmp_path / "a")
    with pytest.raises(InputError, match="unknown activation"):
        import_network(tmp_path / "a", **{**XT, "activation": name})
    with pytest.raises(TypeError, match="activation"):
        import_network(tmp_path / "a", coordinates=["x", "t"], fields=["u"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"coordinates": ["x"]}, "the network has 2 inputs, but 1 coordinates are named: x"),
        ({"coordinates": ["x", "y", "t"]}, "2 inputs, but 3"),
        ({"fields": ["u", "v"]}, "1 outputs, but 2 fields are named: u, v"),
        ({"coordinates": ["x", "x"]}, "given more than once"),
        ({"coordinates": ["x", "2t"]}, "cannot be a name"),
        ({"coordinates": "xt"}, "non-empty list"),
        ({"fields": []}, "non-empty list"),
        ({"fields": ["x"]}, "both a coordinate and a field"),
        ({"fields": [1]}, "cannot be a name"),
    ],
)
def test_names_are_checked_against_the_shapes(tmp_path, change, said):
    save_file(torch_state(layers([2, 3, 1])), tmp_path / "a")
    with pytest.raises(InputError, match=said):
        import_network(tmp_path / "a", **{**XT, **change})

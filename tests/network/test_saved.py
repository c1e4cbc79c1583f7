"""SavedNetwork and its two files: what goes out comes back bit for bit, and damage is named."""

from __future__ import annotations

import dataclasses
import itertools
import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tgsr._errors import InputError, StorageError, TgsrError
from tgsr.network._import import import_network
from tgsr.network._manifest import MANIFEST, TENSORS, read_network, write_network
from tgsr.network._names import ACTIVATIONS
from tgsr.network._saved import SavedNetwork
from tgsr.storage import read_sealed, write_sealed


def network(widths=(2, 3, 3, 1), seed=0, dtype="float64", **changed) -> SavedNetwork:
    rng = np.random.default_rng(seed)
    ins, outs = widths[0], widths[-1]
    parts = {
        "weights": tuple(rng.normal(size=s).astype(dtype) for s in itertools.pairwise(widths)),
        "biases": tuple(rng.normal(size=n).astype(dtype) for n in widths[1:]),
        "activation": "tanh",
        "coordinates": tuple("xtyz"[:ins]),
        "fields": tuple("uvw"[:outs]),
        "centre": rng.normal(size=ins),
        "half_width": rng.uniform(0.1, 1e5, ins),
        "offset": rng.normal(size=outs),
        "scale": rng.uniform(1e-9, 1, outs),
    }
    return SavedNetwork(**(parts | changed))


def same(a: SavedNetwork, b: SavedNetwork) -> bool:
    """Equality field by field, without the fingerprint."""
    pairs = [(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a)]
    flat = [(x, y) for p, q in pairs for x, y in (zip(p, q, strict=True) if isinstance(p, tuple) else [(p, q)])]
    return all(np.asarray(x).dtype == np.asarray(y).dtype and np.array_equal(x, y) for x, y in flat)


def test_shape_of_a_network():
    saved = network((2, 5, 4, 3))
    assert (saved.widths, saved.depth, saved.dtype) == ((2, 5, 4, 3), 2, "float64")
    assert hash(saved) != hash(network((2, 5, 4, 3)))  # by identity; fingerprint() compares


def test_arrays_are_copies_that_cannot_be_written():
    weight = np.ones((2, 1))
    saved = network((2, 1), weights=(weight,))
    weight[0, 0] = 7
    assert saved.weights[0][0, 0] == 1
    for array in (*saved.weights, *saved.biases, saved.centre, saved.half_width, saved.offset, saved.scale):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_fingerprint_sees_every_part():
    base = network()
    other = {
        "weights": (base.weights[0], base.weights[1] + 1e-15, base.weights[2]),
        "biases": (*base.biases[:2], base.biases[2] * (1 + 1e-15)),
        "activation": "sin",
        "coordinates": ("t", "x"),
        "fields": ("v",),
        "centre": base.centre[::-1],
        "half_width": base.half_width * 2,
        "offset": base.offset + 1,
        "scale": base.scale * 2,
    }
    assert set(other) == {field.name for field in dataclasses.fields(base)}
    prints = {name: dataclasses.replace(base, **{name: value}).fingerprint() for name, value in other.items()}
    assert len({base.fingerprint(), network(dtype="float32").fingerprint(), *prints.values()}) == len(other) + 2
    assert network().fingerprint() == base.fingerprint()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"weights": (np.ones((2, 1)),)}, "one bias per weight matrix"),
        ({"weights": (), "biases": ()}, "at least one"),
        ({"weights": (np.ones((2, 3)), np.ones((4, 3)), np.ones((3, 1)))}, r"weights\[1\].*takes 4 inputs"),
        ({"biases": (np.ones(3), np.ones(2), np.ones(1))}, r"biases\[1\].*has 2 entries"),
        ({"biases": (np.ones(3), np.ones((1, 3)), np.ones(1))}, r"biases\[1\].*shape"),
        ({"biases": (np.ones(3), np.ones(3), np.array([np.nan]))}, r"biases\[2\].*NaN"),
        ({"biases": (np.ones(3), np.ones(3), np.ones(1, "f4"))}, "mix float32 and float64"),
        ({"biases": (np.ones(3), np.ones(3), np.ones(1, "f2"))}, r"biases\[2\].*float16"),
        ({"biases": (np.ones(3), np.ones(3), np.ones(1, int))}, r"biases\[2\].*int64"),
        ({"biases": (np.ones(3), np.ones(3), [[1], [1, 2]])}, r"biases\[2\].*not an array"),
        ({"weights": (np.ones((2, 0)), np.ones((0, 3)), np.ones((3, 1)))}, r"weights\[0\].*shape"),
        ({"activation": "relu"}, "relu.*second derivative"),
        ({"activation": "silu"}, "called 'swish' here"),
        ({"coordinates": ("x",)}, "2 inputs, but 1 coordinates"),
        ({"coordinates": ("x", "x")}, "given more than once"),
        ({"coordinates": ("x", "u")}, "both a coordinate and a field"),
        ({"fields": ("u v",)}, "cannot be a name"),
        ({"half_width": [1.0, 0.0]}, "half_width.*positive"),
        ({"half_width": [1.0]}, "list of 2 numbers"),
        ({"centre": [np.inf, 0]}, "centre.*finite"),
        ({"centre": ["a", "b"]}, "list of 2 numbers"),
        ({"scale": [-1.0]}, "scale.*positive"),
        ({"offset": 1.0}, "list of 1 numbers"),
    ],
)
def test_what_a_network_cannot_be(changed, said):
    with pytest.raises(InputError, match=said):
        network(**changed)


@given(data=st.data())
def test_round_trip_is_exact(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("round")
    widths = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=13))
    dtype = data.draw(st.sampled_from(["float32", "float64"]))
    finite = st.floats(allow_nan=False, allow_infinity=False, width=32 if dtype == "float32" else 64)
    wide = st.floats(allow_nan=False, allow_infinity=False)
    positive = st.floats(min_value=5e-324, allow_infinity=False, exclude_min=False)
    names = [f"κ{k}" for k in range(widths[0] + widths[-1])]
    saved = SavedNetwork(
        weights=tuple(data.draw(arrays(dtype, s, elements=finite)) for s in itertools.pairwise(widths)),
        biases=tuple(data.draw(arrays(dtype, n, elements=finite)) for n in widths[1:]),
        activation=data.draw(st.sampled_from(ACTIVATIONS)),
        coordinates=tuple(names[: widths[0]]),
        fields=tuple(names[widths[0] :]),
        centre=data.draw(arrays("float64", widths[0], elements=wide)),
        half_width=data.draw(arrays("float64", widths[0], elements=positive)),
        offset=data.draw(arrays("float64", widths[-1], elements=wide)),
        scale=data.draw(arrays("float64", widths[-1], elements=positive)),
    )
    write_network(folder, saved)
    back = read_network(folder)
    assert same(saved, back)
    assert saved.fingerprint() == back.fingerprint()


def test_every_way_to_name_it_and_the_same_bytes_each_time(tmp_path):
    saved = network((2,) + (4,) * 12 + (1,))
    write_network(tmp_path, saved)
    before = [(tmp_path / name).read_bytes() for name in (TENSORS, MANIFEST)]
    assert sorted(path.name for path in tmp_path.iterdir()) == [MANIFEST, TENSORS]
    for path in (tmp_path, str(tmp_path), tmp_path / MANIFEST, tmp_path / TENSORS):
        assert same(read_network(path), saved)
    write_network(tmp_path, saved)
    assert before == [(tmp_path / name).read_bytes() for name in (TENSORS, MANIFEST)]


def test_our_own_arrays_can_be_imported_like_any_other(tmp_path):
    saved = network()
    write_network(tmp_path, saved)
    got = import_network(tmp_path / TENSORS, activation="tanh", coordinates=["x", "t"], fields=["u"])
    assert all(np.array_equal(a, b) for a, b in zip(saved.weights, got.weights, strict=True))


def test_no_flipped_bit_passes(tmp_path):
    """Every byte of both files, one bit each: all noticed, and by our own errors only."""
    saved = network((1, 2, 1))
    write_network(tmp_path, saved)
    for name in (TENSORS, MANIFEST):
        good = (tmp_path / name).read_bytes()
        for at in range(len(good)):
            bad = bytearray(good)
            bad[at] ^= 1 << at % 8
            (tmp_path / name).write_bytes(bad)
            with pytest.raises(TgsrError, match=name):
                read_network(tmp_path)
        for cut in (0, 1, 7, 8, len(good) // 2, len(good) - 1):
            (tmp_path / name).write_bytes(good[:cut])
            with pytest.raises(TgsrError, match=name):
                read_network(tmp_path)
        (tmp_path / name).write_bytes(good + b"\0")
        with pytest.raises(TgsrError, match=name):
            read_network(tmp_path)
        (tmp_path / name).write_bytes(good)
    assert same(read_network(tmp_path), saved)


def test_the_damaged_tensor_is_named(tmp_path):
    write_network(tmp_path, network((2, 3, 1)))
    data = bytearray((tmp_path / TENSORS).read_bytes())
    data[-1] ^= 1
    (tmp_path / TENSORS).write_bytes(data)
    with pytest.raises(StorageError, match=r"layers\.\d\.\w+.*does not hold the bytes that were written") as caught:
        read_network(tmp_path)
    assert caught.value.field is not None


def resealed(folder: Path, change) -> None:
    body = read_sealed(folder / MANIFEST)
    change(body)
    write_sealed(folder / MANIFEST, body)


MANIFESTS = [
    (lambda m: m.update(version=2), "format version 2; this release reads 1"),
    (lambda m: m.update(version=True), "format version True"),
    (lambda m: m.update(format="other"), "not the manifest of a network"),
    (lambda m: m.pop("format"), "not the manifest of a network"),
    (lambda m: m.update(extra=1), "'extra': is unknown or missing"),
    (lambda m: m.pop("activation"), "'activation': is unknown or missing"),
    (lambda m: m.update(activation="relu"), "unknown activation"),
    (lambda m: m.update(activation=["tanh"]), "unknown activation"),
    (lambda m: m.update(widths=[2, 4, 3, 1]), "describes another network"),
    (lambda m: m.update(dtype="float32"), "describes another network"),
    (lambda m: m.update(fingerprint="0" * 64), "describes another network"),
    (lambda m: m.update(file_sha256="0" * 64), "does not hold the bytes"),
    (lambda m: m["tensors"].pop("layers.0.bias"), "describes another network"),
    (lambda m: m.update(tensors=None), "does not describe a network"),
    (lambda m: m["coordinates"].reverse(), "describes another network"),
    (lambda m: m["coordinates"].pop(), "2 inputs, but 1 coordinates"),
    (lambda m: m["coordinates"][0].pop("name"), "does not describe a network"),
    (lambda m: m["coordinates"][0].update(centre=[1]), "does not describe|list of 2 numbers"),
    (lambda m: m["coordinates"][0].update(half_width=0.0), "positive"),
    (lambda m: m["coordinates"][0].update(centre=float("nan")), "finite"),
    (lambda m: m.update(coordinates=3), "does not describe a network"),
    (lambda m: m.update(fields=[]), "non-empty list"),
    (lambda m: m["fields"][0].update(offset=5.0), "describes another network"),
    (lambda m: m["fields"][0].update(name="x"), "both a coordinate and a field"),
]


@pytest.mark.parametrize(("change", "said"), MANIFESTS, ids=[str(row) for row in range(len(MANIFESTS))])
def test_a_manifest_that_says_something_else(tmp_path, change, said):
    write_network(tmp_path, network())
    resealed(tmp_path, change)
    with pytest.raises(TgsrError, match=said) as caught:
        read_network(tmp_path)
    assert str(tmp_path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_of_two_networks_do_not_mix(tmp_path):
    for name, seed in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        write_network(tmp_path / name, network(seed=seed))
    shutil.copy(tmp_path / "a" / TENSORS, tmp_path / "b")
    with pytest.raises(StorageError, match="Copy both files"):
        read_network(tmp_path / "b")


def test_missing_and_foreign_files(tmp_path):
    write_network(tmp_path, network())
    (tmp_path / "empty").mkdir()
    (tmp_path / "weights.pt").write_bytes(pickle.dumps({"a": 1}))
    shutil.copy(tmp_path / TENSORS, tmp_path / "other.safetensors")
    for path, said in (
        ("empty", f"holds no {MANIFEST}"),
        ("absent", "does not exist"),
        ("a\0b", "does not exist"),
        ("n" * 300, "does not exist"),
        ("weights.pt", "pickle.*convert_pytorch"),
        ("other.safetensors", "import_network"),
    ):
        with pytest.raises(InputError, match=said):
            read_network(tmp_path / path)
    shutil.copy(tmp_path / TENSORS, tmp_path / "empty")
    with pytest.raises(InputError, match=f"no {MANIFEST} beside it"):
        read_network(tmp_path / "empty" / TENSORS)
    (tmp_path / TENSORS).unlink()
    with pytest.raises(StorageError, match="missing, though its manifest is there"):
        read_network(tmp_path)
    (tmp_path / MANIFEST).write_text(json.dumps([1]))
    with pytest.raises(TgsrError, match=MANIFEST):
        read_network(tmp_path)
    with pytest.raises(StorageError, match="nowhere"):
        write_network(tmp_path / "nowhere", network())

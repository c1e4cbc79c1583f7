"""A table of unusable files: each gives one line that names the file, the key, and what is wrong."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tgsr._errors import InputError
from tgsr.network import _safetensors
from tgsr.network._import import import_network

XT = {"activation": "tanh", "coordinates": ["x", "t"], "fields": ["u"]}


def raw(entries: dict, data: bytes) -> bytes:
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text + data


def pack(shapes: dict[str, tuple], **changed) -> bytes:
    """A valid safetensors file; `changed` replaces (type, value) of a key given with __ for its dots."""
    other = {key.replace("__", "."): value for key, value in changed.items()}
    entries, data = {}, b""
    for key, shape in shapes.items():
        kind, fill = other.get(key, ("F64", 0.5))
        numpy_kind = {
            "F64": "<f8",
            "F32": "<f4",
            "F16": "<f2",
            "BF16": "<u2",
            "I64": "<i8",
            "BOOL": "?",
            "C64": "<c8",
        }
        array = np.full(shape, fill, numpy_kind[kind]).tobytes()
        entries[key] = {
            "dtype": kind,
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + len(array)],
        }
        data += array
    return raw(entries, data)


MLP = {"0.weight": (3, 2), "0.bias": (3,), "2.weight": (1, 3), "2.bias": (1,)}


def without(*keys: str) -> dict[str, tuple]:
    return {key: shape for key, shape in MLP.items() if key not in keys}


def edited(change: Callable[[dict], object]) -> bytes:
    """The MLP's file with its header edited, its data untouched."""
    data = pack(MLP)
    length = int.from_bytes(data[:8], "little")
    entries = json.loads(data[8 : 8 + length])
    change(entries)
    return raw(entries, data[8 + length :])


def zipped(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, pickle.dumps({"a": 1}))
    return buffer.getvalue()


def twice(text: str) -> bytes:
    return len(text).to_bytes(8, "little") + text.encode()


DEEP = "[" * 200_000
BAD: list[tuple[str, bytes, str, str | None]] = [
    # (what, bytes, said, key)
    ("empty", b"", "only 0 bytes", None),
    ("seven bytes", b"\x01" * 7, "only 7 bytes", None),
    ("text", b"hello world, these are not weights", "not a safetensors file", None),
    ("csv", b"x,t,u\n0,0,1\n", "not a safetensors file", None),
    ("pickle 2", pickle.dumps({"a": 1}, 2), "pickle, which can run code", None),
    ("pickle 4", pickle.dumps({"a": 1}, 4), "pickle, which can run code", None),
    ("pickle 5", pickle.dumps({"a": 1}, 5), "convert_pytorch", None),
    ("pickle 0", pickle.dumps({"a": 1}, 0), "not a safetensors file", None),
    ("PyTorch zip", zipped("archive/data.pkl"), "zip archive.*convert_pytorch", None),
    ("npz", zipped("a.npy"), "zip archive", None),
    ("empty zip", b"PK\x05\x06" + b"\0" * 18, "empty zip", None),
    ("hdf5", b"\x89HDF\r\n\x1a\n" + b"\0" * 40, "HDF5", None),
    ("npy", b"\x93NUMPY\x01\x00" + b" " * 40, "NumPy array file", None),
    ("git lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "git lfs pull", None),
    ("huge header", (2**40).to_bytes(8, "little") + b"{}", "over the limit", None),
    ("header cut", (100).to_bytes(8, "little") + b"{}", "cut short", None),
    ("header no JSON", twice("{nope"), "header is not JSON", None),
    ("header no UTF-8", (4).to_bytes(8, "little") + b"\xff\xfe{}", "header is not JSON", None),
    ("header too deep", twice(DEEP), "header is not JSON", None),
    ("header huge number", twice('{"a": ' + "9" * 5000 + "}"), "header is not JSON", None),
    ("header a list", twice("[1, 2]"), "not a JSON object", None),
    ("no tensor", twice("{}"), "holds no tensor", None),
    ("metadata only", twice('{"__metadata__": {"a": "b"}}'), "holds no tensor", None),
    ("key twice", twice('{"0.bias": 1, "0.bias": 2}'), "'0.bias' is given twice", None),
    ("too many keys", raw({f"{k}.bias": 1 for k in range(1025)}, b""), "names 1,025 tensors", None),
    ("entry a number", raw({"0.bias": 3}, b""), "must have dtype, shape", "0.bias"),
    ("entry short", edited(lambda e: e["2.bias"].pop("shape")), "must have dtype, shape", "2.bias"),
    ("entry extra", edited(lambda e: e["2.bias"].update(a=1)), "must have dtype, shape", "2.bias"),
    ("type unknown", edited(lambda e: e["0.bias"].update(dtype="F128")), "unknown type 'F128'", "0.bias"),
    ("type a list", edited(lambda e: e["0.bias"].update(dtype=["F64"])), "unknown type", "0.bias"),
    ("shape negative", edited(lambda e: e["0.bias"].update(shape=[-3])), "bad shape", "0.bias"),
    ("shape boolean", edited(lambda e: e["2.bias"].update(shape=[True])), "bad shape", "2.bias"),
    ("shape float", edited(lambda e: e["0.bias"].update(shape=[3.0])), "bad shape", "0.bias"),
    (
        "shape overflow",
        edited(lambda e: e["0.bias"].update(shape=[2**62, 4])),
        "does not fill 24 bytes",
        "0.bias",
    ),
    ("shape 9-D", edited(lambda e: e["0.bias"].update(shape=[1] * 8 + [3])), "bad shape", "0.bias"),
    ("shape too big", edited(lambda e: e["0.bias"].update(shape=[4])), "does not fill 24 bytes", "0.bias"),
    (
        "range reversed",
        edited(lambda e: e["0.bias"].update(data_offsets=[72, 48])),
        "bad byte range",
        "0.bias",
    ),
    (
        "range outside",
        edited(lambda e: e["2.bias"].update(data_offsets=[96, 999])),
        "bad byte range",
        "2.bias",
    ),
    ("range overlaps", edited(lambda e: e["0.bias"].update(data_offsets=[0, 24])), "is expected", "0.weight"),
    ("data cut", pack(MLP)[:-8], "bad byte range", "2.bias"),
    ("data too long", pack(MLP) + b"\0" * 8, "where its header describes", None),
    ("no bias", pack(without("2.bias")), "its layer has no bias.*biases of zero", "2.weight"),
    ("no weight", pack(without("2.weight")), "its layer has no weight", "2.bias"),
    ("no last layer", pack(without("2.weight", "2.bias")), "3 outputs, but 1 fields", "fields"),
    ("no first layer", pack(without("0.weight", "0.bias")), "numbered 2: one may be missing", "2.weight"),
    (
        "layer missing",
        pack(MLP | {"6.weight": (1, 1), "6.bias": (1,)}),
        "0, 2, 6: one may be missing",
        "6.weight",
    ),
    (
        "shapes unchained",
        pack(MLP | {"2.weight": (1, 4)}),
        "takes 4 inputs, but '0.weight' gives 3",
        "2.weight",
    ),
    ("not transposed", pack(MLP | {"0.weight": (2, 3)}), "has 3 entries, but '0.weight' gives 2", "0.bias"),
    ("bias long", pack(MLP | {"0.bias": (4,)}), "has 4 entries", "0.bias"),
    ("bias a matrix", pack(MLP | {"0.bias": (3, 1)}), "where a bias has one dimension", "0.bias"),
    ("bias a number", pack(MLP | {"2.bias": ()}), "where a bias has one dimension", "2.bias"),
    ("batch norm", pack(MLP | {"1.weight": (3,), "1.bias": (3,)}), "as of a normalisation layer", "1.weight"),
    (
        "running mean",
        pack(MLP | {"1.running_mean": (3,)}),
        "not part of a plain linear layer",
        "1.running_mean",
    ),
    ("convolution", pack({"0.weight": (3, 2, 5), "0.bias": (3,)}), "as of a convolution", "0.weight"),
    ("embedding", pack({"emb.weight": (9, 2)} | MLP), "not part of a plain linear layer", "emb.weight"),
    ("recurrent", pack({"rnn.weight_ih_l0": (9, 2)}), "not part of a plain linear layer", "rnn.weight_ih_l0"),
    ("weight norm", pack({"0.weight_g": (3, 1), "0.weight_v": (3, 2)}), "not part of a plain", "0.weight_g"),
    ("adaptive slope", pack(MLP | {"a": (1,)}), "not part of a plain linear layer", "a"),
    (
        "nested",
        pack({"l.0.0.weight": (1, 2), "l.0.0.bias": (1,), "l.1.0.weight": (1, 1)}),
        "another network",
        "l.1.0.weight",
    ),
    ("no number", pack({"dense.kernel": (2, 1), "dense.bias": (1,)}), "not part of a plain", "dense.bias"),
    (
        "kernel mixed",
        pack(without("2.weight") | {"2.kernel": (3, 1)}),
        "`weight` and `kernel` are mixed",
        "2.kernel",
    ),
    ("kernel and weight", pack(MLP | {"2.kernel": (3, 1)}), "same layer's weight as '2.kernel'", "2.weight"),
    ("number twice", pack(MLP | {"02.weight": (1, 3)}), "same layer's weight", "2.weight"),
    ("empty layer", pack(MLP | {"0.weight": (0, 2), "0.bias": (0,)}), "is empty", "0.weight"),
    ("half", pack(MLP, **{"0__weight": ("F16", 1)}), "type float16.*double", "0.weight"),
    ("bfloat16", pack(MLP, **{"2__bias": ("BF16", 1)}), "type bfloat16", "2.bias"),
    ("integers", pack(MLP, **{"2__bias": ("I64", 1)}), "type I64; weights must be float32", "2.bias"),
    ("booleans", pack(MLP, **{"2__bias": ("BOOL", 1)}), "type BOOL", "2.bias"),
    ("complex", pack(MLP, **{"0__weight": ("C64", 1j)}), "type C64", "0.weight"),
    ("mixed types", pack(MLP, **{"2__bias": ("F32", 1)}), "float32 and float64 are mixed", "2.weight"),
    ("NaN", pack(MLP, **{"2__weight": ("F64", np.nan)}), "holds NaN or infinite", "2.weight"),
    ("infinite", pack(MLP, **{"0__bias": ("F64", np.inf)}), "holds NaN or infinite", "0.bias"),
    (
        "control characters",
        pack({"\x1b[31m\nred": (1,)}),
        "not part of a plain linear layer",
        "\x1b[31m\nred",
    ),
]


def test_the_table_is_long_enough_and_its_base_is_good(tmp_path):
    assert len(BAD) >= 40
    (tmp_path / "good").write_bytes(pack(MLP))
    assert import_network(tmp_path / "good", **XT).widths == (2, 3, 1)


@pytest.mark.parametrize("suffix", [".safetensors", ".pt"])
@pytest.mark.parametrize(("what", "data", "said", "key"), BAD, ids=[row[0] for row in BAD])
def test_bad_file(tmp_path, what, data, said, key, suffix):
    path = tmp_path / f"n{suffix}"
    path.write_bytes(data)
    with pytest.raises(InputError, match=said) as caught:
        import_network(path, **XT)
    assert caught.value.field == key
    assert caught.value.file == str(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_paths_that_are_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (tmp_path / "none", "does not exist"),
        (tmp_path, "not a regular file"),
        (tmp_path / "pipe", "not a regular file"),
        (Path("/dev/zero"), "not a regular file"),
        ("a\0b", "null byte"),
        (tmp_path / ("n" * 300), "too long"),
    ):
        with pytest.raises(InputError, match=said):
            import_network(path, **XT)


def test_a_huge_file_is_refused_before_it_is_read(tmp_path):
    with open(tmp_path / "huge", "wb") as handle:
        handle.truncate(_safetensors.MAX_FILE_BYTES + 1)  # sparse: takes no space
    with pytest.raises(InputError, match="at most 268,435,456 are read"):
        import_network(tmp_path / "huge", **XT)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".safetensors", ".pkl"])
@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_would_act_is_not_opened(tmp_path, suffix, protocol):
    target = tmp_path / "created"

    class Malicious:
        def __reduce__(self):
            return os.mkdir, (str(target),)

    path = tmp_path / f"weights{suffix}"
    path.write_bytes(pickle.dumps(Malicious(), protocol))
    with pytest.raises(InputError):
        import_network(path, **XT)
    assert not target.exists()
    pickle.loads(path.read_bytes())  # the file is real: opened, it acts
    assert target.exists()

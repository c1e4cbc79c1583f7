"""PyTorch's own files: the converter gives the same function and runs nothing that a file holds."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.special import erf, expit

from tgsr._errors import InputError
from tgsr.network._import import import_network
from tgsr.network._names import ACTIVATIONS
from tgsr.network._pytorch import convert_pytorch
from tgsr.network._saved import SavedNetwork

XT = {"activation": "tanh", "coordinates": ["x", "t"], "fields": ["u"]}
FUNCTIONS = {
    "tanh": np.tanh,
    "sin": np.sin,
    "swish": lambda z: z * expit(z),
    "gelu": lambda z: 0.5 * z * (1 + erf(z / np.sqrt(2))),
    "softplus": lambda z: np.logaddexp(z, 0),
    "sigmoid": expit,
}


def value(saved: SavedNetwork, x: np.ndarray) -> np.ndarray:
    """The equation in the docstring of `SavedNetwork`."""
    a = (x - saved.centre) / saved.half_width
    for w, b in zip(saved.weights[:-1], saved.biases[:-1], strict=True):
        a = FUNCTIONS[saved.activation](a @ w + b)
    return saved.offset + saved.scale * (a @ saved.weights[-1] + saved.biases[-1])


@pytest.fixture
def torch():
    found = pytest.importorskip("torch", reason="PyTorch is not installed (extra `torch`)")
    found.manual_seed(0)
    return found


def sequential(torch, activation: str, dtype=None):
    class Sine(torch.nn.Module):
        def forward(self, z):
            return torch.sin(z)

    kinds = {"tanh": "Tanh", "swish": "SiLU", "gelu": "GELU", "softplus": "Softplus", "sigmoid": "Sigmoid"}
    parts: list = []
    for a, b in pairwise((2, 7, 7, 5, 1)):
        act = Sine() if activation == "sin" else getattr(torch.nn, kinds[activation])()
        parts += [torch.nn.Linear(a, b), act]
    return torch.nn.Sequential(*parts[:-1]).to(dtype or torch.float64)


def deepxde_network(torch):
    """The layout of DeepXDE's FNN: a ModuleList called `linears`, the activation applied in `forward`."""

    class FNN(torch.nn.Module):
        def __init__(self):
            super().__init__()
            sizes = [2, *[6] * 11, 3]
            self.linears = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in pairwise(sizes))
            self.double()

        def forward(self, x):
            for linear in self.linears[:-1]:
                x = torch.tanh(linear(x))
            return self.linears[-1](x)

    return FNN()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_sequential_is_the_same_function(torch, tmp_path, activation):
    save_file = pytest.importorskip("safetensors.torch", reason="PyTorch is not installed (extra `torch`)").save_file
    model = sequential(torch, activation)
    torch.save(model.state_dict(), tmp_path / "m.pt")
    torch.save(model.state_dict(), tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    save_file(model.state_dict(), tmp_path / "m.safetensors")
    x = np.random.default_rng(0).normal(size=(50, 2))
    expected = model(torch.from_numpy(x)).detach().numpy()
    said = {**XT, "activation": activation}
    saved = [convert_pytorch(tmp_path / name, **said) for name in ("m.pt", "old.pth")]
    saved.append(import_network(tmp_path / "m.safetensors", **said))
    assert len({network.fingerprint() for network in saved}) == 1
    np.testing.assert_allclose(value(saved[0], x), expected, rtol=1e-12, atol=1e-12)


def test_scales_around_an_imported_network(torch, tmp_path):
    model = sequential(torch, "tanh")
    torch.save(model.state_dict(), tmp_path / "m.pt")
    scales = {"centre": [1.0, 2.0], "half_width": [0.5, 4.0], "offset": [20.0], "scale": [60.0]}
    x = np.random.default_rng(0).normal(size=(50, 2))
    inner = torch.from_numpy((x - scales["centre"]) / scales["half_width"])
    expected = 20.0 + 60.0 * model(inner).detach().numpy()
    np.testing.assert_allclose(value(convert_pytorch(tmp_path / "m.pt", **XT, **scales), x), expected, rtol=1e-12)


def test_a_deepxde_checkpoint_is_the_same_function(torch, tmp_path):
    model = deepxde_network(torch)
    optimiser = torch.optim.Adam(model.parameters())
    x = torch.randn(20, 2, dtype=torch.float64)
    model(x).sum().backward()
    optimiser.step()
    held = {"model_state_dict": model.state_dict(), "optimizer_state_dict": optimiser.state_dict()}
    torch.save(held, tmp_path / "model-1.pt")
    saved = convert_pytorch(tmp_path / "model-1.pt", **{**XT, "fields": ["u", "v", "p"]})
    assert saved.widths == (2, *[6] * 11, 3)
    np.testing.assert_allclose(value(saved, x.numpy()), model(x).detach().numpy(), rtol=1e-12, atol=1e-12)


def test_prefix_and_float32(torch, tmp_path):
    model = torch.nn.ModuleDict({"a": sequential(torch, "tanh", torch.float32), "b": torch.nn.Embedding(3, 2)})
    torch.save(model.state_dict(), tmp_path / "m.pt")
    saved = convert_pytorch(tmp_path / "m.pt", prefix="a.", **XT)
    assert saved.dtype == "float32"
    assert np.array_equal(saved.weights[0], model["a"][0].weight.detach().numpy().T)


def refused(path: Path, said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        convert_pytorch(path, **XT)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


class Act:
    """Pickled, this makes a folder when it is loaded."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_that_would_act_is_refused_and_does_not(torch, tmp_path, zipped):
    for place, held in enumerate((Act, lambda t: {"0.weight": Act(t)}, lambda t: {"model_state_dict": Act(t)})):
        target, path = tmp_path / f"created{place}", tmp_path / f"bad{place}.pt"
        torch.save(held(target), path, _use_new_zipfile_serialization=zipped)
        refused(path, r"not a file of weights only.*asks for .*mkdir")
        with pytest.raises(InputError, match=r"is a zip archive|is a Python pickle"):
            import_network(path, **XT)
        assert not target.exists()
        torch.load(path, weights_only=False)  # the file is real: opened otherwise, it acts
        assert target.exists()


def test_what_is_not_a_state_dict(torch, tmp_path):
    model = sequential(torch, "tanh")
    good = model.state_dict()
    zeros = torch.zeros
    tensors = (
        (
            "missing bias",
            {k: v for k, v in good.items() if k != "0.bias"},
            "'0.weight': its layer has no bias",
        ),
        ("half", {k: v.half() for k, v in good.items()}, "'0.weight': has type float16"),
        ("bfloat16", {k: v.bfloat16() for k, v in good.items()}, "has type bfloat16"),
        ("complex", {k: v.to(torch.complex128) for k, v in good.items()}, "has type complex128"),
        ("integers", {k: v.long() for k, v in good.items()}, "has type int64"),
        ("sparse", good | {"0.weight": good["0.weight"].to_sparse()}, "'0.weight': is a sparse"),
        ("meta", good | {"0.weight": zeros(7, 2, device="meta")}, "'0.weight': is a sparse|weights only"),
        ("expanded", good | {"0.weight": zeros(1).expand(2**20, 2**20)}, "describes tensors of more than"),
        ("NaN", good | {"2.bias": good["2.bias"] * float("nan")}, "'2.bias': holds NaN"),
        ("wrong shape", good | {"2.weight": zeros(7, 8).double()}, "'2.weight': takes 8 inputs"),
        ("many", {f"{k}.bias": zeros(1) for k in range(1025)}, "names 1,025 tensors"),
        ("tensor", zeros(3), "holds a Tensor instead of a state dict"),
        ("list", [zeros(3)], "holds a list instead"),
        ("empty", {}, "holds a dict instead"),
        ("nested", {"state_dict": good}, "'state_dict': is a (Ordered[Dd]ict|dict), not a tensor"),
        ("numbers", {0: zeros(3)}, "the key 0 is not a name"),
        ("deepxde broken", {"model_state_dict": 3}, "holds a int instead"),
    )
    for name, held, said in tensors:
        torch.save(held, tmp_path / name)
        refused(tmp_path / name, said)
    torch.save(deepxde_network, tmp_path / "function")
    refused(tmp_path / "function", "not a file of weights only")
    torch.save(torch.nn.Linear(2, 1), tmp_path / "model")
    refused(tmp_path / "model", r"asks for torch\.nn.*Linear.*state_dict\(\)")


def test_damaged_and_packed_archives(torch, tmp_path):
    torch.save(sequential(torch, "tanh").state_dict(), tmp_path / "m.pt")
    good = (tmp_path / "m.pt").read_bytes()
    for name, data in (("cut", good[:-100]), ("short", good[:60]), ("text", b"hello"), ("none", b"")):
        (tmp_path / name).write_bytes(data)
        refused(tmp_path / name, "damaged PyTorch file|not a file of weights only")
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(good)) as old, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            new.writestr(entry.filename, old.read(entry))
    (tmp_path / "packed").write_bytes(packed.getvalue())
    refused(tmp_path / "packed", "compressed archive")
    refused(tmp_path / "absent", "does not exist")
    refused(tmp_path, "not a regular file")


def test_without_torch_the_way_round_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "m.pt").write_bytes(pickle.dumps(Act(tmp_path / "created")))
    with pytest.raises(InputError, match=r"not installed. Install the extra `torch`, or .*safetensors"):
        convert_pytorch(tmp_path / "m.pt", **XT)
    assert not (tmp_path / "created").exists()


def test_an_old_torch_is_refused(tmp_path, monkeypatch):
    class Old:
        __version__ = "2.5.1+cpu"

    monkeypatch.setitem(sys.modules, "torch", Old)
    with pytest.raises(InputError, match=r"PyTorch 2\.5\.1\+cpu cannot read a file safely"):
        convert_pytorch(tmp_path / "m.pt", **XT)


def test_nothing_here_loads_jax_torch_or_pickle():
    code = (
        "import sys, tgsr.network._pytorch, tgsr.network._manifest, tgsr.network._start;"
        "print([m for m in ('jax', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
    source = Path(sys.modules[import_network.__module__].__file__ or "").parent
    names = ["_saved", "_manifest", "_safetensors", "_import", "_pytorch", "_start", "_names"]
    assert not any("import pickle" in (source / f"{name}.py").read_text() for name in names)

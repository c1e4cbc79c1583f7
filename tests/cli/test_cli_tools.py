"""`tgsr convert`, `methods` and `doctor`."""

from __future__ import annotations

import json
import shutil
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from cli_cases import Invoke

from tgsr import InstallationError
from tgsr.network._manifest import read_network
from tgsr.storage import write_tensors


@pytest.fixture
def weights() -> Path:
    rng = np.random.default_rng(3)
    shapes = {"net.0": (5, 2), "net.2": (1, 5)}
    tensors = {f"{key}.weight": rng.normal(size=shape) for key, shape in shapes.items()}
    tensors |= {f"{key}.bias": rng.normal(size=shape[:1]) for key, shape in shapes.items()}
    write_tensors("weights.safetensors", tensors)
    return Path("weights.safetensors")


SCALES = "--centre 0.5,1 --half-width 0.5,1"
MEANING = f"--activation tanh --coordinates x,t --fields T {SCALES}".split()


def test_convert_writes_a_network_that_reads_back(weights: Path, invoke: Invoke) -> None:
    from tgsr import import_network

    answer = invoke("convert", weights, "out", *MEANING, "--offset", "20", "--scale", "60")
    assert answer.exit_code == 0, answer.output
    assert "2-5-1 tanh" in answer.stdout
    scales = {"centre": [0.5, 1], "half_width": [0.5, 1], "offset": [20], "scale": [60]}
    expected = import_network(weights, activation="tanh", coordinates=["x", "t"], fields=["T"], **scales)
    assert read_network("out").fingerprint() == expected.fingerprint()
    again = invoke("convert", weights, "out", *MEANING)
    assert again.exit_code == 2
    assert read_network("out").fingerprint() == expected.fingerprint()


def test_a_bad_file_leaves_no_folder(weights: Path, invoke: Invoke) -> None:
    weights.write_bytes(weights.read_bytes()[:50])
    assert invoke("convert", weights, "out", *MEANING).exit_code == 2
    assert not Path("out").exists()


def test_methods_lists_each_with_its_options(invoke: Invoke) -> None:
    from tgsr.methods import methods

    found = json.loads(invoke("methods", "--json").stdout)
    assert set(found) == set(methods())
    assert found["full"]["options"] == {"match": "exact"}
    for name, about in found.items():
        assert about["what"], name
        if name == "tgsr":
            assert about["options"]["gamma_min"] == 0.4
    text = invoke("methods").stdout
    assert "match = exact" in text
    assert "options as for tgsr" in text


def test_options_reach_the_method() -> None:
    from tgsr.cli._catalogue import method_with

    method = method_with("tgsr", [{"gamma_min": "0.3", "batches": "5"}, {"score": "ref"}])
    options = method.options  # type: ignore[attr-defined]
    assert (options.gamma_min, options.batches, options.score) == (0.3, 5, "ref")
    default = type(options)()
    same = [f.name for f in fields(options) if getattr(options, f.name) == getattr(default, f.name)]
    assert len(same) == len(fields(options)) - 3


def test_doctor_checks_for_real(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    answer = invoke("doctor")
    assert answer.exit_code == 0, answer.output
    assert "All is well" in answer.stdout
    found = json.loads(invoke("doctor", "--json").stdout)
    assert found["problems"] == []
    assert found["canary"].startswith("passed in ")
    assert found["dtype"] == "float64"
    native = shutil.which("g++") is not None
    assert found["engine"].startswith("native ") if native else found["engine"] == "jax"
    assert ("built with g++" if native else "no g++") in found["engine_why"]
    assert found["cache"]["writable"]


def test_doctor_refuses_wrong_numbers_and_forgets_better_days(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    verdict = tmp_path / "tgsr" / "canary.json"
    verdict.parent.mkdir()
    verdict.write_text("{}")
    monkeypatch.setattr("tgsr._canary.failures", lambda: ["batched product at 7 points: 3 wrong values"])
    answer = invoke("doctor")
    assert answer.exit_code == 3
    assert "3 wrong values" in answer.stdout
    assert "pip install" in answer.stdout
    assert not verdict.exists()


def test_doctor_survives_an_installation_that_does_not_start(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise InstallationError("jaxlib 0.10.2 cannot be used", remedy="Install a tested version")

    monkeypatch.setattr("tgsr._jax.computing", refuse)
    answer = invoke("doctor", "--json")
    assert answer.exit_code == 3
    assert "0.10.2" in json.loads(answer.stdout)["problems"][0]

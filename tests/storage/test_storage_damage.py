"""Every kind of damage to a checkpoint is noticed, wherever it strikes; nothing in a file is ever run."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from storage_cases import new_run, same, snapshot, state, step_of

from tgsr._errors import StorageError
from tgsr.storage import (
    RunDirectory,
    canonical_json,
    read_arrays,
    read_tensors,
    tensor_bytes,
    write_arrays,
    write_tensors,
)

TIMES = 100
Damage = Callable[[Path, np.random.Generator], None]


def edit(name: str, change: Callable[[bytes, np.random.Generator], bytes]) -> Damage:
    def damage(generation: Path, rng: np.random.Generator) -> None:
        path = generation / name
        path.write_bytes(change(path.read_bytes(), rng))

    return damage


def flip(data: bytes, at: int, bit: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def header_end(data: bytes) -> int:
    return 8 + int.from_bytes(data[:8], "little")


def flip_in_data(data: bytes, rng: np.random.Generator) -> bytes:
    return flip(data, int(rng.integers(header_end(data), len(data))), int(rng.integers(8)))


def flip_in_header(data: bytes, rng: np.random.Generator) -> bytes:
    return flip(data, int(rng.integers(header_end(data))), int(rng.integers(8)))


def flip_anywhere(data: bytes, rng: np.random.Generator) -> bytes:
    return flip(data, int(rng.integers(len(data))), int(rng.integers(8)))


def rewritten(change: Callable[[dict[str, np.ndarray], np.random.Generator], None]) -> Damage:
    """Another valid safetensors file in the place of the right one."""

    def damage(generation: Path, rng: np.random.Generator) -> None:
        arrays = read_tensors(generation / "state.safetensors")
        change(arrays, rng)
        (generation / "state.safetensors").write_bytes(tensor_bytes(arrays))

    return damage


def extra(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    arrays[f"extra{rng.integers(1000)}"] = rng.normal(size=int(rng.integers(5)))


def other_type(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    arrays["weights"] = arrays["weights"].astype(rng.choice(["float32", "int64", "float16"]))


def other_shape(arrays: dict[str, np.ndarray], rng: np.random.Generator) -> None:
    arrays["weights"] = arrays["weights"].reshape([(6, 5), (30,), (10, 3), (2, 15)][rng.integers(4)])


def edited_manifest(data: bytes, rng: np.random.Generator) -> bytes:
    manifest = json.loads(data)
    target = [manifest, manifest["meta"], manifest["arrays"]["weights"]][rng.integers(3)]
    key = str(rng.choice(sorted(set(target) - {"sha256"})))
    target[key] = [target[key], int(rng.integers(1000))]
    return (json.dumps(manifest, sort_keys=True, indent=1) + "\n").encode()


def resealed_manifest(data: bytes, rng: np.random.Generator) -> bytes:
    """Edited by someone who also renews the seal, as far as the arrays go."""
    manifest = json.loads(data)
    del manifest["sha256"]
    name = str(rng.choice(sorted(manifest["arrays"])))
    manifest["arrays"][name] |= [{"dtype": "int32"}, {"shape": [77]}, {"sha256": "0" * 64}][rng.integers(3)]
    manifest["meta"]["cursor"] = None
    seal = hashlib.sha256(canonical_json(manifest, indent=None).encode()).hexdigest()
    return canonical_json(manifest | {"sha256": seal}).encode()


class Bomb:
    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("exploded",)


def pickled(data: bytes, rng: np.random.Generator) -> bytes:
    return pickle.dumps(Bomb(), protocol=int(rng.integers(6))) + data[: int(rng.integers(len(data)))]


def from_another_run(generation: Path, rng: np.random.Generator) -> None:
    other = new_run(generation.parent.parent.parent / "other", seed=int(rng.integers(1, 1000)))
    other.save_checkpoint(*state(50))
    names = ["manifest.json", "state.safetensors"][: int(rng.integers(1, 3))]
    for name in names:
        shutil.copy(other.path / "checkpoint/current" / name, generation / name)


def missing(generation: Path, rng: np.random.Generator) -> None:
    (generation / str(rng.choice(["manifest.json", "state.safetensors"]))).unlink()


FILES = ("state.safetensors", "manifest.json")
KINDS: dict[str, Damage] = {
    "state cut short": edit(FILES[0], lambda data, rng: data[: int(rng.integers(len(data)))]),
    "manifest cut short": edit(FILES[1], lambda data, rng: data[: int(rng.integers(len(data)))]),
    "zero length": lambda generation, rng: (generation / str(rng.choice(FILES))).write_bytes(b"") and None,
    "bit flip in data": edit(FILES[0], flip_in_data),
    "bit flip in header": edit(FILES[0], flip_in_header),
    "bit flip in manifest": edit(FILES[1], flip_anywhere),
    "file missing": missing,
    "extra tensor": rewritten(extra),
    "other dtype": rewritten(other_type),
    "other shape": rewritten(other_shape),
    "manifest edited": edit(FILES[1], edited_manifest),
    "manifest edited and sealed again": edit(FILES[1], resealed_manifest),
    "from another run": from_another_run,
    "garbage": lambda generation, rng: (
        (generation / str(rng.choice(FILES))).write_bytes(rng.bytes(int(rng.integers(3000)))) and None
    ),
    "pickle": edit(FILES[0], pickled),
    "pickle as manifest": edit(FILES[1], pickled),
    "appended bytes": edit(FILES[0], lambda data, rng: data + rng.bytes(int(rng.integers(1, 50)))),
}


def put_back(folder: Path, files: dict[str, bytes | None]) -> None:
    for name, data in files.items():
        if data is not None:
            (folder / name).write_bytes(data)


@pytest.mark.parametrize("kind", KINDS)
def test_damage_to_current_falls_back_and_says_so_and_damage_to_both_is_an_error(
    run: RunDirectory, kind: str, tmp_path: Path
) -> None:
    run.save_checkpoint(*state(1))
    run.save_checkpoint(*state(2))
    folder = run.path / "checkpoint"
    good, good_current = snapshot(folder), snapshot(folder / "current")
    rng = np.random.default_rng(sorted(KINDS).index(kind))
    for index in range(TIMES):
        KINDS[kind](folder / "current", rng)
        if snapshot(folder / "current") == good_current:
            continue  # garbage and the like may hit by chance: then no damage was done
        checkpoint = run.load_checkpoint()
        assert checkpoint is not None
        assert (checkpoint.generation, checkpoint.meta) == ("previous", state(1)[1])
        assert same(checkpoint.arrays, state(1)[0])
        assert checkpoint.note is not None
        assert "current" in checkpoint.note
        if index % 10 == 0:
            assert run.status().state == "interrupted"
            assert run.verify() == [checkpoint.note]
        KINDS[kind](folder / "previous", rng)
        with pytest.raises(StorageError):
            run.load_checkpoint()
        put_back(folder, good)
    assert not (tmp_path / "exploded").exists()
    assert step_of(run) == 2


@pytest.mark.parametrize("name", FILES)
def test_files_swapped_between_the_generations_are_noticed(run: RunDirectory, name: str) -> None:
    run.save_checkpoint(*state(1))
    run.save_checkpoint(*state(2))
    current, previous = run.path / "checkpoint/current", run.path / "checkpoint/previous"
    (current / name).rename(run.path / "aside")
    (previous / name).rename(current / name)
    (run.path / "aside").rename(previous / name)
    with pytest.raises(StorageError, match="no saved state"):
        run.load_checkpoint()
    assert run.status().state == "damaged"


def test_exchanged_generations_give_the_newer_state_and_a_note(run: RunDirectory) -> None:
    run.save_checkpoint(*state(1))
    run.save_checkpoint(*state(2))
    folder = run.path / "checkpoint"
    (folder / "current").rename(folder / "aside")
    (folder / "previous").rename(folder / "current")
    (folder / "aside").rename(folder / "previous")
    checkpoint = run.load_checkpoint()
    assert checkpoint is not None
    assert (checkpoint.generation, checkpoint.meta["step"]) == ("previous", 2)
    assert "older" in (checkpoint.note or "")


def test_a_damaged_current_never_pushes_out_the_good_previous(run: RunDirectory) -> None:
    for step in (1, 2):
        run.save_checkpoint(*state(step))
    path = run.path / "checkpoint/current/state.safetensors"
    path.write_bytes(flip(path.read_bytes(), -20 % path.stat().st_size, 0))
    run.save_checkpoint(*state(3))
    shutil.rmtree(run.path / "checkpoint/current")
    assert step_of(run) == 1


def test_a_first_save_that_was_cut_short_is_no_damage(run: RunDirectory) -> None:
    (run.path / "checkpoint/next").mkdir(parents=True)
    (run.path / "checkpoint/next/state.safetensors").write_bytes(b"half")
    assert run.load_checkpoint() is None
    run.save_checkpoint(*state(1))
    assert step_of(run) == 1


@pytest.mark.parametrize("reader", [read_arrays, read_tensors])
def test_random_bytes_and_pickles_give_only_our_error(tmp_path: Path, reader: Callable[[Path], object]) -> None:
    rng, path, good = np.random.default_rng(0), tmp_path / "file", tmp_path / "good"
    (write_arrays if reader is read_arrays else write_tensors)(good, {"a": np.arange(6.0).reshape(2, 3)})
    data = good.read_bytes()
    objects = tmp_path / "objects.npz"
    np.savez(objects, a=np.array([Bomb()], dtype=object))
    foreign = [objects.read_bytes(), pickle.dumps(Bomb()), pickle.dumps(Bomb(), 0), b"", b"PK\x03\x04"]
    for text in [*foreign, *(rng.bytes(int(rng.integers(200))) for _ in range(100))]:
        path.write_bytes(text)
        with pytest.raises(StorageError):
            reader(path)
    for _ in range(300):  # a flipped bit may leave a readable file; it must not give another kind of error
        path.write_bytes(flip_anywhere(data, rng))
        with suppress(StorageError):
            reader(path)
    assert not (tmp_path / "exploded").exists()


def test_a_file_that_claims_more_than_it_holds_is_refused_before_anything_is_allocated(
    tmp_path: Path,
) -> None:
    path = tmp_path / "huge.safetensors"
    header = json.dumps({"a": {"dtype": "F64", "shape": [2**50], "data_offsets": [0, 2**53]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(StorageError):
        read_tensors(path)
    path.write_bytes((2**40).to_bytes(8, "little") + b"{}")
    with pytest.raises(StorageError, match="header"):
        read_tensors(path)
    write_arrays(path, {"a": np.zeros(1000)})
    with pytest.raises(StorageError, match="at most 100"):
        read_arrays(path, limit=100)
    np.savez_compressed(tmp_path / "bomb.npz", a=np.zeros(10**6))
    with pytest.raises(StorageError, match="claims more"):
        read_arrays(tmp_path / "bomb.npz", limit=10**5)
    assert read_arrays(tmp_path / "bomb.npz")["a"].shape == (10**6,)

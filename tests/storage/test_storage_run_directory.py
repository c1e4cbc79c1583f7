"""A run directory: its identity, its states, its log and its commit mark."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from storage_cases import new_run, state

from tgsr._errors import InputError, StorageError
from tgsr.storage import RunDirectory, find_runs, write_bytes

BAD_NAMES = [
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "/etc",
    ".hidden",
    "a b",
    "ü",
    "x" * 65,
    "a\n",
    "a\0",
    "a\\b",
    "~",
    "$HOME",
    "-\x1b",
]


@pytest.mark.parametrize("name", BAD_NAMES, ids=[str(index) for index in range(len(BAD_NAMES))])
def test_a_name_never_leads_out_of_the_root(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot name"):
        new_run(tmp_path / "root", name)
    assert not (tmp_path / "root").exists()
    run = new_run(tmp_path / "runs")
    with pytest.raises(InputError, match="cannot name"):
        run.file(f"stages/{name}/../x")


def test_a_link_in_the_place_of_a_run_is_refused(tmp_path: Path) -> None:
    run = new_run(tmp_path / "runs")
    os.rename(run.path, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", run.path)
    with pytest.raises(InputError, match="link"):
        new_run(tmp_path / "runs")
    assert find_runs(tmp_path / "runs") == []


def test_the_id_is_the_content(tmp_path: Path) -> None:
    def identity(spec: dict[str, object], data: bytes, source: bytes, seed: int) -> str:
        return RunDirectory.create(tmp_path, "n", spec, data, source, seed).id

    base = identity({"a": 1, "b": 2.0}, b"12", b"34", 0)
    assert base == identity({"b": 2.0, "a": 1}, b"12", b"34", 0)
    others = [
        identity({"a": 1, "b": 2.1}, b"12", b"34", 0),
        identity({"a": 1, "b": 2.0}, b"123", b"4", 0),
        identity({"a": 1, "b": 2.0}, b"1", b"234", 0),
        identity({"a": 1, "b": 2.0}, b"12", b"34", 1),
    ]
    assert len({base, *others}) == 5
    assert [run.id for run in find_runs(tmp_path)] == sorted([base, *others])


def test_what_was_given_is_what_opens(run: RunDirectory) -> None:
    again = RunDirectory.open(run.path)
    assert (again, again.id) == (run, run.path.name)
    assert (again.name, again.seed, again.spec) == ("rod", 0, {"width": 4, "rate": 0.1})
    assert again.source() == b"problem = None\n"
    assert again.data() == (run.path / "data.npz").read_bytes()
    run.write_environment({"jaxlib": "0.10.1", "threads": 2})
    assert again.environment() == {"jaxlib": "0.10.1", "threads": 2}


@pytest.mark.parametrize("name", ["spec.json", "data.npz", "problem.py"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_damaged_inputs_are_noticed(run: RunDirectory, name: str, damage: str) -> None:
    path = run.path / name
    data = path.read_bytes()
    path.write_bytes(data[:-1] if damage == "cut" else data[:-4] + bytes([data[-4] ^ 2]) + data[-3:])
    if damage == "remove":
        path.unlink()
    with pytest.raises(StorageError, match=name.replace(".", r"\.")):
        RunDirectory.open(run.path)
    assert run.status().state == "damaged"
    assert find_runs(run.path.parent) == [run]


def test_the_states_of_a_run(run: RunDirectory) -> None:
    seen = [run.status().state]
    with run.lock():
        seen.append(run.status().state)
        run.save_checkpoint(*state(1))
    seen.append(run.status().state)
    run.record_failure("diverged", "The loss grew without bound.", {"loss": math.inf})
    assert run.failure() == {
        "outcome": "diverged",
        "sentence": "The loss grew without bound.",
        "details": {"loss": math.inf},
    }
    seen.append(run.status().state)
    with run.lock():
        seen.append(run.status().state)
        run.commit({"kappa": 0.1})
        seen.append(run.status().state)
    seen.append(run.status().state)
    assert seen == ["new", "running", "interrupted", "failed", "running", "finished", "finished"]
    assert run.failure() is None
    assert not (run.path / "checkpoint").exists()
    with pytest.raises(StorageError, match="finished"):
        run.record_failure("stuck", "No.", {})


def test_the_commit_mark_seals_every_file(run: RunDirectory) -> None:
    write_bytes(run.file("history.npz"), b"history")
    write_bytes(run.file("stages/score.npz"), b"score")
    run.write_environment({"threads": 2})
    run.log("start")
    (run.path / ".old.tmp").write_bytes(b"left by a kill")
    run.commit({"kappa": 0.1, "se": math.nan})
    assert run.verify() == []
    assert not (run.path / ".old.tmp").exists()
    assert run.result()["kappa"] == 0.1
    run.log("shown")
    assert run.status().state == "finished"
    with pytest.raises(StorageError, match="finished already"):
        run.commit({"kappa": 0.2})
    sealed = [
        "spec.json",
        "env.json",
        "problem.py",
        "data.npz",
        "history.npz",
        "stages/score.npz",
        "result.json",
    ]
    for name in sealed:
        path = run.path / name
        good = path.read_bytes()
        for bad in (good[:-1], good[:-3] + bytes([good[-3] ^ 1]) + good[-2:], b""):
            path.write_bytes(bad)
            assert len(run.verify()) == 1
            assert name in run.verify()[0]
            assert run.status().state == "damaged"
        path.unlink()
        assert run.status().state != "finished"
        assert name == "result.json" or name in run.verify()[0]
        path.write_bytes(good)
    assert run.status().state == "finished"


def test_a_damaged_result_can_be_replaced_and_another_runs_result_is_refused(run: RunDirectory) -> None:
    other = new_run(run.path.parent, seed=1)
    other.commit({"kappa": 7.0})
    write_bytes(run.path / "result.json", (other.path / "result.json").read_bytes())
    assert run.status().state == "damaged"
    with pytest.raises(StorageError, match="not the result of this run"):
        run.result()
    run.commit({"kappa": 1.0})
    assert (run.result(), run.status().state) == ({"kappa": 1.0}, "finished")


def test_links_are_not_sealed(run: RunDirectory) -> None:
    os.symlink("/etc/hostname", run.path / "leak")
    with pytest.raises(StorageError, match="link"):
        run.commit({})
    assert run.status().state == "new"


def test_the_log_survives_torn_lines_and_cannot_drive_a_terminal(run: RunDirectory) -> None:
    assert run.read_log() == []
    run.log("start\x1b]0;owned\x07", message="a\x1b[31mred\x9b2J\r\nb", nested={"k\x07": ["\x00"]}, loss=math.nan)
    with open(run.path / "log.jsonl", "ab") as handle:
        handle.write(b'{"event": "torn", "valu')
    assert [entry["event"] for entry in run.read_log()][1:] == ["unreadable"]
    run.log("resumed", step=3)
    first, torn, last = run.read_log()
    assert (torn, last["event"], last["step"]) == ({"event": "unreadable", "line": 2}, "resumed", 3)
    assert first["message"].split() == ["a", "[31mred", "2J", "b"]
    assert math.isnan(first["loss"])
    raw = (run.path / "log.jsonl").read_text()
    assert all(character.isprintable() or character == "\n" for character in raw)
    assert "\\u00" not in raw


def test_a_folder_that_does_not_exist_has_no_runs(tmp_path: Path) -> None:
    assert find_runs(tmp_path / "none") == []
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "notes").mkdir()
    assert find_runs(tmp_path) == []
    with pytest.raises(StorageError):
        RunDirectory.open(tmp_path / "notes")

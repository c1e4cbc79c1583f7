"""A study on disk: the runs it makes, what it adds, what it notices, and what it can never read."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from decay_cases import BLINK, TARGET, decay_study, write_files

import tgsr
from tgsr._errors import InputError
from tgsr._problem_file import read_problem
from tgsr.storage import RunDirectory
from tgsr.study import Record, StudyFolder, StudyResults, results_of
from tgsr.study._grid import Trial
from tgsr.study._index import row_of
from tgsr.study._parts import TrainingSpec
from tgsr.study._progress import summary
from tgsr.study._settings import training_of
from tgsr.study._trial import Problems, carry_out, drawn
from tgsr.study._verify import verified


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study; tests that change anything take a copy."""
    home = tmp_path_factory.mktemp("home")
    write_files(home)
    results = decay_study(home).run(jobs=0, out=home / "studies")
    assert not results.pending
    return home


@pytest.fixture
def home(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished study and its files."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path


def run(home: Path, **changes: object) -> StudyResults:
    return decay_study(home, **changes).run(jobs=0, out=home / "studies")


def stamps(home: Path) -> dict[str, int]:
    """When every run was committed."""
    return {file.parent.name: file.stat().st_mtime_ns for file in home.glob("studies/*/*/*/result.json")}


def folder_of(home: Path) -> StudyFolder:
    return StudyFolder.open(home / "studies" / "decay-study")


def test_a_finished_study(finished):
    results = results_of(folder_of(finished))
    assert [(r.role, r.arm, r.seed) for r in results.records] == [
        ("source", "source", 0), ("source", "source", 1),
        ("target", "scratch", 0), ("target", "full", 0), ("target", "scratch", 1), ("target", "full", 1),
    ]  # fmt: skip
    assert results.seeds == (0, 1)
    assert results.budget == "matched"
    assert "L-BFGS" in results.preset
    for record in results.records:
        assert record.ok
        assert record.task == "decay"
        assert set(record.errors) == {"parameter", "k", "field"}
        assert record.errors["k"] == 100 * abs(
            record.unknowns["k"].value - (1.5 if record.role == "source" else 1.0)
        ) / (1.5 if record.role == "source" else 1.0)
        assert record.observations == 20
        assert record.noise == 0.01
        assert record.bounds == {}
        assert 0 < record.closures <= (record.allowed or math.inf)
        assert (record.allowed > 0) == (record.role == "target")
        assert record.stages["main"]["closures"] == record.closures
        assert record.weights
        assert record.environment["jaxlib"]
        result = results.result(record)
        assert result is not None
        assert result.fingerprint == record.weights


def test_runs_are_those_of_solve_and_transfer(finished):
    folder = folder_of(finished)
    training, network = training_of(TrainingSpec.of(BLINK), None), tgsr.MLP((4,))
    sides = {side: read_problem(str(finished / f"{side}.py")).problem for side in ("decay", "warm")}
    for trial in folder.trials:
        place = folder.place(trial)
        assert place is not None
        if trial.role == "source":
            found = tgsr.solve(sides["warm"], network=network, training=training, seed=trial.seed, out=place.parent)
        else:
            source = None if trial.source is None else folder.place(folder.by_key[trial.source])
            found = tgsr.transfer(
                sides["decay"], source, method=trial.method, network=network, training=training, seed=trial.seed,
                out=place.parent,
            )  # fmt: skip
        assert found.path == place


def test_readings_points_and_first_guesses_are_the_same_for_all_arms(finished):
    folder = folder_of(finished)
    for seed in (0, 1):
        places = [folder.place(t) for t in folder.trials if t.role == "target" and t.seed == seed]
        runs = [RunDirectory.open(place) for place in places if place is not None]
        assert len({run.data() for run in runs}) == 1
        assert len({json.dumps(run.spec["problem"]) for run in runs}) == 1
        assert len({json.dumps([run.spec[key] for key in ("network", "training", "budget")]) for run in runs}) == 1
        assert len({tgsr.load(run.path).unknowns["k"].guess for run in runs}) == 1


def test_nothing_is_run_twice_and_a_seed_or_a_method_adds_only_itself(home):
    before = stamps(home)
    assert len(run(home).records) == 6
    assert stamps(home) == before
    results = run(home, seeds=3)
    after = stamps(home)
    assert {name: after[name] for name in before} == before
    assert len(after) == len(before) + 3
    assert len(results.records) == 9
    results = run(home, seeds=[1], methods=["scratch", "bitfit"])
    assert [(r.role, r.arm, r.seed) for r in results.records] == [
        ("source", "source", 1), ("target", "scratch", 1), ("target", "bitfit", 1)
    ]  # fmt: skip
    assert len(stamps(home)) == len(after) + 1


def test_an_arm_that_asks_for_the_same_in_other_words_shares_its_run(home):
    arms = [{"method": "full", "label": "again", "network": [4], "observations": 20}]
    results = run(home, arms=arms)
    runs = {(r.arm, r.seed): r.run for r in results.records if r.role == "target"}
    assert runs["again", 0] == runs["full", 0]
    assert len(stamps(home)) == 6


def test_words_in_the_file_do_not_cost_a_run_and_a_number_does(home):
    before = stamps(home)
    (home / "decay.py").write_text(TARGET.replace("def decay(u, k):", 'def decay(u, k):  # why\n    """Decay."""'))
    run(home)
    assert stamps(home) == before
    (home / "decay.py").write_text(TARGET.replace("return u.t + k * u", "return u.t + 1.0 * k * u"))
    run(home)
    assert len(stamps(home)) == len(before) + 4  # the targets; the sources stay


def test_damage_is_noticed_set_aside_and_made_good(home):
    folder = folder_of(home)
    trial = next(t for t in folder.trials if t.arm == "full")
    place = folder.place(trial)
    assert place is not None
    good = tgsr.load(place).fingerprint
    assert verified(folder).problems == ()
    network = place / "network.safetensors"
    data = bytearray(network.read_bytes())
    data[-1] ^= 1
    network.write_bytes(bytes(data))
    assert any("network.safetensors" in problem for problem in verified(folder).problems)
    assert not run(home).pending
    assert (home / "studies" / "decay-study" / "damaged" / f"{place.name}.0").is_dir()
    assert tgsr.load(place).fingerprint == good
    assert verified(folder_of(home)).problems == ()


@pytest.mark.parametrize("name", ["spec.json", "problem.py", "data.npz", "trial.json", "result.json"])
def test_damage_anywhere_in_a_run_is_noticed(name, home):
    folder = folder_of(home)
    place = folder.place(folder.trials[-1])
    assert place is not None
    text = (place / name).read_bytes()
    (place / name).write_bytes(text[: len(text) // 2])
    assert any(place.name in problem for problem in verified(folder).problems)
    results = run(home)
    assert len(results.records) == 6
    assert verified(folder_of(home)).problems == ()


def test_what_is_derived_can_be_deleted(home):
    before, stamped = results_of(folder_of(home)), stamps(home)
    study = home / "studies" / "decay-study"
    for name in ("records", "failures", "coordinator"):
        shutil.rmtree(study / name)
    for name in ("grid.json", "trials.jsonl"):
        (study / name).unlink()
    after = run(home)
    assert stamps(home) == stamped
    assert [dataclasses.asdict(r) for r in after.records] == [dataclasses.asdict(r) for r in before.records]
    (study / "records" / f"{after.records[0].run.split('/')[1]}.json").write_text("{}")
    assert len(results_of(folder_of(home)).records) == 6


def test_the_folder_can_move_with_its_files(home, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    for name in ("studies", "decay.py", "warm.py"):
        shutil.move(home / name, tmp_path / "elsewhere" / name)
    before = stamps(tmp_path / "elsewhere")
    from tgsr.study import read_study, run_study

    folder = folder_of(tmp_path / "elsewhere")
    assert not run_study(read_study(folder.path / "study.toml"), folder=folder, jobs=0).pending
    assert stamps(tmp_path / "elsewhere") == before


def test_the_index_has_a_row_for_every_record(finished):
    parquet = pytest.importorskip("pyarrow.parquet")
    results = results_of(folder_of(finished))
    table = parquet.read_table(finished / "studies" / "decay-study" / "index.parquet").to_pylist()
    assert [row["error.parameter"] for row in table] == [record.errors["parameter"] for record in results.records]
    assert set(row_of(results.records[0])) <= set(table[0])


def test_a_run_that_fails_is_a_record_and_the_study_goes_on(home):
    broken = TARGET.replace("return u.t + k * u", "return u.t + k * u + np.nan")
    (home / "decay.py").write_text(broken.replace('fields=["u"]', 'fields=["u"], scale="none"'))
    results = run(home, seeds=1)
    targets = [record for record in results.records if record.role == "target"]
    assert [record.outcome for record in targets] == ["non-finite-start"] * 2
    for record in targets:
        assert not record.ok
        assert record.errors == {"parameter": math.inf, "k": math.inf, "field": math.inf}
        assert "first guess" in record.sentence
        result = results.result(record)
        assert result is not None
        assert not result.outcome.ok
    before = [file.stat().st_mtime_ns for file in home.glob("studies/*/runs/*/failure.json")]
    run(home, seeds=1)
    assert [file.stat().st_mtime_ns for file in home.glob("studies/*/runs/*/failure.json")] == before


def test_an_error_in_the_midst_of_a_run_is_recorded_too(home):
    (home / "decay.py").write_text(TARGET.replace("return u.t + k * u", "return u.t + k * u.nothing"))
    results = run(home, seeds=1, methods=["full"])
    (record,) = (r for r in results.records if r.role == "target")
    assert record.outcome == "failed"
    assert "nothing" in record.sentence
    assert record.errors["k"] == math.inf
    assert results.result(record) is None
    assert record.run
    assert verified(folder_of(home)).problems == ()


@pytest.mark.parametrize("outcome", ["timeout", "crashed"])
def test_a_process_that_ended_is_a_failed_run_until_it_is_resumed(outcome, home):
    folder = folder_of(home)
    place = folder.place(folder.trials[-1])
    assert place is not None
    (place / "result.json").unlink()
    RunDirectory.open(place).record_failure(outcome, "Its process is gone.", {})
    for _ in range(2):
        record = run(home).records[-1]
        assert (record.ok, record.outcome, record.sentence) == (False, outcome, "Its process is gone.")
        assert record.errors == {"parameter": math.inf, "k": math.inf, "field": math.inf}
    again = decay_study(home).run(jobs=0, out=home / "studies", again=True)
    assert again.records[-1].ok
    assert run(home).records[-1].ok


def test_targets_of_a_source_that_failed_are_told_so(home):
    (home / "warm.py").write_text((home / "warm.py").read_text().replace("return u.t", "return np.nan * u.t"))
    results = run(home)
    assert not results.pending
    states = {(r.arm, r.seed): r.outcome for r in results.records}
    assert states["source", 0] == "failed"
    assert states["full", 0] == "failed"
    assert states["scratch", 0] != "failed"
    (blocked,) = (r for r in results.records if (r.arm, r.seed) == ("full", 1))
    assert blocked.run == ""
    assert "source run failed" in blocked.sentence
    assert blocked.errors["parameter"] == math.inf
    assert summary(folder_of(home))["failed"] == 4


class Sealed(tgsr.Truth):
    """A truth that nobody may look at."""

    def __getattribute__(self, name: str) -> object:
        if not name.startswith("__"):
            raise AssertionError(f"somebody asked for the truth's {name}")
        return super().__getattribute__(name)


def test_truth_is_out_of_reach_of_everything_but_evaluation(tmp_path, monkeypatch, finished):
    write_files(tmp_path)
    sealed = (
        "class Sealed(tgsr.Truth):\n"
        "    def __getattribute__(self, name):\n"
        "        if not name.startswith('__'):\n"
        "            raise AssertionError(f'somebody asked for the truth: {name}')\n"
        "        return super().__getattribute__(name)\n"
        "truth = Sealed("
    )
    for name in ("decay", "warm"):
        text = (tmp_path / f"{name}.py").read_text()
        (tmp_path / f"{name}.py").write_text(text.replace("truth = tgsr.Truth(", sealed))
    results = run(tmp_path)
    assert all(record.ok for record in results.records)
    assert len(results.records) == 6
    open_ = {(r.arm, r.seed): r for r in results_of(folder_of(finished)).records}
    for record in results.records:
        assert record.errors == {}
        assert "somebody asked for the truth" in record.warnings[-1]
        assert record.weights == open_[record.arm, record.seed].weights


def test_the_truth_of_a_task_is_out_of_reach_too(tmp_path, monkeypatch):
    monkeypatch.setattr("tgsr.Truth", Sealed)
    asked = tgsr.Study(
        name="task", tasks=["boundary-layer"], methods=["scratch"], seeds=1, profile="smoke",  # type: ignore[arg-type]
        network=[4], training={"closures": 4},  # type: ignore[arg-type]
    )  # fmt: skip
    (record,) = asked.run(jobs=0, out=tmp_path).records
    assert record.ok
    assert record.errors == {}
    monkeypatch.undo()
    shutil.rmtree(tmp_path / "task" / "records")
    for record in asked.run(jobs=0, out=tmp_path).records:
        assert {"parameter", "eps", "field", "layer", "gradient"} <= set(record.errors)
        assert 0 < record.bounds["eps"] < 5
        assert record.allowed == 4
        assert record.profile == "smoke"


def test_a_finished_run_can_be_the_source_of_all_seeds(home):
    folder = folder_of(home)
    warm = folder.place(folder.trials[0])
    assert warm is not None
    task = {"name": "decay", "file": str(home / "decay.py"), "source": {"run": str(warm)}}
    changes = {"tasks": [task], "source": None, "network": None}
    results = run(home, name="given", **changes)
    assert [(r.role, r.arm) for r in results.records] == [("target", "scratch"), ("target", "full")] * 2
    specs = [RunDirectory.open(home / "studies" / "given" / r.run).spec for r in results.records]
    assert {tuple(spec["network"]["widths"]) for spec in specs} == {(4,)}
    assert [spec["source"] is None for spec in specs] == [True, False] * 2
    shutil.rmtree(home / "studies" / "decay-study")  # the network was copied
    assert verified(StudyFolder.open(home / "studies" / "given")).problems == ()
    place = home / "studies" / "given" / results.records[-1].run
    (place / "result.json").unlink()
    assert carry_out(str(place)) == "finished"


def test_fewer_readings_are_a_part_of_more(finished):
    problem = read_problem(str(finished / "decay.py")).problem
    seen = [set(drawn(problem, count, 3).data[0].points["t"].tolist()) for count in (2, 7, 20)]
    assert [len(points) for points in seen] == [2, 7, 20]
    assert seen[0] < seen[1] < seen[2]
    assert drawn(problem, 0, 3).data == ()
    assert drawn(problem, None, 3) is problem
    assert set(drawn(problem, 7, 4).data[0].points["t"].tolist()) != seen[1]
    with pytest.raises(InputError, match="asks for 21 readings"):
        drawn(problem, 21, 3)


def test_readings_are_drawn_over_all_data_sets():
    both = [tgsr.Data({"t": np.linspace(0, 1, n)}, {"u": np.ones(n)}, name=f"set {n}") for n in (3, 30)]
    problem = tgsr.Problem(
        coordinates={"t": (0.0, 1.0)}, fields=["u"], residuals=[lambda u: u.t], data=both,
    )  # fmt: skip
    for count in (1, 5, 32):
        parts = drawn(problem, count, 0).data
        assert sum(len(part) for part in parts) == count
        assert all(len(part) for part in parts)


def test_two_cannot_coordinate_one_study(home):
    folder = folder_of(home)
    with folder.coordinating(), pytest.raises(InputError, match="is being run already"):
        run(home)
    assert not run(home).pending


def test_a_run_whose_recipe_gives_another_is_refused(home):
    folder = folder_of(home)
    place = folder.place(folder.trials[-1])
    assert place is not None
    (place / "result.json").unlink()
    (home / "decay.py").write_text(TARGET.replace("0.01", "0.02"))
    with pytest.raises(InputError, match="no longer gives this run"):
        carry_out(str(place))
    assert folder.standing(folder.trials[-1]).state == "new"


@pytest.mark.parametrize("why", ["another processor", "a damaged checkpoint"])
def test_half_a_run_that_cannot_go_on_here_begins_anew(why, home):
    folder = folder_of(home)
    place = folder.place(folder.trials[-1])
    assert place is not None
    before = tgsr.load(place).fingerprint
    run = RunDirectory.open(place)
    (place / "result.json").unlink()
    run.save_checkpoint({"theta": np.zeros(3)}, {"stage": "main"})
    if why == "another processor":
        run.write_environment({**(run.environment() or {}), "processor": "another"})
    else:
        for file in (place / "checkpoint").rglob("*.safetensors"):
            file.write_bytes(b"")
    assert run.status().state in ("interrupted", "damaged")
    assert carry_out(str(place)) == "finished"
    assert tgsr.load(place).fingerprint == before
    assert [line["event"] for line in run.read_log()].count("begun anew") == 1


def test_status_counts_from_the_folder_alone(home):
    folder = folder_of(home)
    place = folder.place(folder.trials[-1])
    assert place is not None
    shutil.rmtree(place)
    found = summary(folder_of(home))
    assert (found["runs"], found["finished"], found["missing"]) == (6, 5, 1)
    seconds = next(r.seconds for r in results_of(folder).records if r.arm == "full")
    assert found["seconds_left"] == pytest.approx(seconds)
    assert found["coordinator"] is None
    with folder.coordinating():
        folder.note_jobs(2)
        found = summary(folder_of(home))
        assert found["seconds_left"] == pytest.approx(seconds / 2)
        assert found["jobs"] == 2


def test_a_process_that_was_killed_before_its_record_costs_nothing(home):
    folder, stamped = folder_of(home), stamps(home)
    for file in (home / "studies" / "decay-study" / "records").iterdir():
        file.unlink()
    assert all(isinstance(folder.record(trial), Record) for trial in folder.trials)
    assert stamps(home) == stamped


def test_problems_are_shared_by_the_arms_of_a_seed(finished):
    folder = folder_of(finished)
    problems = Problems(folder.path)
    starts = {(t.role, t.seed, t.arm): problems.start(t) for t in folder.trials}
    assert starts["target", 0, "full"] is starts["target", 0, "scratch"]
    assert starts["target", 0, "full"] is not starts["source", 0, "source"]


def test_a_trial_of_another_format_is_an_error(home):
    folder = folder_of(home)
    assert isinstance(folder.trials[0], Trial)
    with pytest.raises(InputError, match=r"holds no study\.toml"):
        StudyFolder.open(home)

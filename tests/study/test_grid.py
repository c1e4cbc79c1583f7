"""Which runs a study means: how many, which source each shares, and what identifies them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from decay_cases import decay_study, write_files
from hypothesis import given, settings
from hypothesis import strategies as st

from tgsr._errors import InputError
from tgsr.study import Study, read_study
from tgsr.study._grid import Trial, expand
from tgsr.study._shipped import shipped_specs

# name -> (tasks, arms with their numbers of readings, seeds, sources per task and seed)
SHIPPED = {
    "adaptation-length": (1, 4, 5, 1),
    "alpha-s": (1, 11, 5, 1),
    "branch": (1, 3, 5, 1),
    "branch-cross-pde": (1, 3, 20, 1),
    "counterfactual": (1, 3, 10, 1),
    "data-sparsity": (1, 6, 10, 1),
    "decay-parameters": (1, 9, 6, 1),
    "gate-check": (1, 1, 2, 1),
    "mapping": (1, 4, 10, 1),
    "mechanism": (1, 3, 10, 1),
    "overhead": (2, 2, 3, 1),
    "protection": (1, 3, 10, 1),
    "scoring-batches": (1, 2, 10, 1),
    "switching": (2, 3, 5, 3),
}


def grid(folder: Path, *tasks: str, **asked: object) -> tuple[Trial, ...]:
    given = {"name": "grid", "tasks": tasks or ("boundary-layer",), "methods": ("scratch", "full"), "seeds": 2, **asked}
    return expand(Study(**given), folder)  # type: ignore[arg-type]


def targets(trials: tuple[Trial, ...]) -> list[Trial]:
    return [trial for trial in trials if trial.role == "target"]


def sources(trials: tuple[Trial, ...]) -> dict[str, Trial]:
    return {trial.key: trial for trial in trials if trial.role == "source"}


@pytest.mark.filterwarnings("ignore:alpha_s")
@pytest.mark.parametrize("name", shipped_specs())
def test_shipped_studies_have_the_runs_that_their_tables_need(name, tmp_path):
    tasks, arms, seeds, each = SHIPPED[name]
    trials = expand(read_study(shipped_specs()[name]), tmp_path)
    assert len(targets(trials)) == tasks * arms * seeds
    assert len(sources(trials)) == tasks * seeds * each
    assert len({trial.key for trial in trials}) == len(trials)
    assert {trial.arm for trial in targets(trials)} == {trial.arm for trial in targets(trials) if trial.seed == 0}


def test_sources_come_first_and_are_shared(tmp_path):
    trials = grid(tmp_path, "boundary-layer", "advected-pulse", methods=["scratch", "full", "tgsr"], seeds=[3, 1])
    roles = [trial.role for trial in trials]
    assert roles == ["source"] * 4 + ["target"] * 12
    known = sources(trials)
    for trial in targets(trials):
        if trial.method == "scratch":
            assert trial.source is None
        else:
            assert (known[trial.source].task, known[trial.source].seed) == (trial.task, trial.seed)
    assert [trial.seed for trial in targets(trials)][:6] == [3, 3, 3, 1, 1, 1]


def test_a_study_whose_methods_read_no_source_has_none(tmp_path):
    assert not sources(grid(tmp_path, methods=["scratch"]))


def test_a_label_is_no_part_of_what_a_run_is(tmp_path):
    arms = [{"method": "tgsr", "label": "one"}, {"method": "tgsr", "label": "two", "options": {"kappa": 3}}]
    one, two = targets(grid(tmp_path, methods=[], arms=arms, seeds=1))
    assert one.key == two.key
    assert (one.arm, two.arm) == ("one", "two")
    assert dict(two.options) == {}


def test_every_change_of_a_recipe_is_another_trial(tmp_path):
    changes: list[dict[str, object]] = [
        {}, {"budget": "paper"}, {"observations": 50}, {"observations": 0}, {"noise": 0.1}, {"network": [5]},
        {"training": {"epochs": 3}}, {"source": {"observations": 50}}, {"source": {"training": "best"}},
        {"options": {"mu": 0.5}},
    ]  # fmt: skip
    arms = [{"method": "l2-sp", "label": f"arm {i}", **change} for i, change in enumerate(changes)]
    trials = grid(tmp_path, methods=[], arms=arms, seeds=1)
    assert len({trial.key for trial in targets(trials)}) == len(changes)
    # the plain one, two that say how sources differ, and one of another architecture
    assert [trial.arm for trial in sources(trials).values()] == ["source", *(f"source of arm {i}" for i in (5, 7, 8))]


def test_numbers_of_readings_make_arms(tmp_path):
    trials = targets(grid(tmp_path, observations=["all", 50, 0], methods=["full"], seeds=1, profile="smoke"))
    assert [(trial.arm, trial.observations) for trial in trials] == [
        ("full", 100), ("full, 50 readings", 50), ("full, no readings", 0)
    ]  # fmt: skip
    arms = [{"method": "full", "label": "control", "observations": 0}]
    trials = targets(grid(tmp_path, observations=[70, "all"], methods=["full"], arms=arms, seeds=1))
    assert [(trial.arm, trial.observations) for trial in trials] == [
        ("full", 70), ("full, all readings", 1000), ("control", 0)
    ]  # fmt: skip


def test_arms_and_tasks_may_say_otherwise(tmp_path):
    asked = {
        "tasks": ["boundary-layer", {"name": "advected-pulse", "seeds": [7]}],
        "methods": ["scratch"],
        "arms": [{"method": "full", "tasks": ["advected-pulse"], "budget": "paper"}],
    }
    trials = targets(grid(tmp_path, **asked))
    assert [(t.task, t.arm, t.seed, t.budget) for t in trials] == [
        ("boundary-layer", "scratch", 0, "matched"),
        ("boundary-layer", "scratch", 1, "matched"),
        ("advected-pulse", "scratch", 7, "matched"),
        ("advected-pulse", "full", 7, "paper"),
    ]
    assert targets(grid(tmp_path, profile="paper"))[0].budget == "paper"


def test_where_sources_come_from(tmp_path):
    write_files(tmp_path)
    one = sources(grid(tmp_path, "advected-pulse", source={"task": "reaction-diffusion", "noise": 0.1}, seeds=1))
    assert [(t.task, t.noise) for t in one.values()] == [("reaction-diffusion", 0.1)]
    arm = {"method": "full", "label": "longer", "source": {"training": {"epochs": 50}}}
    many = sources(grid(tmp_path, "advected-pulse", source={"task": "boundary-layer"}, arms=[arm], seeds=1))
    assert [(t.task, t.arm) for t in many.values()] == [
        ("boundary-layer", "source"), ("boundary-layer", "source of longer")
    ]  # fmt: skip
    given = targets(grid(tmp_path, source={"run": str(tmp_path / "runs" / "rod-0")}, seeds=1))
    assert [t.given for t in given] == ["runs/rod-0"] * 2  # scratch takes its architecture
    trials = expand(decay_study(tmp_path, source={"training": "paper", "observations": 5}), tmp_path)
    assert {(t.task, t.file, t.observations) for t in sources(trials).values()} == {("decay", "warm.py", 5)}
    assert {t.file for t in targets(trials)} == {"decay.py"}
    mixed = expand(decay_study(tmp_path, network=None, source={"task": "boundary-layer"}), tmp_path)
    assert sources(mixed)  # the file's own source is nearer than the study's
    assert {t.file for t in sources(mixed).values()} == {"warm.py"}


def test_one_architecture_where_a_file_meets_a_built_in_task(tmp_path):
    write_files(tmp_path)
    trials = grid(tmp_path, source={"file": str(tmp_path / "warm.py")}, seeds=1)
    assert len({trial.network for trial in trials}) == 1
    assert trials[0].network is not None


def test_what_cannot_be_expanded(tmp_path):
    write_files(tmp_path)
    lonely = {"name": "decay", "file": str(tmp_path / "decay.py")}
    with pytest.raises(InputError, match="has none"):
        expand(decay_study(tmp_path, tasks=[lonely]), tmp_path)
    assert len(expand(decay_study(tmp_path, tasks=[lonely], methods=["scratch"]), tmp_path)) == 2
    with pytest.raises(InputError, match="built-in tasks"):
        expand(decay_study(tmp_path, noise=0.1), tmp_path)


@settings(max_examples=50)
@given(
    st.builds(
        Trial,
        arm=st.text(),
        task=st.sampled_from(["boundary-layer", "rod"]),
        role=st.sampled_from(["source", "target"]),
        seed=st.integers(0, 2**63 - 1),
        observations=st.none() | st.integers(0, 10**7),
        noise=st.none() | st.floats(0, 10),
        options=st.dictionaries(st.text(min_size=1).filter(lambda k: k[0] != "$"), st.floats(0, 1) | st.booleans()),
        budget=st.sampled_from([None, "matched"]),
    )
)
def test_a_trial_comes_back_from_json(trial):
    again = Trial.from_json(trial.as_json())
    assert again == trial
    assert again.key == trial.key
    assert Trial.from_json(trial.recipe(), trial.arm) == trial


def test_a_thousand_trials_expand_in_no_time(tmp_path):
    import time

    began = time.process_time()
    trials = grid(tmp_path, methods=["scratch", "full", "tgsr", "bitfit"], seeds=200)
    assert len(trials) == 1000
    assert math.isfinite(sum(len(trial.key) for trial in trials))
    assert time.process_time() - began < 2.0

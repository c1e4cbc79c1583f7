"""What a study is asked for: from TOML or Python, to one frozen value and back, with every mistake told in a line."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from decay_cases import write_files
from hypothesis import given, settings
from hypothesis import strategies as st

import tgsr
from tgsr._errors import InputError
from tgsr.methods import BUDGETS, Tgsr, TgsrOptions
from tgsr.problem import Points
from tgsr.study import Arm, NetworkSpec, Study, StudyTask, TrainingSpec, _parts, read_study
from tgsr.study._read import KEYS, parsed_study, study_of
from tgsr.study._settings import method_of, training_of
from tgsr.study._shipped import shipped_specs
from tgsr.study._toml import as_toml
from tgsr.tasks import PROFILES
from tgsr.training import LBFGS, PRESETS, Adam, LevenbergMarquardt, Refinement, Stopping, Training

LAYER = """
name = "layer"
tasks = ["boundary-layer"]
methods = ["scratch", "full", "tgsr"]
seeds = 10
"""
RICH = """
name = "rich"
title = "Everything at once"
about = "Each key of the format."
tasks = ["boundary-layer"]
methods = ["scratch"]
seeds = [0, 3, 5]
profile = "smoke"
budget = "paper"
observations = ["all", 50, 0]
noise = 0.01
network = { widths = [8, 8], activation = "sin" }
time_limit = 60
attempts = 3
[training]
preset = "paper"
epochs = 150
closures = 5000
weights = { pde = 10, data = 50.5 }
points = { interior = 2000, sampling = "uniform" }
optimiser = [{ name = "adam", epochs = 20 }, { name = "l-bfgs", inner = 20, stopping = { tolerance = 0.01 } }]
refinement = { every = 5, fraction = 0.5 }
[source]
task = "boundary-layer"
observations = 200
noise = 0.02
training = { epochs = 50 }
[[task]]
name = "advected-pulse"
seeds = 2
[[arm]]
label = "tgsr, \\"K\\" = 1"
method = "tgsr"
options = { batches = 1 }
budget = "matched"
observations = 100
noise = 0
network = [6, 6]
training = "best"
source = { observations = 10 }
tasks = ["advected-pulse"]
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return path


def test_the_shortest_study(tmp_path):
    study = read_study(written(tmp_path, LAYER))
    assert study == Study("layer", ["boundary-layer"], ["scratch", "full", "tgsr"], seeds=10)  # type: ignore[arg-type]
    assert study.seeds == tuple(range(10))
    assert study.profile == "laptop"
    assert [arm.label for arm in study.all_arms] == ["scratch", "full", "tgsr"]
    assert hash(study) == hash(read_study(tmp_path / "study.toml"))
    assert "boundary-layer" in repr(study)


def test_every_key_reads_and_comes_back(tmp_path):
    study = parsed_study(written(tmp_path, RICH))
    assert study.tasks == (StudyTask("boundary-layer"), StudyTask("advected-pulse", seeds=(0, 1)))
    assert study.arms[0].label == 'tgsr, "K" = 1'
    assert study.arms[0].network == NetworkSpec((6, 6))
    assert study.arms[0].training == TrainingSpec("best")
    assert study.observations == ("all", 50, 0)
    again = tmp_path / "folder" / "study.toml"
    again.parent.mkdir()
    again.write_text(as_toml(study, again.parent))
    assert parsed_study(again) == study


@pytest.mark.filterwarnings("ignore:alpha_s")  # the paper's sweep goes further than is wise, and says so
@pytest.mark.parametrize("name", shipped_specs())
def test_every_shipped_study_makes_sense_and_comes_back(name, tmp_path):
    study = read_study(shipped_specs()[name])
    assert study.name == name
    assert study.title
    assert study.about
    path = written(tmp_path, as_toml(study, tmp_path))
    assert read_study(path) == study


def test_paths_are_relative_to_the_file_that_names_them(tmp_path):
    write_files(tmp_path)
    text = (
        'name = "mine"\nmethods = ["full"]\n'
        '[[task]]\nname = "rod"\nfile = "decay.py:problem"\nsource = "warm.py"\n'
        '[[arm]]\nlabel = "other"\nmethod = "full"\nsource = { run = "runs/x-0123456789ab" }\n'
    )
    study = parsed_study(written(tmp_path, text))
    assert study.tasks[0].file == f"{tmp_path}/decay.py:problem"
    folder = tmp_path / "studies" / "mine"
    folder.mkdir(parents=True)
    (folder / "study.toml").write_text(as_toml(study, folder))
    assert 'file = "../../decay.py:problem"' in (folder / "study.toml").read_text()
    assert parsed_study(folder / "study.toml") == study


def test_the_words_here_are_those_of_what_they_mean():
    assert set(_parts.PROFILES) == set(PROFILES)
    assert set(_parts.BUDGETS) == set(BUDGETS)
    assert set(_parts.TRAININGS) == {"profile", *PRESETS}
    assert {"task", "arm"} <= set(KEYS)


def test_objects_of_the_package_can_stand_for_their_tables():
    training = Training(
        (Adam(epochs=3), LBFGS(stopping=Stopping(0.01))), Points(100), {"pde": 2.0}, Refinement(every=3), 500
    )
    study = Study(
        "objects",
        ["boundary-layer"],  # type: ignore[arg-type]
        [Tgsr(TgsrOptions(batches=1)), "full"],  # type: ignore[arg-type]
        network=tgsr.MLP((5, 5), "sin"),  # type: ignore[arg-type]
        training=training,  # type: ignore[arg-type]
    )
    assert study.arms == (Arm("tgsr", options={"batches": 1}),)
    assert study.network == NetworkSpec((5, 5), "sin")
    assert training_of(study.training, None) == training


def test_a_training_table_changes_its_preset_and_nothing_else():
    profile = Training((LevenbergMarquardt(epochs=10),), Points(2000, 500, 500, "uniform"), {"pde": 10.0, "bc": 10.0})
    spec = TrainingSpec(epochs=15, weights={"bc": 1}, points={"interior": 99}, closures=7)
    found = training_of(spec, profile)
    assert found.phases == (LevenbergMarquardt(epochs=15),)
    assert found.points == Points(99, 500, 500, "uniform")
    assert found.weight_table == {"pde": 10.0, "bc": 1.0}
    assert found.budget == 7
    assert training_of(None, profile) == profile
    assert training_of(None, None) == PRESETS["best"]
    assert training_of(TrainingSpec("paper"), profile) == PRESETS["paper"]
    turns = TrainingSpec(optimiser=({"name": "adam", "epochs": 20}, {"name": "l-bfgs", "stopping": {"patience": 5}}))
    assert training_of(turns, profile).phases == (Adam(epochs=20), LBFGS(stopping=Stopping(patience=5)))


def test_options_are_checked_by_their_method():
    assert method_of("tgsr", {"kappa": 2}) == Tgsr(TgsrOptions(kappa=2.0))
    with pytest.raises(InputError, match="kapa"):
        method_of("tgsr", {"kapa": 2})
    with pytest.raises(InputError, match="softened_from"):
        method_of("tgsr", {"softened_from": True})


# text in place of, or after, the shortest study -> what the one line must say
ARM = '\n[[arm]]\nlabel = "an arm"\nmethod = "tgsr"\n'
TASK = '\n[[task]]\nname = "rod"\nfile = "decay.py"\nsource = "warm.py"\n'
BAD = {
    'nmae = "x"': ("nmae", "Did you mean 'name'"),
    'name = "a/b"': ("name", "A-Z a-z"),
    'name = ".hidden"': ("name",),
    'name = ""': ("name",),
    f'name = "{"x" * 65}"': ("name",),
    "name = 3": ("name",),
    'tasks = ["boundary-layr"]': ("tasks[1].name", "boundary-layer"),
    "tasks = []": ("tasks",),
    'tasks = "boundary-layer"': ("tasks", "list"),
    'tasks = ["boundary-layer", "boundary-layer"]': ("tasks", "twice"),
    "methods = []": ("methods",),
    'methods = ["tgrs"]': ("methods[1]", "tgsr"),
    'methods = ["full", "full"]': ("label", "twice"),
    "methods = [1]": ("methods[1]",),
    "seeds = 0": ("seeds",),
    "seeds = -1": ("seeds",),
    "seeds = true": ("seeds",),
    "seeds = [0, 0]": ("seeds",),
    "seeds = []": ("seeds",),
    "seeds = [0.5]": ("seeds",),
    'seeds = "ten"': ("seeds",),
    'profile = "lapdog"': ("profile", "laptop"),
    'budget = "match"': ("budget", "matched"),
    "observations = -1": ("observations",),
    'observations = "none"': ("observations", "all"),
    "observations = []": ("observations",),
    "observations = [50, 50]": ("observations",),
    "noise = -0.1": ("noise",),
    "noise = nan": ("noise",),
    'noise = "low"': ("noise",),
    "network = []": ("network",),
    "network = [0]": ("network",),
    "network = 32": ("network",),
    'network = { widths = [8], activation = "relu" }': ("network",),
    "network = { width = [8] }": ("network.width", "widths"),
    'network = { activation = "sin" }': ("network.widths", "missing"),
    'training = "fast"': ("training", "paper"),
    "training = { epoch = 3 }": ("training.epoch", "epochs"),
    "training = { epochs = 0 }": ("training.epochs",),
    'training = { preset = "best", epochs = 3 }': ("training.epochs", "optimiser"),
    "training = { closures = 0.5 }": ("training.closures",),
    "training = { weights = { pde = -1 } }": ("training.pde",),
    "training = { weights = 3 }": ("training.weights", "table"),
    "training = { points = { interor = 5 } }": ("training.points.interor", "interior"),
    'training = { points = { sampling = "random" } }': ("training.points.sampling", "uniform"),
    'training = { optimiser = "lbfgs" }': ("training.optimiser.name", "l-bfgs"),
    "training = { optimiser = [] }": ("training.optimiser",),
    "training = { optimiser = { epochs = 3 } }": ("training.optimiser.name",),
    'training = { optimiser = { name = "l-bfgs", inner = "x" } }': ("training.optimiser.inner",),
    'training = { optimiser = { name = "l-bfgs", stopping = { patients = 3 } } }': ("stopping.patients", "patience"),
    "training = { refinement = { every = 0 } }": ("training.refinement.every",),
    'source = { task = "rod" }': ("source.task",),
    'source = { task = "boundary-layer", run = "runs/x" }': ("source.run",),
    'source = { run = "runs/nothing" }': ("source.run", "no such folder"),
    'source = { run = "runs/x", observations = 3 }': ("source.observations",),
    'source = { file = "nothing.py" }': ("source.file", "no such file"),
    "source = { seed = 3 }": ("source.seed",),
    "time_limit = 0": ("time_limit",),
    'time_limit = "1h"': ("time_limit",),
    "attempts = 0": ("attempts",),
    "title = 3": ("title",),
    'about = "a\\u0007b"': ("about",),
    'arm = "tgsr"': ("arm", "[[arm]]"),
    'task = ["rod"]': ("task[1]", "table"),
    f'{ARM}methd = "y"': ("arm[1].methd", "method"),
    '[[arm]]\nlabel = "x"': ("arm[1].method", "missing"),
    f"{ARM}options = {{ kapa = 3 }}": ("arm[1].options.kapa", "kappa"),
    f"{ARM}options = {{ kappa = -3 }}": ("arm[1].options.kappa", "legal range"),
    f"{ARM}options = {{ branch = 3 }}": ("arm[1].options.branch", "gmm"),
    f"{ARM}options = {{ batches = true }}": ("arm[1].options.batches",),
    f"{ARM}options = 3": ("arm[1].options", "table"),
    '[[arm]]\nmethod = "full"': ("label", "twice"),
    f'[[arm]]\nmethod = "l2-sp"\nlabel = "{"x" * 81}"': ("arm[1].label",),
    f'{ARM}tasks = ["rod"]': ("arm[1].tasks", "boundary-layer"),
    f'{ARM}budget = "none"': ("arm[1].budget",),
    f"{ARM}source = {{ task = 3 }}": ("arm[1].source.task",),
    f"{ARM}observations = [10, 10]": ("arm[1].observations",),
    '[[task]]\nname = "rod"': ("task[1].name", "Give its file"),
    '[[task]]\nname = "advected-pulse"\nfile = "decay.py"': ("task[1].name", "built-in"),
    '[[task]]\nname = "rod"\nfile = "decay.txt"': ("task rod.file", ".py"),
    '[[task]]\nname = "rod"\nfile = "nothing.py"': ("task rod.file", "no such file"),
    f"{TASK}seeds = 0": ("task[1].seeds",),
    f"{TASK}sead = 0": ("task[1].sead", "seeds"),
    "when = 2026-11-19": ("when",),
    "noise = 1979-05-27": ("noise",),
    "name": ("TOML",),
    "x = [": ("TOML",),
}


@pytest.mark.parametrize("text", BAD)
def test_a_mistake_is_one_line_that_names_file_and_key(text, tmp_path):
    write_files(tmp_path)
    key = text.split("=")[0].strip()
    base = "\n".join(line for line in LAYER.splitlines() if line.split("=")[0].strip() != key)
    whole = f"{base}\n{text}" if text.lstrip().startswith("[[") else f"{text}\n{base}"
    with pytest.raises(InputError) as caught:
        read_study(written(tmp_path, whole + "\n"))
    line = str(caught.value)
    assert line.startswith("study.toml, '" if "TOML" not in BAD[text] else "study.toml: "), line
    assert "\n" not in line
    for word in BAD[text]:
        assert word in line


def test_what_is_no_study_at_all(tmp_path):
    for bad in (tmp_path, tmp_path / "nothing.toml", "bad\0name.toml"):
        with pytest.raises(InputError):
            read_study(bad)
    (tmp_path / "bytes.toml").write_bytes(b"name = '\xff'")
    with pytest.raises(InputError, match="TOML"):
        read_study(tmp_path / "bytes.toml")
    with pytest.raises(InputError, match="name"):
        read_study(written(tmp_path, 'tasks = ["boundary-layer"]'))


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYS, "method", "label", "file", "run", "name"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=300)
@given(st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=6))
def test_whatever_a_file_holds_only_our_error_escapes(table):
    here = Path.cwd()
    with suppress(InputError):
        study = study_of({"name": "fuzz", "tasks": ["boundary-layer"], "methods": ["full"], **table}, here)
        assert study_of(tomllib.loads(as_toml(study, here)), here) == study

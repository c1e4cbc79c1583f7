"""Arms of a study that are one method with one choice changed, found by their options and not by their labels."""

from __future__ import annotations

import math
from typing import Any

from tgsr.report._study_figure import Scene
from tgsr.study._record import Record
from tgsr.study.paper import PaperTable, Quoted, paper_tables

# What tgsr does unless told otherwise, for every choice that an ablation changes (a test compares these).
DEFAULTS: dict[str, Any] = {
    "alpha_s": 0.5, "adapt_fraction": 0.2, "batches": 3, "gamma_m": 0.85, "gamma_min": 0.4, "kappa": 3.0,
    "mapping": "cubic", "protection": "depth", "branch": "gmm+rank",
}  # fmt: skip
# The paper's table of a choice, and how it labels a value.
_TABLES = {
    "alpha_s": ("alpha_s", "alpha_s = {:.1f}"), "batches": ("batch_ablation", "K = {:g}"),
    "gamma_m": ("decay_hyperparameter_sweep", "gamma_m = {:g}"),
    "kappa": ("decay_hyperparameter_sweep", "kappa = {:g}"),
    "gamma_min": ("decay_hyperparameter_sweep", "gamma_min = {:g}"), "mapping": ("map_ablation", "{}"),
    "protection": ("layer_ablation", "{}"), "branch": ("gmm_ablation", "{}"), "adapt_fraction": ("ead_length", ""),
}  # fmt: skip
_SHARES = {1: "E_ad = 1/15 E_main", 2: "E_ad = 2/15 E_main", 3: "E_ad = 1/5 E_main", 6: "E_ad = 2/5 E_main"}
_OTHERS = {"branch": ("gmm_cross_ablation",)}
NOWHERE = Quoted(math.nan)


def changed(run: Record) -> dict[str, Any]:
    """The options that are not the method's own; a record may list some that are."""
    return {name: value for name, value in run.options.items() if DEFAULTS.get(name) != value}


def full_arms(scene: Scene) -> dict[str, Record]:
    """Arms with all the readings, and a run of each."""
    first = {arm: scene.view.first(arm) for arm in scene.view.compared}
    most = max((run.observations for run in first.values()), default=0)
    return {arm: run for arm, run in first.items() if run.observations == most}


def variants(scene: Scene, choice: str) -> dict[Any, str]:
    """The arms of tgsr that differ in this choice alone, by its value; empty where fewer than two do."""
    found: dict[Any, str] = {}
    for arm, run in full_arms(scene).items():
        own = changed(run)
        if run.method == "tgsr" and set(own) <= {choice}:
            found.setdefault(own.get(choice, DEFAULTS[choice]), arm)
    if len(found) < 2:
        return {}
    numbers = all(isinstance(value, (int, float)) for value in found)
    return dict(sorted(found.items())) if numbers else found


def group(scene: Scene, methods: tuple[str, ...]) -> dict[str, str]:
    """By method the arm that is it, with default options; empty unless all of them are there."""
    found: dict[str, str] = {}
    for arm, run in full_arms(scene).items():
        if run.method in methods and not changed(run):
            found.setdefault(run.method, arm)
    return {method: found[method] for method in methods} if len(found) == len(methods) else {}


def paper_variant(scene: Scene, choice: str, value: Any, column: str) -> Quoted:
    """The paper's number for one value of a choice, on the task that it has it for."""
    key, form = _TABLES[choice]
    label = _SHARES.get(round(15 * value), "") if choice == "adapt_fraction" else form.format(value)
    for name in (key, *_OTHERS.get(choice, ())):
        table = paper_tables()[name]
        if table.task == scene.task and scene.view.first(scene.leading).observations == 1000:
            own = "default" if table.row("default") and value == DEFAULTS[choice] else label
            return table.quoted(own, column)
    return NOWHERE


def paper_method(scene: Scene, table: PaperTable, method: str, column: str) -> Quoted:
    """The paper's number for a method in one of its ablations."""
    known = table.task == scene.task and scene.view.first(scene.leading).observations == 1000
    return table.quoted(method, column) if known else NOWHERE

"""The optimiser and the network that a study's runs share, in words, for the first line of its report."""

from __future__ import annotations

from tgsr.network._propagate import MLP
from tgsr.study._settings import network_of, training_of
from tgsr.study._spec import Study
from tgsr.tasks import as_profile
from tgsr.training import Training

_NAMES = {
    "levenberg-marquardt": "Levenberg-Marquardt",
    "l-bfgs": "L-BFGS",
    "adam": "Adam",
    "paper-l-bfgs": "the authors' L-BFGS",
}


def preset_words(study: Study) -> str:
    """Such as "Levenberg-Marquardt, at most 10 outer epochs; tanh network of 6 x 12; 2,000 interior points"."""
    builtin = [task.name for task in study.tasks if task.builtin]
    profile = as_profile(study.profile) if builtin else None
    training = training_of(study.training, profile.training(builtin[0], "target") if profile else None)
    network = network_of(study.network) if study.network else (profile.network() if profile else None)
    words = [_optimisers(training), _network(network)]
    if training.points.interior is not None:
        words.append(f"{training.points.interior:,} interior points")
    if training.budget is not None:
        words.append(f"at most {training.budget:,} closures")
    return "; ".join(words)


def _optimisers(training: Training) -> str:
    if not training.phases:
        return "the optimiser that suits the problem's size"
    named = (f"{_NAMES[phase.name]}, at most {phase.epochs:,} outer epochs" for phase in training.phases)
    return ", then ".join(named)


def _network(network: MLP | None) -> str:
    if network is None:
        return "a network by the number of coordinates"
    widths = network.widths
    alike = len(set(widths)) == 1
    return f"{network.activation} network of " + (
        f"{len(widths)} x {widths[0]}" if alike else ", ".join(map(str, widths))
    )

"""From what a study's file says to the objects that train: methods with options, networks, trainings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from tgsr._errors import InputError
from tgsr.methods import Method, as_method, options_of, with_options
from tgsr.network._propagate import MLP
from tgsr.study import _values as values
from tgsr.study._parts import NetworkSpec, TrainingSpec
from tgsr.study._words import nearest
from tgsr.training import PRESETS, Refinement, Stopping, Training
from tgsr.training._phases import PHASES, Phase


def method_of(name: str, options: Mapping[str, Any]) -> Method:
    """A method with its options; unknown ones and wrong values are errors."""
    method = as_method(name)
    with values.within("options"):
        given = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
        for key, value in given.items():
            default = options_of(method).get(key)
            if default is not None and isinstance(default, bool) != isinstance(value, bool):
                raise InputError(f"is {value!r}", field=key, remedy=f"Give one like the default, {default!r}")
        return with_options(method, given)


def options_changed(method: Method) -> dict[str, Any]:
    """The options of a method that differ from its defaults."""
    defaults = options_of(as_method(method.name))
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in options_of(method).items()
        if key not in defaults or value != defaults[key]
    }


def network_of(spec: NetworkSpec) -> MLP:
    """The architecture."""
    with values.within("network"):
        return MLP(spec.widths, spec.activation)


def training_of(spec: TrainingSpec | None, profile: Training | None) -> Training:
    """The training that a table means. `profile` is that of a built-in task; a file has none and takes 'best'.

    What the table leaves out is as in its preset, and so is what its own tables leave out of points and weights.
    """
    spec = spec or TrainingSpec()
    preset = spec.preset or ("best" if profile is None else "profile")
    if preset == "profile" and profile is None:
        remedy = "Profiles belong to built-in tasks; use 'best' or 'paper'"
        raise InputError("is 'profile', for a problem in a file", field="preset", remedy=remedy)
    base = PRESETS[preset] if preset != "profile" or profile is None else profile
    phases = base.phases if spec.optimiser is None else tuple(_phase(settings) for settings in spec.optimiser)
    if spec.epochs is not None:
        if not phases:
            remedy = "Name an optimiser too: here it is chosen by the size of the problem"
            raise InputError("speaks of the last optimiser, and none is named", field="epochs", remedy=remedy)
        phases = (*phases[:-1], replace(phases[-1], epochs=spec.epochs))
    refinement = base.refinement
    if spec.refinement is not None:
        refinement = _changed(refinement or Refinement(), spec.refinement, "refinement")
    return Training(
        phases,
        _changed(base.points, spec.points or {}, "points"),
        base.weight_table if spec.weights is None else {**(base.weight_table or {}), **spec.weights},
        refinement,
        base.budget if spec.closures is None else spec.closures,
    )


def _phase(settings: Mapping[str, Any]) -> Phase:
    with values.within("optimiser"):
        name = values.one_of("name", settings["name"], tuple(PHASES))
    return _changed(PHASES[name](), {k: v for k, v in settings.items() if k != "name"}, "optimiser")


def _changed(record: Any, table: Mapping[str, Any], where: str) -> Any:
    """A record with some fields changed; the record itself checks the values."""
    known = {field.name: getattr(record, field.name) for field in fields(record)}
    found = {}
    with values.within(where):
        for key, value in table.items():
            if key not in known:
                raise InputError("is not a key here", field=key, remedy=nearest(key, known))
            if isinstance(known[key], Stopping):
                value = _changed(known[key], values.table(key, value), key)
            elif is_dataclass(known[key]) or isinstance(value, Mapping | list):
                raise InputError(f"is {value!r}", field=key, remedy=f"Give one like the default, {known[key]!r}")
            found[key] = value
        return replace(record, **found)

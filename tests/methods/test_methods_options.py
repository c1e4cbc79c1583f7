"""What each method does to the source's weights, and the options it takes."""

from __future__ import annotations

from typing import Any

import method_cases  # noqa: F401  float64
import numpy as np
import pytest
from method_cases import own_objective, setting, source, target

import tgsr
from tgsr._errors import InputError
from tgsr.methods import L2SP, BitFit, Lightweight, LinearHead, LoRA, Partial, Sfp, TlGpinn
from tgsr.methods._sfp import shortest_rows


def prepared(method: Any) -> tuple[Any, dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(start, its arrays by name, those of the source)."""
    here = setting(method, source())
    start = method.prepare(here).start
    entries = here.objective.surrogate.entries()
    own = {f"net0.{i}.{kind}": np.ravel(a) for i, both in enumerate(zip(source().weights, source().biases, strict=True))
           for kind, a in zip(("weight", "bias"), both, strict=True)}  # fmt: skip
    return start, {name: np.asarray(start.theta[where]) for name, where in entries.items()}, own


def moving(method: Any) -> set[str]:
    """Names of the arrays that a method trains; every mask is all or nothing per array."""
    start, _, _ = prepared(method)
    entries = setting(method).objective.surrogate.entries()
    assert all(len(set(start.mask[where])) == 1 for where in entries.values())
    return {name.removeprefix("net0.") for name, where in entries.items() if start.mask[where][0] == 1}


def test_who_trains_what() -> None:
    assert moving(Lightweight()) == {"1.weight", "1.bias", "2.weight", "2.bias", "unknown.k"}
    assert moving(Lightweight(1)) == moving(LinearHead()) == {"2.weight", "2.bias", "unknown.k"}
    assert moving(BitFit()) == {"0.bias", "1.bias", "2.bias", "unknown.k"}
    assert moving(LoRA(3)) == {f"{i}.{side}" for i in range(3) for side in ("left", "right")} | {"unknown.k"}


WHOLE = (Lightweight(), LinearHead(), BitFit(), LoRA(), L2SP(), TlGpinn())


@pytest.mark.parametrize("method", WHOLE, ids=lambda method: method.name)
def test_every_weight_and_bias_is_copied(method: Any) -> None:
    _, found, expected = prepared(method)
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize(("layers", "copied"), [("half", {0}), ("1,3", {0, 2}), ((2,), {1}), ("3", {2})])
def test_partial_copies_the_chosen_layers_and_draws_the_rest(layers: Any, copied: set[int]) -> None:
    _, found, expected = prepared(Partial(layers))
    entries, fresh = own_objective().surrogate.entries(), setting().fresh
    for name, array in expected.items():
        from_source = int(name.split(".")[1]) in copied
        np.testing.assert_array_equal(found[name], array if from_source else fresh[entries[name]])


def test_l2_sp_is_drawn_to_the_source_but_not_in_its_unknowns() -> None:
    start, _, _ = prepared(L2SP(0.5))
    np.testing.assert_array_equal(start.pull, [0.5] * (len(start.theta) - 1) + [0.0])
    np.testing.assert_array_equal(start.anchor, start.theta)


def test_sfp_silences_the_shortest_rows_once() -> None:
    start, found, expected = prepared(Sfp(0.4))
    assert start.mask is None
    for layer, weight in enumerate(source().weights[:-1]):
        short = np.argsort(np.linalg.norm(weight, axis=0))[:2]
        new = found[f"net0.{layer}.weight"].reshape(weight.shape)
        assert not new[:, short].any()
        assert not found[f"net0.{layer}.bias"][short].any()
        rest = np.setdiff1d(np.arange(5), short)
        np.testing.assert_array_equal(new[:, rest], weight[:, rest])
    np.testing.assert_array_equal(found["net0.2.weight"], expected["net0.2.weight"])
    assert [shortest_rows(np.ones((2, 10)), share).sum() for share in (0, 0.3, 0.55, 1)] == [0, 3, 6, 10]


ILLEGAL: list[tuple[Any, list[Any]]] = [
    (Lightweight, [0, 1.5, True]),
    (LoRA, [0, "4"]),
    (L2SP, [-1.0, float("nan")]),
    (Sfp, [1.1, None]),
    (TlGpinn, [0.0, float("inf")]),
    (Partial, ["", "1,b", (0, 1), (1.5,), 3, (True,), ()]),
]


@pytest.mark.parametrize(("kind", "values"), ILLEGAL, ids=lambda value: getattr(value, "name", ""))
def test_an_illegal_option_is_an_error_that_names_it(kind: Any, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(InputError, match=r"'(trained|rank|mu|share|gradient_weight|layers)': .* The default is "):
            kind(value)


def test_options_that_do_not_fit_the_network_are_named() -> None:
    for method, field in ((Lightweight(4), "trained"), (Partial("2,4"), "layers")):
        with pytest.raises(InputError, match=f"'{field}'.*the network has 3") as caught:
            prepared(method)
        assert caught.value.field == field
    assert Partial((3, 1, 1)) == Partial("1,3")
    assert Lightweight(np.int64(2)) == Lightweight()


def test_another_architecture_is_refused_in_words() -> None:
    for network, field in ((tgsr.MLP((5, 6)), "widths"), (tgsr.MLP((5, 5), "sin"), "activation")):
        with pytest.raises(InputError, match=r"the source's .* the target's") as caught:
            tgsr.transfer(target(), source(), network=network)
        assert caught.value.field == field

"""Problems that cannot be: each is refused in one line that names the field and says what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tgsr._errors import InputError
from tgsr._jax import computing
from tgsr.loss import build_objective
from tgsr.network._propagate import MLP
from tgsr.problem import (
    Condition,
    Data,
    Dirichlet,
    Field,
    Initial,
    Neumann,
    Periodic,
    Points,
    Problem,
    Robin,
    Unknown,
    UnknownField,
)  # fmt: skip

NAN, INF, HUGE = float("nan"), float("inf"), 10**400


def heat(u: Any, k: Any) -> Any:
    return u.t - k * u.xx


K = Unknown("k", 1.0)
GOOD: dict[str, Any] = {
    "coordinates": {"x": (0.0, 1.0), "t": (0.0, 2.0)}, "fields": ["u"], "unknowns": [K], "residuals": [heat],
}  # fmt: skip


def problem(**changes: Any) -> Problem:
    return Problem(**{**GOOD, **changes})


def with_condition(*conditions: Any) -> Problem:
    return problem(conditions=list(conditions))


def built(**changes: Any) -> Any:
    with computing():
        return build_objective(problem(**changes), MLP((3,)), Points(5, 4, 3))


def built_with(residual: Any) -> Any:
    return built(residuals=[residual], unknowns=[])


def built_condition(*conditions: Any) -> Any:
    return built(conditions=list(conditions))


def measured(points: dict[str, Any], values: dict[str, Any]) -> Problem:
    return problem(data=[Data(points, values, 0.1)])


AT = {"x": [0.5], "t": [1.0]}
Case = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def call(function: Callable[..., Any], *arguments: Any, **named: Any) -> Case:
    return function, arguments, named


BAD_NAMES = (
    "",
    "1x",
    "a b",
    "class",
    "_x",
    "value",
    "d",
    "laplacian",
    "shape",
    "x-y",
    "x\n",
    5,
    None,
    ("x",),
    b"x",
)

BAD: list[Case] = [
    # names
    *(call(Unknown, name, 1.0) for name in BAD_NAMES),
    *(call(Field, name) for name in BAD_NAMES[::3]),
    *(call(UnknownField, name, of=["x"]) for name in BAD_NAMES[1::3]),
    *(call(problem, fields=[name]) for name in BAD_NAMES[2::3]),
    *(call(problem, coordinates={name: (0, 1)}) for name in BAD_NAMES[:8]),
    *(call(problem, name=name) for name in ("", ".hidden", "a/b", "x" * 65, "a b", None, 5, "n\n")),
    # unknowns
    *(call(Unknown, "k", guess) for guess in (NAN, INF, HUGE, "1", None, True, 1j, [1.0], np.ones(1))),
    *(call(Unknown, "k", 0.5, bounds=bounds) for bounds in
      (1, (1,), (1, 2, 3), (1, 0), (0, 0), (0, NAN), (0, INF), (0, HUGE), ("a", "b"), (0.5, 1), (2, 3), "01",
       (-1e308, 1.7e308), (None, 1), {0, 1})),
    call(Unknown, "k", -1.0, positive=True), call(Unknown, "k", 0.0, log=True), call(Unknown, "k", 1.0, positive="yes"),
    call(Unknown, "k", 1.0, log=1), call(Unknown, "k", 1.0, unit=5), call(Unknown, "k", 1.0, unit="m\n"),
    call(Unknown, "k", 1.0, bounds=(-1, 2), log=True), call(Unknown, "k", 1.0, bounds=(-1, 2), positive=True),
    *(call(Unknown, "k", 1.0, scale=scale) for scale in (0, -1, NAN, INF, "1", True)),
    *(call(Field, "u", scale=scale) for scale in (0, -1.0, "a")),
    call(Field, "u", offset=NAN), call(Field, "u", unit=None),
    *(call(UnknownField, "q", of=of) for of in ((), [], 5, None, ["x", "x"], [1], {"x": 1})),
    *(call(UnknownField, "q", of="x", widths=widths) for widths in ((), 5, (0,), (2.5,), (True,), "55", None)),
    call(UnknownField, "q", of="x", guess=NAN), call(UnknownField, "q", of="x", positive=True),
    call(UnknownField, "q", of="x", positive=1, guess=1.0), call(UnknownField, "q", of="x", scale=0),
    # conditions by themselves
    *(call(Initial, "u", order=order) for order in (-1, 4, 1.0, True, "1", None, np.arange(2))),
    *(call(Periodic, "x", order=order) for order in (0, 5, 2.0, True, [2])),
    *(call(Periodic, "x", fields=fields) for fields in (5, None, {"u"})),
    *(call(Points, **{key: count}) for key in ("interior", "boundary", "initial") for count in (0, -1, 1.5, True, "5")),
    call(Points, sampling="sobl"), call(Points, sampling=None), call(Points, interior=10**9),
    # problems
    *(call(problem, coordinates=c) for c in
      ({}, None, ["x", "t"], "xt", {f"x{i}": (0, 1) for i in range(9)}, {"x": (0, 1), "t": (1, 0)},
       {"x": (0, 0)}, {"x": (0, NAN)}, {"x": (-INF, 1)}, {"x": 1.0}, {"x": (0, 1, 2)}, {"x": ("a", "b")},
       {"x": "01"}, {"x": None}, {"x": {0, 1}}, {"x": (0, HUGE)}, {"x": (-1e308, 1e308)}, {"x": (0, 5e-324)})),
    *(call(problem, fields=f) for f in ([], "u", None, 5, [5], ["u", "u"], ["u", "x"], ["u", "k"], Field("u"), {"u"})),
    *(call(problem, unknowns=u) for u in
      (K, "k", ["k"], None, [K, K], [K, Unknown("unused", 1.0)], [K, Unknown("x", 1.0)], [K, Unknown("u", 1.0)], [])),
    *(call(problem, unknown_fields=u) for u in
      (UnknownField("q", of="x"), [K], [UnknownField("q", of="x")], [UnknownField("q", of="z")], 5)),
    *(call(problem, residuals=r) for r in ([], heat, None, 5, "heat", [5], [None], ["heat"], {heat}, [heat, [heat]])),
    *(call(problem, residuals=[r]) for r in
      (lambda u, k, z: u, lambda *a: 0.0, lambda u, **k: u, lambda T, k: T, partial(lambda u, k, q: u, k=1), max)),
    *(call(problem, conditions=c) for c in (Initial("u"), ["u"], [None], 5, None, "x=0", {"u": 0})),
    *(call(problem, data=d) for d in ("rod.csv", ["rod.csv"], [None], {"x": 1}, Data(AT, {"u": [1.0]}, 0.1))),
    *(call(problem, scale=s) for s in ("AUTO", None, 1.0, ["auto"], np.ones(2))),
    *(call(problem, region=r) for r in (5, "x<1", lambda z: z, lambda *a: a)),
    # conditions of a problem
    *(call(with_condition, Dirichlet("u", at=at)) for at in
      ("x", "x=", "=0", "z=0", "x=2", "x=nan", "x==0", "x=a", "", None, 5, [], ["x=0", "y=1"], [5], ("x=0", None),
       {"x": [0.5]}, {"x": [0.5], "t": [1.0], "z": [0]}, {"x": [0.5, 0.6], "t": [1, 2, 3]}, {"x": [2.0], "t": [1.0]},
       {"x": [NAN], "t": [1.0]}, {"x": ["a"], "t": [1.0]}, {"x": [[0.5]], "t": [1.0]}, {"x": [], "t": []},
       {"x": [1j], "t": [1.0]}, {"x": None, "t": [1.0]}, {}, {5: [1.0]})),
    *(call(with_condition, Dirichlet(f, at="x=0")) for f in ("T", None, 5, ["u"], "", np.ones(2))),
    *(call(with_condition, Dirichlet("u", at="x=0", value=v)) for v in
      (None, "20", True, NAN, INF, HUGE, 1j, [1.0], np.ones(1), lambda z: z, lambda u: u, lambda *a: 0.0)),
    *(call(with_condition, kind("u", at=at)) for kind in (Neumann, Robin) for at in ("x=0.5", {"x": [0], "t": [0]}, "z=0")),
    call(with_condition, Robin("u", at="x=0", a="1")), call(with_condition, Robin("u", at="x=0", b=lambda q: q)),
    call(with_condition, Robin("u", at="x=0", a=None)), call(with_condition, Neumann("T", at="x=0")),
    *(call(with_condition, Initial("u", time=t)) for t in ("s", None, 5, ["t"])),
    *(call(with_condition, Periodic(a)) for a in ("y", None, 5, ["x"])),
    call(with_condition, Periodic("x", fields=["T"])), call(with_condition, Periodic("x", fields=[None])),
    *(call(with_condition, Condition(r, at="x=0")) for r in (5, None, "u", lambda z: z, lambda *a: 0.0)),
    call(with_condition, Dirichlet("u", at="x=0", name=5)), call(with_condition, Initial("u", name="a\nb")),  # type: ignore[arg-type]
    # data
    call(measured, {"x": [0.5]}, {"u": [1.0]}), call(measured, AT, {"T": [1.0]}), call(measured, AT, {"k": [1.0]}),
    call(measured, {"x": [1.5], "t": [1.0]}, {"u": [1.0]}), call(measured, {**AT, "z": [0.0]}, {"u": [1.0]}),
    # what functions give back
    *(call(built_with, r) for r in
      (lambda u: None, lambda u: (u.t, None), lambda u: (), lambda u: (u.t,) * 65, lambda u: "u.t", lambda u: {"u": u.t},
       lambda u: u.t * 1j, lambda u: u.t[:2], lambda u: jnp.ones(3), lambda u: jnp.stack([u.t, u.x]), lambda u: HUGE,
       lambda u: u.t[:, None], lambda u: u.t - jnp.mean(u.t), lambda u: jnp.mean(u.t), lambda u: u.t / (u.x * 0),
       lambda u: u.q, lambda u: u.xxxxx, lambda u: u.t + "a", lambda u: (u.t, jnp.ones(2)))),
    *(call(built_condition, Dirichlet("u", at="x=0", value=v)) for v in
      (lambda t: None, lambda t: 1j * t, lambda t: t[:2], lambda t: (t, t), lambda t: "a", lambda t: 1 / 0)),
    call(built_condition, Condition(lambda u: None, at="x=0")), call(built_condition, Robin("u", at="x=0", a=lambda t: None)),
    call(built_condition, Initial("u", lambda x: 1.0 if x > 0 else 0.0)), call(built_condition, Initial("u", lambda x: None)),
]  # fmt: skip


def one_line(error: InputError) -> None:
    text = str(error)
    assert text.isprintable(), ascii(text)
    assert len(text) < 1800
    assert error.field is not None or error.file, text
    assert error.remedy, text


def test_the_table_is_large() -> None:
    assert len(BAD) >= 250


def test_bad_problems(subtests: Any) -> None:
    for number, (function, arguments, named) in enumerate(BAD):
        with subtests.test(f"{number}: {getattr(function, '__name__', function)} {arguments} {named}"[:200]):
            with pytest.raises(InputError) as caught:
                function(*arguments, **named)
            one_line(caught.value)


def test_the_good_problem_is_good() -> None:
    good = with_condition(
        Initial("u", lambda x, k: k * x), Dirichlet("u", at=["x=0", "x=high"]), Periodic("x", fields="u"),
        Neumann("u", "x=low", value=np.float64(1.0)), Dirichlet("u", at={"x": [0.5], "t": 1}, name="probe"),
    )  # fmt: skip
    assert repr(good) == "<problem problem: u over (x, t), unknown k, 0 readings>"
    assert good.argument_names == ("x", "t", "u", "k")
    assert good.unknown("k") is K
    with pytest.raises(InputError, match="did you mean 'k'"):
        good.unknown("kk")


def test_an_error_names_the_nearest_name() -> None:
    with pytest.raises(InputError, match=r"asks for 'kapa', .*did you mean 'kappa'"):
        problem(unknowns=[Unknown("kappa", 1.0)], residuals=[lambda u, kapa: u])


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.just(HUGE), st.floats(), st.complex_numbers(), st.binary(max_size=3),
    st.text(max_size=4), st.sampled_from(["u", "x", "t", "k", "x=0", "x=1", "t=low", "auto", "none", "sobol"]),
    st.sampled_from([np.float64(1.0), np.ones(2), np.array("x"), object(), int, heat, len, K, Field("u"), lambda x: x]),
)  # fmt: skip
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(
        st.sampled_from(["x", "t", "u", 5]), inner, max_size=2), max_leaves=4,
)  # fmt: skip
KINDS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (Unknown, {"name": "k", "guess": 1.0, "positive": False, "bounds": None, "log": False, "unit": "", "scale": None}),
    (Field, {"name": "u", "unit": "", "scale": None, "offset": None}),
    (UnknownField, {"name": "q", "of": "x", "guess": 1.0, "positive": True, "scale": None, "widths": (3,), "unit": ""}),
    (Points, {"interior": None, "boundary": None, "initial": None, "sampling": "sobol"}),
    (MLP, {"widths": (3,), "activation": "tanh"}),
    (Condition, {"residual": lambda u: u, "at": "x=0", "name": ""}),
    (Dirichlet, {"field": "u", "at": "x=0", "value": 0.0, "name": ""}),
    (Neumann, {"field": "u", "at": "x=0", "value": 0.0, "name": ""}),
    (Robin, {"field": "u", "at": "x=0", "a": 1.0, "b": 1.0, "value": 0.0, "name": ""}),
    (Initial, {"field": "u", "value": 0.0, "order": 0, "time": "t", "name": ""}),
    (Periodic, {"along": "x", "fields": (), "order": 2, "name": ""}),
    (Problem, {**GOOD, "name": "p", "conditions": (), "data": (), "region": None, "scale": "auto", "unknown_fields": ()}),
]  # fmt: skip


@settings(max_examples=600)
@given(kind=st.sampled_from(KINDS), data=st.data())
def test_only_our_error_escapes(kind: tuple[Callable[..., Any], dict[str, Any]], data: st.DataObject) -> None:
    make, usual = kind
    names = data.draw(st.lists(st.sampled_from(sorted(usual)), min_size=1, max_size=2, unique=True))
    given_ = {**usual, **{name: data.draw(anything, label=name) for name in names}}
    try:
        made = make(**given_)
        if make in (Condition, Dirichlet, Neumann, Robin, Initial, Periodic):
            with_condition(made)
        elif make is Unknown and made.name == "k":
            problem(unknowns=[made])
        elif make is UnknownField and made.name == "q":
            problem(unknowns=[K, made], residuals=[lambda u, k, q: u])
    except InputError as error:
        one_line(error)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with computing():
        yield

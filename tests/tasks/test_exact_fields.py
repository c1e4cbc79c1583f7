"""Every field solves its equation, meets its conditions, and is as accurate as it says."""

from __future__ import annotations

import inspect

import jax
import numpy as np
import pytest

import tgsr
from tgsr._jax import computing
from tgsr.tasks import names, task
from tgsr.tasks._exact import applied, derivative
from tgsr.tasks._reference import allen_cahn_field, burgers_field

ROLES = [(name, role) for name in names() for role in ("target", "source")]
PI = np.pi


def interior(physics, count=60, earliest=0.05):
    """Points inside the box; the quadrature of Burgers has no derivative at the very start."""
    rng = np.random.default_rng(3)
    low, high = np.array(list(physics.coordinates.values())).T
    points = low + (high - low) * rng.random((count, len(low)))
    if "t" in physics.coordinates:
        points[:, -1] = np.maximum(points[:, -1], earliest * high[-1])
    return list(points.T)


@pytest.mark.parametrize(("name", "role"), ROLES)
def test_the_field_solves_its_equation(name, role):
    physics = task(name).physics(role)
    residual = applied(physics.residual, physics.exact, tuple(physics.coordinates), physics.constants)
    with computing():
        assert np.max(np.abs(jax.jit(residual)(*interior(physics)))) < 1e-10


@pytest.mark.parametrize(("name", "role"), ROLES)
def test_another_constant_does_not_solve_it(name, role):
    physics = task(name).physics(role)
    for changed in physics.constants:
        wrong = {**physics.constants, changed: 1.5 * physics.constants[changed]}
        with computing():
            off = jax.jit(applied(physics.residual, physics.exact, tuple(physics.coordinates), wrong))
            off = off(*interior(physics))
        assert np.max(np.abs(off)) > 1e-3


@pytest.mark.parametrize(("name", "role"), ROLES)
def test_conditions_are_what_the_field_does(name, role):
    physics = task(name).physics(role)
    slack = 4e-5 if name == "advected-pulse" else 1e-13
    for condition in physics.conditions:
        starting = isinstance(condition, tgsr.Initial)
        for face in ("t=0",) if starting else condition.at:
            axis, _, value = face.partition("=")
            point = dict(zip(physics.coordinates, interior(physics, earliest=0.0), strict=True))
            point[axis] = np.full(60, float(value))
            wanted = condition.value
            if callable(wanted):
                with computing():
                    wanted = np.asarray(wanted(**{n: point[n] for n in inspect.signature(wanted).parameters}))
            np.testing.assert_allclose(physics.exact(**point), wanted, rtol=0, atol=1e-13 if starting else slack)


def test_sides_are_all_held():
    faces = {name: {f for c in task(name).target().conditions for f in getattr(c, "at", ())} for name in names()}
    square = {"x=0", "x=1", "y=0", "y=1"}
    assert faces == {n: {"x=-1", "x=1"} if n == "allen-cahn-burgers" else square for n in names()}


@pytest.mark.parametrize(
    ("name", "by_hand"),
    [
        ("reaction-diffusion", lambda u, x, y, t: -u + 0.05 * 2 * PI**2 * u + u**2),
        (
            "smooth-advection-diffusion",
            lambda u, x, y, t: -u + 0.001 * 2 * PI**2 * u
            + np.exp(-t) * PI * (2 * np.cos(PI * x) * np.sin(PI * y) + np.sin(PI * x) * np.cos(PI * y)),
        ),
    ],
)  # fmt: skip
def test_source_term_agrees_with_one_worked_out_on_paper(name, by_hand):
    physics = task(name).physics()
    x, y, t = interior(physics)
    with computing():  # of u = 0 nothing is left but -Q
        of_nothing = applied(physics.residual, lambda x, y, t: 0.0 * x * y * t, ("x", "y", "t"), physics.constants)
        q = -np.asarray(of_nothing(x, y, t))
    np.testing.assert_allclose(q, by_hand(physics.exact(x, y, t), x, y, t), rtol=1e-12, atol=1e-12)


def test_derivatives_of_a_polynomial():
    with computing():
        third = derivative(lambda x, y: x**3 * y**2, (0, 0, 1))(np.array([2.0]), np.array([5.0]))
    np.testing.assert_allclose(third, 6 * 2.0 * 2 * 5.0)


GRID = np.linspace(-1, 1, 41)[:, None], np.linspace(0, 1, 33)[None]


def test_burgers_quadrature_converges_faster_than_any_power_to_its_stated_error():
    exact = burgers_field(0.01, spacing=0.04)(*GRID)
    errors = [np.max(np.abs(burgers_field(0.01, spacing)(*GRID) - exact)) for spacing in (1.0, 0.5, 0.25, 0.1)]
    assert errors[1] < errors[0] / 100
    assert errors[2] < errors[1] / 1e6
    assert errors[3] < 1e-12
    assert np.max(np.abs(burgers_field(0.005)(*GRID) - burgers_field(0.005, spacing=0.04)(*GRID))) < 1e-12


def test_burgers_agrees_with_gauss_hermite():
    z, w = np.polynomial.hermite.hermgauss(200)
    x, t, nu = *np.broadcast_arrays(*GRID), 0.05
    y = x[..., None] - np.sqrt(4 * nu * t[..., None]) * z
    weight = w * np.exp(-np.cos(PI * y) / (2 * PI * nu))
    np.testing.assert_allclose(
        burgers_field(nu)(*GRID), -np.sum(weight * np.sin(PI * y), -1) / np.sum(weight, -1), rtol=0, atol=1e-12
    )


def test_allen_cahn_converges_at_order_four_to_its_stated_error():
    exact = allen_cahn_field(0.8)(*GRID)
    coarse, fine = (np.max(np.abs(allen_cahn_field(0.8, steps=steps)(*GRID) - exact)) for steps in (4, 8))
    assert 12 < coarse / fine < 20
    finer = allen_cahn_field(0.8, modes=20, nodes=128, steps=48)(*GRID)
    assert np.max(np.abs(exact - finer)) < 1e-11

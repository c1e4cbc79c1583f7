"""The viscosity in Burgers' equation, from noisy velocities while a front steepens and fades."""

import jax.numpy as jnp
import numpy as np

import tgsr

NU = 0.02  # the truth, used to make the readings only


def burgers(u, nu):
    return u.t + u * u.x - nu * u.xx


def exact(x, t):
    """The solution from -sin(pi x) by the Cole-Hopf formula, its two integrals by Gauss-Hermite quadrature."""
    z, w = np.polynomial.hermite.hermgauss(100)
    x, t = np.broadcast_arrays(x, t)
    y = x[..., None] - np.sqrt(4.0 * NU * t[..., None]) * z
    weight = w * np.exp(-np.cos(np.pi * y) / (2.0 * np.pi * NU))
    return -np.sum(weight * np.sin(np.pi * y), -1) / np.sum(weight, -1)


rng = np.random.default_rng(0)
x, t = rng.uniform(-1.0, 1.0, 500), rng.uniform(0.0, 1.0, 500)
readings = tgsr.Data({"x": x, "t": t}, {"u": exact(x, t) + rng.normal(0.0, 0.01, 500)}, noise=0.01)

problem = tgsr.Problem(
    name="burgers",
    coordinates={"x": (-1.0, 1.0), "t": (0.0, 1.0)},
    fields=["u"],
    unknowns=[tgsr.Unknown("nu", guess=0.1, positive=True)],
    residuals=[burgers],
    conditions=[tgsr.Initial("u", lambda x: -jnp.sin(jnp.pi * x)), tgsr.Dirichlet("u", at=["x=-1", "x=1"], value=0.0)],
    data=[readings],
)
truth = tgsr.Truth({"nu": NU}, exact)

if __name__ == "__main__":
    result = tgsr.solve(problem)
    print(result)
    print(tgsr.evaluate(result, truth))

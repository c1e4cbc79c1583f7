"""How conductivity varies along a bar, from noisy temperatures while a warm middle spreads."""

import jax.numpy as jnp
import numpy as np
from numpy.polynomial import Chebyshev
from scipy.integrate import solve_ivp

import tgsr


def diffusion(u, k):
    return u.t - (k * u.xx + k.x * u.x)  # u_t = (k(x) u_x)_x


def start(x, xp=np):
    return xp.sin(xp.pi * x) ** 2


def true_k(x):  # the truth, used to make the readings only
    return 0.05 + 0.03 * np.tanh(6.0 * (x - 0.5))


def bar(x, t, degree=40):
    """The temperature by Chebyshev collocation in x, integrated in time to 1e-9."""
    nodes = -np.cos(np.pi * np.arange(degree + 1) / degree)
    basis = [Chebyshev.basis(n) for n in range(degree + 1)]
    values = np.stack([b(nodes) for b in basis], axis=1)
    slope = np.stack([2.0 * b.deriv()(nodes) for b in basis], axis=1) @ np.linalg.inv(values)
    operator = slope @ (true_k((nodes[:, None] + 1.0) / 2.0) * slope)
    operator[[0, -1]] = 0.0  # the ends stay at zero
    run = solve_ivp(
        lambda t, u: operator @ u, (0.0, 1.0), start((nodes + 1.0) / 2.0), "Radau", jac=operator,
        rtol=1e-9, atol=1e-10, dense_output=True,
    )  # fmt: skip
    x, t = np.broadcast_arrays(x, t)
    series = np.linalg.solve(values, run.sol(t.ravel()))
    return sum(c * b(2.0 * x.ravel() - 1.0) for c, b in zip(series, basis, strict=True)).reshape(x.shape)


rng = np.random.default_rng(0)
x, t = rng.uniform(0.0, 1.0, 800), rng.uniform(0.0, 1.0, 800)
readings = tgsr.Data({"x": x, "t": t}, {"u": bar(x, t) + rng.normal(0.0, 0.003, 800)}, noise=0.003)

problem = tgsr.Problem(
    name="conductivity",
    coordinates={"x": (0.0, 1.0), "t": (0.0, 1.0)},
    fields=["u"],
    unknowns=[tgsr.UnknownField("k", of=["x"], guess=0.1, positive=True)],
    residuals=[diffusion],
    conditions=[tgsr.Initial("u", lambda x: start(x, jnp)), tgsr.Dirichlet("u", at=["x=0", "x=1"], value=0.0)],
    data=[readings],
)
truth = tgsr.Truth(field=lambda x, t: {"u": bar(x, t), "k": true_k(x)})

if __name__ == "__main__":
    result = tgsr.solve(problem)
    print(result)
    print(tgsr.evaluate(result, truth))  # relative L2 of u and of k

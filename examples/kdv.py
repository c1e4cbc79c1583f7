"""Both coefficients of the Korteweg-de Vries equation, from noisy heights of waves on a ring."""

import jax.numpy as jnp
import numpy as np
from scipy.integrate import solve_ivp

import tgsr

SPEED, SPREAD = 1.0, 0.02  # the truth, used to make the readings only


def kdv(u, a, b):
    return u.t + a * u * u.x + b * u.d("x", 3)


def start(x, xp=np):
    return xp.cos(xp.pi * x)


def waves(x, t, modes=20):
    """The solution by a Fourier series in x whose coefficients are integrated in time to 1e-10."""
    nodes = np.arange(2 * modes) / modes - 1.0
    k = np.pi * np.arange(modes + 1)

    def rate(t, v):  # v = exp(-i b k^3 t) u_k, so that only the nonlinear part is left to the integrator
        turn = np.exp(1j * SPREAD * k**3 * t)
        u = np.fft.irfft(turn * v)
        return -0.5j * SPEED * k * np.fft.rfft(u * u) / turn

    run = solve_ivp(rate, (0.0, 1.0), np.fft.rfft(start(nodes)), "DOP853", rtol=1e-10, atol=1e-10, dense_output=True)
    x, t = np.broadcast_arrays(x, t)
    times, which = np.unique(t, return_inverse=True)
    series = (run.sol(times) * np.exp(1j * SPREAD * np.outer(k**3, times))) / (2 * modes)
    phase = np.exp(1j * (x[..., None] + 1.0) * k)
    return np.real(2.0 * np.sum(series.T[which] * phase, -1) - (series.T[which] * phase)[..., 0])


rng = np.random.default_rng(0)
x, t = rng.uniform(-1.0, 1.0, 400), rng.uniform(0.0, 1.0, 400)
readings = tgsr.Data({"x": x, "t": t}, {"u": waves(x, t) + rng.normal(0.0, 0.02, 400)}, noise=0.02)

problem = tgsr.Problem(
    name="kdv",
    coordinates={"x": (-1.0, 1.0), "t": (0.0, 1.0)},
    fields=["u"],
    unknowns=[tgsr.Unknown("a", guess=0.5), tgsr.Unknown("b", guess=0.05, positive=True)],
    residuals=[kdv],
    conditions=[tgsr.Initial("u", lambda x: start(x, jnp)), tgsr.Periodic("x", order=3)],
    data=[readings],
)
truth = tgsr.Truth({"a": SPEED, "b": SPREAD}, waves)

if __name__ == "__main__":
    result = tgsr.solve(problem)
    print(result)
    print(tgsr.evaluate(result, truth))

"""The viscosity of a steady plane flow, from noisy velocities alone; its pressure is found on the way.

Behind a row of obstacles the Navier-Stokes equations have an exact solution (Kovasznay 1948). Nothing says what the
pressure is anywhere, so it is known up to a constant: it is compared after its mean is taken out.
"""

import numpy as np

import tgsr

NU = 0.05  # the truth, used to make the readings only


def flow(u, v, p, nu):
    return (
        u.x + v.y,
        u * u.x + v * u.y + p.x - nu * u.laplacian("x", "y"),
        u * v.x + v * v.y + p.y - nu * v.laplacian("x", "y"),
    )


def kovasznay(x, y):
    rate = 0.5 / NU - np.sqrt(0.25 / NU**2 + 4.0 * np.pi**2)
    decay = np.exp(rate * x)
    return {
        "u": 1.0 - decay * np.cos(2.0 * np.pi * y),
        "v": rate / (2.0 * np.pi) * decay * np.sin(2.0 * np.pi * y),
        "p": 0.5 * (1.0 - decay**2),
    }


rng = np.random.default_rng(0)
x, y = rng.uniform(-0.5, 1.0, 500), rng.uniform(-0.5, 0.5, 500)
exact = kovasznay(x, y)
noisy = {name: exact[name] + rng.normal(0.0, 0.01, 500) for name in ("u", "v")}

problem = tgsr.Problem(
    name="flow",
    coordinates={"x": (-0.5, 1.0), "y": (-0.5, 0.5)},
    fields=["u", "v", "p"],
    unknowns=[tgsr.Unknown("nu", guess=0.2, positive=True)],
    residuals=[flow],
    data=[tgsr.Data({"x": x, "y": y}, noisy, noise=0.01)],
)
truth = tgsr.Truth({"nu": NU}, kovasznay, up_to_constant=("p",))

if __name__ == "__main__":
    result = tgsr.solve(problem)
    print(result)
    print(tgsr.evaluate(result, truth))

"""The three numbers of the Lorenz system, from noisy readings of its three variables over a short time."""

import numpy as np
from scipy.integrate import solve_ivp

import tgsr

SIGMA, RHO, BETA = 10.0, 28.0, 8.0 / 3.0  # the truth, used to make the readings only


def lorenz(x, y, z, sigma, rho, beta):
    return (
        x.t - sigma * (y - x),
        y.t - (x * (rho - z) - y),
        z.t - (x * y - beta * z),
    )


def orbit(t):
    """The orbit from (-8, 7, 27), integrated to 1e-10."""

    def rate(_, s):
        x, y, z = s
        return SIGMA * (y - x), x * (RHO - z) - y, x * y - BETA * z

    run = solve_ivp(rate, (0.0, 2.0), (-8.0, 7.0, 27.0), "DOP853", rtol=1e-10, atol=1e-10, dense_output=True)
    return dict(zip("xyz", run.sol(np.asarray(t)), strict=True))


rng = np.random.default_rng(0)
t = np.linspace(0.0, 2.0, 101)
noisy = {name: values + rng.normal(0.0, 0.2, len(t)) for name, values in orbit(t).items()}

problem = tgsr.Problem(
    name="lorenz",
    coordinates={"t": (0.0, 2.0)},
    fields=["x", "y", "z"],
    unknowns=[tgsr.Unknown("sigma", guess=5.0), tgsr.Unknown("rho", guess=15.0), tgsr.Unknown("beta", guess=1.0)],
    residuals=[lorenz],
    data=[tgsr.Data({"t": t}, noisy, noise=0.2)],
)
truth = tgsr.Truth({"sigma": SIGMA, "rho": RHO, "beta": BETA}, orbit)

if __name__ == "__main__":
    result = tgsr.solve(problem)
    print(result)
    print(tgsr.evaluate(result, truth))

"""Makes rod.csv: temperatures of a rod that loses heat at its right end, measured with an error of 0.5 degrees.

The exact solution is a series of the rod's own modes sin(w x), where h sin w + kappa w cos w = 0; a finite-difference
scheme that is solved twice as finely each time must, and does, run into it (tests/examples).
"""

from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

KAPPA, H = 0.1, 0.05
READINGS, NOISE = 600, 0.5


def temperature(x, t, cells=800):
    """Solve T_t = kappa T_xx from 20 + 60 sin(pi x) by second-order finite differences; T at points (x, t)."""
    nodes = np.linspace(0.0, 1.0, cells + 1)
    dx = nodes[1]

    def rate(_, T):
        dT = np.zeros_like(T)  # T stays 20 at x = 0
        dT[1:-1] = T[2:] - 2.0 * T[1:-1] + T[:-2]
        ghost = T[-2] - 2.0 * dx * H / KAPPA * (T[-1] - 20.0)  # behind the end, from kappa T_x + h (T - 20) = 0
        dT[-1] = ghost - 2.0 * T[-1] + T[-2]
        return KAPPA / dx**2 * dT

    bands = (1, 1)
    start = 20.0 + 60.0 * np.sin(np.pi * nodes)
    run = solve_ivp(rate, (0.0, 2.0), start, "LSODA", rtol=1e-8, atol=1e-8, dense_output=True, lband=1, uband=1)
    profiles = run.sol(np.asarray(t))
    return np.array([np.interp(at, nodes, profiles[:, i]) for i, at in enumerate(np.asarray(x))])

"""Makes rod.csv: temperatures of a rod that gives off heat at its right end, read with an error of half a degree.

The heat equation is solved on a grid that is fine enough: halving its step moves no temperature by more than 0.001.
"""

from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

KAPPA, H = 0.1, 0.2
READINGS, NOISE = 1000, 0.5


def temperature(x, t, cells=600):
    """T at the points (x, t), by second-order finite differences in x and LSODA in t."""
    nodes = np.linspace(0.0, 1.0, cells + 1)
    dx = nodes[1]

    def rate(_, T):
        dT = np.zeros_like(T)  # T stays 20 at x = 0
        dT[1:-1] = T[2:] - 2.0 * T[1:-1] + T[:-2]
        beyond = T[-2] - 2.0 * dx * H / KAPPA * (T[-1] - 20.0)  # from kappa T_x + h (T - 20) = 0 at x = 1
        dT[-1] = beyond - 2.0 * T[-1] + T[-2]
        return KAPPA / dx**2 * dT

    begin = 20.0 + 60.0 * np.sin(np.pi * nodes)
    run = solve_ivp(rate, (0.0, 2.0), begin, "LSODA", rtol=1e-8, atol=1e-8, dense_output=True, lband=1, uband=1)
    profiles = run.sol(np.asarray(t))
    return np.array([np.interp(at, nodes, profiles[:, i]) for i, at in enumerate(x)])


def write(path, seed=0):
    """Readings at random places and times."""
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(0.0, 1.0, READINGS).round(4), rng.uniform(0.0, 2.0, READINGS).round(4)
    T = temperature(x, t) + rng.normal(0.0, NOISE, READINGS)
    rows = [f"{a:.4f},{b:.4f},{c:.3f}\n" for a, b, c in zip(x, t, T, strict=True)]
    Path(path).write_text("pos_m,time_s,temp_C\n" + "".join(rows), encoding="utf-8")


if __name__ == "__main__":
    write(Path(__file__).with_name("rod.csv"))

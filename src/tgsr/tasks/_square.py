"""How the two manufactured fields would change with their constants while source, initial state and sides stay.

With L the operator, the sensitivity w to a constant p solves the linearised problem `dL/du w = -dL/dp u`, w = 0 at the
start and on the sides. Space by Chebyshev collocation on the unit square (matrices from the left for x, from the right
for y); what multiplies exp(-t) in u is S = sin(pi x) sin(pi y).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm, solve_sylvester

Points = dict[str, np.ndarray]


def chebyshev(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The n + 1 Chebyshev-Lobatto points of [0, 1], from 1 down, and the matrix of the derivative there."""
    k = np.arange(n + 1)
    x = np.cos(np.pi * k / n)
    c = np.where((k == 0) | (k == n), 2.0, 1.0) * (-1.0) ** k
    d = np.outer(c, 1.0 / c) / (np.subtract.outer(x, x) + np.eye(n + 1))
    return (x + 1.0) / 2.0, 2.0 * (d - np.diag(d.sum(axis=1)))


def interpolation(nodes: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The matrix from values at Chebyshev-Lobatto points to values at x (barycentric)."""
    weights = (-1.0) ** np.arange(len(nodes))
    weights[[0, -1]] /= 2.0
    gaps = np.subtract.outer(x, nodes)
    near = np.abs(gaps) < 1e-14
    terms = np.where(near.any(axis=1, keepdims=True), near.astype(float), weights / np.where(near, 1.0, gaps))
    return terms / terms.sum(axis=1, keepdims=True)


def _read(points: Points, nodes: np.ndarray, times: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Values of w (times, constants, x inside, y inside) at the points: (points, constants)."""
    along_x, along_y = (interpolation(nodes, points[name])[:, 1:-1] for name in "xy")
    in_space = [np.einsum("pi,kij,pj->pk", along_x, at_time, along_y, optimize=True) for at_time in w]
    return np.einsum("pt,tpk->pk", interpolation(times, points["t"]), np.stack(in_space))


@lru_cache(maxsize=8)
def _carried(alpha: float, v_x: float, v_y: float, n: int, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    nodes, d = chebyshev(n)
    times, _ = chebyshev(steps)
    inside = slice(1, -1)
    a, b = ((alpha * d @ d - v * d)[inside, inside] for v in (v_x, v_y))
    s, slope = np.sin(np.pi * nodes)[inside], np.pi * np.cos(np.pi * nodes)[inside]
    forces = (-2.0 * np.pi**2 * np.outer(s, s), -np.outer(slope, s), -np.outer(s, slope))
    # w_t = a w + w b' + exp(-t) f: exactly w = exp(-t) p - exp(a t) p exp(b' t) with a p + p + p b' = -f.
    steady = [solve_sylvester(a + np.eye(n - 1), b.T, -f) for f in forces]
    w = np.empty((len(times), 3, n - 1, n - 1))
    for i, t in enumerate(times):
        left, right = expm(t * a), expm(t * b).T
        w[i] = [np.exp(-t) * p - left @ p @ right for p in steady]
    return nodes, times, w


def carried(points: Points, *, alpha: float, v_x: float, v_y: float, n: int = 96, steps: int = 24) -> np.ndarray:
    """The sensitivity of the advected field to (alpha, v_x, v_y)."""
    return _read(points, *_carried(alpha, v_x, v_y, n, steps))


@lru_cache(maxsize=8)
def _reacting(alpha: float, rho: float, n: int, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    nodes, d = chebyshev(n)
    times, _ = chebyshev(steps)
    inside = slice(1, -1)
    second = alpha * (d @ d)[inside, inside]
    s = np.sin(np.pi * nodes)[inside]
    u = np.outer(s, s)

    def slope(t: float, flat: np.ndarray) -> np.ndarray:
        w = flat.reshape(2, n - 1, n - 1)
        force = np.stack([-2.0 * np.pi**2 * np.exp(-t) * u, -np.exp(-2.0 * t) * u**2])
        return (second @ w + w @ second.T - 2.0 * rho * np.exp(-t) * u * w + force).reshape(-1)

    start = np.zeros(2 * (n - 1) ** 2)
    solved = solve_ivp(slope, (0.0, 1.0), start, "DOP853", times[::-1], rtol=1e-8, atol=1e-10)
    return nodes, times, solved.y.T[::-1].reshape(len(times), 2, n - 1, n - 1)


def reacting(points: Points, *, alpha: float, rho: float, n: int = 16, steps: int = 16) -> np.ndarray:
    """The sensitivity of the reacting field to (alpha, rho)."""
    return _read(points, *_reacting(alpha, rho, n, steps))

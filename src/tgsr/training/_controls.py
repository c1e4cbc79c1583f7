"""Loss weights and noise levels: given by the user, or balanced by the noise of the measurements."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from tgsr._errors import InputError
from tgsr.loss import Batch, Controls, Objective, TermPlan
from tgsr.network._surrogate import Surrogate
from tgsr.problem._names import nearest

# With the loss of a reading (u - y)^2 / sigma^2, an equation that is met to sigma / 3 keeps the fit from following the
# noise, yet does not let a corner that no smooth network can meet steer the unknowns (measured: the heat rod whose
# initial data meet its Robin end at an angle is 20 % off at a ratio of 100 after as many steps, and right at 10).
PHYSICS_TO_NOISE = 10.0
FLOOR = 5e-4  # of a field's scale: noise below it is beyond what a network is asked to resolve
FIRST_NOISE = 0.05  # of a field's scale, until residuals tell
KINDS = ("pde", "bc", "ic", "data")  # a weight for a kind that a problem lacks is no mistake
NO_DATA_NOISE = 0.01  # how tightly equations are held where nothing is measured


class Weighing:
    """Turns noise levels into the numbers the loss needs, and follows estimated noise during training."""

    def __init__(self, objective: Objective, weights: Mapping[str, float] | None) -> None:
        self.objective, self.weights = objective, weights
        self.parts = objective.parts
        if weights is not None:
            known = [*KINDS, *(p.name for p in self.parts)]
            for name in weights:
                if name not in known:
                    raise InputError(f"no part of the loss is called {name!r}", field=name, remedy=nearest(name, known))
        self.data = [p for p in self.parts if p.kind == "data"]
        self.scales = np.array([self._scale(plan) for plan in objective.plans if plan.term.parts[0].kind == "data"])

    def _scale(self, plan: TermPlan) -> float:
        """The scale of the field that a data term measures."""
        (name,) = plan.wanted[0]
        net = self.objective.surrogate.nets[self.objective.surrogate.net_of(name)]
        return net.scale[net.fields.index(name)]

    @property
    def estimating(self) -> bool:
        """Whether some noise level is estimated while training."""
        return self.weights is None and any(p.noise is not None and p.noise.estimated for p in self.data)

    def first_sigma(self) -> np.ndarray:
        """Noise levels at the start: as given, else a guess."""
        if self.weights is not None:
            return self.scales.copy()  # the user's weights speak of fields in their own scale
        given = [
            FIRST_NOISE * s if p.noise is None or p.noise.scale is None else p.noise.scale
            for p, s in zip(self.data, self.scales, strict=True)
        ]
        return np.maximum(np.array(given, dtype=float), FLOOR * self.scales)

    def controls(self, sigma: np.ndarray, theta: jax.Array, mask=None, anchor=None, pull=None) -> Controls:
        """The numbers of the loss at these noise levels."""
        if self.weights is not None:
            given = self.weights
            weights = [next((given[k] for k in (p.name, p.follows, p.kind) if k in given), 1.0) for p in self.parts]
        else:
            noise = float(np.min(sigma / self.scales)) if len(sigma) else NO_DATA_NOISE
            weights = [1.0 if p.kind == "data" else PHYSICS_TO_NOISE / noise**2 for p in self.parts]
        return Controls(
            jnp.asarray(weights, dtype=float),
            jnp.asarray(sigma, dtype=float) if len(sigma) else jnp.ones(1),
            jnp.ones_like(theta) if mask is None else jnp.asarray(mask, dtype=float),
            jnp.zeros_like(theta) if anchor is None else jnp.asarray(anchor),
            jnp.zeros_like(theta) if pull is None else jnp.asarray(pull),
        )

    def updated_sigma(self, sigma: np.ndarray, misfits: list[np.ndarray]) -> np.ndarray:
        """Noise levels after looking at the residuals; given ones stay."""
        new = sigma.copy()
        for i, (part, scale) in enumerate(zip(self.data, self.scales, strict=True)):
            if part.noise is not None and part.noise.estimated and np.any(misfits[i]):
                new[i] = max(part.noise.fitted(misfits[i]).scale or 0.0, FLOOR * scale)
        return new


def misfits(objective: Objective, theta: jax.Array, batch: Batch) -> list[np.ndarray]:
    """Computed minus measured, per measured part, at its real points, in the field's unit."""
    out = []
    for number, plan in enumerate(objective.plans):
        if plan.term.parts[0].kind != "data":
            continue
        name = next(iter(plan.wanted[0]))
        points = objective.points_of(batch, number)
        computed = _values(objective.surrogate, name)(theta, jnp.asarray(points))
        out.append(np.asarray(computed) - objective.real(batch[number].stored["values"], batch[number]))
    return out


@functools.lru_cache(maxsize=64)
def _values(surrogate: Surrogate, name: str) -> Callable[[jax.Array, jax.Array], jax.Array]:
    @jax.jit
    def values(theta: jax.Array, x: jax.Array) -> jax.Array:
        return surrogate.getter(surrogate.tapes(theta, x, {name: ((),)}))(name, ())

    return values

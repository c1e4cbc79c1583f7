"""DeepXDE 1.15: `TimePDE` with anchors, `PointSetBC` and external trainable variables, on PyTorch or on JAX."""

from __future__ import annotations

import os

import numpy as np
from worker import THREADS, WEIGHTS, arguments, flat, serve

work, backend = arguments("pytorch", "jax")
os.environ["DDE_BACKEND"] = backend
os.environ["JAX_ENABLE_X64"] = str(work.precision == "float64")  # its default float alone leaves JAX in float32
import deepxde as dde  # noqa: E402

dde.config.set_default_float(work.precision)
if backend == "jax":
    import jax
    import jax.numpy as lib
else:
    import torch as lib

    lib.set_num_threads(THREADS)

TRUE = (0.001, 2.0, 1.0)
variables = [dde.Variable(float(value)) for value in work["unknowns"]]


def source(x):
    """The equation's right-hand side, of a column per coordinate."""
    (alpha, vx, vy), (x, y, t) = TRUE, (x[:, 0:1], x[:, 1:2], x[:, 2:3])
    e, sx, sy, cx, cy = lib.exp(-t), lib.sin(np.pi * x), lib.sin(np.pi * y), lib.cos(np.pi * x), lib.cos(np.pi * y)
    return (2.0 * np.pi**2 * alpha - 1.0) * e * sx * sy + np.pi * e * (vx * cx * sy + vy * sx * cy)


def pde(x, u, unknowns=variables):
    """The residual; in JAX every derivative comes with its function."""
    only = (lambda pair: pair[0]) if backend == "jax" else (lambda value: value)
    alpha, vx, vy = unknowns
    ux, uy, ut = (only(dde.grad.jacobian(u, x, i=0, j=axis)) for axis in range(3))
    uxx, uyy = (only(dde.grad.hessian(u, x, i=axis, j=axis)) for axis in range(2))
    return ut - alpha * (uxx + uyy) + vx * ux + vy * uy - source(x)


def equation(x, u):
    """PyTorch's variables are seen from outside, JAX's are an argument."""
    return pde(x, u)


cube = dde.geometry.GeometryXTime(dde.geometry.Rectangle([0, 0], [1, 1]), dde.geometry.TimeDomain(0, 1))
conditions = [
    dde.icbc.PointSetBC(work["boundary"], np.zeros((len(work["boundary"]), 1))),
    dde.icbc.PointSetBC(work["initial"], work["initial values"]),
    dde.icbc.PointSetBC(work["data"], work["readings"]),
]
given = pde if backend == "jax" else equation
problem = dde.data.TimePDE(cube, given, conditions, anchors=work["interior"])
network = dde.nn.FNN(work.sizes, "tanh", "Glorot uniform")
model = dde.Model(problem, network)
weights = [WEIGHTS[kind] for kind in ("pde", "boundary", "initial", "data")]
model.compile("adam", lr=1e-3, loss_weights=weights, external_trainable_variables=variables, verbose=0)
inputs, targets = model.data.train_next_batch()[:2]

if backend == "jax":
    for number, (weight, bias) in enumerate(work.layers):
        model.params[0]["params"][f"denses_{number}"] = {"kernel": lib.asarray(weight), "bias": lib.asarray(bias)}
    # As in its training step, which returns the updated weights only.
    program = jax.jit(jax.value_and_grad(lambda *given: model.outputs_losses_train(*given)[1].sum()))

    def evaluate():
        """Loss and gradient."""
        return jax.block_until_ready(program(model.params, inputs, targets))

    def result(found):
        """In the common order."""
        loss, (net, unknowns) = found
        layers = [net["params"][f"denses_{number}"] for number in range(len(work.layers))]
        return float(loss), flat([(layer["kernel"], layer["bias"]) for layer in layers], unknowns)

else:
    for linear, (weight, bias) in zip(network.linears, work.layers, strict=True):
        linear.weight.data, linear.bias.data = lib.tensor(weight.T.copy()), lib.tensor(bias)

    def evaluate():
        """Its training step without the optimiser's update."""
        loss = model.outputs_losses_train(inputs, targets, None)[1].sum()
        model.opt.zero_grad()
        loss.backward()
        return float(loss.detach())

    def result(loss):
        """In the common order."""
        layers = [(linear.weight.grad.T.cpu(), linear.bias.grad.cpu()) for linear in network.linears]
        return loss, flat(layers, [float(variable.grad) for variable in variables])


packages = ("deepxde", "numpy", *(("jax", "jaxlib", "flax") if backend == "jax" else ("torch",)))
serve(evaluate, result, *packages)

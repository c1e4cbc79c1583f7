"""PyTorch with nested `autograd.grad`, the way in which PINN codes are usually written."""

from __future__ import annotations

import torch
from worker import THREADS, WEIGHTS, arguments, flat, serve

work, _ = arguments()
torch.set_num_threads(THREADS)
real = getattr(torch, work.precision)
modules: list[torch.nn.Module] = []
for weight, bias in work.layers:
    linear = torch.nn.Linear(*weight.shape, dtype=real)
    linear.weight.data, linear.bias.data = torch.tensor(weight.T.copy()), torch.tensor(bias)
    modules += [linear, torch.nn.Tanh()]
network = torch.nn.Sequential(*modules[:-1])
unknowns = torch.nn.Parameter(torch.tensor(work["unknowns"]))
parameters = [*network.parameters(), unknowns]
interior = torch.tensor(work["interior"]).requires_grad_()
data, readings = torch.tensor(work["data"]), torch.tensor(work["readings"])


def slope(values: torch.Tensor) -> torch.Tensor:
    """All first derivatives of one value per point."""
    return torch.autograd.grad(values.sum(), interior, create_graph=True)[0]


def misfit(points: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """The mean square deviation from given values."""
    return ((network(points) - values) ** 2).mean()


if work.case in ("work", "w64"):
    boundary, initial = torch.tensor(work["boundary"]), torch.tensor(work["initial"])
    zeros, start = torch.zeros(len(boundary), 1, dtype=real), torch.tensor(work["initial values"])
    source = torch.tensor(work["source"])


def transport() -> torch.Tensor:
    """The loss of "work" and of its narrower network."""
    alpha, vx, vy = unknowns
    first = slope(network(interior))
    xx, yy = slope(first[:, 0])[:, 0], slope(first[:, 1])[:, 1]
    residual = first[:, 2] - alpha * (xx + yy) + vx * first[:, 0] + vy * first[:, 1] - source
    return (
        WEIGHTS["pde"] * (residual**2).mean()
        + WEIGHTS["boundary"] * misfit(boundary, zeros)
        + WEIGHTS["initial"] * misfit(initial, start)
        + WEIGHTS["data"] * misfit(data, readings)
    )


def two_fields() -> torch.Tensor:
    """The loss of the two reacting fields."""
    a, b = unknowns
    fields = network(interior)
    u, v = fields[:, 0], fields[:, 1]
    du, dv = slope(u), slope(v)
    uxx, vxx = slope(du[:, 0])[:, 0], slope(dv[:, 0])[:, 0]
    first, second = du[:, 1] - a * uxx + u * v * v, dv[:, 1] - b * vxx - u * v * v
    return (first**2).mean() + (second**2).mean() + ((network(data) - readings) ** 2).sum(1).mean()


def korteweg_de_vries() -> torch.Tensor:
    """The loss of the third-order equation."""
    a, b = unknowns
    u = network(interior)[:, 0]
    first = slope(u)
    xxx = slope(slope(first[:, 0])[:, 0])[:, 0]
    return ((first[:, 1] + a * u * first[:, 0] + b * xxx) ** 2).mean() + misfit(data, readings)


loss = {"work": transport, "w64": transport, "two": two_fields, "kdv": korteweg_de_vries}[work.case]


def evaluate() -> float:
    """Loss and gradient; the gradient stays in the parameters."""
    for parameter in parameters:
        parameter.grad = None
    value = loss()
    value.backward()
    return float(value.detach())


def result(value: float):
    """The loss and the gradient in the common order."""
    linears = [module for module in network if isinstance(module, torch.nn.Linear)]
    return value, flat([(linear.weight.grad.T, linear.bias.grad) for linear in linears], unknowns.grad)  # type: ignore[union-attr]


serve(evaluate, result, "torch", "numpy")

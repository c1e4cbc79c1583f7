"""PINA 0.3: an inverse problem with conditions and its physics-informed solver, timed inside its trainer."""

from __future__ import annotations

import lightning
import numpy as np
import torch
from pina import Condition, LabelTensor, Trainer
from pina.domain import CartesianDomain
from pina.equation import Equation
from pina.equation.zoo import FixedValue
from pina.model import FeedForward
from pina.operator import grad
from pina.optim import TorchOptimizer
from pina.problem import InverseProblem, SpatialProblem, TimeDependentProblem
from pina.solver import PhysicsInformedSingleModelSolver
from pina.weighting import ScalarWeighting
from worker import THREADS, WEIGHTS, Desk, arguments, flat

work, _ = arguments()
torch.set_num_threads(THREADS)
real = getattr(torch, work.precision)
torch.set_default_dtype(real)
TRUE = (0.001, 2.0, 1.0)
NAMES = ["alpha", "vx", "vy"]


def labelled(points: np.ndarray, labels: list[str]) -> LabelTensor:
    """Points or values with the names of their columns."""
    return LabelTensor(torch.tensor(points), labels=labels)


def source(points: LabelTensor) -> torch.Tensor:
    """The equation's right-hand side."""
    (alpha, vx, vy), (x, y, t) = TRUE, (points.extract([name]).as_subclass(torch.Tensor) for name in "xyt")
    e, sx, sy = torch.exp(-t), torch.sin(np.pi * x), torch.sin(np.pi * y)
    cx, cy = torch.cos(np.pi * x), torch.cos(np.pi * y)
    return (2.0 * np.pi**2 * alpha - 1.0) * e * sx * sy + np.pi * e * (vx * cx * sy + vy * sx * cy)


def transport(points: LabelTensor, u: LabelTensor, unknown: dict[str, torch.Tensor]) -> LabelTensor:
    """The residual, in PINA's operators."""
    first = grad(u, points, components=["u"])
    xx = grad(first, points, components=["dudx"], d=["x"])
    yy = grad(first, points, components=["dudy"], d=["y"])
    ux, uy, ut = (first.extract([f"dud{name}"]) for name in "xyt")
    return ut - unknown["alpha"] * (xx + yy) + unknown["vx"] * ux + unknown["vy"] * uy - source(points)


class Transport(SpatialProblem, TimeDependentProblem, InverseProblem):
    """The problem at the given points."""

    output_variables = ["u"]  # noqa: RUF012 (PINA wants class attributes)
    spatial_domain = CartesianDomain({"x": [0, 1], "y": [0, 1]})
    temporal_domain = CartesianDomain({"t": [0, 1]})
    unknown_parameter_domain = CartesianDomain({name: [-10, 10] for name in NAMES})
    domains = {}  # noqa: RUF012
    conditions = {  # noqa: RUF012
        "pde": Condition(input=labelled(work["interior"], ["x", "y", "t"]), equation=Equation(transport)),
        "boundary": Condition(input=labelled(work["boundary"], ["x", "y", "t"]), equation=FixedValue(0.0)),
        "initial": Condition(
            input=labelled(work["initial"], ["x", "y", "t"]), target=labelled(work["initial values"], ["u"])
        ),
        "data": Condition(input=labelled(work["data"], ["x", "y", "t"]), target=labelled(work["readings"], ["u"])),
    }


class Timed(lightning.pytorch.Callback):
    """A batch begins when it is asked for, and is done when the backward pass is."""

    def on_train_batch_start(self, trainer: Trainer, solver: object, batch: object, number: int) -> None:
        """Wait for a command."""
        if not desk.asked():
            raise SystemExit(0)

    def on_after_backward(self, trainer: Trainer, solver: object) -> None:
        """Answer it."""
        desk.answer(trainer.callback_metrics)


def result(metrics: dict[str, torch.Tensor]) -> tuple[float, np.ndarray]:
    """The logged loss and the gradient in the common order."""
    linears = [module for module in model.model if isinstance(module, torch.nn.Linear)]
    slopes = [float(problem.unknown_parameters[name].grad) for name in NAMES]
    layers = [(linear.weight.grad.T, linear.bias.grad) for linear in linears]  # type: ignore[union-attr]
    return float(metrics["train_loss"]), flat(layers, slopes)


problem = Transport()
model = FeedForward(work.sizes[0], work.sizes[-1], layers=work.sizes[1:-1])
model.to(real)
for linear, (weight, bias) in zip(model.layers, work.layers, strict=True):
    linear.weight.data, linear.bias.data = torch.tensor(weight.T.copy()), torch.tensor(bias)
for name, value in zip(NAMES, work["unknowns"], strict=True):
    problem.unknown_parameters[name] = torch.nn.Parameter(torch.tensor([value]))
solver = PhysicsInformedSingleModelSolver(
    problem,
    model,
    optimizer=TorchOptimizer(torch.optim.SGD, lr=0.0),  # the weights stay where they are
    weighting=ScalarWeighting(WEIGHTS),
)
desk = Desk(("pina-mathlab", "torch", "lightning", "numpy"), result)
trainer = Trainer(
    solver,
    max_epochs=-1,
    accelerator="cpu",
    callbacks=[Timed()],
    enable_progress_bar=False,
    enable_checkpointing=False,
    enable_model_summary=False,
    logger=False,
)
trainer.train()

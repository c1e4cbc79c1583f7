"""Writes torch_lbfgs.npz: iterates of torch.optim.LBFGS without line search (PyTorch 2.13.0, CPU, float64).

    python make_torch_reference.py          (needs torch and numpy; the tests need only the file)

Every outer epoch has its own data, as when a batch is redrawn, and the rate of CosineAnnealingLR.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

EPOCHS = 3


def rosenbrock(theta: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
    x = theta + shift
    return torch.sum(10.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def net(theta: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
    x, target = data[0], data[1]
    first, bias, last = theta[:6], theta[6:12], theta[12:18]
    output = torch.tanh(x[:, None] * first + bias) @ last + theta[18]
    return torch.mean((output - target) ** 2)


def trajectory(function, theta, data, history, first, last):
    theta = torch.tensor(theta, requires_grad=True)
    optimiser = torch.optim.LBFGS([theta], lr=first, max_iter=20, max_eval=25, history_size=history)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, T_max=len(data), eta_min=last)
    rates, iterates, losses, closures = [], [], [], []
    seen, batch = [], torch.tensor(data[0])

    def closure():
        optimiser.zero_grad()
        loss = function(theta, batch)
        loss.backward()
        seen.append((theta.detach().numpy().copy(), loss.item()))
        return loss

    for points in data:
        batch.copy_(torch.tensor(points))
        seen.clear()
        rates.append(optimiser.param_groups[0]["lr"])
        optimiser.step(closure)
        schedule.step()
        closures.append(len(seen))
        losses.append([loss for _, loss in seen] + [np.nan] * (20 - len(seen)))
        iterates += [where for where, _ in seen[::5]]
    return {
        "rates": np.array(rates),
        "iterates": np.array(iterates),
        "losses": np.array(losses),
        "closures": np.array(closures),
        "final": theta.detach().numpy().copy(),
        "kept": np.array(len(optimiser.state[theta]["old_stps"])),
    }


def main() -> None:
    rng = np.random.default_rng(7)
    x = rng.uniform(-1.0, 1.0, size=(EPOCHS, 12))
    shifts = np.zeros((6, 8))
    shifts[3:] = 0.1  # the fourth epoch has somewhere to go again
    cases = {
        "rosenbrock": (
            rosenbrock,
            rng.uniform(-0.5, 0.5, 8),
            0.01 * rng.normal(size=(EPOCHS, 8)),
            100,
            0.1,
            1e-3,
        ),
        "ring": (net, 0.7 * rng.normal(size=19), np.stack([x, np.cos(2.0 * x)], axis=1), 7, 0.5, 0.05),
        "stops": (rosenbrock, np.full(8, 0.9), shifts, 100, 1.0, 0.9),
    }
    arrays = {}
    for name, (function, theta, data, history, first, last) in cases.items():
        arrays |= {f"{name}.theta": theta, f"{name}.data": data, f"{name}.history": np.array(history)}
        result = trajectory(function, theta, data, history, first, last)
        arrays |= {f"{name}.{key}": value for key, value in result.items()}
        print(name, result["closures"], result["losses"][:, 0], result["kept"])
    np.savez_compressed(Path(__file__).with_name("torch_lbfgs.npz"), **arrays)


if __name__ == "__main__":
    main()

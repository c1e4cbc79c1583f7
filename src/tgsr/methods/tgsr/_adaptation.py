"""Stage 2, short target adaptation (Eq. adapt): a few outer epochs of L-BFGS on the target's own loss.

One optimiser whose memory persists while interior, initial and boundary points are redrawn in every outer epoch;
measured points are always the whole pool. Network and unknowns both move.
"""

from __future__ import annotations

import math
from dataclasses import replace

import jax

from tgsr.loss import Batch
from tgsr.methods._method import Setting
from tgsr.methods.tgsr._options import TgsrOptions
from tgsr.training import LBFGS, Start, Stopping, Trained, train

INNER = 20
TRIAL_STEP = 0.1


def adaptation_epochs(main_epochs: int, options: TgsrOptions) -> int:
    """E_ad = min(cap, ceil(fraction * E_main)), with the product rounded before the ceiling."""
    return min(options.adapt_cap, math.ceil(round(options.adapt_fraction * main_epochs, 9)))


def adapt(setting: Setting, theta: jax.Array, options: TgsrOptions) -> Trained:
    """Train `theta` briefly on the target."""
    epochs = adaptation_epochs(setting.main_epochs, options)
    phase = LBFGS(epochs, INNER, options.adapt_history, TRIAL_STEP, Stopping(0.0, epochs))
    training = replace(setting.training, phases=(phase,), refinement=None, budget=None)
    whole, share = setting.training.budget, options.adapt_fraction / (1.0 + options.adapt_fraction)
    batch: Batch | None = None
    redraw = "adaptation"
    if options.adapt_batch == "fixed":
        batch, redraw = setting.objective.draw(setting.seed, "adaptation", 0), None
    return train(
        setting.objective,
        Start(theta),
        training,
        setting.seed,
        stage="adaptation",
        keeper=setting.keeper,
        progress=setting.progress,
        budget=None if whole is None else math.ceil(share * whole),  # a budget of the user's is shared alike
        batch=batch,
        redraw=redraw,
    )

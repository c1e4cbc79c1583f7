"""How a run may end. Each outcome carries the sentence its reader sees; a study records it, and loses nothing."""

from __future__ import annotations

from enum import Enum


class Outcome(Enum):
    """The ways a run ends: `ok` ones have a usable result, the others say what to try next."""

    CONVERGED = ("converged", True, "The loss stopped improving: the optimiser reached a minimum.")
    BUDGET = ("budget", True, "The budget was spent while the loss was still falling slowly.")
    DIVERGED = (
        "diverged",
        False,
        "The loss grew without bound. Lower the learning rate, or start from other first guesses.",
    )
    NON_FINITE = (
        "non-finite",
        False,
        "The loss became NaN or infinite. Look for a division by zero, a log or root of a negative "
        "number, or an unknown without `positive=True` or `bounds`.",
    )
    NON_FINITE_START = (
        "non-finite-start",
        False,
        "The loss is NaN or infinite before any training. Check that residuals, conditions and sources are "
        "finite at the first guess over the whole domain.",
    )
    STUCK = (
        "stuck",
        True,
        "The optimiser found no downhill step any more: the loss is flat to the precision of its numbers.",
    )
    SCORING = (
        "scoring-failed",
        False,
        "A neuron score is not finite. The short adaptation left the network in a bad state; shorten it.",
    )
    INTERRUPTED = ("interrupted", False, "The run was interrupted; it is saved and can be resumed.")
    FAILED = ("failed", False, "The run stopped with an error.")

    def __init__(self, label: str, ok: bool, sentence: str) -> None:
        self.label, self.ok, self.sentence = label, ok, sentence

    @classmethod
    def of(cls, label: str) -> Outcome:
        """The outcome called `label`, as stored in a result file."""
        return next(outcome for outcome in cls if outcome.label == label)

    def __str__(self) -> str:
        return self.label

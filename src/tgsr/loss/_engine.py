"""Which engine evaluates a loss and its gradient: XLA's products ("jax") or the compiled passes ("native").

"auto" takes the native passes where they run and a closure is long enough to gain by them. Both give the same numbers
to rounding, not to the bit, so a run records its engine and is resumed with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from tgsr._errors import InputError, plain
from tgsr.loss._plan import TermPlan
from tgsr.network._build import NativeUnavailableError, library
from tgsr.network._native import serves
from tgsr.network._surrogate import Surrogate
from tgsr.problem._names import nearest

ENGINES = ("auto", "jax", "native")
# Numbers that travel through the networks in one evaluation (points x channels x width x layers). Below, a closure
# takes few milliseconds, and small networks are trained by Levenberg-Marquardt, which needs none.
LEAST = 1_000_000


def checked_engine(engine: object) -> str:
    """A name of an engine, or a refusal."""
    if engine not in ENGINES:
        raise InputError(f"engine is {plain(engine, 40)!r}", field="engine", remedy=nearest(str(engine), ENGINES))
    return str(engine)


def chosen_engine(
    engine: str, plans: Sequence[TermPlan], surrogate: Surrogate, counts: Sequence[int], collapsing: bool
) -> str:
    """ "jax" or "native". What was asked for by name and cannot be had is refused, never replaced."""
    if checked_engine(engine) == "jax":
        return "jax"
    work = _served_work(plans, surrogate, counts, collapsing)
    if engine == "auto" and work < LEAST:
        return "jax"
    why = reason_against()
    if engine == "auto":
        return "jax" if why else "native"
    if not work:
        why = why or "it serves tanh networks and derivatives up to second order"
    if why is not None:
        raise InputError(
            f"the native engine cannot run: {why}", field="engine", remedy="Leave engine at 'auto' or 'jax'"
        )
    return "native"


def reason_against() -> str | None:
    """Why the native passes cannot run here, if they cannot; builds them at first use."""
    import jax

    if jax.default_backend() != "cpu":
        return f"it runs on processors, and this is a {jax.default_backend()}"
    try:
        library()
    except NativeUnavailableError as error:
        return str(error)
    return None


def engine_label(engine: str) -> str:
    """The engine as it stands in a run's record."""
    return library().label if engine == "native" else "jax"


def _served_work(plans: Sequence[TermPlan], surrogate: Surrogate, counts: Sequence[int], collapsing: bool) -> int:
    """The numbers that would travel through the native passes."""
    work = 0
    for plan, n in zip(plans, counts, strict=True):
        collapses = plan.collapses if collapsing else ()
        for wanted in [plan.carried] if collapses else plan.wanted:
            for number, channels in surrogate.needs(wanted).items():
                net, operators = surrogate.nets[number], sum(c.net == number for c in collapses)
                if serves(net.mlp.activation, channels, operators):
                    work += n * (len(channels) + operators) * sum(net.mlp.widths)
    return work

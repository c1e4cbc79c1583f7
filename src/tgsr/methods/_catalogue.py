"""Every transfer method by name: the built-in ones, one line each, and those of installed packages."""

from __future__ import annotations

from importlib.metadata import entry_points

from tgsr._errors import InputError, plain
from tgsr.methods._bitfit import BitFit
from tgsr.methods._full import Full
from tgsr.methods._grow import Grow
from tgsr.methods._l2_sp import L2SP
from tgsr.methods._lightweight import Lightweight
from tgsr.methods._linear_head import LinearHead
from tgsr.methods._lora import LoRA
from tgsr.methods._method import Method
from tgsr.methods._partial import Partial
from tgsr.methods._scratch import Scratch
from tgsr.methods._sfp import Sfp
from tgsr.methods._tgsr import AdaptOnly, MagnitudeDecay, RandomDecay, RandomReset, ScoreShuffled, Tgsr
from tgsr.methods._tl_gpinn import TlGpinn
from tgsr.problem._names import nearest

KINDS = (
    Scratch,
    Grow,
    Full,
    Lightweight,
    Partial,
    TlGpinn,
    BitFit,
    L2SP,
    Sfp,
    LoRA,
    LinearHead,
    Tgsr,
    AdaptOnly,
    RandomReset,
    RandomDecay,
    ScoreShuffled,
    MagnitudeDecay,
)
BUILT_IN: dict[str, type] = {kind.name: kind for kind in KINDS}
ENTRY_POINTS = "tgsr.methods"


def methods() -> dict[str, type]:
    """All methods by name; a package cannot take the name of a built-in one."""
    found = dict(BUILT_IN)
    for entry in entry_points(group=ENTRY_POINTS):
        if entry.name in found:
            raise InputError(f"package {entry.value!r} offers a method {entry.name!r}, which exists", field=entry.name)
        try:
            kind = entry.load()
        except Exception as error:  # another package's code: whatever it raises is told in one line
            why = f"{type(error).__name__}: {plain(error, 200)}"
            what = f"method {entry.name!r} of {entry.value!r} cannot be loaded ({why})"
            raise InputError(what, field=entry.name, remedy="Repair or remove that package") from error
        if not (isinstance(kind, type) and callable(getattr(kind, "prepare", None))):
            what = f"{entry.value!r} is no method: it is no class with a function `prepare`"
            raise InputError(what, field=entry.name)
        found[entry.name] = kind
    return found


def as_method(value: str | Method) -> Method:
    """A method, or the one of that name with its default options."""
    if isinstance(value, str):
        known = methods()
        if value not in known:
            raise InputError(f"there is no method {plain(value, 40)!r}", field="method", remedy=nearest(value, known))
        return known[value]()
    if isinstance(value, Method) and not isinstance(value, type):
        return value
    raise InputError(f"{plain(value, 40)!r} is no method", field="method", remedy="Give its name, or an instance of it")

"""Names that several parts of the package must agree on, free of any numerical library."""

from __future__ import annotations

from tgsr._errors import InputError

ACTIVATIONS: tuple[str, ...] = ("tanh", "sin", "swish", "gelu", "softplus", "sigmoid")
"""Activations a network may have. Each is smooth, since a residual differentiates the network;
`swish` is z sigmoid(z), `gelu` is z Phi(z) with the exact normal distribution, as in PyTorch."""

_OTHER_NAMES = {"silu": "swish", "sine": "sin", "logistic": "sigmoid"}


def checked_activation(name: object, *, file: str | None = None) -> str:
    """`name` if it stands in the catalogue; never a nearest match."""
    if isinstance(name, str) and name in ACTIVATIONS:
        return name
    remedy = f"Choose one of {', '.join(ACTIVATIONS)}"
    if isinstance(name, str) and name.lower() in _OTHER_NAMES:
        remedy = f"It is called '{_OTHER_NAMES[name.lower()]}' here"
    elif isinstance(name, str) and name.lower() in ("relu", "leaky_relu", "elu", "selu"):
        remedy = f"It has no continuous second derivative, which a residual needs: {remedy[0].lower()}{remedy[1:]}"
    raise InputError(f"unknown activation {name!r}", file=file, field="activation", remedy=remedy)


def checked_names(names: object, what: str, *, file: str | None = None) -> tuple[str, ...]:
    """Distinct names that may serve as argument names of a residual, as a tuple."""
    if isinstance(names, str) or not isinstance(names, (tuple, list)) or not names:
        raise InputError(
            f"{what} must be a non-empty list of names, got {names!r}",
            file=file,
            field=what,
            remedy="Write for example ['x', 't']",
        )
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError(
                f"{name!r} cannot be a name",
                file=file,
                field=what,
                remedy="Use letters, digits and underscores, as for an argument of a Python function",
            )
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"the name '{twice[0]}' is given more than once",
            file=file,
            field=what,
            remedy="Use distinct names",
        )
    return tuple(names)
